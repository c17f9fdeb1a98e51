//! The changes of a type that wait until the values of some of them have been unsealed.
//!
//! The values are unsealed one after the other, in the order of the changes, while other types are followed. Then all
//! changes are applied together. What takes too long, or becomes too much, is given up: the type is listed again.

use std::time::Duration;

use bytes::Bytes;

use super::feed::FeedShared;
use crate::storage::{Change, ChangeKind, StorageError};

/// Maximum number of bytes of the keys and values that wait, of each type.
const HELD_BYTES_MAX: usize = 8 << 20;

/// Maximum time for which a value is waited for.
const UNSEALING_SECONDS_MAX: u64 = 10;

/// The changes that wait.
#[derive(Debug, Default)]
pub(super) struct Held {
    changes: Vec<Change>,
    bytes: usize,
    /// The ticket of the value that is being unsealed.
    in_flight: Option<u64>,
}

/// A request to unseal a value.
#[derive(Debug)]
pub(super) struct Sealed {
    /// The key of the value.
    pub(super) key: String,
    /// The value as it came.
    pub(super) value: Bytes,
}

impl Held {
    /// Adds changes. Returns false if there are too many now.
    #[must_use]
    pub(super) fn push(&mut self, changes: Vec<Change>) -> bool {
        let bytes = |change: &Change| {
            let value = match &change.kind {
                ChangeKind::Put { value, .. } | ChangeKind::Sealed { value, .. } => value.len(),
                ChangeKind::Delete => 0,
            };
            change.key.len() + value
        };
        self.bytes += changes.iter().map(bytes).sum::<usize>();
        self.changes.extend(changes);
        self.bytes <= HELD_BYTES_MAX
    }

    /// Returns the next request; `None` if there is one in flight, or nothing to request. `ticket` must differ from that
    /// of every other request.
    pub(super) fn request(&mut self, ticket: u64) -> Option<Sealed> {
        if self.in_flight.is_some() {
            return None;
        }
        let sealed = self.changes.iter().find_map(|change| match &change.kind {
            ChangeKind::Sealed { value, .. } => Some(Sealed {
                key: change.key.clone(),
                value: value.clone(),
            }),
            ChangeKind::Put { .. } | ChangeKind::Delete => None,
        })?;
        self.in_flight = Some(ticket);
        Some(sealed)
    }

    /// Returns true if the request with a ticket is the one in flight.
    pub(super) fn is_in_flight(&self, ticket: u64) -> bool {
        self.in_flight == Some(ticket)
    }

    /// Takes the value that was requested.
    pub(super) fn take(&mut self, unsealed: Bytes) {
        self.in_flight = None;
        let kinds = self.changes.iter_mut().map(|change| &mut change.kind);
        let mut sealed = kinds.filter_map(|kind| match kind {
            ChangeKind::Sealed { created, .. } => Some((*created, kind)),
            ChangeKind::Put { .. } | ChangeKind::Delete => None,
        });
        if let Some((created, kind)) = sealed.next() {
            let value = unsealed;
            *kind = ChangeKind::Put { value, created };
        }
    }

    /// Returns all changes if none is sealed any more.
    pub(super) fn finish(&mut self) -> Option<Vec<Change>> {
        let mut changes = self.changes.iter();
        let waits = changes.any(|change| matches!(change.kind, ChangeKind::Sealed { .. }));
        (!waits).then(|| std::mem::take(&mut self.changes))
    }
}

/// Has a value unsealed.
///
/// # Errors
/// The error of the source; [`StorageError::Timeout`] if it takes longer than [`UNSEALING_SECONDS_MAX`].
pub(super) async fn unseal(feed: &FeedShared, sealed: Sealed) -> Result<Bytes, StorageError> {
    let Sealed { key, value } = sealed;
    tokio::select! {
        value = feed.source.unseal(&key, value) => value,
        () = feed.clock.sleep(Duration::from_secs(UNSEALING_SECONDS_MAX)) => {
            Err(StorageError::Timeout {
                message: format!("the value of {key} could not be decrypted within {UNSEALING_SECONDS_MAX} s"),
            })
        }
    }
}
