//! The floor: threads of this program that only write the same bytes over TLS, measured in the same run on the same
//! machine, so that the server's own cost can be told from that of sockets and encryption.
//!
//! Their sockets are blocking. One thread gives all watchers each batch of events in one write, behind the head of an
//! answer; clients that list get bodies that were recorded from the server, from a thread for each of them. There is no
//! cache, no store and no runtime, and of HTTP only what clients insist on. What reads the server reads the floor too,
//! and the processor time is that of the floor's threads alone.
//!
//! It is the least over HTTP/1.1, with a connection for each client. A server that is asked over HTTP/2 sends the events
//! of many watches in one TLS record and one system call, so it may need less than the floor.
//!
//! ```text
//! Floor ---- orders ----> thread: Server { listener, watches } ----> a thread for each client that lists
//!   \---- client() ----> connections, by HTTP/1.1 whatever the server is asked by
//! ```

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
use crate::target::{Credentials, Target};
use crate::time::Instant;
use server::Server;

/// A floor that listens on loopback. Dropping it ends its thread and closes its connections.
#[derive(Debug)]
pub(crate) struct Floor {
    client: Client,
    orders: mpsc::Sender<Order>,
}

/// Work for the floor's thread, and where it says how it went.
struct Order {
    work: Work,
    /// Receives the processor time of the work.
    done: oneshot::Sender<io::Result<Duration>>,
}

enum Work {
    /// Take so many connections, each of which asks for a watch.
    Watches(usize),
    /// Write to all watches.
    Deliver(Vec<Batch>),
    /// Take so many connections and answer their requests with these bodies in turn, until they are closed.
    Answer {
        connections: usize,
        bodies: Vec<Bytes>,
    },
}

/// The events that are due at one time, as they stand in the body of an answer: a chunk each.
#[derive(Debug)]
struct Batch {
    due: Instant,
    bytes: Vec<u8>,
}

impl Floor {
    /// Starts a floor with a certificate of its own.
    ///
    /// # Errors
    /// [`LoadError::System`]: there is no free port, or no thread.
    pub(crate) fn start() -> Result<Self, LoadError> {
        let address = Ipv4Addr::LOCALHOST;
        let made = rcgen::generate_simple_self_signed([address.to_string()]);
        let made = made.map_err(|error| failed(io::Error::other(error)))?;
        let listener = TcpListener::bind((address, 0)).map_err(failed)?;
        let target = Target {
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
        let tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|tls| {
                tls.with_no_client_auth()
                    .with_single_cert(vec![made.cert.der().clone()], key)
            })
            .map_err(|error| failed(io::Error::other(error)))?;
        let mut server = Server::new(listener, tls).map_err(failed)?;
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
            client: Client::new(target, HttpVersion::One)?,
            orders,
        })
    }

    /// Returns a client of the floor, which speaks HTTP/1.1.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Takes so many connections and begins to answer their watches. They must be opened meanwhile.
    ///
    /// # Errors
    /// [`LoadError::System`]: a connection broke, or did not come within a minute.
    pub(crate) async fn take_watches(&self, count: usize) -> Result<(), LoadError> {
        self.order(Work::Watches(count)).await?;
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
        self.order(Work::Deliver(batches(events, schedule))).await
    }

    /// Takes so many connections and answers the requests of each with these bodies in turn, until it is closed.
    /// Returns the processor time of the answers.
    ///
    /// # Errors
    /// [`LoadError::System`]: a connection broke, or asked nothing for a minute.
    pub(crate) async fn answer(
        &self,
        connections: usize,
        bodies: Vec<Bytes>,
    ) -> Result<Duration, LoadError> {
        let work = Work::Answer {
            connections,
            bodies,
        };
        self.order(work).await
    }

    async fn order(&self, work: Work) -> Result<Duration, LoadError> {
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

fn carry_out(server: &mut Server, work: Work) -> io::Result<Duration> {
    let before = thread_cpu();
    match work {
        Work::Watches(count) => server.take_watches(count)?,
        Work::Deliver(batches) => server.deliver(&batches)?,
        Work::Answer {
            connections,
            bodies,
        } => return server.answer(connections, &bodies),
    }
    Ok(thread_cpu().saturating_sub(before))
}

/// Joins the events that are due at the same time, each in a chunk of its own with the stamp of its new due time.
fn batches(events: &[OwnedEvent], schedule: Schedule) -> Vec<Batch> {
    let mut batches: Vec<Batch> = Vec::new();
    for (event, write) in events.iter().zip(0..) {
        let (due, at) = schedule.due(write);
        let mut frame = event.frame();
        Stamp::set_due(&mut frame, at);
        let size = format!("{:x}\r\n", frame.len());
        let chunk = [size.as_bytes(), &frame, b"\r\n"].concat();
        match batches.last_mut().filter(|last| last.due == due) {
            Some(last) => last.bytes.extend(chunk),
            None => batches.push(Batch { due, bytes: chunk }),
        }
    }
    batches
}

#[cfg(test)]
mod tests;
