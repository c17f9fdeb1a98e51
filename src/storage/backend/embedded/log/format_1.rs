//! Records as files of format 1 have them: read, and never written.
//!
//! A put is its tag, the length of the key (u32), the key, the creation revision, the version and the lease (u64 or
//! i64, 0 for none), and the value; a deletion its tag, then length and bytes of each key. All numbers are
//! little-endian. No message of protobuf begins with one of the tags, which would be those of a field with number 0.

use std::sync::Arc;

use bytes::Bytes;

use crate::storage::backend::LeaseId;
use crate::storage::backend::embedded::mvcc::{KeyVersion, RevisionChange};

pub(super) const TAG_PUT: u8 = 1;
pub(super) const TAG_DELETE: u8 = 2;

/// Decodes the change of a revision; `None` if the bytes are no record of this format.
pub(super) fn decode(revision: u64, bytes: &[u8]) -> Option<RevisionChange> {
    match bytes.split_first()? {
        (&TAG_PUT, rest) => decode_put(revision, rest),
        (&TAG_DELETE, rest) => decode_delete(rest),
        _ => None,
    }
}

fn decode_put(revision: u64, bytes: &[u8]) -> Option<RevisionChange> {
    let (key, rest) = decode_key(bytes)?;
    let (create_revision, rest) = rest.split_first_chunk()?;
    let (version, rest) = rest.split_first_chunk()?;
    let (lease, value) = rest.split_first_chunk()?;
    let lease = i64::from_le_bytes(*lease);
    Some(RevisionChange::Put(Arc::new(KeyVersion {
        key,
        value: Bytes::copy_from_slice(value),
        create_revision: u64::from_le_bytes(*create_revision),
        mod_revision: revision,
        version: u64::from_le_bytes(*version),
        lease: (lease != 0).then_some(LeaseId(lease)),
    })))
}

fn decode_delete(mut bytes: &[u8]) -> Option<RevisionChange> {
    let mut keys = Vec::new();
    while !bytes.is_empty() {
        let (key, rest) = decode_key(bytes)?;
        keys.push(key);
        bytes = rest;
    }
    (!keys.is_empty()).then_some(RevisionChange::Delete(keys))
}

fn decode_key(bytes: &[u8]) -> Option<(Arc<str>, &[u8])> {
    let (len, rest) = bytes.split_first_chunk()?;
    let len = usize::try_from(u32::from_le_bytes(*len)).ok()?;
    let (key, rest) = rest.split_at_checked(len)?;
    Some((Arc::from(str::from_utf8(key).ok()?), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A put of revision 9 as version 0.1 of this program wrote it.
    const PUT: &[u8] = b"\x01\x10\0\0\0/registry/pods/a\x04\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\
        \x4d\0\0\0\0\0\0\0value";
    const DELETE: &[u8] = b"\x02\x02\0\0\0/a\x03\0\0\0/\xc3\xbc";

    #[test]
    fn records_are_read() {
        let put = RevisionChange::Put(Arc::new(KeyVersion {
            key: Arc::from("/registry/pods/a"),
            value: Bytes::from_static(b"value"),
            create_revision: 4,
            mod_revision: 9,
            version: 3,
            lease: Some(LeaseId(77)),
        }));
        assert_eq!(decode(9, PUT), Some(put));
        let deleted = vec![Arc::from("/a"), Arc::from("/ü")];
        assert_eq!(decode(10, DELETE), Some(RevisionChange::Delete(deleted)));
    }

    #[test]
    fn bytes_that_are_cut_off_are_refused() {
        let value_begins = PUT.len() - "value".len();
        for len in 0..value_begins {
            assert_eq!(decode(9, &PUT[..len]), None, "{len}");
        }
        let first_ends = 1 + 4 + "/a".len();
        for len in (0..DELETE.len()).filter(|len| *len != first_ends) {
            assert_eq!(decode(10, &DELETE[..len]), None, "{len}");
        }
        assert_eq!(decode(1, &[3, 0, 0, 0, 0]), None);
    }
}
