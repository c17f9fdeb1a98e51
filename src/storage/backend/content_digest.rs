//! The digest of the content of a store at a revision.

use std::fmt::{self, Display, Formatter};

use sha2::{Digest, Sha256};

use super::{KeyValue, LeaseId};

/// The SHA-256 of the keys of a store at one revision. Stores of one revision with the same digest have the same
/// content, whatever each has compacted.
///
/// It goes over every key that exists, in their order: the length of the key, the key, the length of the value, the
/// value, the creation and the modification revision, the version, and the lease or 0. Numbers are of 64 bits,
/// little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentDigest([u8; 32]);

/// A [`ContentDigest`] that is computed key by key.
#[derive(Default)]
pub struct ContentHasher(Sha256);

impl ContentHasher {
    /// Begins the digest of a store without keys.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next key in their order.
    pub fn add(&mut self, kv: &KeyValue) {
        let revisions = [kv.create_revision, kv.mod_revision, kv.version];
        self.add_parts(&kv.key, &kv.value, revisions, kv.lease);
    }

    /// Adds the next key as if its revisions and its version were 0, which is what stores with revisions of their own
    /// can have in common.
    pub fn add_without_revisions(&mut self, kv: &KeyValue) {
        self.add_parts(&kv.key, &kv.value, [0; 3], kv.lease);
    }

    /// Adds the next key by its parts: the revisions are those of its creation and of its last write, and its version.
    pub(super) fn add_parts(
        &mut self,
        key: &str,
        value: &[u8],
        revisions: [u64; 3],
        lease: Option<LeaseId>,
    ) {
        let hasher = &mut self.0;
        hasher.update((key.len() as u64).to_le_bytes());
        hasher.update(key);
        hasher.update((value.len() as u64).to_le_bytes());
        hasher.update(value);
        for revision in revisions {
            hasher.update(revision.to_le_bytes());
        }
        hasher.update(lease.map_or(0, |lease| lease.0).to_le_bytes());
    }

    /// Returns the digest of the keys that were added.
    #[must_use]
    pub fn finish(self) -> ContentDigest {
        ContentDigest(self.0.finalize().into())
    }
}

impl fmt::Debug for ContentHasher {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ContentHasher")
            .finish_non_exhaustive()
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
