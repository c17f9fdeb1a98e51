//! The network between clients and servers: turmoil's, over which each connection reads and writes in small parts and
//! can be reset.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::task::AtomicWaker;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use ringwatch_load::{Connect, Transport};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use turmoil::net::TcpStream;

/// The port of every server.
pub(crate) const PORT: u16 = 6443;
/// A server that is down does not answer; a client waits so long for it.
const CONNECT_MAX: Duration = Duration::from_secs(1);
/// The number of reads or writes of which one is cut short on average.
const SHORT_ONE_OF: u32 = 8;

/// Returns the name of a server's host.
pub(crate) fn host(server: usize) -> String {
    format!("server-{server}")
}

/// Makes the connections of clients, and resets them.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    servers: usize,
    /// The connections, open or not.
    links: Arc<Mutex<Vec<Arc<Link>>>>,
}

/// The state of a connection that resets it from outside.
#[derive(Debug)]
struct Link {
    server: usize,
    is_reset: AtomicBool,
    reader: AtomicWaker,
    writer: AtomicWaker,
}

impl Network {
    pub(crate) fn new(servers: usize) -> Self {
        Self {
            servers,
            links: Arc::default(),
        }
    }

    /// Resets so many in a hundred of the open connections, chosen at random.
    pub(crate) fn reset_some(&self, percent: u8) {
        self.reset(|_| rand::rng().random_ratio(u32::from(percent), 100));
    }

    /// Resets all connections to a server.
    pub(crate) fn reset_all(&self, server: usize) {
        self.reset(|link| link.server == server);
    }

    fn reset(&self, is_chosen: impl Fn(&Link) -> bool) {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        // One that nobody else holds is closed.
        links.retain(|link| Arc::strong_count(link) > 1);
        for link in links.iter().filter(|link| is_chosen(link)) {
            link.is_reset.store(true, Ordering::Relaxed);
            link.reader.wake();
            link.writer.wake();
        }
    }
}

impl Connect for Network {
    fn connect(&self) -> BoxFuture<'static, io::Result<Box<dyn Transport>>> {
        let network = self.clone();
        Box::pin(async move {
            let server = rand::rng().random_range(0..network.servers);
            let connecting = TcpStream::connect((host(server), PORT));
            let connected = tokio::time::timeout(CONNECT_MAX, connecting).await;
            let stream = connected.map_err(|_| io::ErrorKind::TimedOut)??;
            let link = Arc::new(Link {
                server,
                is_reset: AtomicBool::new(false),
                reader: AtomicWaker::new(),
                writer: AtomicWaker::new(),
            });
            let mut links = network.links.lock().unwrap_or_else(PoisonError::into_inner);
            links.push(Arc::clone(&link));
            let transport: Box<dyn Transport> = Box::new(Unsteady::new(stream, Some(link)));
            Ok(transport)
        })
    }
}

/// A connection that reads and writes in parts of any size, and may be reset.
#[derive(Debug)]
pub(crate) struct Unsteady {
    stream: TcpStream,
    link: Option<Arc<Link>>,
    random: SmallRng,
}

impl Unsteady {
    /// Wraps the end of a connection at a server.
    pub(crate) fn accepted(stream: TcpStream) -> Self {
        Self::new(stream, None)
    }

    fn new(stream: TcpStream, link: Option<Arc<Link>>) -> Self {
        Self {
            stream,
            link,
            random: SmallRng::from_os_rng(),
        }
    }

    /// Returns how many of so many bytes are read or written at once.
    fn part(&mut self, bytes: usize) -> usize {
        if bytes > 1 && self.random.random_ratio(1, SHORT_ONE_OF) {
            self.random.random_range(1..bytes)
        } else {
            bytes
        }
    }

    /// Returns an error if the connection is reset; otherwise the task is woken when it is.
    fn check(
        &self,
        waker: impl Fn(&Link) -> &AtomicWaker,
        context: &Context<'_>,
    ) -> io::Result<()> {
        let Some(link) = &self.link else {
            return Ok(());
        };
        waker(link).register(context.waker());
        match link.is_reset.load(Ordering::Relaxed) {
            true => Err(io::ErrorKind::ConnectionReset.into()),
            false => Ok(()),
        }
    }
}

impl AsyncRead for Unsteady {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(|link| &link.reader, context)?;
        let part = self.part(buffer.remaining());
        let mut read = vec![0; part];
        let mut partial = ReadBuf::new(&mut read);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut partial))?;
        buffer.put_slice(partial.filled());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Unsteady {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check(|link| &link.writer, context)?;
        let part = self.part(bytes.len());
        Pin::new(&mut self.stream).poll_write(context, &bytes[..part])
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, split};
    use tokio::task::JoinSet;
    use turmoil::net::TcpListener;

    use super::*;

    /// Bytes of a write.
    const WRITE: usize = 1_000;
    /// The number of writes of a test: the probability that none of so many is cut short is 10^-23.
    const WRITES: usize = 400;

    /// Runs a client of a server that sends everything back.
    fn with_an_echo(client: impl Future<Output = turmoil::Result> + 'static) {
        let mut simulation = turmoil::Builder::new().build();
        simulation.host(host(0), || async {
            let listener = TcpListener::bind(("0.0.0.0", PORT)).await?;
            let (stream, _) = listener.accept().await?;
            let (mut reader, mut writer) = split(Unsteady::accepted(stream));
            copy(&mut reader, &mut writer).await?;
            Ok(())
        });
        simulation.client("client", client);
        simulation.run().expect("the client ends");
    }

    #[test]
    fn what_is_read_and_written_in_parts_is_whole() {
        with_an_echo(async {
            let bytes: Vec<u8> = (0..WRITE * WRITES).map(|it| (it % 251) as u8).collect();
            let (mut reader, mut writer) = split(Network::new(1).connect().await?);
            let writing = async {
                let (mut left, mut short) = (&bytes[..], 0);
                while !left.is_empty() {
                    let wanted = left.len().min(WRITE);
                    let written = writer.write(&left[..wanted]).await?;
                    short += usize::from(written < wanted);
                    left = &left[written..];
                }
                Ok::<_, io::Error>(short)
            };
            let mut read = vec![0; bytes.len()];
            let (short, _) = tokio::try_join!(writing, reader.read_exact(&mut read))?;
            assert!(short > 0, "no write was short");
            assert!(read == bytes, "bytes are lost or in another order");
            Ok(())
        });
    }

    #[test]
    fn a_reset_wakes_a_reader() {
        with_an_echo(async {
            let network = Network::new(1);
            let mut stream = network.connect().await?;
            // In a task of its own, which nothing else wakes.
            let mut reading = JoinSet::new();
            reading.spawn(async move { stream.read_u8().await });
            tokio::time::sleep(Duration::from_secs(1)).await;
            network.reset_all(0);
            let read = reading.join_next().await.ok_or("a task")?;
            let error = read?.expect_err("nothing comes");
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
            Ok(())
        });
    }
}
