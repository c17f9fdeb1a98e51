//! Sends messages to the client of a WebSocket, and answers its pings.
//!
//! Whoever reads from the client notes its pings here and reads on. Another future answers them between messages, so a
//! client that does not read keeps nobody from hearing what it says.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::SinkExt;
use ringwatch::clock::Clock;
use ringwatch_http::Duplex;
use tokio::io::WriteHalf;
use tokio::sync::Notify;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::{SEND_MAX, normal, within};

/// The direction to the client.
pub(crate) struct ToClient {
    clock: Clock,
    /// Nothing is read from it.
    socket: tokio::sync::Mutex<WebSocketStream<Box<dyn Duplex>>>,
    /// The newest ping that has not been answered; earlier ones need no answer.
    ping: Mutex<Option<Bytes>>,
    /// Notified when there is a ping.
    pinged: Notify,
}

impl ToClient {
    /// Sends to a connection.
    pub(super) async fn new(writer: WriteHalf<Box<dyn Duplex>>, clock: &Clock) -> Self {
        let writer: Box<dyn Duplex> = Box::new(tokio::io::join(tokio::io::empty(), writer));
        let socket = WebSocketStream::from_raw_socket(writer, Role::Server, None).await;
        Self {
            clock: clock.clone(),
            socket: tokio::sync::Mutex::new(socket),
            ping: Mutex::default(),
            pinged: Notify::new(),
        }
    }

    /// Sends a message, which the client must have read within the limit.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] if it has not, and those of the connection.
    pub(crate) async fn send(&self, message: Message, limit: Duration) -> io::Result<()> {
        let mut socket = self.socket.lock().await;
        within(limit, &self.clock, socket.send(message)).await
    }

    /// Says that there is no more to come.
    ///
    /// # Errors
    /// Those of [`Self::send`].
    pub(super) async fn close(&self) -> io::Result<()> {
        let message = Message::Close(Some(normal()));
        self.send(message, SEND_MAX).await
    }

    /// Has a ping answered.
    pub(crate) fn note_ping(&self, ping: Bytes) {
        *self.ping.lock().unwrap_or_else(PoisonError::into_inner) = Some(ping);
        self.pinged.notify_one();
    }

    fn take_ping(&self) -> Option<Bytes> {
        let mut ping = self.ping.lock().unwrap_or_else(PoisonError::into_inner);
        ping.take()
    }

    /// Answers the pings that are noted, until the client does not read any more.
    pub(crate) async fn answer_pings(&self) {
        loop {
            self.pinged.notified().await;
            let mut socket = self.socket.lock().await;
            let Some(ping) = self.take_ping() else {
                continue;
            };
            let sent = socket.send(Message::Pong(ping));
            if within(SEND_MAX, &self.clock, sent).await.is_err() {
                return;
            }
        }
    }
}
