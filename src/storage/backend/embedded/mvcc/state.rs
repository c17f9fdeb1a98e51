//! The snapshot of a store, and how a revision changes it.
//!
//! Three maps: the current versions, the past ones, and the changes. A version that is overwritten or deleted moves
//! from the first to the second, under its key and the revision that ended it; so a read at a revision finds the
//! version that was valid then without tombstones, and a compaction finds the versions that nobody can read any more.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use bytes::Bytes;
use imbl::OrdMap;

use super::record::{KeyVersion, Record, RevisionChange};
use crate::storage::backend::LeaseId;

/// The revision of a store to which nothing has been written, as in etcd.
pub(crate) const REVISION_EMPTY: u64 = 1;

/// The content of a store at one moment, with its history.
#[derive(Clone)]
pub(crate) struct State {
    /// The newest revision.
    pub(super) revision: u64,
    /// The oldest revision that can be read; 0 before the first compaction.
    pub(super) compacted: u64,
    /// The keys that exist.
    pub(super) live: OrdMap<Arc<str>, Arc<KeyVersion>>,
    /// Versions that were overwritten or deleted after the compacted revision, by key and the revision that did it.
    pub(super) past: OrdMap<(Arc<str>, u64), Arc<KeyVersion>>,
    /// The changes from the compacted revision on, without a gap.
    pub(super) history: OrdMap<u64, Arc<Record>>,
    /// The bytes of the past versions.
    pub(super) past_bytes: u64,
}

impl State {
    pub(crate) fn new() -> Self {
        Self {
            revision: REVISION_EMPTY,
            compacted: 0,
            live: OrdMap::new(),
            past: OrdMap::new(),
            history: OrdMap::new(),
            past_bytes: 0,
        }
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn compacted(&self) -> u64 {
        self.compacted
    }

    /// Returns the current version of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&Arc<KeyVersion>> {
        self.live.get(key)
    }

    /// Returns the current version of every key, in key order.
    pub(crate) fn live(&self) -> impl Iterator<Item = &Arc<KeyVersion>> {
        self.live.values()
    }

    /// Writes a key at the next revision.
    pub(crate) fn put(&mut self, key: &str, value: Bytes, lease: Option<LeaseId>) -> Arc<Record> {
        let revision = self.revision + 1;
        let version = match self.live.get(key) {
            Some(old) => KeyVersion {
                key: Arc::clone(&old.key),
                value,
                create_revision: old.create_revision,
                mod_revision: revision,
                version: old.version + 1,
                lease,
            },
            None => KeyVersion {
                key: Arc::from(key),
                value,
                create_revision: revision,
                mod_revision: revision,
                version: 1,
                lease,
            },
        };
        self.record(RevisionChange::Put(Arc::new(version)))
    }

    /// Deletes keys at the next revision, all at once. Does nothing if none of them exists.
    pub(crate) fn delete<'a>(
        &mut self,
        keys: impl IntoIterator<Item = &'a str>,
    ) -> Option<Arc<Record>> {
        let keys: Vec<_> = keys
            .into_iter()
            .filter_map(|key| self.live.get(key))
            .map(|version| Arc::clone(&version.key))
            .collect();
        (!keys.is_empty()).then(|| self.record(RevisionChange::Delete(keys)))
    }

    fn record(&mut self, change: RevisionChange) -> Arc<Record> {
        let revision = self.revision + 1;
        let record = Arc::new(Record { revision, change });
        self.apply(Arc::clone(&record));
        record
    }

    /// Applies a record; records come in the order of their revisions. Those up to the compacted revision may have
    /// gaps, so a deletion may name a key that is already gone.
    pub(crate) fn apply(&mut self, record: Arc<Record>) {
        match &record.change {
            RevisionChange::Put(version) => {
                let old = self
                    .live
                    .insert(Arc::clone(&version.key), Arc::clone(version));
                self.end(old, record.revision);
            }
            RevisionChange::Delete(keys) => {
                for key in keys {
                    let old = self.live.remove(key);
                    self.end(old, record.revision);
                }
            }
        }
        self.revision = record.revision;
        self.history.insert(record.revision, record);
    }

    fn end(&mut self, old: Option<Arc<KeyVersion>>, revision: u64) {
        if let Some(old) = old {
            self.past_bytes += old.bytes();
            self.past.insert((Arc::clone(&old.key), revision), old);
        }
    }
}

impl Debug for State {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("revision", &self.revision)
            .field("compacted", &self.compacted)
            .field("keys", &self.live.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    #[test]
    fn the_first_write_is_revision_two() {
        let mut state = State::new();
        assert_eq!(state.revision(), 1);
        assert_eq!(state.put("/a", bytes("1"), None).revision, 2);
        assert_eq!(state.revision(), 2);
    }

    #[test]
    fn a_key_that_comes_back_is_created_anew() {
        let mut state = State::new();
        state.put("/a", bytes("1"), None);
        state.put("/a", bytes("2"), None);
        let version = state.get("/a").unwrap();
        assert_eq!((version.create_revision, version.version), (2, 2));
        state.delete(["/a"]);
        assert!(state.get("/a").is_none());
        state.put("/a", bytes("3"), None);
        let version = state.get("/a").unwrap();
        assert_eq!((version.create_revision, version.version), (5, 1));
    }

    #[test]
    fn deleting_nothing_is_no_revision() {
        let mut state = State::new();
        assert!(state.delete(["/a"]).is_none());
        assert_eq!(state.revision(), 1);
    }

    #[test]
    fn a_copy_does_not_see_later_writes() {
        let mut state = State::new();
        state.put("/a", bytes("1"), None);
        let copy = state.clone();
        state.put("/a", bytes("2"), None);
        assert_eq!(copy.get("/a").unwrap().value, bytes("1"));
        assert_eq!(copy.revision(), 2);
    }
}
