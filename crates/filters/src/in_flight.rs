//! Limits the requests in flight, separately for reads and writes.
//!
//! Watches are not counted, since they would occupy their places for hours. Members of `system:masters` are admitted
//! even when all places are taken, so that an administrator can always reach the server.
//!
//! A place is released with the response body, which a client may read as slowly as it likes. So when all are taken, a
//! place that was taken longer ago than a request may last is given to another request.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use ringwatch::clock::Instant;
use ringwatch_apimachinery::User;
use ringwatch_flowcontrol::Lane;

/// The places for requests in progress.
#[derive(Debug)]
pub struct InFlight {
    reads: KindLimit,
    writes: KindLimit,
    /// The time after which a taken place may be given to another request.
    lapse: Duration,
    gauges: Family<RequestClass, Gauge<i64, AtomicI64>>,
}

/// A place; free again when dropped.
#[derive(Debug)]
pub struct Permit {
    place: Option<Admission>,
    gauge: Gauge<i64, AtomicI64>,
}

#[derive(Debug)]
struct KindLimit {
    /// The number of places; 0 for no limit.
    most: usize,
    taken: Arc<Mutex<Admissions>>,
    kind: &'static str,
}

/// The places that are taken; no more than there are.
#[derive(Debug, Default)]
struct Admissions {
    /// The times at which they were taken, by their numbers. Later ones have larger numbers.
    since: BTreeMap<u64, Instant>,
    /// The number of places taken since the start.
    count: u64,
}

/// A place that is taken.
#[derive(Debug)]
struct Admission {
    taken: Arc<Mutex<Admissions>>,
    number: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestClass {
    request_kind: &'static str,
}

impl InFlight {
    /// Creates so many places for reads and for writes; 0 for no limit. One that was taken longer ago than `lapse` is
    /// given to another request.
    #[must_use]
    pub fn new(reads_max: u32, writes_max: u32, lapse: Duration) -> Self {
        let in_flight = Self {
            reads: KindLimit::new(reads_max, "readOnly"),
            writes: KindLimit::new(writes_max, "mutating"),
            lapse,
            gauges: Family::default(),
        };
        // Both time series exist from the start, as in kube-apiserver.
        for places in [&in_flight.reads, &in_flight.writes] {
            in_flight.gauge(places).set(0);
        }
        in_flight
    }

    /// Registers the metrics for `/metrics`.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "apiserver_current_inflight_requests",
            "[STABLE] Maximal number of currently used inflight request limit of this apiserver per \
             request kind in last second.",
            self.gauges.clone(),
        );
    }

    /// Takes a place for a request that comes `now`; `None` if all are taken.
    #[must_use]
    pub fn enter(&self, mutating: bool, user: &User, now: Instant) -> Option<Permit> {
        let places = if mutating { &self.writes } else { &self.reads };
        let place = match places.take(now, self.lapse) {
            Some(place) => Some(place),
            None if places.most == 0 => None,
            None if Lane::from(user) == Lane::Administrators => None,
            None => return None,
        };
        let gauge = self.gauge(places);
        gauge.inc();
        Some(Permit { place, gauge })
    }

    fn gauge(&self, places: &KindLimit) -> Gauge<i64, AtomicI64> {
        self.gauges.get_or_create_owned(&RequestClass {
            request_kind: places.kind,
        })
    }
}

impl KindLimit {
    fn new(most: u32, kind: &'static str) -> Self {
        Self {
            most: usize::try_from(most).unwrap_or(usize::MAX),
            taken: Arc::default(),
            kind,
        }
    }

    /// Takes a place, if places are counted and there is one.
    fn take(&self, now: Instant, lapse: Duration) -> Option<Admission> {
        let mut taken = lock(&self.taken);
        if taken.since.len() >= self.most {
            let oldest = taken.since.first_entry()?;
            if now.saturating_duration_since(*oldest.get()) <= lapse {
                return None;
            }
            oldest.remove();
        }
        taken.count += 1;
        let number = taken.count;
        taken.since.insert(number, now);
        Some(Admission {
            taken: Arc::clone(&self.taken),
            number,
        })
    }
}

fn lock(taken: &Mutex<Admissions>) -> MutexGuard<'_, Admissions> {
    // The state is consistent after each change, so poison is ignored.
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Admission {
    fn drop(&mut self) {
        lock(&self.taken).since.remove(&self.number);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        drop(self.place.take());
        self.gauge.dec();
    }
}

#[cfg(test)]
mod tests {
    use ringwatch::clock::Clock;

    use super::*;

    const LAPSE: Duration = Duration::from_secs(60);

    fn user(group: &str) -> User {
        User {
            groups: vec![group.to_owned()],
            ..User::default()
        }
    }

    #[test]
    fn reads_and_writes_have_their_own_places() {
        let in_flight = InFlight::new(1, 1, LAPSE);
        let (viewer, now) = (user("viewers"), Clock::real().now());
        let read = in_flight.enter(false, &viewer, now).expect("a place");
        assert!(in_flight.enter(false, &viewer, now).is_none());
        let write = in_flight.enter(true, &viewer, now).expect("a place");
        assert!(in_flight.enter(true, &viewer, now).is_none());
        drop((read, write));
        assert!(in_flight.enter(false, &viewer, now).is_some());
    }

    #[test]
    fn administrators_are_let_in_and_zero_is_no_limit() {
        let now = Clock::real().now();
        let in_flight = InFlight::new(1, 0, LAPSE);
        let viewer = user("viewers");
        let _one = in_flight.enter(false, &viewer, now).expect("a place");
        assert!(
            in_flight
                .enter(false, &user("system:masters"), now)
                .is_some()
        );
        let write = |_| in_flight.enter(true, &viewer, now);
        let writes: Vec<_> = (0..9).map(write).collect();
        assert!(writes.iter().all(Option::is_some));
    }

    /// A client that leaves its answers unread would keep everybody else out.
    #[test]
    fn a_place_that_is_held_for_too_long_is_given_to_another() {
        let in_flight = InFlight::new(2, 2, LAPSE);
        let (viewer, begun) = (user("viewers"), Clock::real().now());
        let enter = |seconds| in_flight.enter(false, &viewer, begun + Duration::from_secs(seconds));
        let (first, second) = (enter(0).expect("a place"), enter(30).expect("a place"));
        assert!(enter(60).is_none());
        let third = enter(61).expect("the first one's place");
        assert!(enter(61).is_none());
        // What was given to another is not given back once more.
        drop(first);
        assert!(enter(61).is_none());
        drop(second);
        let fourth = enter(61).expect("the second one's place");
        assert!(enter(61).is_none());
        drop((third, fourth));
        assert!(
            in_flight
                .reads
                .taken
                .lock()
                .expect("whole")
                .since
                .is_empty()
        );
    }
}
