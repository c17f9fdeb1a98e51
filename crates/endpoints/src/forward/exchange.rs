//! Forwards a request to another API server, as it is.

use http::header::UPGRADE;
use http::{Request, Response, Version};
use ringwatch_apimachinery::upgrade::is_upgrade;
use ringwatch_http::client::{Backend, BackendAnswer, ExchangeError, exchange};
use ringwatch_http::{RequestBody, ResponseBody, Tunnel, full};
use ringwatch_spans::inject;
use ringwatch_spans::outgoing_call;

use super::headers::{strip, strip_answer, strip_for_upgrade, strip_switched};

/// Marks a response whose body comes from another server and may never end.
#[derive(Clone, Copy, Debug)]
pub struct ProxiedResponse;

/// The failure to pass a request on.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    /// The other server cannot be reached, or does not answer the request.
    #[error("{0}")]
    Unanswered(#[from] ExchangeError),
    /// The other server switches protocols though nobody asked for it.
    #[error("an upgrade that nobody asked for")]
    Upgraded,
}

/// Sends the request, whose headers name the user to the other server, and returns its answer, without the headers that
/// concern one connection. The body is read as fast as the client takes it; an upgraded connection is joined with the
/// client's.
///
/// # Errors
/// [`ForwardError`]
pub async fn forward(
    backend: &Backend,
    mut request: Request<RequestBody>,
) -> Result<Response<ResponseBody>, ForwardError> {
    // However it came, it is sent over HTTP/1.1, where a body of unknown length is sent in chunks.
    *request.version_mut() = Version::HTTP_11;
    let headers = request.headers_mut();
    // Some proxies say `Connection: upgrade` of all requests.
    let asks_for_upgrade = is_upgrade(headers) && headers.contains_key(UPGRADE);
    match asks_for_upgrade {
        true => strip_for_upgrade(headers),
        false => strip(headers),
    }
    let authority = format!("{}:{}", backend.name, backend.port);
    let path = request.uri().path_and_query();
    let path = path.map_or("/", |it| it.as_str());
    let span = outgoing_call::start(request.method(), &authority, path);
    let answer = span.within(async {
        inject(request.headers_mut());
        exchange(backend, request).await
    });
    match answer.await {
        Ok(BackendAnswer::Answered(mut answer)) => {
            outgoing_call::answered(&span, answer.status());
            strip_answer(answer.headers_mut());
            answer.extensions_mut().insert(ProxiedResponse);
            Ok(answer)
        }
        Ok(BackendAnswer::Switched(mut head, switched)) if asks_for_upgrade => {
            strip_switched(head.headers_mut());
            outgoing_call::answered(&span, head.status());
            let mut response = head.map(|()| full(""));
            response.extensions_mut().insert(Tunnel::new(switched));
            Ok(response)
        }
        Ok(BackendAnswer::Switched(..)) => Err(ForwardError::Upgraded),
        Err(error) => {
            outgoing_call::failed(&span, &error);
            Err(error.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use http::header::{CONNECTION, CONTENT_LENGTH};
    use http_body_util::{BodyExt, StreamBody};
    use hyper::body::Frame;
    use ringwatch::clock::Clock;
    use ringwatch_http::client::KeptConnections;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// Returns a listener and the way to it.
    async fn listen() -> (TcpListener, Backend) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let backend = Backend {
            host: "127.0.0.1".to_owned(),
            port,
            tls: None,
            name: "127.0.0.1".to_owned(),
            may_be_local: true,
            connect_timeout: Duration::from_secs(5),
            bytes_per_second: None,
            kept: Some(KeptConnections::new(Clock::real())),
            clock: Clock::real(),
        };
        (listener, backend)
    }

    /// Passes a request on to a server that answers 201 once it has read a text, and returns what that has read, in
    /// lower case.
    async fn passed(request: Request<RequestBody>, until: &str) -> String {
        let (listener, backend) = listen().await;
        let server = async {
            let (mut stream, _) = listener.accept().await.expect("a client");
            let mut read = String::new();
            while !read.contains(until) {
                let byte = stream.read_u8().await.expect("a request");
                read.push(char::from(byte).to_ascii_lowercase());
            }
            let answer = b"HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(answer).await.expect("a client");
            read
        };
        let (read, answer) = tokio::join!(server, forward(&backend, request));
        assert_eq!(answer.expect("an answer").status().as_u16(), 201);
        read
    }

    #[tokio::test]
    async fn a_body_of_unknown_length_is_sent_in_chunks_however_it_came() {
        let pieces = ["one", "two"].map(|it| Ok(Frame::data(Bytes::from(it))));
        let body = StreamBody::new(futures::stream::iter(pieces)).boxed_unsync();
        let request = Request::post("/").version(Version::HTTP_2).body(body);
        let read = passed(request.expect("a request"), "\r\n0\r\n\r\n").await;
        assert!(read.contains("transfer-encoding: chunked"), "{read}");
        assert!(read.contains("one") && read.contains("two"), "{read}");
    }

    #[tokio::test]
    async fn an_answer_in_chunks_is_as_long_as_these_whatever_length_it_names() {
        for length in [1, 3, 100] {
            let (listener, backend) = listen().await;
            let server = async {
                let (mut stream, _) = listener.accept().await.expect("a client");
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.expect("a request"));
                }
                let answer = format!(
                    "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\ntransfer-encoding: chunked\r\n\r\n\
                     3\r\none\r\n0\r\n\r\n"
                );
                let sent = stream.write_all(answer.as_bytes()).await;
                sent.expect("a client");
            };
            let client = async {
                let request = Request::get("/").body(full("")).expect("a request");
                let answer = forward(&backend, request).await.expect("an answer");
                assert_eq!(answer.headers().get(CONTENT_LENGTH), None, "{length}");
                let body = answer.into_body().collect().await.expect("a body");
                assert_eq!(body.to_bytes(), "one", "{length}");
            };
            tokio::join!(server, client);
        }
    }

    #[tokio::test]
    async fn nobody_on_the_way_is_made_to_remove_other_headers() {
        for protocol in [Some("websocket"), None] {
            let mut request = Request::get("/")
                .header(CONNECTION, "Upgrade, Impersonate-User")
                .header("impersonate-user", "ann");
            if let Some(protocol) = protocol {
                request = request.header(UPGRADE, protocol);
            }
            let read = passed(request.body(full("")).expect("a request"), "\r\n\r\n").await;
            let named = read.lines().filter(|it| it.starts_with("connection:"));
            let expected: &[&str] = protocol.map_or(&[], |_| &["connection: upgrade"]);
            assert_eq!(named.collect::<Vec<_>>(), expected, "{read}");
            assert!(read.contains("impersonate-user: ann"), "{read}");
        }
    }
}
