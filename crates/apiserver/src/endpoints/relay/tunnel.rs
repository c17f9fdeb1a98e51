//! Joins two connections after an upgrade: bytes of the client go to the kubelet, and back.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::backend::Stream;
use super::throttle::Throttle;

/// Marks an answer with status 101, in its extensions: once its head is written, the connection to
/// the client is to be joined with the kubelet's.
#[derive(Clone, Debug)]
pub struct Tunnel(Arc<Mutex<Option<Switched>>>);

/// The kubelet's side of a tunnel.
pub struct Switched {
    pub(super) stream: Stream,
    /// The bytes that the kubelet has sent behind the head of its response.
    pub(super) early: Bytes,
    /// The rate of each direction; `None` for no limit.
    pub(super) throttle: Option<Throttle>,
}

impl Tunnel {
    pub(super) fn new(switched: Switched) -> Self {
        Self(Arc::new(Mutex::new(Some(switched))))
    }

    /// Returns the kubelet's side of the connection; `None` for all but the first call.
    #[must_use]
    pub fn take(&self) -> Option<Switched> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.take()
    }
}

impl fmt::Debug for Switched {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let early = self.early.len();
        write!(formatter, "Switched({early} bytes read)")
    }
}

impl Switched {
    /// Copies in both directions until one side has ended, as kube-apiserver does; both connections
    /// are closed then. `unread` is what the client has sent behind its request. Nothing is read that
    /// the other side has not room for.
    ///
    /// # Errors
    /// Those of either connection.
    pub async fn join<T>(mut self, client: T, unread: &[u8]) -> std::io::Result<()>
    where
        T: AsyncRead + AsyncWrite + Unpin,
    {
        let (mut from_client, mut to_client) = tokio::io::split(client);
        to_client.write_all(&self.early).await?;
        to_client.flush().await?;
        self.stream.write_all(unread).await?;
        self.stream.flush().await?;
        let (mut from_kubelet, mut to_kubelet) = tokio::io::split(self.stream);
        let throttle = self.throttle.as_ref();
        tokio::select! {
            copied = copy(throttle, &mut from_kubelet, &mut to_client) => copied?,
            copied = copy(throttle, &mut from_client, &mut to_kubelet) => copied?,
        }
        // Both sides are shut down; one that is gone already returns an error, which is ignored.
        let _ = to_client.shutdown().await;
        let _ = to_kubelet.shutdown().await;
        Ok(())
    }
}

async fn copy(
    throttle: Option<&Throttle>,
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
) -> std::io::Result<()> {
    match throttle {
        Some(throttle) => throttle.copy(from, to).await,
        None => tokio::io::copy(from, to).await.map(|_| ()),
    }
}
