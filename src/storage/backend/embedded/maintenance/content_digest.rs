//! The digest of the content of a [`State`].

use crate::storage::backend::embedded::mvcc::State;
use crate::storage::backend::{ContentDigest, ContentHasher};

impl ContentDigest {
    /// Computes the digest of a state at its newest revision.
    pub(super) fn of_state(state: &State) -> Self {
        let mut hasher = ContentHasher::new();
        for version in state.live() {
            let revisions = [
                version.create_revision,
                version.mod_revision,
                version.version,
            ];
            hasher.add_parts(&version.key, &version.value, revisions, version.lease);
        }
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::storage::backend::LeaseId;

    #[test]
    fn every_part_of_a_version_counts_and_history_does_not() {
        let put = |writes: &[(&str, &'static str, Option<LeaseId>)]| {
            let mut state = State::new();
            for (key, value, lease) in writes {
                state.put(key, Bytes::from_static(value.as_bytes()), *lease);
            }
            state
        };
        let first = ("/a", "1", None);
        let same = put(&[first, ("/b", "2", None)]);
        let digest = ContentDigest::of_state(&same);
        let others = [
            put(&[first, ("/b", "3", None)]),
            put(&[first, ("/c", "2", None)]),
            put(&[first, ("/b", "2", Some(LeaseId(7)))]),
            put(&[("/b", "2", None), first]),
            put(&[first, ("/b2", "", None)]),
            put(&[first, first, ("/b", "2", None)]),
        ];
        for other in others {
            assert_ne!(ContentDigest::of_state(&other), digest, "{other:?}");
        }
        let mut compacted = same.clone();
        compacted.compact(3).expect("a compaction");
        assert_eq!(ContentDigest::of_state(&compacted), digest);
    }

    #[test]
    fn the_digest_of_nothing_is_that_of_no_bytes() {
        let digest = ContentDigest::of_state(&State::new()).to_string();
        let expected = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(digest, expected);
    }
}
