//! Compaction: dropping the versions that can no longer be read.
//!
//! After a compaction at a revision, reads at it and watches from it on still succeed. So the record of that revision
//! stays, even if it is a deletion, and so do the versions that were valid at it.

use super::record::Change;
use super::state::State;
use crate::storage::backend::BackendError;

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
                obsolete.extend(ended.map(|version| version.mod_revision));
            }
            if record.revision < revision {
                self.history.remove(&record.revision);
                if matches!(record.change, Change::Delete(_)) {
                    obsolete.push(record.revision);
                }
            }
        }
        self.compacted = revision;
        obsolete.sort_unstable();
        Ok(obsolete)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

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
