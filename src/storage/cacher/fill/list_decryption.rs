//! The values of a list that have still to be decrypted.
//!
//! A list needs the newest value of each key alone, and in no order. So its pages are read and its other changes
//! applied while the values are decrypted one after the other, and only its end waits for them. A value that cannot be
//! decrypted is tried again later.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::backoff::backoff;
use super::decryption_request::{DecryptionRequest, WAITING_BYTES_MAX, WAITING_MAX};
use crate::budget::Share;
use crate::clock::Instant;

/// The bytes of a value beside itself and its key.
const VALUE_OVERHEAD_BYTES: usize = 100;

/// The values, by their keys.
#[derive(Debug)]
pub(crate) struct EncryptedValues {
    by_key: BTreeMap<Arc<str>, Value>,
    /// The estimated bytes of all.
    bytes: usize,
    /// Their share of the memory budget.
    share: Share,
    in_flight: Option<InFlight>,
    /// The number of attempts in a row that have failed.
    failures: u32,
    /// The instant at which the next value is to be requested.
    due: Instant,
}

#[derive(Debug)]
struct Value {
    encrypted: Bytes,
    revision: u64,
}

/// The value that is being decrypted.
#[derive(Debug)]
struct InFlight {
    ticket: u64,
    key: Arc<str>,
    revision: u64,
}

impl EncryptedValues {
    /// Creates a set without values, whose memory is counted in a share.
    pub(crate) fn new(share: Share, now: Instant) -> Self {
        Self {
            by_key: BTreeMap::new(),
            bytes: 0,
            share,
            in_flight: None,
            failures: 0,
            due: now,
        }
    }

    /// Adds the value that a key has since a revision, in place of an older one. Returns false if there are too many
    /// now.
    #[must_use]
    pub(crate) fn put(&mut self, key: Arc<str>, revision: u64, encrypted: Bytes) -> bool {
        self.remove(&key);
        self.bytes += bytes(&key, &encrypted);
        self.share.set(self.bytes as u64);
        self.by_key.insert(
            key,
            Value {
                encrypted,
                revision,
            },
        );
        self.bytes <= WAITING_BYTES_MAX
    }

    /// Removes the value of a key that has another one now, or none.
    pub(crate) fn remove(&mut self, key: &str) {
        if let Some(Value { encrypted, .. }) = self.by_key.remove(key) {
            self.bytes -= bytes(key, &encrypted);
            self.share.set(self.bytes as u64);
        }
    }

    /// Removes all values.
    pub(crate) fn clear(&mut self) {
        self.by_key.clear();
        self.bytes = 0;
        self.share.set(0);
    }

    /// Returns true if there are no values.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Returns when a value is to be requested; `None` while one is in flight or if there are none.
    pub(crate) fn due(&self) -> Option<Instant> {
        (self.in_flight.is_none() && !self.is_empty()).then_some(self.due)
    }

    /// Returns the next request, if it is due. `ticket` must differ from that of every other request.
    pub(crate) fn request(&mut self, ticket: u64, now: Instant) -> Option<DecryptionRequest> {
        self.due().filter(|due| *due <= now)?;
        let (
            key,
            Value {
                encrypted,
                revision,
            },
        ) = self.by_key.first_key_value()?;
        self.in_flight = Some(InFlight {
            ticket,
            key: Arc::clone(key),
            revision: *revision,
        });
        Some(DecryptionRequest {
            key: key.to_string(),
            value: encrypted.clone(),
            deadline: now + WAITING_MAX,
        })
    }

    /// Returns true if the request with a ticket is the one in flight.
    pub(crate) fn is_in_flight(&self, ticket: u64) -> bool {
        self.in_flight
            .as_ref()
            .is_some_and(|it| it.ticket == ticket)
    }

    /// Removes the value that has been decrypted, and returns its key and revision; `None` if it is no longer wanted.
    /// The next one is requested at `now`.
    pub(crate) fn take(&mut self, now: Instant) -> Option<(Arc<str>, u64)> {
        let InFlight { key, revision, .. } = self.in_flight.take()?;
        self.failures = 0;
        self.due = now;
        self.by_key.get(&key).filter(|it| it.revision == revision)?;
        self.remove(&key);
        Some((key, revision))
    }

    /// Records that an attempt has failed. Returns when the next one may be made.
    pub(crate) fn fail(&mut self, now: Instant) -> Instant {
        self.in_flight = None;
        self.failures = self.failures.saturating_add(1);
        self.due = now + backoff(self.failures);
        self.due
    }
}

/// Estimates the bytes of a value and its key.
fn bytes(key: &str, encrypted: &Bytes) -> usize {
    VALUE_OVERHEAD_BYTES + key.len() + encrypted.len()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::budget::{Account, Ledger};
    use crate::clock::Clock;

    #[test]
    fn keys_and_values_are_counted_while_they_wait() {
        let ledger = Ledger::unlimited();
        let now = Clock::real().now();
        let mut values = EncryptedValues::new(ledger.share(Account::Objects), now);
        let value = |bytes: &'static [u8]| Bytes::from_static(bytes);
        assert!(values.put("/a/1".into(), 2, value(b"encrypted")));
        let small = ledger.total();
        assert!(small > 4 + 6);
        assert!(values.put("/a/10".into(), 3, value(b"encrypted")));
        assert_eq!(ledger.total(), 2 * small + 1);
        assert!(values.put("/a/1".into(), 4, value(b"encrypted more")));
        assert_eq!(ledger.total(), 2 * small + 6, "in place of the older one");
        values.remove("/a/10");
        assert_eq!(ledger.total(), small + 5);
        values.remove("/a/1");
        assert_eq!((ledger.total(), values.is_empty()), (0, true));
    }

    #[test]
    fn one_value_after_the_other_is_requested() {
        let ledger = Ledger::unlimited();
        let now = Clock::real().now();
        let mut values = EncryptedValues::new(ledger.share(Account::Objects), now);
        assert_eq!(values.due(), None);
        for key in ["/a/1", "/a/2"] {
            assert!(values.put(key.into(), 2, Bytes::from_static(b"encrypted")));
        }
        assert_eq!(values.due(), Some(now));
        let request = values.request(7, now).expect("it is due");
        assert_eq!(
            (&*request.key, request.deadline),
            ("/a/1", now + WAITING_MAX)
        );
        assert!(values.is_in_flight(7) && !values.is_in_flight(6));
        assert_eq!(values.due(), None);
        assert!(values.request(8, now).is_none(), "one at a time");
        let later = now + Duration::from_secs(1);
        assert_eq!(values.take(later), Some(("/a/1".into(), 2)));
        assert!(!values.is_in_flight(7));
        assert_eq!(values.due(), Some(later));
        assert!(values.request(8, now).is_none(), "too early");
        values.request(8, later).expect("it is due");
        let retry = values.fail(later);
        assert!(retry > later && !values.is_in_flight(8));
        assert_eq!(values.due(), Some(retry));
    }

    #[test]
    fn a_value_that_is_replaced_while_it_is_decrypted_is_not_taken() {
        let now = Clock::real().now();
        let mut values = EncryptedValues::new(Ledger::unlimited().share(Account::Objects), now);
        for revision in [2, 3] {
            assert!(values.put("/a".into(), revision, Bytes::from_static(b"encrypted")));
            values.request(revision, now);
        }
        assert_eq!(values.take(now), None, "it is the first one");
        values.request(4, now).expect("the second one");
        assert_eq!(values.take(now), Some(("/a".into(), 3)));
    }
}
