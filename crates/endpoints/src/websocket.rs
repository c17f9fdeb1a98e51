//! Sends the body of a response over a WebSocket: watches, and the logs of containers.
//!
//! Follows apiserver's `handlers/watch.go` (`HandleWS`) and streaming's `wsstream/stream.go` of Kubernetes 1.36.
//! Messages of the client are read and ignored; its close frame, or the end of its connection, ends the response. A
//! response that ends, or that the server ends, is followed by a close frame.
//!
//! The WebSockets of clients that have something to say are [`open`]ed in two directions: [`ToClient`], [`FromClient`].

mod from_client;
mod to_client;

use std::io;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use http::header::{ORIGIN, SEC_WEBSOCKET_PROTOCOL};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::BodyExt;
use ringwatch::clock::Clock;
use ringwatch_http::{Duplex, ProtocolEnd, ResponseBody, Tunnel, UpgradedProtocol, full};
use tokio::io::{AsyncWriteExt, ReadHalf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::server::create_response;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

pub(super) use self::from_client::{Kind, Piece};
pub(super) use self::to_client::ToClient;
use super::errors::Failure;

/// Maximum number of bytes of a message of a client that has nothing to say.
const RECEIVED_BYTES_MAX: usize = 64 << 10;
/// Maximum time until a client has read a message. Then its connection is closed.
const SEND_MAX: Duration = Duration::from_secs(60);

/// The subprotocol of logs whose messages are the bytes themselves.
const BINARY_PROTOCOL: &str = "binary.k8s.io";
/// The subprotocol of logs whose messages are the bytes in base64, as text.
const BASE64_PROTOCOL: &str = "base64.binary.k8s.io";

/// The form in which each chunk of a body becomes a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MessageForm {
    Text,
    Binary,
    Base64,
}

/// Sends a watch, whose events are the chunks of the body: as text if `is_text`, else as binary messages.
///
/// # Errors
/// 400 if the request is no opening handshake of a WebSocket, 403 without the header `Origin`.
pub(super) fn watch(
    headers: &HeaderMap,
    events: ResponseBody,
    is_text: bool,
    clock: &Clock,
) -> Result<Response<ResponseBody>, Failure> {
    if !has_origin(headers) {
        return Err(Failure::handshake("null origin"));
    }
    let protocols = protocols(headers);
    if protocols.len() > 1 {
        return Err(Failure::bad_request("bad websocket protocol"));
    }
    let form = if is_text {
        MessageForm::Text
    } else {
        MessageForm::Binary
    };
    let messages = Messages::new(events, form, false, clock);
    accept(headers, protocols.first().copied(), messages)
}

/// Sends a log in the first of the client's subprotocols that is supported, after an empty message.
///
/// # Errors
/// 400 if the request is no opening handshake of a WebSocket, 403 if none of its subprotocols is supported.
pub(super) fn log(
    headers: &HeaderMap,
    log: ResponseBody,
    clock: &Clock,
) -> Result<Response<ResponseBody>, Failure> {
    let asked = protocols(headers);
    let supported = |name: &&str| [BINARY_PROTOCOL, BASE64_PROTOCOL].contains(name);
    let chosen = asked.iter().copied().find(supported);
    if chosen.is_none() && !asked.is_empty() {
        return Err(Failure::handshake(format!(
            "requested protocol(s) are not supported: {asked:?}; supports {BINARY_PROTOCOL} and {BASE64_PROTOCOL}"
        )));
    }
    let form = match chosen {
        Some(BASE64_PROTOCOL) => MessageForm::Base64,
        _ => MessageForm::Binary,
    };
    accept(headers, chosen, Messages::new(log, form, true, clock))
}

/// Returns true if the header `Origin` is a URL with a scheme, or a path. Pages without an origin of their own send the
/// text `null`.
fn has_origin(headers: &HeaderMap) -> bool {
    let origin = headers.get(ORIGIN).and_then(|value| value.to_str().ok());
    let origin = origin.and_then(|text| text.parse::<http::Uri>().ok());
    origin.is_some_and(|uri| uri.scheme().is_some() || uri.path().starts_with('/'))
}

/// Returns the subprotocols that the client offers, in its order of preference.
pub(super) fn protocols(headers: &HeaderMap) -> Vec<&str> {
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).into_iter();
    let values = values.filter_map(|value| value.to_str().ok());
    let names = values.flat_map(|value| value.split(','));
    names
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect()
}

/// Accepts the opening handshake of a WebSocket, with the chosen subprotocol, and hands the connection over to
/// `upgraded`.
///
/// # Errors
/// 400 if the request is no opening handshake.
pub(super) fn accept(
    headers: &HeaderMap,
    protocol: Option<&str>,
    upgraded: impl UpgradedProtocol + 'static,
) -> Result<Response<ResponseBody>, Failure> {
    let mut request = Request::new(());
    request.headers_mut().clone_from(headers);
    let accepted =
        create_response(&request).map_err(|error| Failure::bad_request(error.to_string()))?;
    let mut response = accepted.map(|()| full(""));
    if let Some(protocol) = protocol {
        let value = HeaderValue::from_str(protocol).map_err(Failure::internal)?;
        response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, value);
    }
    response.extensions_mut().insert(Tunnel::new(upgraded));
    Ok(response)
}

/// A body whose chunks are sent as messages.
struct Messages {
    body: ResponseBody,
    form: MessageForm,
    /// True if an empty message comes first.
    greets: bool,
    clock: Clock,
}

impl Messages {
    fn new(body: ResponseBody, form: MessageForm, greets: bool, clock: &Clock) -> Self {
        Self {
            body,
            form,
            greets,
            clock: clock.clone(),
        }
    }
}

