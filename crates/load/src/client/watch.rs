//! A watch: a request whose answer is read event by event, as they come.
//!
//! Over HTTP/1.1 a watch that has its connection to itself is read without hyper: into one buffer
//! that all connections of a thread share, chunks and frames cut out of it where they lie.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::ready;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use ringwatch_tls::target::USER_AGENT;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};

use super::chunks::ChunkedBody;
use super::event::{EventKind, OwnedEvent, ReceivedEvent};
use super::frames::Frames;
use super::status::StatusFailure;
use super::stream::ByteStream;
use super::{Client, ClientError, Connection, Encoding};

/// The number of bytes that are read at once.
const SCRATCH_BYTES: usize = 64 << 10;
/// The head of an answer, or an error's body, is at most this long.
const HEAD_BYTES_MAX: usize = 16 << 10;

thread_local! {
    /// The buffer into which all connections of a thread read, one after the other.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; SCRATCH_BYTES].into());
}

/// An open watch. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Watch {
    source: WatchSource,
    frames: Frames,
    encoding: Encoding,
    /// Read, and not asked for yet.
    waiting: VecDeque<OwnedEvent>,
}

#[derive(Debug)]
enum WatchSource {
    /// A connection of its own.
    Own {
        stream: ByteStream,
        body: ChunkedBody,
    },
    /// A stream of a connection, which must not end before it.
    Shared {
        body: Incoming,
        _connection: Option<Connection>,
    },
}

impl Connection {
    /// Opens a watch on this connection, which over HTTP/1.1 can do nothing else meanwhile.
    pub(crate) async fn watch(
        &mut self,
        path: &str,
        encoding: Encoding,
    ) -> Result<Watch, ClientError> {
        let source = WatchSource::Shared {
            body: self.stream(path, encoding.stream_type()).await?,
            _connection: self.another(),
        };
        Ok(Watch::new(source, encoding))
    }
}

impl Watch {
    fn new(source: WatchSource, encoding: Encoding) -> Self {
        Self {
            source,
            frames: Frames::new(encoding),
            encoding,
            waiting: VecDeque::new(),
        }
    }

    /// Asks for a watch over HTTP/1.1 on a connection that it has to itself.
    pub(super) async fn over(
        client: &Client,
        mut stream: ByteStream,
        path: &str,
        encoding: Encoding,
    ) -> Result<Self, ClientError> {
        let broken = |error: std::io::Error| ClientError::Broken(error.to_string());
        let authorization = client.authorization();
        let authorization = authorization.map(|it| format!("authorization: {it}\r\n"));
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: {}\r\naccept: {}\r\nuser-agent: {USER_AGENT}\r\n{}\r\n",
            client.target.authority,
            encoding.stream_type(),
            authorization.unwrap_or_default(),
        );
        stream.write_all(request.as_bytes()).await.map_err(broken)?;
        stream.flush().await.map_err(broken)?;
        let mut head = Vec::with_capacity(1_024);
        let end = loop {
            if let Some(end) = head.windows(4).position(|it| it == b"\r\n\r\n") {
                break end + 4;
            }
            let read = stream.read_buf(&mut head).await.map_err(broken)?;
            if read == 0 || head.len() > HEAD_BYTES_MAX {
                return Err(ClientError::Malformed("no head of an answer"));
            }
        };
        let answer = ResponseHead::read(&head[..end])?;
        if answer.status != 200 {
            let text = answer.refusal(&head[end..], &mut stream).await;
            return Err(StatusFailure::read(&text).into_error(answer.status));
        }
        let body = answer.body;
        let mut watch = Self::new(WatchSource::Own { stream, body }, encoding);
        watch.keep(&head[end..])?;
        Ok(watch)
    }

    /// Keeps events that came with the head.
    fn keep(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        let WatchSource::Own { body, .. } = &mut self.source else {
            return Ok(());
        };
        let (frames, waiting, encoding) = (&mut self.frames, &mut self.waiting, self.encoding);
        body.read(bytes, |data| {
            frames.read(data, |frame| {
                waiting.push_back(ReceivedEvent::parse(frame, encoding)?.kept());
                Ok(())
            })
        })?;
        Ok(())
    }

    /// Waits for bytes and hands over the events in them. Says whether the watch goes on. Who drops
    /// the future has lost nothing.
    ///
    /// # Errors
    /// The connection broke, or what came is no watch. An event of the type `ERROR` is no error
    /// here.
    pub(crate) async fn read(
        &mut self,
        mut take: impl FnMut(ReceivedEvent<'_>),
    ) -> Result<bool, ClientError> {
        if !self.waiting.is_empty() {
            for event in self.waiting.drain(..) {
                take(event.borrowed());
            }
            return Ok(true);
        }
        let (frames, encoding) = (&mut self.frames, self.encoding);
        let mut take = |data: &[u8]| {
            frames.read(data, |frame| {
                take(ReceivedEvent::parse(frame, encoding)?);
                Ok(())
            })
        };
        match &mut self.source {
            // The connection may stay open for other requests, so nothing would come any more.
            WatchSource::Own {
                body: ChunkedBody::Last,
                ..
            } => Ok(false),
            WatchSource::Own { stream, body } => {
                poll_fn(|context| {
                    SCRATCH.with_borrow_mut(|scratch| {
                        let mut buffer = ReadBuf::new(scratch);
                        let read = ready!(Pin::new(&mut *stream).poll_read(context, &mut buffer));
                        read.map_err(|error| ClientError::Broken(error.to_string()))?;
                        let bytes = buffer.filled();
                        let goes_on = body.read(bytes, &mut take)?;
                        Ok(goes_on && !bytes.is_empty()).into()
                    })
                })
                .await
            }
            WatchSource::Shared { body, .. } => match body.frame().await {
                None => Ok(false),
                Some(Err(error)) => Err(ClientError::Broken(error.to_string())),
                Some(Ok(frame)) => {
                    let data = frame.into_data().unwrap_or_default();
                    take(&data).map(|()| true)
                }
            },
        }
    }

    /// Returns the next event; `None` when the watch has ended. Who drops the future has lost nothing.
    ///
    /// # Errors
    /// The connection broke, or the server ended the watch with an error.
    pub(crate) async fn next(&mut self) -> Result<Option<OwnedEvent>, ClientError> {
        while self.waiting.is_empty() {
            let mut came = Vec::new();
            let goes_on = self.read(|event| came.push(event.kept())).await;
            self.waiting.extend(came);
            if !goes_on? && self.waiting.is_empty() {
                return Ok(None);
            }
        }
        let event = self.waiting.pop_front();
        if let Some(event) = &event
            && event.kind == EventKind::Error
        {
            return Err(event.borrowed().failure());
        }
        Ok(event)
    }
}

