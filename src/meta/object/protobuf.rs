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
//! The stored form has an empty version, as Kubernetes writes it. It is kept as it came, if its parts lie as above; of
//! the places, two are remembered, and the others are read from the two lengths.

use super::offset;
use super::versioned::{HeadBytes, VersionedObject};

/// Field 2 of the envelope: the message.
const MESSAGE_TAG: u8 = 0x12;
/// Field 1 of the message: the metadata.
const METADATA_TAG: u8 = 0x0a;
/// Field 6 of the metadata: the resource version.
const VERSION_TAG: u8 = 0x32;
/// The version's field in the stored form, which is empty.
const NO_VERSION: &[u8] = &[VERSION_TAG, 0];

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

/// The stored form of an object that has been split into its parts.
#[derive(Clone, Debug)]
pub struct ProtobufForm {
    /// Its bytes; `None` if they are those that were split.
    pub(super) rewritten: Option<Vec<u8>>,
    pub(super) layout: Layout,
}

/// Two offsets in the stored form.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// The offset at which the head ends and the message's tag and length begin.
    head_end: u32,
    /// The offset of the version's field.
    version_at: u32,
}

/// The offsets that follow from the lengths in the stored form.
struct FieldOffsets {
    message_at: usize,
    message_end: usize,
    metadata_at: usize,
    metadata_end: usize,
}

impl Layout {
    /// Returns the message in the stored form, whose version is empty.
    pub(super) fn message(self, stored: &[u8]) -> &[u8] {
        let places = self.places(stored);
        &stored[places.message_at..places.message_end]
    }

    /// Returns the whole object with a version.
    pub(super) fn whole<'a>(self, stored: &'a [u8], version: &[u8]) -> VersionedObject<'a> {
        let places = self.places(stored);
        let metadata = places.metadata_end - places.metadata_at - field_bytes(0);
        let metadata = metadata + field_bytes(version.len());
        let after_metadata = places.message_end - places.metadata_end;
        let mut lengths = HeadBytes::new();
        begin_field(
            &mut lengths,
            MESSAGE_TAG,
            field_bytes(metadata) + after_metadata,
        );
        begin_field(&mut lengths, METADATA_TAG, metadata);
        self.versioned(stored, &places, lengths, version)
    }

    /// Returns the message with a version, which is the item of a list.
    pub(super) fn item<'a>(self, stored: &'a [u8], version: &[u8]) -> VersionedObject<'a> {
        let places = self.places(stored);
        let metadata = places.metadata_end - places.metadata_at - field_bytes(0);
        let mut lengths = HeadBytes::new();
        begin_field(
            &mut lengths,
            METADATA_TAG,
            metadata + field_bytes(version.len()),
        );
        let whole = self.versioned(stored, &places, lengths, version);
        let tail_bytes = stored.len() - places.message_end;
        VersionedObject {
            start: &[],
            rest: &whole.rest[..whole.rest.len() - tail_bytes],
            ..whole
        }
    }

    fn versioned<'a>(
        self,
        stored: &'a [u8],
        places: &FieldOffsets,
        lengths: HeadBytes,
        text: &[u8],
    ) -> VersionedObject<'a> {
        let version_at = self.version_at as usize;
        let mut version = HeadBytes::new();
        begin_field(&mut version, VERSION_TAG, text.len());
        version.extend_from_slice(text);
        VersionedObject {
            start: &stored[..self.head_end as usize],
            lengths,
            before: &stored[places.metadata_at..version_at],
            version,
            rest: &stored[version_at + NO_VERSION.len()..],
        }
    }

    fn places(self, stored: &[u8]) -> FieldOffsets {
        let (message_at, message) = read_field(stored, self.head_end as usize);
        let (metadata_at, metadata) = read_field(stored, message_at);
        FieldOffsets {
            message_at,
            message_end: message_at + message,
            metadata_at,
            metadata_end: metadata_at + metadata,
        }
    }
}

impl ProtobufForm {
    /// Returns the bytes of the stored form, out of those that were split.
    #[must_use]
    pub fn bytes<'a>(&'a self, stored: &'a [u8]) -> &'a [u8] {
        self.rewritten.as_deref().unwrap_or(stored)
    }

