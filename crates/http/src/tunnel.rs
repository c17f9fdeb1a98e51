//! Hands a client's connection over once it has switched protocols (status 101).

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};

/// A stream of bytes in both directions, encrypted or not.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// Completes when a protocol is to end since the server does.
pub type ProtocolEnd = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The protocol that a connection has switched to.
#[async_trait]
pub trait UpgradedProtocol: Send {
    /// Speaks the protocol until either side ends, or `end` completes. `unread` is what the client has sent behind its
    /// request.
    ///
    /// # Errors
    /// Those of the connections.
    async fn run(
        self: Box<Self>,
        client: Box<dyn Duplex>,
        unread: Bytes,
        end: ProtocolEnd,
    ) -> io::Result<()>;
}

/// Marks a response with status 101, in its extensions: once its head is written, the client's connection is handed to
/// the protocol in it.
#[derive(Clone)]
pub struct Tunnel(Arc<Mutex<Option<Box<dyn UpgradedProtocol>>>>);

impl Tunnel {
    /// Hands the connection to this protocol.
    #[must_use]
    pub fn new(upgraded: impl UpgradedProtocol + 'static) -> Self {
        Self(Arc::new(Mutex::new(Some(Box::new(upgraded)))))
    }

    /// Returns the protocol; `None` for all but the first call.
    #[must_use]
    pub fn take(&self) -> Option<Box<dyn UpgradedProtocol>> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.take()
    }
}

impl fmt::Debug for Tunnel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Tunnel")
    }
}
