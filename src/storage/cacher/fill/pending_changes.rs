//! The changes of a type that wait until the values of some of them have been decrypted.
//!
//! The values are decrypted one after the other, in the order of the changes, while other types are followed. The
//! changes before the first encrypted one can be applied, by whole revisions. What takes too long, or becomes too much,
//! is given up: the type is listed again.

use std::collections::VecDeque;

use bytes::Bytes;

use super::decryption_request::{DecryptionRequest, WAITING_BYTES_MAX, WAITING_MAX};
use crate::budget::Share;
use crate::clock::Instant;
use crate::storage::{Change, ChangeKind};

/// The changes that wait.
#[derive(Debug)]
pub(crate) struct PendingChanges {
    /// The changes in order.
    changes: VecDeque<PendingChange>,
    /// The number of changes before the first encrypted one.
    readable: usize,
    /// The number of these that belong to revisions without an encrypted change.
    complete: usize,
    /// The estimated bytes of all changes.
    bytes: usize,
    /// Their share of the memory budget.
    share: Share,
    /// The ticket of the value that is being decrypted: the first encrypted one.
    in_flight: Option<u64>,
}

#[derive(Debug)]
struct PendingChange {
    change: Change,
    /// The instant until which its value is waited for.
    deadline: Instant,
}

impl PendingChanges {
    /// Creates an empty queue, whose memory is counted in a share.
    pub(crate) fn new(share: Share) -> Self {
        Self {
            changes: VecDeque::new(),
            readable: 0,
            complete: 0,
            bytes: 0,
            share,
            in_flight: None,
        }
    }

    /// Adds changes, which end with a whole revision. Returns false if there are too many now.
    #[must_use]
    pub(crate) fn push(&mut self, changes: Vec<Change>, now: Instant) -> bool {
        let deadline = now + WAITING_MAX;
        for change in changes {
            self.bytes += bytes(&change);
            self.changes.push_back(PendingChange { change, deadline });
        }
        self.share.set(self.bytes as u64);
        self.pass_readable();
        self.bytes <= WAITING_BYTES_MAX
    }

    /// Returns the next request; `None` if there is one in flight, or nothing to request. `ticket` must differ from
    /// that of every other request.
    pub(crate) fn request(&mut self, ticket: u64) -> Option<DecryptionRequest> {
        if self.in_flight.is_some() {
            return None;
        }
        let PendingChange { change, deadline } = self.changes.get(self.readable)?;
        let ChangeKind::Encrypted { value, .. } = &change.kind else {
            return None;
        };
        self.in_flight = Some(ticket);
        Some(DecryptionRequest {
            key: change.key.clone(),
            value: value.clone(),
            deadline: *deadline,
        })
    }

    /// Returns true if the request with a ticket is the one in flight.
    pub(crate) fn is_in_flight(&self, ticket: u64) -> bool {
        self.in_flight == Some(ticket)
    }

    /// Takes the value that was requested.
    pub(crate) fn take(&mut self, value: Bytes) {
        self.in_flight = None;
        let first = self.changes.get_mut(self.readable);
        if let Some(PendingChange { change, .. }) = first
            && let ChangeKind::Encrypted { created, .. } = change.kind
        {
            self.bytes -= bytes(change);
            change.kind = ChangeKind::Put { value, created };
            self.bytes += bytes(change);
            self.pass_readable();
        }
    }

    /// Removes and returns the changes that can be applied.
    pub(crate) fn take_readable(&mut self) -> Vec<Change> {
        let readable = self.changes.drain(..self.complete).map(|it| it.change);
        let readable: Vec<Change> = readable.collect();
        self.readable -= self.complete;
        self.complete = 0;
        self.bytes -= readable.iter().map(bytes).sum::<usize>();
        self.share.set(self.bytes as u64);
        readable
    }

    /// Returns the key of the first encrypted change; `None` if no change waits.
    pub(crate) fn first_key(&self) -> Option<&str> {
        let first = self.changes.get(self.readable);
        first.map(|it| &*it.change.key)
    }

