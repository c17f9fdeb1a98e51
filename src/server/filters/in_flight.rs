//! How many requests are in progress: so many reads and so many writes, and no more.
//!
//! Watches are not counted, they would fill the places for good. Members of `system:masters` are
//! let in even when all places are taken, so that an administrator can always reach the server.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::registry::User;

/// The group that is never turned away.
const PRIVILEGED: &str = "system:masters";

/// The places for requests in progress.
#[derive(Debug)]
pub struct InFlight {
    reads: Places,
    writes: Places,
    gauges: Family<Kind, Gauge<i64, AtomicI64>>,
}

/// A place; free again when dropped.
#[derive(Debug)]
pub struct Permit {
    _place: Option<OwnedSemaphorePermit>,
    gauge: Gauge<i64, AtomicI64>,
}

#[derive(Debug)]
struct Places {
    /// `None` for no limit.
    semaphore: Option<Arc<Semaphore>>,
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kind {
    request_kind: &'static str,
}

impl InFlight {
    /// So many places for reads and for writes; 0 for no limit.
    #[must_use]
    pub fn new(reads_max: u32, writes_max: u32) -> Self {
        let in_flight = Self {
            reads: Places::new(reads_max, "readOnly"),
            writes: Places::new(writes_max, "mutating"),
            gauges: Family::default(),
        };
        // Both lines are there from the start, as kube-apiserver's are.
        for places in [&in_flight.reads, &in_flight.writes] {
            in_flight.gauge(places).set(0);
        }
        in_flight
    }

    /// Makes the numbers part of what `/metrics` shows.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "apiserver_current_inflight_requests",
            "[STABLE] Maximal number of currently used inflight request limit of this apiserver per \
             request kind in last second.",
            self.gauges.clone(),
        );
    }

    /// A place for a request; `None` if all are taken.
    #[must_use]
    pub fn enter(&self, mutating: bool, user: &User) -> Option<Permit> {
        let places = if mutating { &self.writes } else { &self.reads };
        let place = match &places.semaphore {
            None => None,
            Some(semaphore) => match Arc::clone(semaphore).try_acquire_owned() {
                Ok(place) => Some(place),
                Err(_) if user.groups.iter().any(|group| group == PRIVILEGED) => None,
                Err(_) => return None,
            },
        };
        let gauge = self.gauge(places);
        gauge.inc();
        Some(Permit {
            _place: place,
            gauge,
        })
    }

    fn gauge(&self, places: &Places) -> Gauge<i64, AtomicI64> {
        self.gauges.get_or_create_owned(&Kind {
            request_kind: places.kind,
        })
    }
}

impl Places {
    fn new(most: u32, kind: &'static str) -> Self {
        let most = usize::try_from(most).unwrap_or(Semaphore::MAX_PERMITS);
        Self {
            semaphore: (most > 0)
                .then(|| Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)))),
            kind,
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.gauge.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(group: &str) -> User {
        User {
            groups: vec![group.to_owned()],
            ..User::default()
        }
    }

    #[test]
    fn reads_and_writes_have_their_own_places() {
        let in_flight = InFlight::new(1, 1);
        let viewer = user("viewers");
        let read = in_flight.enter(false, &viewer).expect("a place");
        assert!(in_flight.enter(false, &viewer).is_none());
        let write = in_flight.enter(true, &viewer).expect("a place");
        assert!(in_flight.enter(true, &viewer).is_none());
        drop((read, write));
        assert!(in_flight.enter(false, &viewer).is_some());
    }

    #[test]
    fn administrators_are_let_in_and_zero_is_no_limit() {
        let in_flight = InFlight::new(1, 0);
        let _one = in_flight.enter(false, &user("viewers")).expect("a place");
        assert!(in_flight.enter(false, &user(PRIVILEGED)).is_some());
        let writes: Vec<_> = (0..9).map(|_| in_flight.enter(true, &user("x"))).collect();
        assert!(writes.iter().all(Option::is_some));
    }
}
