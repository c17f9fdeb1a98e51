//! Compaction: dropping the versions that can no longer be read.
//!
//! After a compaction at a revision, reads at it and watches from it on still succeed. So the record of that revision
//! stays, even if it is a deletion, and so do the versions that were valid at it.

use super::record::RevisionChange;
use super::state::State;
use crate::storage::backend::BackendError;

/// The estimated bytes of a change, beside the version that it made.
const CHANGE_BYTES: u64 = 100;

impl State {
    /// Drops the versions that were overwritten or deleted up to a revision. Returns the revisions of the records that
    /// nothing needs any more, in rising order. A log may remove them one after the other: in that order a put is
    /// removed before the deletion that ended it, and so never reappears.
    ///
    /// # Errors
    /// [`BackendError::Compacted`] or [`BackendError::FutureRevision`].
    pub(crate) fn compact(&mut self, revision: u64) -> Result<Vec<u64>, BackendError> {
        if revision <= self.compacted {
            return Err(BackendError::Compacted {
                compact_revision: self.compacted,
            });
        }
        if revision > self.revision {
            return Err(BackendError::FutureRevision {
                current: self.revision,
            });
        }
        let records: Vec<_> = self
            .history
            .range(..=revision)
            .map(|(_, record)| record.clone())
            .collect();
        let mut obsolete = Vec::new();
        for record in records {
            for key in record.keys() {
                let ended = self.past.remove(&(key.clone(), record.revision));
                self.past_bytes -= ended.as_ref().map_or(0, |version| version.bytes());
                obsolete.extend(ended.map(|version| version.mod_revision));
            }
            if record.revision < revision {
                self.history.remove(&record.revision);
                if matches!(record.change, RevisionChange::Delete(_)) {
                    obsolete.push(record.revision);
                }
            }
        }
        self.compacted = revision;
        obsolete.sort_unstable();
        Ok(obsolete)
    }

    /// Returns an estimate of the memory that the history takes: the changes, and the versions that are not current.
    pub(crate) fn history_bytes(&self) -> u64 {
        self.past_bytes + self.history.len() as u64 * CHANGE_BYTES
    }

    /// Returns the first revision at which a compaction leaves at most `bytes_max` of the history; the newest if none
    /// does. `None` if the history has no more than that, or nothing is left to be compacted.
    pub(crate) fn compaction_within(&self, bytes_max: u64) -> Option<u64> {
        if self.history_bytes() <= bytes_max {
            return None;
        }
        // The change of the compacted revision itself stays.
        let mut left = self.history_bytes() + CHANGE_BYTES;
        let mut found = None;
        for (revision, record) in &self.history {
            let ended = record.keys().iter();
            let ended = ended.filter_map(|key| self.past.get(&(key.clone(), *revision)));
            left -= CHANGE_BYTES + ended.map(|version| version.bytes()).sum::<u64>();
            found = Some(*revision);
            if left <= bytes_max {
                break;
            }
        }
        found.filter(|revision| *revision > self.compacted)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;
    use crate::storage::backend::{KeyRange, RangeRequest};

    fn keys_at(state: &State, revision: u64) -> Result<Vec<String>, BackendError> {
        let request = RangeRequest {
            revision,
            ..RangeRequest::all(KeyRange::prefix("/"))
        };
        let response = state.range(&request)?;
        Ok(response.kvs.into_iter().map(|kv| kv.key).collect())
    }

    /// /a: 2, 3, deleted at 4; /b: 5, overwritten at 6.
    fn state() -> State {
        let mut state = State::new();
        state.put("/a", Bytes::new(), None);
        state.put("/a", Bytes::new(), None);
        state.delete(["/a"]);
        state.put("/b", Bytes::new(), None);
        state.put("/b", Bytes::new(), None);
        state
    }

    #[test]
    fn the_compacted_revision_itself_can_be_read() {
        let mut state = state();
        assert_eq!(state.compact(3), Ok(vec![2]));
        assert_eq!(keys_at(&state, 3), Ok(vec!["/a".to_owned()]));
        let refused = BackendError::Compacted {
            compact_revision: 3,
        };
        assert_eq!(keys_at(&state, 2), Err(refused));
    }

    #[test]
    fn a_deletion_stays_at_the_compacted_revision_and_goes_with_the_next() {
        let mut state = state();
        assert_eq!(state.compact(4), Ok(vec![2, 3]));
        assert_eq!(
            state.events(4, &KeyRange::prefix("/"), true).events.len(),
            3
        );
        assert_eq!(state.compact(6), Ok(vec![4, 5]));
        assert_eq!(keys_at(&state, 6), Ok(vec!["/b".to_owned()]));
        assert!(state.past.is_empty());
        assert_eq!(state.history.len(), 1);
    }

    #[test]
    fn what_the_compacted_revision_replaced_is_gone() {
        let mut state = state();
        state.compact(3).unwrap();
        let page = state.events(3, &KeyRange::prefix("/"), true);
        let before: Vec<_> = page
            .events
            .iter()
            .map(|event| event.previous.as_ref().map(|kv| kv.mod_revision))
            .collect();
        assert_eq!(before, [None, Some(3), None, Some(5)]);
    }

    proptest! {
        /// Writes to one of three keys, deletions of it and compactions come in any order.
        #[test]
        fn the_bytes_of_the_history_are_known_and_can_be_bounded(
            steps in prop::collection::vec((0..3_usize, 0..4_usize, 0..300_usize), 1..60),
            bytes_max in 0..8_000_u64,
        ) {
            let mut state = State::new();
            for (key, step, len) in steps {
                let key = ["/a", "/b", "/c"][key];
                match step {
                    0 => drop(state.delete([key])),
                    1 => drop(state.compact(state.revision.saturating_sub(len as u64 % 5))),
                    _ => drop(state.put(key, vec![0; len].into(), None)),
                }
                let past = state.past.values().map(|it| it.bytes()).sum::<u64>();
                prop_assert_eq!(state.past_bytes, past);
            }
            if let Some(revision) = state.compaction_within(bytes_max) {
                let mut earlier = state.clone();
                state.compact(revision).expect("a revision of the history");
                let left = state.history_bytes();
                prop_assert!(left <= bytes_max || revision == state.revision);
                if earlier.compact(revision - 1).is_ok() {
                    prop_assert!(earlier.history_bytes() > bytes_max, "no more than is needed");
                }
            }
        }
    }

    #[test]
    fn only_what_exists_and_is_newer_is_compacted() {
        let mut state = state();
        assert_eq!(
            state.compact(7),
            Err(BackendError::FutureRevision { current: 6 })
        );
        state.compact(4).unwrap();
        let refused = BackendError::Compacted {
            compact_revision: 4,
        };
        assert_eq!(state.compact(4), Err(refused));
    }
}