#[async_trait]
impl UpgradedProtocol for Messages {
    async fn run(
        mut self: Box<Self>,
        client: Box<dyn Duplex>,
        unread: Bytes,
        mut end: ProtocolEnd,
    ) -> io::Result<()> {
        let config = WebSocketConfig::default()
            .max_message_size(Some(RECEIVED_BYTES_MAX))
            .max_frame_size(Some(RECEIVED_BYTES_MAX));
        let unread = unread.to_vec();
        let mut socket =
            WebSocketStream::from_partially_read(client, unread, Role::Server, Some(config)).await;
        if self.greets {
            in_time(&self.clock, socket.send(self.form.message(Bytes::new()))).await?;
        }
        let client_closes = loop {
            tokio::select! {
                frame = self.body.frame() => {
                    let Some(frame) = frame else { break false };
                    if let Ok(chunk) = frame.map_err(io::Error::other)?.into_data() {
                        in_time(&self.clock, socket.send(self.form.message(chunk))).await?;
                    }
                }
                received = socket.next() => match received {
                    Some(Ok(Message::Close(_))) => break true,
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => return Ok(()),
                },
                () = &mut end => break false,
            }
        };
        let closing = async {
            if client_closes {
                // Reading on sends the reply to the close frame.
                while let Some(Ok(_)) = socket.next().await {}
            } else {
                socket.close(Some(normal())).await?;
            }
            Ok(socket.get_mut().shutdown().await?)
        };
        in_time(&self.clock, closing).await
    }
}

/// The close frame of a server that has no more to send.
fn normal() -> CloseFrame {
    CloseFrame {
        code: CloseCode::Normal,
        reason: "".into(),
    }
}

/// The direction of a WebSocket from the client.
pub(super) type FromClient = from_client::FromClient<ReadHalf<Box<dyn Duplex>>>;

/// Takes over the connection of a client as a WebSocket, of which both directions are used at the same time.
pub(super) async fn open(
    client: Box<dyn Duplex>,
    unread: Bytes,
    clock: &Clock,
) -> (ToClient, FromClient) {
    let (reader, writer) = tokio::io::split(client);
    let to_client = ToClient::new(writer, clock).await;
    (to_client, from_client::FromClient::new(reader, unread))
}

/// Closes a WebSocket, and waits for the client to do the same, unless it has already: what it has not read yet would
/// be lost otherwise.
///
/// # Errors
/// [`io::ErrorKind::TimedOut`] if the client takes too long, and those of the connection.
pub(super) async fn end(
    clock: &Clock,
    to_client: &ToClient,
    from_client: &mut FromClient,
) -> io::Result<()> {
    to_client.close().await?;
    let drained = async {
        from_client.drain().await;
        Ok(())
    };
    in_time(clock, drained).await
}

/// Waits until a message is sent.
///
/// # Errors
/// [`io::ErrorKind::TimedOut`] if the client does not read in time, and those of the connection.
async fn in_time(clock: &Clock, sent: impl Future<Output = Result<(), Error>>) -> io::Result<()> {
    within(SEND_MAX, clock, sent).await
}

/// Waits at most so long until a message is sent.
///
/// # Errors
/// [`io::ErrorKind::TimedOut`] if the client does not read in time, and those of the connection.
async fn within(
    limit: Duration,
    clock: &Clock,
    sent: impl Future<Output = Result<(), Error>>,
) -> io::Result<()> {
    let sent = clock.timeout(limit, sent).await;
    sent.map_err(|_| io::ErrorKind::TimedOut)?
        .map_err(|error| match error {
            Error::Io(error) => error,
            other => io::Error::other(other),
        })
}

impl MessageForm {
    fn message(self, chunk: Bytes) -> Message {
        match self {
            // Events in JSON are always valid UTF-8.
            Self::Text => Message::text(String::from_utf8_lossy(&chunk).into_owned()),
            Self::Binary => Message::binary(chunk),
            Self::Base64 => Message::text(BASE64_STANDARD.encode(chunk)),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use jiff::Timestamp;

    use super::*;

    /// Returns both ends of a WebSocket: the client's, and the two directions of the server's.
    async fn connected(
        clock: &Clock,
    ) -> (
        WebSocketStream<tokio::io::DuplexStream>,
        ToClient,
        FromClient,
    ) {
        let (client, server) = tokio::io::duplex(RECEIVED_BYTES_MAX);
        let client = WebSocketStream::from_raw_socket(client, Role::Client, None).await;
        let (to_client, from_client) = open(Box::new(server), Bytes::new(), clock).await;
        (client, to_client, from_client)
    }

    #[tokio::test]
    async fn a_client_that_has_closed_is_not_waited_for() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let (mut client, to_client, mut from_client) = connected(&clock).await;
        client.send(Message::Close(None)).await.expect("sent");
        assert_eq!(from_client.next().await.expect("no error"), None);
        // Neither the client nor the clock does anything meanwhile.
        let ended = end(&clock, &to_client, &mut from_client).now_or_never();
        ended.expect("without waiting").expect("ended");
        let reply = client.next().await.expect("a reply").expect("a reply");
        assert_eq!(reply, Message::Close(Some(normal())));
    }

    #[tokio::test]
    async fn a_client_that_has_not_closed_is_waited_for() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let (mut client, to_client, mut from_client) = connected(&clock).await;
        let ending = end(&clock, &to_client, &mut from_client);
        tokio::pin!(ending);
        assert!(futures::poll!(&mut ending).is_pending());
        // Reading the close frame sends the reply.
        while let Some(Ok(_)) = client.next().now_or_never().flatten() {}
        ending.await.expect("ended");
    }
}
