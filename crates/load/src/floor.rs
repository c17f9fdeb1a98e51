//! The floor: a thread of this program that only writes the same bytes over TLS, measured in the same run on the same
//! machine, so that the server's own cost can be told from that of sockets and encryption.
//!
//! Watches are written to over blocking sockets: the watchers of each connection get each batch of events in one write,
//! behind the heads of their answers, without a runtime. Requests are read to their end and answered with bodies that
//! were recorded from the server, behind heads as long as its own, by the server's TLS and runtime: what is left of a
//! request is the server's own code. There is no cache, no store, no routing and no JSON, and of HTTP only what clients
//! insist on. What reads the server reads the floor too, and the processor time is that of the floor's thread alone.
//!
//! Watches share connections as those of the server do. Lists are answered over HTTP/1.1 whatever the server is asked
//! by, since they are larger than the windows of HTTP/2.
//!
//! ```text
//! Floor ---- orders ----> thread: Server { listener, watches, runtime } ---- answers ----> a task for each connection
//!   \---- client() ----> connections
//! ```

mod answers;
mod http1;
mod http2;
mod server;

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::sync::{mpsc, oneshot};

use crate::client::{Client, HttpVersion, OwnedEvent};
use crate::error::LoadError;
use crate::measure::thread_cpu;
use crate::payload::Stamp;
use crate::schedule::Schedule;
use crate::target::{Credentials, LoadTarget};
use crate::time::Instant;
use server::Server;

/// No client is waited for longer: until it connects, asks, or takes what is written.
const CLIENT_MAX: Duration = Duration::from_secs(60);
/// The number of bytes that are read at once: as many as a record of TLS has.
const READ_BYTES: usize = 16 << 10;
/// The body of a request is at most this long. None of this program's is.
const REQUEST_BODY_BYTES_MAX: usize = 2 << 20;
/// The head of an answer is filled up to at most this length.
const ANSWER_HEAD_BYTES_MAX: usize = 8 << 10;

/// A floor that listens on loopback. Dropping it ends its thread and closes its connections.
#[derive(Debug)]
pub(crate) struct Floor {
    client: Client,
    protocol: Protocol,
    orders: mpsc::Sender<Order>,
}

/// The way in which a floor is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Protocol {
    /// HTTP/1.1, with a connection for each watch.
    Http1,
    /// HTTP/2, with so many watches on a connection.
    Http2 { streams: usize },
}

impl Protocol {
    fn streams(self) -> usize {
        match self {
            Self::Http1 => 1,
            Self::Http2 { streams } => streams,
        }
    }
}

/// The answers of a server to requests, as the floor gives them.
#[derive(Clone, Debug)]
pub(crate) struct RecordedAnswers {
    /// The bodies, of which each connection gets one after the other, and then the first again.
    pub(crate) bodies: Vec<Bytes>,
    /// The number of bytes that an answer takes besides its body.
    pub(crate) head_bytes: usize,
}

/// Work for the floor's thread, and where it says how it went.
struct Order {
    work: FloorWork,
    /// Receives the processor time of the work.
    done: oneshot::Sender<io::Result<Duration>>,
}

enum FloorWork {
    /// Take so many connections, each of which asks for its watches.
    Watches(usize),
    /// Write to all watches.
    Deliver(Vec<Batch>),
    /// Take so many connections and answer their requests, until they are closed.
    Answer {
        connections: usize,
        recorded: RecordedAnswers,
    },
}

/// The events that are due at one time.
#[derive(Debug)]
struct Batch {
    due: Instant,
    bodies: Bodies,
}

/// Events as they stand in the bodies of answers.
#[derive(Debug)]
enum Bodies {
    /// A chunk each, over HTTP/1.1.
    Chunks(Vec<u8>),
    /// Over HTTP/2.
    Frames(http2::Frames),
}

