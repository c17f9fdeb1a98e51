//! The digest of the content of a store at a revision.

use std::fmt::{self, Display, Formatter};

use aws_lc_rs::digest::{Context, SHA256};

use crate::storage::backend::embedded::mvcc::State;

/// The SHA-256 of the keys of a store at its newest revision. Stores of one revision with the same digest have the same
/// content, whatever each has compacted.
///
/// It goes over every key that exists, in their order: the length of the key, the key, the length of the value, the value,
/// the creation and the modification revision, the version, and the lease or 0. Numbers are of 64 bits, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentDigest([u8; 32]);

impl ContentDigest {
    /// Computes the digest of a state.
    pub(super) fn of_state(state: &State) -> Self {
        let mut context = Context::new(&SHA256);
        for version in state.live() {
            let lease = version.lease.map_or(0, |lease| lease.0);
            context.update(&(version.key.len() as u64).to_le_bytes());
            context.update(version.key.as_bytes());
            context.update(&(version.value.len() as u64).to_le_bytes());
            context.update(&version.value);
            context.update(&version.create_revision.to_le_bytes());
            context.update(&version.mod_revision.to_le_bytes());
            context.update(&version.version.to_le_bytes());
            context.update(&lease.to_le_bytes());
        }
        let mut digest = [0; 32];
        digest.copy_from_slice(context.finish().as_ref());
        Self(digest)
    }
}

/// Writes the digest in hexadecimal digits.
impl Display for ContentDigest {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02x}"))
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