/// The parts of the head of an HTTP/1.1 answer that matter here.
struct ResponseHead {
    status: u16,
    body: ChunkedBody,
    length: Option<usize>,
}

impl ResponseHead {
    fn read(head: &[u8]) -> Result<Self, ClientError> {
        let text = String::from_utf8_lossy(head).to_ascii_lowercase();
        let status = text
            .strip_prefix("http/1.1 ")
            .and_then(|rest| rest.get(..3));
        let status = status.and_then(|status| status.parse().ok());
        let length = text.split("\r\n").find_map(|line| {
            let value = line.strip_prefix("content-length:")?;
            value.trim().parse().ok()
        });
        Ok(Self {
            status: status.ok_or(ClientError::Malformed("not an answer of HTTP/1.1"))?,
            body: if text.contains("transfer-encoding: chunked") {
                ChunkedBody::chunked()
            } else {
                ChunkedBody::Plain
            },
            length,
        })
    }

    /// Returns the body of a refusal, as far as it matters.
    async fn refusal(&self, begun: &[u8], stream: &mut ByteStream) -> Vec<u8> {
        let (mut body, mut text) = (self.body, Vec::new());
        let mut bytes = begun.to_vec();
        loop {
            let take = |data: &[u8]| {
                text.extend_from_slice(data);
                Ok(())
            };
            let goes_on = body.read(&bytes, take).unwrap_or(false);
            let wanted = self.length.unwrap_or(HEAD_BYTES_MAX).min(HEAD_BYTES_MAX);
            if !goes_on || text.len() >= wanted {
                return text;
            }
            bytes.clear();
            if !matches!(stream.read_buf(&mut bytes).await, Ok(1..)) {
                return text;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use ringwatch_testing::eventually::DEADLINE;
    use tokio::net::TcpListener;

    use super::*;
    use crate::client::HttpVersion;
    use crate::target::{Credentials, LoadTarget};

    /// A server may send the last events together with the end, and keep the connection.
    #[tokio::test]
    async fn a_watch_ends_though_its_connection_stays_open() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let target = LoadTarget {
            address,
            authority: address.to_string(),
            server_name: address.ip().to_string(),
            tls: false,
            credentials: Credentials::default(),
        };
        let client = Client::new(target, HttpVersion::One).expect("a client");
        let event = r#"{"type":"ADDED","object":{"metadata":{"name":"n","resourceVersion":"7"}}}"#;
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        let body = format!("{:x}\r\n{event}\n\r\n0\r\n\r\n", event.len() + 1);
        for parts in [vec![format!("{head}{body}")], vec![head.to_owned(), body]] {
            let serving = async {
                let (mut stream, _) = listener.accept().await.expect("a client");
                let mut request = [0; 1_024];
                let read = stream.read(&mut request).await.expect("a request");
                assert!(read > 0);
                for part in parts {
                    stream.write_all(part.as_bytes()).await.expect("room");
                    tokio::task::yield_now().await;
                }
                stream
            };
            let (stream, watch) = tokio::join!(serving, client.watch("/", Encoding::Json));
            let mut watch = watch.expect("a watch");
            let next = tokio::time::timeout(DEADLINE, watch.next()).await;
            let next = next.expect("an event in time").expect("a watch");
            assert_eq!(next.map(|event| event.revision), Some(7));
            let end = tokio::time::timeout(DEADLINE, watch.next()).await;
            assert!(end.expect("an end in time").expect("a watch").is_none());
            drop(stream);
        }
    }
}
