//! The part of protobuf that a client of its own objects needs: fields by number, read and written.
//!
//! Kubernetes wraps every object: four bytes, then a message whose field 1 is the type and whose
//! field 2 the object.

use ringwatch::codec::MAGIC;
pub(crate) use ringwatch::codec::wire::put_bytes as put;
use ringwatch::codec::wire::{Content, Fields, put_number};

const ENVELOPE_TYPE: u32 = 1;
const ENVELOPE_OBJECT: u32 = 2;
const TYPE_API_VERSION: u32 = 1;
const TYPE_KIND: u32 = 2;

/// Returns the first field with this number that holds bytes: a string, or a message.
pub(crate) fn bytes(message: &[u8], number: u32) -> Option<&[u8]> {
    fields(message).find_map(|(found, value)| match value {
        Content::Bytes(bytes) if found == number => Some(bytes),
        _ => None,
    })
}

/// Returns every field with this number that holds bytes: the items of a list, the entries of a map.
pub(crate) fn each(message: &[u8], number: u32) -> impl Iterator<Item = &[u8]> {
    fields(message).filter_map(move |(found, value)| match value {
        Content::Bytes(bytes) if found == number => Some(bytes),
        _ => None,
    })
}

/// Returns the first field with this number that holds a string.
pub(crate) fn text(message: &[u8], number: u32) -> Option<&str> {
    std::str::from_utf8(bytes(message, number)?).ok()
}

/// Returns the first field with this number that holds an integer.
pub(crate) fn number(message: &[u8], number: u32) -> Option<u64> {
    fields(message).find_map(|(found, value)| match value {
        Content::Varint(value) if found == number => Some(value),
        _ => None,
    })
}

/// Returns the content of an envelope.
pub(crate) fn unwrap_envelope(envelope: &[u8]) -> Option<&[u8]> {
    bytes(envelope.strip_prefix(&MAGIC)?, ENVELOPE_OBJECT)
}

/// Puts an object into its envelope.
pub(crate) fn envelope(api_version: &str, kind: &str, object: &[u8]) -> Vec<u8> {
    let mut type_meta = Vec::new();
    put(&mut type_meta, TYPE_API_VERSION, api_version.as_bytes());
    put(&mut type_meta, TYPE_KIND, kind.as_bytes());
    let mut out = MAGIC.to_vec();
    put(&mut out, ENVELOPE_TYPE, &type_meta);
    put(&mut out, ENVELOPE_OBJECT, object);
    out
}

/// Appends an entry of a map of strings.
pub(crate) fn put_entry(out: &mut Vec<u8>, number: u32, key: &str, value: &str) {
    let mut entry = Vec::with_capacity(key.len() + value.len() + 8);
    put(&mut entry, 1, key.as_bytes());
    put(&mut entry, 2, value.as_bytes());
    put(out, number, &entry);
}

/// Appends a field that holds a flag.
pub(crate) fn put_flag(out: &mut Vec<u8>, number: u32, value: bool) {
    put_number(out, number, u64::from(value));
}

/// Returns the fields of a message, as far as they can be read.
fn fields(message: &[u8]) -> impl Iterator<Item = (u32, Content<'_>)> {
    let mut fields = Fields::new(message);
    std::iter::from_fn(move || fields.next_field().ok().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let mut message = Vec::new();
        put(&mut message, 1, b"one");
        put_flag(&mut message, 3, true);
        put(&mut message, 200, &[7; 300]);
        assert_eq!(text(&message, 1), Some("one"));
        assert_eq!(number(&message, 3), Some(1));
        assert_eq!(bytes(&message, 200), Some(&[7; 300][..]));
        assert_eq!(bytes(&message, 2), None);
        let envelope = envelope("v1", "ConfigMap", &message);
        assert_eq!(unwrap_envelope(&envelope), Some(&message[..]));
    }

    #[test]
    fn broken_messages_hold_nothing() {
        let mut message = Vec::new();
        put(&mut message, 1, b"one");
        for length in 0..message.len() {
            assert_eq!(text(&message[..length], 1), None);
        }
        assert_eq!(number(&[0xff; 20], 1), None);
        assert_eq!(unwrap_envelope(b"k8s"), None);
    }

    /// Another implementation reads it too.
    #[test]
    fn another_decoder_reads_an_object() {
        use prost::Message as _;
        let mut metadata = Vec::new();
        put(&mut metadata, 1, b"name");
        put_entry(&mut metadata, 12, "key", "value");
        let mut object = Vec::new();
        put(&mut object, 1, &metadata);
        put_entry(&mut object, 2, "data", "text");
        let decoded = k8s_pb::api::core::v1::ConfigMap::decode(&object[..]).expect("protobuf");
        let metadata = decoded.metadata.expect("metadata");
        assert_eq!(metadata.name.as_deref(), Some("name"));
        assert_eq!(metadata.annotations["key"], "value");
        assert_eq!(decoded.data["data"], "text");
    }
}
