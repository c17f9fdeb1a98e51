//! The floor's side of its connections: blocking, one after the other.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use bytes::Bytes;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use socket2::SockRef;

use super::{Batch, Bodies, Protocol, http2};
use crate::measure::thread_cpu;
use crate::time::now;

/// No client is waited for longer: until it connects, asks, or takes what is written.
const CLIENT_MAX: Duration = Duration::from_secs(60);
/// The head of a request is at most this long.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// The number of bytes of a request that are read at once.
const READ_BYTES: usize = 1 << 10;
/// The head of the answer to every watch. Clients know the encoding, since they asked for it.
const WATCH_HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

type Connection = StreamOwned<ServerConnection, TcpStream>;

/// A listener, and the watches that it answers.
pub(super) struct Server {
    listener: TcpListener,
    tls: Arc<ServerConfig>,
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
                if !read_request(&mut connection)? {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                write(&mut connection, &[WATCH_HEAD])?;
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
                    Bodies::Chunks(chunks) => write(connection, &[chunks])?,
                    Bodies::Frames(frames) => {
                        copies.clear();
                        for stream in streams {
                            frames.copy_for(*stream, &mut copies);
                        }
                        write(connection, &[&copies])?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes so many connections, then answers the requests of each on a thread of its own. Returns the processor time
    /// of these threads when all connections are closed.
    pub(super) fn answer(&self, connections: usize, bodies: &[Bytes]) -> io::Result<Duration> {
        let connections = (0..connections).map(|_| self.shake_hands(self.accept_tcp()?));
        let connections: Vec<_> = connections.collect::<io::Result<_>>()?;
        thread::scope(|scope| {
            let answering = |connection| scope.spawn(move || answer_all(connection, bodies));
            let threads: Vec<_> = connections.into_iter().map(answering).collect();
            threads.into_iter().map(joined).sum()
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

/// Answers requests with the bodies in turn until the connection is closed. Returns the processor time of it.
fn answer_all(mut connection: Connection, bodies: &[Bytes]) -> io::Result<Duration> {
    let before = thread_cpu();
    let mut bodies = bodies.iter().cycle();
    while read_request(&mut connection)? {
        let body = bodies.next().map_or(&[][..], |body| body);
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        write(&mut connection, &[head.as_bytes(), body])?;
    }
    Ok(thread_cpu().saturating_sub(before))
}

/// Reads the head of a request without a body. Returns false if the client has closed the connection instead.
fn read_request(connection: &mut Connection) -> io::Result<bool> {
    let (mut request, mut some) = (Vec::new(), [0; READ_BYTES]);
    while !request.ends_with(b"\r\n\r\n") {
        let bytes = match connection.read(&mut some) {
            // Not every client says that it closes.
            Err(error) if is_closed(&error) => 0,
            read => read?,
        };
        match bytes {
            0 if request.is_empty() => return Ok(false),
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            _ if request.len() > HEAD_BYTES_MAX => return Err(ErrorKind::InvalidData.into()),
            _ => request.extend_from_slice(&some[..bytes]),
        }
    }
    Ok(true)
}

fn is_closed(error: &io::Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

fn write(connection: &mut Connection, parts: &[&[u8]]) -> io::Result<()> {
    for part in parts {
        connection.write_all(part)?;
    }
    connection.flush()
}
