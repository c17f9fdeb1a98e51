//! The records that a log has of a state: those of the history, and before them the versions of older ones.

use std::ops::Bound;
use std::sync::Arc;

use super::record::{KeyVersion, Record};
use super::state::State;

impl State {
    /// Returns the versions that can be read and are older than the history, in the order of their revisions.
    pub(crate) fn older_versions(&self) -> Vec<Arc<KeyVersion>> {
        let all = self.live.values().chain(self.past.values());
        let older = all.filter(|it| !self.history.contains_key(&it.mod_revision));
        let mut versions: Vec<_> = older.cloned().collect();
        versions.sort_unstable_by_key(|it| it.mod_revision);
        versions
    }

    /// Returns the changes from a revision on, in the order of their revisions.
    pub(crate) fn history_from(&self, revision: u64) -> impl Iterator<Item = &Arc<Record>> {
        self.history.range(revision..).map(|(_, record)| record)
    }

    /// Returns how many changes the history has.
    pub(crate) fn history_len(&self) -> usize {
        self.history.len()
    }

    /// Returns the current versions of the keys that come after a key, in their order.
    pub(crate) fn live_after(&self, key: &str) -> impl Iterator<Item = &Arc<KeyVersion>> {
        let after = (Bound::Excluded(key), Bound::Unbounded);
        self.live.range::<_, str>(after).map(|(_, version)| version)
    }

    /// Returns how many keys exist.
    pub(crate) fn keys(&self) -> usize {
        self.live.len()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::storage::backend::embedded::mvcc::RevisionChange;

    #[test]
    fn a_state_is_made_again_from_its_records() {
        let mut state = State::new();
        for key in ["/a", "/b", "/c", "/a", "/d"] {
            state.put(key, Bytes::from_static(b"value"), None);
        }
        state.delete(["/d"]);
        state.put("/b", Bytes::new(), None);
        assert!(state.older_versions().is_empty());
        state.compact(6).expect("a compaction");
        let older = state.older_versions();
        let revisions: Vec<_> = older.iter().map(|it| it.mod_revision).collect();
        assert_eq!(revisions, [3, 4, 5]);
        assert_eq!((state.keys(), state.history_len()), (3, 3));
        let after: Vec<&str> = state.live_after("/a").map(|it| &*it.key).collect();
        assert_eq!(after, ["/b", "/c"]);
        let mut again = State::new();
        for version in older {
            let (revision, change) = (version.mod_revision, RevisionChange::Put(version));
            again.apply(Arc::new(Record { revision, change }));
        }
        for record in state.history_from(0) {
            again.apply(Arc::clone(record));
        }
        again.compact(6).expect("a compaction");
        assert!(again.live().eq(state.live()));
        assert!(again.past.iter().eq(state.past.iter()));
        assert!(again.history.iter().eq(state.history.iter()));
        assert_eq!(again.history_bytes(), state.history_bytes());
    }
}
