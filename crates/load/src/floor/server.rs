//! The floor's side of its connections: those of watches are blocking, one after the other.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use socket2::SockRef;
use tokio::runtime::{Builder, Runtime};
use tokio_rustls::TlsAcceptor;

use super::answers::{AskingConnection, WrittenAnswers, answer_all};
use super::{Batch, Bodies, CLIENT_MAX, Protocol, READ_BYTES, RecordedAnswers, http1, http2};
use crate::time::now;

/// The head of the answer to every watch. Clients know the encoding, since they asked for it.
const WATCH_HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

type Connection = StreamOwned<ServerConnection, TcpStream>;

/// A listener, and the watches that it answers.
pub(super) struct Server {
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    /// Runs the connections of requests on the floor's thread.
    runtime: Runtime,
    protocol: Protocol,
    watches: Vec<FloorWatches>,
}

/// The watches of a connection.
struct FloorWatches {
    connection: Connection,
    /// Their streams; none over HTTP/1.1.
    streams: Vec<u32>,
}

impl Server {
    pub(super) fn new(
        listener: TcpListener,
        tls: ServerConfig,
        protocol: Protocol,
    ) -> io::Result<Self> {
        // This bounds the wait for a connection too.
        SockRef::from(&listener).set_read_timeout(Some(CLIENT_MAX))?;
        Ok(Self {
            listener,
            tls: Arc::new(tls),
            runtime: Builder::new_current_thread().enable_all().build()?,
            protocol,
            watches: Vec::new(),
        })
    }

    /// Takes so many connections and answers the requests of their watches. The streams of a connection come between
    /// those of others, so a thread waits for each.
    pub(super) fn take_watches(&mut self, connections: usize) -> io::Result<()> {
        let server = &*self;
        let taken = thread::scope(|scope| {
            let taking = (0..connections).map(|_| {
                let connection = server.accept_tcp()?;
                Ok(scope.spawn(move || server.take(connection)))
            });
            let taking: Vec<_> = taking.collect::<io::Result<_>>()?;
            taking
                .into_iter()
                .map(joined)
                .collect::<io::Result<Vec<_>>>()
        })?;
        self.watches.extend(taken);
        Ok(())
    }

    /// Answers the requests of a connection's watches with the head of each.
    fn take(&self, tcp: TcpStream) -> io::Result<FloorWatches> {
        let mut connection = self.shake_hands(tcp)?;
        let streams = match self.protocol {
            Protocol::Http1 => {
                read_request(&mut connection)?;
                write(&mut connection, WATCH_HEAD)?;
                Vec::new()
            }
            Protocol::Http2 { streams } => http2::take_streams(&mut connection, streams)?,
        };
        Ok(FloorWatches {
            connection,
            streams,
        })
    }

    /// Writes each batch to every watch when it is due.
    pub(super) fn deliver(&mut self, batches: &[Batch]) -> io::Result<()> {
        let mut copies = Vec::new();
        for batch in batches {
            thread::sleep(batch.due.saturating_duration_since(now()));
            for FloorWatches {
                connection,
                streams,
            } in &mut self.watches
            {
                match &batch.bodies {
                    Bodies::Chunks(chunks) => write(connection, chunks)?,
                    Bodies::Frames(frames) => {
                        copies.clear();
                        for stream in streams {
                            frames.copy_for(*stream, &mut copies);
                        }
                        write(connection, &copies)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes so many connections, then answers their requests. Returns the processor time of that when all are closed.
    pub(super) fn answer(
        &self,
        connections: usize,
        recorded: &RecordedAnswers,
    ) -> io::Result<Duration> {
        let answers = WrittenAnswers::new(self.protocol, recorded);
        let connections = (0..connections).map(|_| self.accept_asking());
        let connections = connections.collect::<io::Result<_>>()?;
        self.runtime.block_on(answer_all(connections, answers))
    }

    fn accept_asking(&self) -> io::Result<AskingConnection> {
        let tcp = self.accept_tcp()?;
        tcp.set_nonblocking(true)?;
        self.runtime.block_on(async {
            let acceptor = TlsAcceptor::from(Arc::clone(&self.tls));
            let accepting = acceptor.accept(tokio::net::TcpStream::from_std(tcp)?);
            tokio::time::timeout(CLIENT_MAX, accepting).await?
        })
    }

    fn accept_tcp(&self) -> io::Result<TcpStream> {
        let (tcp, _) = self.listener.accept()?;
        tcp.set_nodelay(true)?;
        tcp.set_read_timeout(Some(CLIENT_MAX))?;
        tcp.set_write_timeout(Some(CLIENT_MAX))?;
        Ok(tcp)
    }

    fn shake_hands(&self, tcp: TcpStream) -> io::Result<Connection> {
        let tls = ServerConnection::new(Arc::clone(&self.tls)).map_err(io::Error::other)?;
        let mut connection = StreamOwned::new(tls, tcp);
        while connection.conn.is_handshaking() {
            connection.conn.complete_io(&mut connection.sock)?;
        }
        Ok(connection)
    }
}

fn joined<T>(thread: ScopedJoinHandle<'_, io::Result<T>>) -> io::Result<T> {
    let joined = thread.join();
    joined.unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
}

/// Reads a request to its end.
fn read_request(connection: &mut Connection) -> io::Result<()> {
    let mut request = http1::Request::default();
    let mut some = vec![0; READ_BYTES];
    loop {
        match connection.read(&mut some)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            bytes if request.take(&some[..bytes])? => return Ok(()),
            _ => {}
        }
    }
}

fn write(connection: &mut Connection, bytes: &[u8]) -> io::Result<()> {
    connection.write_all(bytes)?;
    connection.flush()
}
