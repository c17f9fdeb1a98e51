//! The bytes of an object with its resource version, in parts: the stored form is not copied for the sake of a few
//! digits.
//!
//! ```text
//!   start | lengths | before | version | rest
//!   '------- the head: short -------'    the stored form as it is
//! ```

use bytes::{BufMut, Bytes, BytesMut};
use smallvec::SmallVec;

/// Bytes of a head that are not in the stored form: the member of a version, or the lengths of two fields.
pub(super) type HeadBytes = SmallVec<[u8; 48]>;

/// An object, or its item of a list, with the resource version.
#[derive(Clone, Debug)]
pub struct VersionedObject<'a> {
    /// The beginning of the stored form; empty for an item.
    pub(super) start: &'a [u8],
    /// The tags and lengths that the version changes; empty for JSON.
    pub(super) lengths: HeadBytes,
    /// The stored bytes before the version.
    pub(super) before: &'a [u8],
    /// The version, with its tag and length or as a member.
    pub(super) version: HeadBytes,
    /// All stored bytes after the version.
    pub(super) rest: &'a [u8],
}

impl<'a> VersionedObject<'a> {
    /// Returns the number of bytes.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "it never is")]
    pub fn len(&self) -> usize {
        let head = self.head();
        head.iter().map(|part| part.len()).sum::<usize>() + self.rest.len()
    }

    /// Writes what comes before [`VersionedObject::rest`]. It is short unless metadata before the version are long.
    pub fn put_head(&self, out: &mut impl BufMut) {
        for part in self.head() {
            out.put_slice(part);
        }
    }

    /// Returns the bytes after the version, which are a part of [`Object::stored`](super::Object::stored).
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns all of it.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(self.len());
        self.put_head(&mut out);
        out.put_slice(self.rest);
        out.freeze()
    }

    fn head(&self) -> [&[u8]; 4] {
        [self.start, &self.lengths, self.before, &self.version]
    }
}
