//! The kinds of work whose cost clients choose, and the memory that they may take.

use memchr::memchr_iter;

/// Work on so many bytes is done where the request is.
pub const LARGE_BYTES: usize = 16 << 10;

/// Bytes of memory for a byte of content: the tree that it is read into, its copies, and the bytes of the result.
const BYTE_FACTOR: u64 = 16;

/// Bytes of memory for a map in the content, measured with `containers: [{},{},...]`: what a map takes however little
/// it holds, what its kind's defaults add, and what validation says of it.
const MAP_BYTES: u64 = 2_400;

/// Bytes of memory for a value of a list in the content, besides those for its bytes: a list is copied while it grows
/// to twice its length.
const VALUE_BYTES: u64 = 64;

/// Bytes of memory for a byte of a body in protobuf. Nothing in its bytes tells how many messages it holds; five make
/// one.
const PROTOBUF_FACTOR: u64 = 128;

/// A kind of work whose cost a client chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Work {
    /// Decoding a body, and all that follows from what it holds.
    Body,
    /// The same for a body in protobuf.
    ProtobufBody,
    /// Changing or converting a stored object.
    Object,
    /// Compiling or running expressions and patterns.
    Expressions,
    /// Looking through many roles, or comparing them.
    Permissions,
}

/// Returns the bytes of memory that work on this content may take at once.
#[must_use]
pub fn memory_for(work: Work, content: &[u8]) -> u64 {
    let bytes = content.len() as u64;
    if work == Work::ProtobufBody {
        return bytes.saturating_mul(PROTOBUF_FACTOR);
    }
    // A serving thread counts before the request is moved, so this is to be as fast as reading.
    let count = |mark| memchr_iter(mark, content).count() as u64;
    // A map of JSON has a brace, one of YAML a colon.
    let maps = count(b'{').max(count(b':'));
    // A value of JSON ends with a comma, one of YAML with its line.
    let values = count(b',').max(count(b'\n'));
    bytes
        .saturating_mul(BYTE_FACTOR)
        .saturating_add(maps.saturating_mul(MAP_BYTES))
        .saturating_add(values.saturating_mul(VALUE_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_grows_with_bytes_maps_and_values() {
        for (work, content, memory) in [
            (Work::Body, "[0,0]", 5 * 16 + 64),
            (Work::Body, "[{},{}]", 7 * 16 + 2 * 2_400 + 64),
            (Work::Body, "- a: 0\n- b: 0\n", 14 * 16 + 2 * 2_400 + 2 * 64),
            (Work::ProtobufBody, "k8s\0{}:", 7 * 128),
        ] {
            assert_eq!(memory_for(work, content.as_bytes()), memory, "{content:?}");
        }
    }
}
