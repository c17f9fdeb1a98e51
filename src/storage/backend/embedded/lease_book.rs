//! The leases: their deadlines, and the keys attached to each.
//!
//! Deadlines are not durable: after a restart every lease has its whole time to live again, as in etcd.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use imbl::OrdMap;

use super::mvcc::State;
use crate::clock::Instant;
use crate::storage::backend::{BackendError, LeaseId};

/// Minimum time to live in seconds; shorter ones are raised to it, as in etcd.
const TTL_SECONDS_MIN: i64 = 2;
/// Maximum time to live in seconds, as in etcd.
const TTL_SECONDS_MAX: i64 = 9_000_000_000;

/// The leases that have not expired.
#[derive(Debug, Default)]
pub(super) struct LeaseBook {
    /// The keys attached to each lease in their newest version.
    leases: BTreeMap<LeaseId, BTreeSet<Arc<str>>>,
    /// The deadline of each lease, the next to expire first.
    deadlines: BTreeSet<(Instant, LeaseId)>,
    /// The time to live of each lease in seconds. Copies are cheap.
    ttls: OrdMap<LeaseId, i64>,
}

impl LeaseBook {
    /// Restores the leases of a log and the keys attached to them. They have their whole time to live again.
    pub(super) fn from_log(leases: Vec<(LeaseId, i64)>, state: &State, now: Instant) -> Self {
        let mut book = Self::default();
        for (lease, ttl_seconds) in leases {
            book.insert(lease, ttl_seconds, now);
        }
        for version in state.live() {
            if let Some(lease) = version.lease {
                book.attach(lease, &version.key);
            }
        }
        book
    }

    /// Returns the time to live in seconds of a lease that is granted for so many.
    ///
    /// # Errors
    /// etcd's error when it is too long.
    pub(super) fn effective_ttl(ttl_seconds: i64) -> Result<i64, BackendError> {
        if ttl_seconds > TTL_SECONDS_MAX {
            return Err(BackendError::Other(
                "etcdserver: too large lease TTL".to_owned(),
            ));
        }
        Ok(ttl_seconds.max(TTL_SECONDS_MIN))
    }

    /// Adds a lease that lives from `now` on.
    pub(super) fn insert(&mut self, id: LeaseId, ttl_seconds: i64, now: Instant) {
        let ttl = Duration::from_secs(u64::try_from(ttl_seconds).unwrap_or(0));
        let deadline = now.checked_add(ttl).unwrap_or(now);
        self.leases.insert(id, BTreeSet::new());
        self.ttls.insert(id, ttl_seconds);
        self.deadlines.insert((deadline, id));
    }

    pub(super) fn contains(&self, id: LeaseId) -> bool {
        self.leases.contains_key(&id)
    }

    /// Attaches a key to a lease.
    pub(super) fn attach(&mut self, id: LeaseId, key: &Arc<str>) {
        if let Some(keys) = self.leases.get_mut(&id) {
            keys.insert(Arc::clone(key));
        }
    }

    /// Detaches a key from a lease.
    pub(super) fn detach(&mut self, id: LeaseId, key: &str) {
        if let Some(keys) = self.leases.get_mut(&id) {
            keys.remove(key);
        }
    }

    /// Removes the next lease that expired by `now`, and returns it with its keys.
    pub(super) fn take_expired(&mut self, now: Instant) -> Option<(LeaseId, BTreeSet<Arc<str>>)> {
        let (deadline, id) = *self.deadlines.first()?;
        if deadline > now {
            return None;
        }
        self.deadlines.pop_first();
        self.ttls.remove(&id);
        Some((id, self.leases.remove(&id).unwrap_or_default()))
    }

    /// Returns the time to live of each lease in seconds.
    pub(super) fn ttls(&self) -> &OrdMap<LeaseId, i64> {
        &self.ttls
    }

    /// Returns when the next lease expires.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    #[test]
    fn leases_expire_in_the_order_of_their_deadlines() {
        let now = Clock::real().now();
        let after = |seconds| now + Duration::from_secs(seconds);
        let mut book = LeaseBook::default();
        book.insert(LeaseId(1), 20, now);
        book.insert(LeaseId(2), 10, now);
        let key: Arc<str> = Arc::from("/a");
        book.attach(LeaseId(1), &key);
        book.attach(LeaseId(2), &key);
        book.detach(LeaseId(2), &key);
        assert_eq!(book.next_deadline(), Some(after(10)));
        assert!(book.contains(LeaseId(1)) && !book.contains(LeaseId(3)));
        assert!(book.take_expired(after(9)).is_none());
        assert_eq!(book.take_expired(after(10)), Some((LeaseId(2), [].into())));
        assert_eq!(
            book.take_expired(after(30)),
            Some((LeaseId(1), [key].into()))
        );
        assert!(book.take_expired(after(30)).is_none());
        assert!(!book.contains(LeaseId(1)));
        assert!(book.ttls().is_empty());
    }

    #[test]
    fn times_to_live_have_etcds_bounds() {
        assert_eq!(LeaseBook::effective_ttl(0), Ok(2));
        assert_eq!(LeaseBook::effective_ttl(3_600), Ok(3_600));
        assert_eq!(LeaseBook::effective_ttl(9_000_000_000), Ok(9_000_000_000));
        assert!(LeaseBook::effective_ttl(9_000_000_001).is_err());
    }

    #[test]
    fn leases_are_restored_with_their_keys() {
        let now = Clock::real().now();
        let mut state = State::new();
        let put = |state: &mut State, key, lease: Option<i64>| {
            state.put(key, bytes::Bytes::new(), lease.map(LeaseId));
        };
        put(&mut state, "/a", Some(1));
        put(&mut state, "/b", None);
        put(&mut state, "/c", Some(2));
        let mut book = LeaseBook::from_log(vec![(LeaseId(1), 10), (LeaseId(2), 20)], &state, now);
        assert!(book.ttls().values().eq(&[10, 20]));
        let end = now + Duration::from_secs(20);
        let expired = [book.take_expired(end), book.take_expired(end)];
        let with_key = |id, key: &str| Some((LeaseId(id), [Arc::from(key)].into()));
        assert_eq!(expired, [with_key(1, "/a"), with_key(2, "/c")]);
    }
}
