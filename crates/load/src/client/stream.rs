//! The bytes of a connection: over TLS, plain, or of the caller's making.

use std::fmt::Debug;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use rustls::pki_types::ServerName;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{Client, ClientError};

/// The receive buffer and the segment size of a small connection: with the segments of loopback, 64 KiB, the sender's
/// kernel buffers megabytes.
const SMALL_BUFFER_BYTES: u32 = 4_096;
const SMALL_SEGMENT_BYTES: u32 = 1_400;

/// The sizes of the buffers between server and client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Buffers {
    /// The system's default sizes.
    Usual,
    /// Little, so that a client that stalls is felt by the server.
    Small,
}

/// Makes connections that are not of the system, such as those of a simulation.
pub trait Connect: Debug + Send + Sync {
    /// Connects to the server.
    ///
    /// # Errors
    /// It cannot be reached. The client tries again later.
    fn connect(&self) -> BoxFuture<'static, io::Result<Box<dyn Transport>>>;
}

/// A byte stream to a server.
pub trait Transport: AsyncRead + AsyncWrite + Debug + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Debug + Send + Unpin> Transport for T {}

/// A byte stream to the server: over TLS, plain, or of the caller's making.
#[derive(Debug)]
pub(super) enum ByteStream {
    Plain(TcpStream),
    /// Boxed, since it is much larger than the other.
    Tls(Box<TlsStream<TcpStream>>),
    Made(Box<dyn Transport>),
}

impl ByteStream {
    /// Connects to the client's target.
    pub(super) async fn connect(client: &Client, buffers: Buffers) -> Result<Self, ClientError> {
        Self::open(client, buffers)
            .await
            .map_err(|error| ClientError::Connect {
                address: client.target.authority.clone(),
                why: error.to_string(),
            })
    }

    async fn open(client: &Client, buffers: Buffers) -> io::Result<Self> {
        if let Some(connect) = &client.connect {
            return connect.connect().await.map(Self::Made);
        }
        let address = client.target.address;
        let socket = if address.is_ipv4() {
            TcpSocket::new_v4()?
        } else {
            TcpSocket::new_v6()?
        };
        if buffers == Buffers::Small {
            socket.set_recv_buffer_size(SMALL_BUFFER_BYTES)?;
            SockRef::from(&socket).set_tcp_mss(SMALL_SEGMENT_BYTES)?;
        }
        let tcp = socket.connect(address).await?;
        // Without this a handshake waits for an acknowledgement that is put off for 40 ms.
        tcp.set_nodelay(true)?;
        let Some(config) = &client.tls else {
            return Ok(Self::Plain(tcp));
        };
        let name = ServerName::try_from(client.target.server_name.clone());
        let name = name.map_err(io::Error::other)?;
        let connector = TlsConnector::from(Arc::clone(config));
        let stream = connector.connect(name, tcp).await?;
        Ok(Self::Tls(Box::new(stream)))
    }
}

impl AsyncRead for ByteStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_read(context, buffer),
            Self::Made(stream) => Pin::new(stream.as_mut()).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for ByteStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_write(context, bytes),
            Self::Made(stream) => Pin::new(stream.as_mut()).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(context),
            Self::Made(stream) => Pin::new(stream.as_mut()).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(context),
            Self::Made(stream) => Pin::new(stream.as_mut()).poll_shutdown(context),
        }
    }
}

/// A stream whose received bytes are counted, without those of TLS.
#[derive(Debug)]
pub(super) struct CountedStream {
    pub(super) stream: ByteStream,
    pub(super) received: Arc<AtomicU64>,
}

impl AsyncRead for CountedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let bytes = buffer.filled().len() - before;
        // Relaxed: the number orders nothing else.
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
        read
    }
}

impl AsyncWrite for CountedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
