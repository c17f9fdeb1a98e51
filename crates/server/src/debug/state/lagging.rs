//! Watches with their lag, by which they are sorted.

use std::cmp::Reverse;
use std::net::SocketAddr;
use std::sync::Arc;

use ringwatch::clock::Instant;
use ringwatch_observe::open_watches::OpenWatch;
use ringwatch_observe::status::{Watcher, type_name};

/// A watch with its lag, as both are sorted by it.
pub(super) struct Lagging {
    pub(super) watch: Arc<OpenWatch>,
    pub(super) behind: Option<u64>,
    pub(super) parked: bool,
}

impl Lagging {
    pub(super) fn new(watch: Arc<OpenWatch>) -> Self {
        let lag = watch.lag();
        Self {
            watch,
            behind: lag.map(|it| it.events),
            parked: lag.is_some_and(|it| it.parked),
        }
    }

    pub(super) fn shown(&self, now: Instant) -> Watcher {
        let watch = &self.watch;
        Watcher {
            id: watch.id.to_string(),
            type_name: type_name(watch.of_type()),
            user: watch.client.user.to_string(),
            user_agent: watch.client.user_agent.to_string(),
            address: watch.client.address.map(address),
            namespace: Some(watch.namespace.to_string()).filter(|it| !it.is_empty()),
            selector: watch.selector.to_string(),
            kind: watch.kind.name().to_owned(),
            age_seconds: now.saturating_duration_since(watch.since).as_secs_f64(),
            sent: watch.sent(),
            revision: watch.revision(),
            behind: self.behind,
            parked: self.parked,
        }
    }
}

/// Keeps the watches that are furthest behind, in that order.
pub(super) fn furthest_first(watches: &mut Vec<Lagging>, most: usize) {
    let rank = |it: &Lagging| (Reverse((it.behind, it.parked)), it.watch.id);
    if watches.len() > most {
        watches.select_nth_unstable_by_key(most, rank);
        watches.truncate(most);
    }
    watches.sort_unstable_by_key(rank);
}

/// Returns the address and port of a client.
fn address(address: SocketAddr) -> String {
    SocketAddr::new(address.ip().to_canonical(), address.port()).to_string()
}