    /// Returns the metadata in [`ProtobufForm::bytes`].
    #[must_use]
    pub fn metadata<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        let places = self.layout.places(bytes);
        &bytes[places.metadata_at..places.metadata_end]
    }

    /// Puts the parts of `stored` in order, with an empty version. Nothing is copied if they already are.
    #[must_use]
    pub fn new(parts: &ProtobufParts<'_>, stored: &[u8]) -> Self {
        let held = parts.before_version.len() + parts.after_version.len();
        let metadata = held + NO_VERSION.len();
        let message = field_bytes(metadata) + parts.rest.len();
        let mut lengths = HeadBytes::new();
        begin_field(&mut lengths, MESSAGE_TAG, message);
        begin_field(&mut lengths, METADATA_TAG, metadata);
        let head_end = parts.head.len();
        let layout = Layout {
            head_end: offset(head_end),
            version_at: offset(head_end + lengths.len() + parts.before_version.len()),
        };
        let all = [
            parts.head,
            &lengths,
            parts.before_version,
            NO_VERSION,
            parts.after_version,
            parts.rest,
            parts.tail,
        ];
        let mut left = Some(stored);
        for part in all {
            left = left.and_then(|left| left.strip_prefix(part));
        }
        let is_stored = left.is_some_and(<[u8]>::is_empty);
        Self {
            rewritten: (!is_stored).then(|| all.concat()),
            layout,
        }
    }
}

/// Returns the bytes of a field with a content of this length. Its number must be below 16.
fn field_bytes(length: usize) -> usize {
    let length_bits = usize::BITS - (length | 1).leading_zeros();
    1 + length_bits.div_ceil(7) as usize + length
}

/// Writes the tag and the length of a field.
fn begin_field(out: &mut HeadBytes, tag: u8, mut length: usize) {
    out.push(tag);
    while length >= 0x80 {
        out.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
}

/// Returns the offset and the length of the content of a field that [`begin_field`] has begun.
fn read_field(stored: &[u8], at: usize) -> (usize, usize) {
    let (mut length, mut shift, mut next) = (0, 0, at + 1);
    loop {
        let byte = stored[next];
        length |= usize::from(byte & 0x7f) << shift;
        (shift, next) = (shift + 7, next + 1);
        if byte < 0x80 {
            return (next, length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Assembles the stored form of parts, and looks that it is taken as it is.
    fn stored(parts: &ProtobufParts<'_>) -> (Vec<u8>, Layout) {
        let form = ProtobufForm::new(parts, &[]);
        let stored = form.rewritten.expect("other bytes");
        let again = ProtobufForm::new(parts, &stored);
        assert!(again.rewritten.is_none(), "they are shared");
        let longer = [&stored[..], &[0]].concat();
        let rewritten = ProtobufForm::new(parts, &longer).rewritten;
        assert_eq!(rewritten.as_ref(), Some(&stored));
        (stored, form.layout)
    }

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
            let (stored, layout) = stored(&parts);
            assert_eq!(layout.whole(&stored, b"").to_bytes(), stored);
            assert_eq!(
                layout.item(&stored, b"").to_bytes(),
                layout.message(&stored)
            );
            let version = u64::MAX.to_string();
            let numbered = layout.whole(&stored, version.as_bytes());
            assert_eq!(numbered.len(), numbered.to_bytes().len());
            let numbered = numbered.to_bytes();
            let item = layout.item(&stored, version.as_bytes()).to_bytes();
            assert!(item.ends_with(b"rest"));
            assert!(numbered.ends_with(&[&item[..], b"tail"].concat()));
            // The lengths say what follows.
            let (message_at, message) = read_field(&numbered, b"head".len());
            assert_eq!(message_at + message + b"tail".len(), numbered.len());
            let (metadata_at, metadata) = read_field(&item, 0);
            assert_eq!(metadata_at + metadata + b"rest".len(), item.len());
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
        let (stored, layout) = stored(&parts);
        assert_eq!(
            stored,
            b"k8s\0\x12\x0b\x0a\x07\x0a\x01a\x32\x00\x38\x01\x12\x00\x1a\x00\x22\x00"
        );
        assert_eq!(
            layout.item(&stored, b"12").to_bytes()[..],
            *b"\x0a\x09\x0a\x01a\x32\x0212\x38\x01\x12\x00"
        );
    }
}
