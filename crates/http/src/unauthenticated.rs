//! Limits connections whose client has not been authenticated yet, so that they cannot keep others out.
//!
//! ```text
//!   accept --> [ unauthenticated: TLS handshake, first request ] --authenticated--> [ authenticated ]
//!                 | too many: the client that the server has waited for the longest is cut off
//! ```
//!
//! Every connection costs a file descriptor and memory, so unauthenticated connections have a limited number of places.
//! When all are taken, the connection is closed whose client has made the server wait the longest, first among those of
//! the address with the most connections. A client that sends its bytes in time is never closed: while it waits for the
//! server, as many do after a restart, no time counts against it, and new connections stay in the kernel's queue.
//!
//! An address has half of the places at most, and a network of IPv6 (a /64, which is what one customer gets) counts as
//! one address. Clients behind one address (a load balancer, a NAT) are kept apart by nothing else, but leave these
//! places with their first authenticated request.

mod client_io;
mod first_frames;
mod first_heads;
mod standing;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

pub(crate) use client_io::ClientIo;
pub(crate) use first_frames::FirstFrames;
pub(crate) use first_heads::{FirstHeads, Heads};
pub(crate) use standing::ClientStanding;
pub use standing::Judgement;

use ringwatch::clock::{Clock, Instant};
use ringwatch_apimachinery::Network;

/// The time within which a client must have sent the head of its first request, and on HTTP/1.1 of each until one has
/// been authenticated.
pub(crate) const FIRST_HEAD_MAX: Duration = Duration::from_secs(10);
/// Maximum size of the head of such a request, in bytes.
pub(crate) const FIRST_HEAD_BYTES_MAX: usize = 64 << 10;
/// Default maximum number of connections without an authenticated client.
const UNAUTHENTICATED_MAX: usize = 2_048;
/// Default maximum number of connections with an authenticated client.
const AUTHENTICATED_MAX: usize = 65_536;
/// The part of the files for connections that unauthenticated ones may have, where files are few.
const UNAUTHENTICATED_PART: usize = 4;
/// Minimum time that the server must have waited for a client before it may be closed to make room.
const WAIT_MIN: Duration = Duration::from_secs(1);
/// Interval of checks for a connection to close, while all places are taken and none may be closed yet.
const LOOK_PERIOD: Duration = Duration::from_millis(100);

/// The limits of the number of open connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Maximum number of connections without an authenticated client.
    pub unauthenticated: usize,
    /// Maximum number of these from one address, or from one /64 network of IPv6.
    pub of_address: usize,
    /// Maximum number of connections with an authenticated client.
    pub authenticated: usize,
}

impl ConnectionLimits {
    /// Derives the limits from how many files the process may open for connections.
    #[must_use]
    pub fn for_files(files: usize) -> Self {
        let unauthenticated = UNAUTHENTICATED_MAX.min(files / UNAUTHENTICATED_PART).max(2);
        Self {
            unauthenticated,
            of_address: unauthenticated / 2,
            authenticated: AUTHENTICATED_MAX.min(files.saturating_sub(unauthenticated)),
        }
    }
}

/// The connections without an authenticated client. Clones are the same.
#[derive(Clone)]
pub struct UnauthenticatedConnections(Arc<Limiter>);

struct Limiter {
    limits: ConnectionLimits,
    open: Mutex<OpenConnections>,
    /// Notified when a place has become free. For one waiting task, the one that accepts connections.
    freed: Notify,
    /// The places of authenticated connections.
    authenticated: Arc<Semaphore>,
    clock: Clock,
    count: Gauge<i64, AtomicI64>,
    shed: Counter,
    refused: Counter,
}

#[derive(Debug, Default)]
struct OpenConnections {
    /// The connections by network and by number; later ones have larger numbers. No network is empty.
    by_network: HashMap<Network, BTreeMap<u64, ClientStanding>>,
    /// The number of connections that are in `by_network`.
    count: usize,
    /// The number of connections that there have been, which is the number of the newest one.
    entered: u64,
}

/// The place of a connection among the unauthenticated ones.
#[derive(Clone, Debug)]
struct ConnectionSlot {
    all: UnauthenticatedConnections,
    network: Network,
    number: u64,
}

/// A connection's entry among the unauthenticated ones; free again when dropped.
#[derive(Debug)]
pub(crate) struct EnteredConnection(ClientStanding);

/// The decision about a new connection.
#[derive(Debug)]
enum EntryDecision {
    Entered(EnteredConnection),
    /// All places are taken, and no client may be cut off.
    Full,
    /// The address has too many connections.
    Refused,
}

impl std::fmt::Debug for UnauthenticatedConnections {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Each connection leads back here.
        let count = self.lock().count;
        let mut text = formatter.debug_struct("Unauthenticated");
        text.field("count", &count).finish_non_exhaustive()
    }
}

impl UnauthenticatedConnections {
    /// Creates the limiter, without connections.
    #[must_use]
    pub fn new(limits: ConnectionLimits, clock: &Clock) -> Self {
        Self(Arc::new(Limiter {
            limits,
            open: Mutex::default(),
            freed: Notify::new(),
            authenticated: Arc::new(Semaphore::new(limits.authenticated)),
            clock: clock.clone(),
            count: Gauge::default(),
            shed: Counter::default(),
            refused: Counter::default(),
        }))
    }

