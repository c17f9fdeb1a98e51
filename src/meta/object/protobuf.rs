//! Objects as protobuf in Kubernetes' envelope.
//!
//! The resource version is a field of the metadata, which are a field of the message, which is a field of the envelope.
//! So a version of another length changes two lengths around it, and these may take another number of bytes: the object
//! is assembled again from the five parts in between.
//!
//! ```text
//! k8s\0 type | 12 length | 0a length | name uid ... | 32 length "7" | labels ... | spec status | rest of
//! head                     metadata    before         version         after        rest          tail
//!              message  ^                                                                        envelope
//! ```
//!
//! The stored form has an empty version, as Kubernetes writes it.

use super::offset;

/// Field 2 of the envelope: the message.
const MESSAGE_TAG: u8 = 0x12;
/// Field 1 of the message: the metadata.
const METADATA_TAG: u8 = 0x0a;
/// Field 6 of the metadata: the resource version.
const VERSION_TAG: u8 = 0x32;

/// The parts of an object around its resource version and the lengths that include it.
#[derive(Clone, Copy, Debug)]
pub struct ProtobufParts<'a> {
    /// The magic bytes, and the envelope's fields before the message.
    pub head: &'a [u8],
    /// The metadata's fields before the version.
    pub before_version: &'a [u8],
    /// The metadata's fields after the version.
    pub after_version: &'a [u8],
    /// The message's fields after its metadata.
    pub rest: &'a [u8],
    /// The envelope's fields after the message.
    pub tail: &'a [u8],
}

/// The offsets of the parts in the bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// The offset at which the head ends and the message's tag and length begin.
    head_end: u32,
    /// The offset of the message.
    message_at: u32,
    /// The offset of the metadata's fields.
    metadata_at: u32,
    /// The offset of the version's field.
    version_at: u32,
    /// The offset after the version's field.
    after_at: u32,
    /// The offset at which the metadata end.
    rest_at: u32,
    /// The offset at which the message ends.
    tail_at: u32,
}

impl Layout {
    /// Returns the message, which is the item of a list.
    pub(super) fn message(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.message_at as usize..self.tail_at as usize]
    }

    /// Returns the parts of the bytes.
    pub(super) fn parts(self, bytes: &[u8]) -> ProtobufParts<'_> {
        let part = |from: u32, to: u32| &bytes[from as usize..to as usize];
        ProtobufParts {
            head: part(0, self.head_end),
            before_version: part(self.metadata_at, self.version_at),
            after_version: part(self.after_at, self.rest_at),
            rest: part(self.rest_at, self.tail_at),
            tail: &bytes[self.tail_at as usize..],
        }
    }
}

/// Assembles an object with the revision as its resource version, which is empty for revision 0.
pub(super) fn compose(parts: &ProtobufParts<'_>, revision: u64) -> (Vec<u8>, Layout) {
    let version = if revision == 0 {
        String::new()
    } else {
        revision.to_string()
    };
    let held = parts.before_version.len() + parts.after_version.len();
    let metadata = held + field_bytes(version.len());
    let message = field_bytes(metadata) + parts.rest.len();
    let whole = parts.head.len() + field_bytes(message) + parts.tail.len();
    let mut out = Vec::with_capacity(whole);
    out.extend_from_slice(parts.head);
    let head_end = offset(out.len());
    begin_field(&mut out, MESSAGE_TAG, message);
    let message_at = offset(out.len());
    begin_field(&mut out, METADATA_TAG, metadata);
    let metadata_at = offset(out.len());
    out.extend_from_slice(parts.before_version);
    let version_at = offset(out.len());
    begin_field(&mut out, VERSION_TAG, version.len());
    out.extend_from_slice(version.as_bytes());
    let after_at = offset(out.len());
    out.extend_from_slice(parts.after_version);
    let rest_at = offset(out.len());
    out.extend_from_slice(parts.rest);
    let tail_at = offset(out.len());
    out.extend_from_slice(parts.tail);
    let layout = Layout {
        head_end,
        message_at,
        metadata_at,
        version_at,
        after_at,
        rest_at,
        tail_at,
    };
    (out, layout)
}

/// Returns the bytes of a field with a content of this length. Its number must be below 16.
fn field_bytes(length: usize) -> usize {
    let length_bits = usize::BITS - (length | 1).leading_zeros();
    1 + length_bits.div_ceil(7) as usize + length
}

/// Writes the tag and the length of a field.
fn begin_field(out: &mut Vec<u8>, tag: u8, mut length: usize) {
    out.push(tag);
    while length >= 0x80 {
        out.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_grow_and_shrink_with_the_version() {
        // Around the lengths at which one more byte is needed for them.
        for filling in (0..400).chain(16_250..16_400) {
            let filling = vec![7; filling];
            let parts = ProtobufParts {
                head: b"head",
                before_version: b"before",
                after_version: &filling,
                rest: b"rest",
                tail: b"tail",
            };
            let (stored, layout) = compose(&parts, 0);
            assert_eq!(stored.capacity(), stored.len());
            let (numbered, numbered_layout) = compose(&layout.parts(&stored), u64::MAX);
            assert_eq!(numbered.capacity(), numbered.len());
            let (back, _) = compose(&numbered_layout.parts(&numbered), 0);
            assert_eq!(back, stored);
            assert!(numbered_layout.message(&numbered).ends_with(b"rest"));
            assert!(numbered.ends_with(b"tail") && numbered.starts_with(b"head\x12"));
        }
    }

    #[test]
    fn the_version_is_a_field_of_the_metadata() {
        let parts = ProtobufParts {
            head: b"k8s\0",
            before_version: b"\x0a\x01a",
            after_version: b"\x38\x01",
            rest: b"\x12\x00",
            tail: b"\x1a\x00\x22\x00",
        };
        let (stored, _) = compose(&parts, 0);
        assert_eq!(
            stored,
            b"k8s\0\x12\x0b\x0a\x07\x0a\x01a\x32\x00\x38\x01\x12\x00\x1a\x00\x22\x00"
        );
        let (numbered, layout) = compose(&parts, 12);
        assert_eq!(
            layout.message(&numbered),
            b"\x0a\x09\x0a\x01a\x32\x0212\x38\x01\x12\x00"
        );
    }
}
