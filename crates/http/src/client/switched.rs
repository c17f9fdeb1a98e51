//! Joins two connections after an upgrade: bytes of the client go to the backend, and back.

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::kept::BackendStream;
use super::throttle::Throttle;
use crate::tunnel::{Duplex, ProtocolEnd, UpgradedProtocol};

/// A connection to a backend that has switched protocols.
pub struct SwitchedConnection {
    /// The connection itself.
    pub stream: BackendStream,
    /// The bytes that the backend has sent behind the head of its response.
    pub early: Bytes,
    /// The rate of each direction; `None` for no limit.
    pub throttle: Option<Throttle>,
}

impl fmt::Debug for SwitchedConnection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Switched")
    }
}

#[async_trait]
impl UpgradedProtocol for SwitchedConnection {
    /// Copies in both directions until one side has ended, as kube-apiserver does; both connections are closed then.
    /// Nothing is read that the other side has no room for.
    async fn run(
        mut self: Box<Self>,
        client: Box<dyn Duplex>,
        unread: Bytes,
        end: ProtocolEnd,
    ) -> std::io::Result<()> {
        let (mut from_client, mut to_client) = tokio::io::split(client);
        to_client.write_all(&self.early).await?;
        to_client.flush().await?;
        self.stream.write_all(&unread).await?;
        self.stream.flush().await?;
        let (mut from_backend, mut to_backend) = tokio::io::split(self.stream);
        let throttle = self.throttle.as_ref();
        tokio::select! {
            copied = copy(throttle, &mut from_backend, &mut to_client) => copied?,
            copied = copy(throttle, &mut from_client, &mut to_backend) => copied?,
            () = end => {}
        }
        // Both sides are shut down; one that is gone already returns an error, which is ignored.
        let _ = to_client.shutdown().await;
        let _ = to_backend.shutdown().await;
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