    /// Registers the metrics for `/metrics`.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "ringwatch_unauthenticated_connections",
            "Connections without an authenticated request so far.",
            self.0.count.clone(),
        );
        registry.register(
            "ringwatch_unauthenticated_connections_shed",
            "Unauthenticated connections closed to make room, because their clients were waited for.",
            self.0.shed.clone(),
        );
        registry.register(
            "ringwatch_unauthenticated_connections_refused",
            "Connections closed at once because their address had too many unauthenticated ones.",
            self.0.refused.clone(),
        );
    }

    /// Takes a place for a new connection from an address, as soon as there is one; `None` if the address has too many.
    pub(crate) async fn enter(&self, address: IpAddr) -> Option<EnteredConnection> {
        let network = Network::from(address);
        loop {
            match self.try_enter(network) {
                EntryDecision::Entered(entered) => return Some(entered),
                EntryDecision::Refused => {
                    self.0.refused.inc();
                    return None;
                }
                EntryDecision::Full => {
                    tokio::select! {
                        () = self.0.freed.notified() => {}
                        () = self.0.clock.sleep(LOOK_PERIOD) => {}
                    }
                }
            }
        }
    }

    fn try_enter(&self, network: Network) -> EntryDecision {
        let limits = self.0.limits;
        let now = self.0.clock.now();
        let mut open = self.lock();
        let own = open.by_network.get(&network);
        if own.is_some_and(|own| own.len() >= limits.of_address) {
            match open.longest_waiting_of(network, now) {
                Some(number) => self.shed(&mut open, network, number),
                // While the server is busy with them, accepting more would not help.
                None if open.any_waits_for_server(network, now) => return EntryDecision::Full,
                None => return EntryDecision::Refused,
            }
        } else if open.count >= limits.unauthenticated {
            match open.longest_waiting(now) {
                Some((network, number)) => self.shed(&mut open, network, number),
                None => return EntryDecision::Full,
            }
        }
        open.entered += 1;
        let number = open.entered;
        let all = self.clone();
        let place = ConnectionSlot {
            all,
            network,
            number,
        };
        let standing = ClientStanding::new(Some(place));
        let own = open.by_network.entry(network).or_default();
        own.insert(number, standing.clone());
        open.count += 1;
        self.0.count.inc();
        EntryDecision::Entered(EnteredConnection(standing))
    }

    fn shed(&self, open: &mut OpenConnections, network: Network, number: u64) {
        if let Some(standing) = self.remove(open, network, number) {
            self.0.shed.inc();
            standing.shed();
        }
    }

    fn remove(
        &self,
        open: &mut OpenConnections,
        network: Network,
        number: u64,
    ) -> Option<ClientStanding> {
        let removed = open.remove(network, number)?;
        self.0.count.dec();
        self.0.freed.notify_one();
        Some(removed)
    }

    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        // The state is consistent after each change, so poison is ignored.
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenConnections {
    fn remove(&mut self, network: Network, number: u64) -> Option<ClientStanding> {
        let own = self.by_network.get_mut(&network)?;
        let removed = own.remove(&number)?;
        if own.is_empty() {
            self.by_network.remove(&network);
        }
        self.count -= 1;
        Some(removed)
    }

    /// Finds the connection to cut off: of the network with the most, the one that has waited longest for its client.
    fn longest_waiting(&self, now: Instant) -> Option<(Network, u64)> {
        let all = self.by_network.iter();
        let each = all.filter_map(|(network, own)| {
            let (waited, number) = longest_waiting(own, now)?;
            Some(((own.len(), waited, number), *network))
        });
        let longest = each.max_by_key(|(key, _)| *key);
        longest.map(|((_, _, Reverse(number)), network)| (network, number))
    }

    fn longest_waiting_of(&self, network: Network, now: Instant) -> Option<u64> {
        let (_, Reverse(number)) = longest_waiting(self.by_network.get(&network)?, now)?;
        Some(number)
    }

    fn any_waits_for_server(&self, network: Network, now: Instant) -> bool {
        let own = self.by_network.get(&network);
        own.is_some_and(|own| own.values().any(|it| it.waited(now).is_none()))
    }
}

/// Returns how long the server has waited for its client on the connection that has waited longest, of those that may
/// be cut off, and the connection's number: the oldest of several.
fn longest_waiting(
    connections: &BTreeMap<u64, ClientStanding>,
    now: Instant,
) -> Option<(Duration, Reverse<u64>)> {
    let waits = connections.iter().filter_map(|(number, standing)| {
        let waited = standing.waited(now).filter(|waited| *waited >= WAIT_MIN)?;
        Some((waited, Reverse(*number)))
    });
    waits.max()
}

impl ConnectionSlot {
    fn now(&self) -> Instant {
        self.all.0.clock.now()
    }

    /// Leaves for a place among the authenticated connections, if one is free and the connection has not been cut off.
    fn leave(&self) -> Option<OwnedSemaphorePermit> {
        let permit = Arc::clone(&self.all.0.authenticated).try_acquire_owned();
        let permit = permit.ok()?;
        let mut open = self.all.lock();
        self.all.remove(&mut open, self.network, self.number)?;
        Some(permit)
    }

    fn give_back(&self) {
        let mut open = self.all.lock();
        self.all.remove(&mut open, self.network, self.number);
    }
}

impl EnteredConnection {
    /// Returns the connection's standing, which outlives this guard in clones.
    #[must_use]
    pub(crate) fn standing(&self) -> &ClientStanding {
        &self.0
    }
}

impl Drop for EnteredConnection {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[cfg(test)]
mod tests;