impl Floor {
    /// Starts a floor with a certificate of its own.
    ///
    /// # Errors
    /// [`LoadError::System`]: there is no free port, or no thread.
    pub(crate) fn start(protocol: Protocol) -> Result<Self, LoadError> {
        let address = Ipv4Addr::LOCALHOST;
        let made = rcgen::generate_simple_self_signed([address.to_string()]);
        let made = made.map_err(|error| failed(io::Error::other(error)))?;
        let listener = TcpListener::bind((address, 0)).map_err(failed)?;
        let target = LoadTarget {
            address: listener.local_addr().map_err(failed)?,
            authority: address.to_string(),
            server_name: address.to_string(),
            tls: true,
            credentials: Credentials {
                authorities: Some(made.cert.pem().into_bytes()),
                ..Credentials::default()
            },
        };
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der());
        let key = key.map_err(|error| failed(io::Error::other(error)))?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|tls| {
                tls.with_no_client_auth()
                    .with_single_cert(vec![made.cert.der().clone()], key)
            })
            .map_err(|error| failed(io::Error::other(error)))?;
        let http = match protocol {
            Protocol::Http1 => HttpVersion::One,
            Protocol::Http2 { .. } => {
                tls.alpn_protocols = vec![b"h2".to_vec()];
                HttpVersion::Two
            }
        };
        let mut server = Server::new(listener, tls, protocol).map_err(failed)?;
        let (orders, mut taken) = mpsc::channel::<Order>(1);
        let run = move || {
            while let Some(Order { work, done }) = taken.blocking_recv() {
                // Nobody waits for the answer any more if this fails.
                let _ = done.send(carry_out(&mut server, work));
            }
        };
        let builder = std::thread::Builder::new().name("floor".to_owned());
        builder.spawn(run).map_err(failed)?;
        Ok(Self {
            client: Client::new(target, http)?,
            protocol,
            orders,
        })
    }

    /// Returns a client of the floor.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Takes so many watches and begins to answer them. They must be opened meanwhile.
    ///
    /// # Errors
    /// [`LoadError::WrongFlags`]: the watches do not fill their connections. [`LoadError::System`]: a connection broke,
    /// or did not come within a minute.
    pub(crate) async fn take_watches(&self, count: usize) -> Result<(), LoadError> {
        let streams = self.protocol.streams();
        if !count.is_multiple_of(streams) {
            return Err(LoadError::WrongFlags(format!(
                "--floor needs as many watchers on each connection: {count} watchers are no multiple of {streams} \
                 --streams"
            )));
        }
        self.order(FloorWork::Watches(count / streams)).await?;
        Ok(())
    }

    /// Sends events to all watches when they are due, those that are due at once in one write. Their stamps get the new
    /// due times. Returns the processor time that it took.
    ///
    /// # Errors
    /// [`LoadError::System`]: a connection broke, or took nothing for a minute.
    pub(crate) async fn deliver(
        &self,
        events: &[OwnedEvent],
        schedule: Schedule,
    ) -> Result<Duration, LoadError> {
        self.order(FloorWork::Deliver(batches(events, schedule, self.protocol)))
            .await
    }

    /// Takes so many connections and answers their requests with what was recorded, until all are closed. Returns the
    /// processor time of reading the requests and answering them.
    ///
    /// # Errors
    /// [`LoadError::System`]: a connection broke or did not come, or nobody asked for a minute.
    pub(crate) async fn answer(
        &self,
        connections: usize,
        recorded: RecordedAnswers,
    ) -> Result<Duration, LoadError> {
        let work = FloorWork::Answer {
            connections,
            recorded,
        };
        self.order(work).await
    }

    async fn order(&self, work: FloorWork) -> Result<Duration, LoadError> {
        let ended = || failed(io::Error::other("its thread has ended"));
        let (done, is_done) = oneshot::channel();
        let order = Order { work, done };
        self.orders.send(order).await.map_err(|_| ended())?;
        is_done.await.map_err(|_| ended())?.map_err(failed)
    }
}

fn failed(error: io::Error) -> LoadError {
    LoadError::System {
        what: "run the floor",
        error,
    }
}

fn carry_out(server: &mut Server, work: FloorWork) -> io::Result<Duration> {
    let before = thread_cpu();
    match work {
        FloorWork::Watches(count) => server.take_watches(count)?,
        FloorWork::Deliver(batches) => server.deliver(&batches)?,
        FloorWork::Answer {
            connections,
            recorded,
        } => return server.answer(connections, &recorded),
    }
    Ok(thread_cpu().saturating_sub(before))
}

/// Joins the events that are due at the same time, each with the stamp of its new due time.
fn batches(events: &[OwnedEvent], schedule: Schedule, protocol: Protocol) -> Vec<Batch> {
    let mut batches: Vec<Batch> = Vec::new();
    for (event, write) in events.iter().zip(0..) {
        let (due, at) = schedule.due(write);
        let mut frame = event.frame();
        Stamp::set_due(&mut frame, at);
        if batches.last().is_none_or(|last| last.due != due) {
            let bodies = Bodies::none(protocol);
            batches.push(Batch { due, bodies });
        }
        if let Some(last) = batches.last_mut() {
            last.bodies.push(&frame);
        }
    }
    batches
}

impl Bodies {
    fn none(protocol: Protocol) -> Self {
        match protocol {
            Protocol::Http1 => Self::Chunks(Vec::new()),
            Protocol::Http2 { .. } => Self::Frames(http2::Frames::default()),
        }
    }

    /// Adds an event.
    fn push(&mut self, event: &[u8]) {
        match self {
            Self::Chunks(bytes) => {
                bytes.extend(format!("{:x}\r\n", event.len()).into_bytes());
                bytes.extend(event);
                bytes.extend(b"\r\n");
            }
            Self::Frames(frames) => frames.push(event),
        }
    }
}

#[cfg(test)]
mod tests;
