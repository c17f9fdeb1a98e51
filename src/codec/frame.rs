//! The frames of a watch in protobuf: each a length of four bytes, then a WatchEvent around a whole object.

use super::wire::{put_bytes, put_nested};

/// The size of the length that a frame begins with, in bytes.
pub const FRAME_LENGTH_BYTES: usize = 4;

/// The tags and lengths of the fields around type and object take at most so many bytes: one of a tag and ten of a
/// length each.
const FIELD_HEADS_BYTES_MAX: usize = 3 * 11;

/// Returns the frame of an event about an object, which is given with its envelope.
#[must_use]
pub fn event_frame(event: &str, object: &[u8]) -> Vec<u8> {
    let bytes = FRAME_LENGTH_BYTES + FIELD_HEADS_BYTES_MAX + event.len() + object.len();
    let mut out = Vec::with_capacity(bytes);
    out.extend([0; FRAME_LENGTH_BYTES]);
    put_bytes(&mut out, 1, event.as_bytes());
    put_nested(&mut out, 2, |out| put_bytes(out, 1, object));
    // A frame of 4 GiB would need an object that no store accepts.
    let length = u32::try_from(out.len() - FRAME_LENGTH_BYTES).unwrap_or(u32::MAX);
    out[..FRAME_LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
    out
}
