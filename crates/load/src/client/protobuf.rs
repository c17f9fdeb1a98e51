//! As much of protobuf as a client of its own objects needs: fields by number, read and written.
//!
//! Kubernetes wraps every object: four bytes, then a message whose field 1 is the type and whose
//! field 2 the object.

/// The magic bytes of every object.
const MAGIC: &[u8] = b"k8s\0";
const ENVELOPE_TYPE: u32 = 1;
const ENVELOPE_OBJECT: u32 = 2;
const TYPE_API_VERSION: u32 = 1;
const TYPE_KIND: u32 = 2;

const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const BYTES: u64 = 2;
const FIXED_32: u64 = 5;

/// The value of a field.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// A fixed-length value, which is not read.
    Fixed,
}

/// The first field with this number that holds bytes: a string, or a message.
pub(crate) fn bytes(message: &[u8], number: u32) -> Option<&[u8]> {
    fields(message).find_map(|(found, value)| match value {
        Value::Bytes(bytes) if found == number => Some(bytes),
        _ => None,
    })
}

/// Every field with this number that holds bytes: the items of a list, the entries of a map.
pub(crate) fn each(message: &[u8], number: u32) -> impl Iterator<Item = &[u8]> {
    fields(message).filter_map(move |(found, value)| match value {
        Value::Bytes(bytes) if found == number => Some(bytes),
        _ => None,
    })
}

/// The first field with this number that holds a string.
pub(crate) fn text(message: &[u8], number: u32) -> Option<&str> {
    std::str::from_utf8(bytes(message, number)?).ok()
}

/// The first field with this number that holds an integer.
pub(crate) fn number(message: &[u8], number: u32) -> Option<u64> {
    fields(message).find_map(|(found, value)| match value {
        Value::Number(value) if found == number => Some(value),
        _ => None,
    })
}

/// Returns the content of an envelope.
pub(crate) fn unwrap_envelope(envelope: &[u8]) -> Option<&[u8]> {
    bytes(envelope.strip_prefix(MAGIC)?, ENVELOPE_OBJECT)
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

/// Appends a field that holds bytes.
pub(crate) fn put(out: &mut Vec<u8>, number: u32, value: &[u8]) {
    put_varint(out, u64::from(number) << 3 | BYTES);
    put_varint(out, value.len() as u64);
    out.extend_from_slice(value);
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
    put_varint(out, u64::from(number) << 3 | VARINT);
    out.push(u8::from(value));
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

/// The fields of a message, as far as they can be read.
fn fields(mut rest: &[u8]) -> impl Iterator<Item = (u32, Value<'_>)> {
    std::iter::from_fn(move || {
        let tag = varint(&mut rest)?;
        let value = match tag & 7 {
            VARINT => Value::Number(varint(&mut rest)?),
            FIXED_64 => skip(&mut rest, 8)?,
            FIXED_32 => skip(&mut rest, 4)?,
            BYTES => {
                let length = usize::try_from(varint(&mut rest)?).ok()?;
                Value::Bytes(rest.split_off(..length)?)
            }
            _ => return None,
        };
        Some((u32::try_from(tag >> 3).ok()?, value))
    })
}

fn skip<'a>(rest: &mut &[u8], length: usize) -> Option<Value<'a>> {
    rest.split_off(..length)?;
    Some(Value::Fixed)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *rest.split_off_first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
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