    /// Moves on to the next encrypted change.
    fn pass_readable(&mut self) {
        while let Some(PendingChange { change, .. }) = self.changes.get(self.readable)
            && !matches!(change.kind, ChangeKind::Encrypted { .. })
        {
            self.readable += 1;
            let next = self.changes.get(self.readable);
            if next.is_none_or(|next| next.change.revision != change.revision) {
                self.complete = self.readable;
            }
        }
    }
}

/// Estimates the bytes that a change takes while it waits.
fn bytes(change: &Change) -> usize {
    let value = match &change.kind {
        ChangeKind::Put { value, .. } | ChangeKind::Encrypted { value, .. } => value.len(),
        ChangeKind::Delete => 0,
    };
    size_of::<PendingChange>() + change.key.len() + value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Account, Ledger};
    use crate::clock::Clock;

    fn changes(kinds: &[(u64, bool)]) -> Vec<Change> {
        let change = |(revision, is_encrypted): &(u64, bool)| {
            let (value, created) = (Bytes::from_static(b"encrypted"), false);
            Change {
                key: format!("/a/{revision}"),
                revision: *revision,
                kind: if *is_encrypted {
                    ChangeKind::Encrypted { value, created }
                } else {
                    ChangeKind::Put { value, created }
                },
            }
        };
        kinds.iter().map(change).collect()
    }

    /// Returns the memory that is counted for a change while it waits.
    fn counted(key: &str, value: &'static [u8]) -> u64 {
        let ledger = Ledger::unlimited();
        let mut pending = PendingChanges::new(ledger.share(Account::Objects));
        let value = Bytes::from_static(value);
        let change = Change {
            key: key.to_owned(),
            revision: 2,
            kind: ChangeKind::Encrypted {
                value,
                created: true,
            },
        };
        assert!(pending.push(vec![change], Clock::real().now()));
        ledger.total()
    }

    #[test]
    fn keys_and_values_are_counted_with_what_holds_them() {
        let small = counted("/a/1", b"encrypted");
        assert!(small > 4 + 6);
        assert_eq!(counted("/a/10", b"encrypted"), small + 1);
        assert_eq!(counted("/a/1", b"encrypted more"), small + 5);
    }

    #[test]
    fn only_the_request_in_flight_is_answered() {
        let ledger = Ledger::unlimited();
        let mut pending = PendingChanges::new(ledger.share(Account::Objects));
        assert!(!pending.is_in_flight(7));
        assert!(pending.push(changes(&[(2, true)]), Clock::real().now()));
        pending.request(7).expect("an encrypted value");
        assert!(pending.is_in_flight(7) && !pending.is_in_flight(6));
        pending.take(Bytes::from_static(b"read"));
        assert!(!pending.is_in_flight(7));
    }

    fn readable(pending: &mut PendingChanges) -> Vec<u64> {
        pending
            .take_readable()
            .iter()
            .map(|it| it.revision)
            .collect()
    }

    #[test]
    fn revisions_are_not_parted() {
        let ledger = Ledger::unlimited();
        let now = Clock::real().now();
        let mut pending = PendingChanges::new(ledger.share(Account::Objects));
        let (plain, encrypted) = (false, true);
        let first = [
            (2, plain),
            (3, plain),
            (3, encrypted),
            (3, plain),
            (3, encrypted),
            (4, plain),
        ];
        assert!(pending.push(changes(&first), now));
        assert_eq!(readable(&mut pending), [2]);
        assert!(readable(&mut pending).is_empty());
        let request = pending.request(0).expect("an encrypted value");
        assert_eq!(request.key, "/a/3");
        assert!(pending.request(1).is_none(), "one at a time");
        pending.take(Bytes::from_static(b"read"));
        assert!(readable(&mut pending).is_empty(), "half of a revision");
        assert!(pending.push(changes(&[(5, plain), (5, encrypted)]), now));
        pending.request(2).expect("another");
        pending.take(Bytes::from_static(b"read"));
        assert_eq!(readable(&mut pending), [3, 3, 3, 3, 4]);
        assert_eq!(pending.first_key(), Some("/a/5"));
        pending.request(3).expect("the last");
        pending.take(Bytes::from_static(b"a longer value than it was"));
        assert!(ledger.total() > 0);
        assert_eq!(readable(&mut pending), [5, 5]);
        assert_eq!((pending.first_key(), ledger.total()), (None, 0));
        assert!(pending.request(4).is_none());
    }
}
