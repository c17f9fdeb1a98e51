//! A connection that speaks SPDY within a WebSocket: each message is a piece of it.

use std::io;

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use ringwatch::clock::Clock;
use ringwatch_http::client::{Backend, BackendAnswer, SwitchedConnection, exchange};
use ringwatch_http::{Duplex, ProtocolEnd, RequestBody, ResponseBody, UpgradedProtocol};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::tungstenite::Message;

use super::{SENT_BYTES_MAX, STALL_MAX, STREAM_PROTOCOL, speaks_spdy, to_spdy};
use crate::errors::Failure;
use crate::forward::strip;
use crate::websocket::{self, Kind, Piece};

/// The beginning of the names of such subprotocols.
pub(super) const PREFIX: &str = "SPDY/3.1+";

/// Asks the backend to speak SPDY with one of these protocols, and accepts the client's WebSocket if it does. A refusal
/// of the backend is returned to the client.
///
/// # Errors
/// 400 if the request is no opening handshake of a WebSocket, 500 if the backend cannot be reached or speaks something
/// else.
pub(crate) async fn tunnel(
    headers: &HeaderMap,
    backend: &Backend,
    mut request: Request<RequestBody>,
    protocols: &[String],
) -> Result<Response<ResponseBody>, Failure> {
    to_spdy(&mut request, protocols)?;
    let clock = backend.clock.clone();
    let asked = exchange(backend, request).await;
    match asked.map_err(|error| Failure::untranslated(format!("error dialing backend: {error}")))? {
        BackendAnswer::Switched(head, switched) if speaks_spdy(head.headers()) => {
            let chosen = head.headers().get(STREAM_PROTOCOL);
            let chosen = chosen.and_then(|it| it.to_str().ok()).map(str::trim);
            let chosen = chosen.map(|it| format!("{PREFIX}{it}"));
            let asked = websocket::protocols(headers);
            let chosen = chosen.filter(|it| asked.contains(&it.as_str()));
            websocket::accept(headers, chosen.as_deref(), SpdyBackend { switched, clock })
        }
        BackendAnswer::Switched(..) => Err(Failure::untranslated(
            "unable to upgrade: missing upgrade headers in response".to_owned(),
        )),
        BackendAnswer::Answered(mut answer) if answer.status().as_u16() >= 400 => {
            strip(answer.headers_mut());
            Ok(answer)
        }
        BackendAnswer::Answered(answer) => {
            let code = answer.status().as_u16();
            let why = format!("invalid upgrade response: status code {code}");
            Err(Failure::untranslated(why))
        }
    }
}

/// A backend that speaks SPDY, for a client that does so within a WebSocket.
struct SpdyBackend {
    switched: SwitchedConnection,
    clock: Clock,
}

#[async_trait]
impl UpgradedProtocol for SpdyBackend {
    async fn run(
        self: Box<Self>,
        client: Box<dyn Duplex>,
        unread: Bytes,
        end: ProtocolEnd,
    ) -> io::Result<()> {
        let clock = &self.clock;
        let (to_client, mut from_client) = websocket::open(client, unread, clock).await;
        let SwitchedConnection {
            stream,
            early,
            throttle,
        } = self.switched;
        let (from_backend, mut to_backend) = tokio::io::split(stream);
        let mut from_backend = early.as_ref().chain(from_backend);
        let throttle = throttle.as_ref();
        let said = async {
            while let Ok(Some(piece)) = from_client.next().await {
                let bytes = match piece {
                    Piece::Message {
                        kind: Kind::Binary,
                        bytes,
                        ..
                    } => bytes,
                    Piece::Message { .. } => continue,
                    Piece::Ping(ping) => {
                        to_client.note_ping(ping);
                        continue;
                    }
                };
                let start = clock.now();
                to_backend.write_all(&bytes).await?;
                to_backend.flush().await?;
                if let Some(throttle) = throttle {
                    throttle.pause(bytes.len(), start).await;
                }
            }
            io::Result::Ok(())
        };
        let heard = async {
            let mut buffer = vec![0; SENT_BYTES_MAX];
            loop {
                let read = from_backend.read(&mut buffer).await?;
                if read == 0 {
                    return io::Result::Ok(());
                }
                let start = clock.now();
                let message = Message::binary(Bytes::copy_from_slice(&buffer[..read]));
                to_client.send(message, STALL_MAX).await?;
                if let Some(throttle) = throttle {
                    throttle.pause(read, start).await;
                }
            }
        };
        tokio::select! {
            ended = said => ended?,
            ended = heard => ended?,
            () = to_client.answer_pings() => {}
            () = end => {}
        }
        // The backend's connection does not stay open until the client has closed its own.
        drop((from_backend, to_backend));
        // A client that is gone already returns an error, which is ignored.
        let _ = websocket::end(clock, &to_client, &mut from_client).await;
        Ok(())
    }
}
