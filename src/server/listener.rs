//! Accepts connections, so many at a time, and waits for them at the end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::connection::Connections;
use super::error::StartError;

/// So many connections may be open at once; further ones wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 65_536;
/// So many of them may be in their handshake, which costs the server more than the client.
const HANDSHAKES_MAX: usize = 1_024;
/// After a failed accept (no file descriptors left) the next one waits this long.
const ACCEPT_PAUSE_MILLISECONDS: u64 = 100;

/// Accepts connections.
#[derive(Debug)]
pub struct Listener {
    tcp: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Listens on an address; port 0 picks a free one.
    ///
    /// # Errors
    /// The address or the port cannot be had.
    pub async fn bind(address: SocketAddr) -> Result<Self, StartError> {
        let wrong = |error: std::io::Error| {
            let advice = match error.kind() {
                std::io::ErrorKind::AddrInUse => {
                    "end what listens there, or choose another --secure-port (0 picks a free one)"
                }
                std::io::ErrorKind::AddrNotAvailable => "choose a --bind-address of this machine",
                _ => "choose another --secure-port or --bind-address",
            };
            StartError::new(format!("listen on {address}"), error, advice)
        };
        let tcp = TcpListener::bind(address).await.map_err(wrong)?;
        let address = tcp.local_addr().map_err(wrong)?;
        Ok(Self { tcp, address })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts and serves until `stop`; then no longer accepts, and gives what is still open.
    pub async fn run(self, connections: Connections, stop: CancellationToken) -> JoinSet<()> {
        let open = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let shaking = Arc::new(Semaphore::new(HANDSHAKES_MAX));
        let mut tasks = JoinSet::new();
        loop {
            let accepted = async {
                let open = Arc::clone(&open).acquire_owned().await;
                let shaking = Arc::clone(&shaking).acquire_owned().await;
                (self.tcp.accept().await, open, shaking)
            };
            let (accepted, open, shaking) = tokio::select! {
                accepted = accepted => accepted,
                Some(ended) = tasks.join_next(), if !tasks.is_empty() => {
                    report(ended);
                    continue;
                }
                () = stop.cancelled() => return tasks,
            };
            match accepted {
                Ok((tcp, _)) => {
                    let connections = connections.clone();
                    tasks.spawn(async move {
                        let _open = open;
                        let stream = connections.handshake(tcp).await;
                        drop(shaking);
                        if let Some(stream) = stream {
                            connections.serve(stream).await;
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(ACCEPT_PAUSE_MILLISECONDS)).await;
                }
            }
        }
    }
}

/// Waits until all have ended, for at most this long; then ends them. Says how many it ended.
pub async fn finish(mut tasks: JoinSet<()>, at_most: Duration) -> usize {
    let all = async {
        while let Some(ended) = tasks.join_next().await {
            report(ended);
        }
    };
    let _ = tokio::time::timeout(at_most, all).await;
    let left = tasks.len();
    tasks.shutdown().await;
    left
}

fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "a connection panicked");
    }
}
