//! JSON documents as protobuf.

use ringwatch::codec;
use serde_json::Value;

/// Converts a JSON object to protobuf; `None` if its kind has no form in protobuf.
///
/// # Errors
/// Fails when the bytes are not JSON.
pub(crate) fn protobuf(json: &[u8]) -> Result<Option<Vec<u8>>, serde_json::Error> {
    if let Some(encoded) = codec::encode_text(json) {
        return Ok(Some(encoded));
    }
    let value: Value = serde_json::from_slice(json)?;
    Ok(codec::encode_value(&value))
}
