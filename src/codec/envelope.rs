//! The envelope of every protobuf object: magic bytes, kind and version.
//!
//! ```text
//! k8s\0  Unknown { 1: TypeMeta { 1: apiVersion, 2: kind }, 2: raw, 3: contentEncoding, 4: contentType }
//! ```

use std::borrow::Cow;

use super::error::WireError;
use super::message::Kind;
use super::tables::kind;
use super::wire::{Content, Fields, put_bytes, put_nested};

/// The magic bytes with which every protobuf object begins.
pub const MAGIC: [u8; 4] = *b"k8s\0";

/// The fields of the envelope, which Kubernetes calls `Unknown`.
#[derive(Debug, Default)]
pub(super) struct Unknown<'a> {
    pub(super) api_version: Cow<'a, str>,
    pub(super) kind: Cow<'a, str>,
    pub(super) raw: &'a [u8],
}

/// The end of an object: an empty content encoding and content type, which Go writes as well.
pub(super) const END: &[u8] = &[0x1a, 0, 0x22, 0];

/// Returns the magic bytes and the type, up to the object.
pub(super) fn begin(api_version: &str, kind: &str) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    put_nested(&mut out, 1, |out| {
        put_bytes(out, 1, api_version.as_bytes());
        put_bytes(out, 2, kind.as_bytes());
    });
    out
}

/// Reads the envelope after the magic bytes.
///
/// # Errors
/// [`WireError`] when the envelope is broken.
pub(super) fn unknown(content: &[u8]) -> Result<Unknown<'_>, WireError> {
    let mut unknown = Unknown::default();
    let mut fields = Fields::new(content);
    while let Some((number, content)) = fields.next_field()? {
        match (number, content) {
            (1, Content::Bytes(types)) => {
                let mut types = Fields::new(types);
                while let Some((number, content)) = types.next_field()? {
                    match (number, content) {
                        (1, Content::Bytes(version)) => {
                            unknown.api_version = String::from_utf8_lossy(version);
                        }
                        (2, Content::Bytes(kind)) => unknown.kind = String::from_utf8_lossy(kind),
                        (1, other) => return Err(wrong_type(other, "APIVersion")),
                        (2, other) => return Err(wrong_type(other, "Kind")),
                        _ => {}
                    }
                }
            }
            (2, Content::Bytes(raw)) => unknown.raw = raw,
            (3 | 4, Content::Bytes(_)) => {}
            (1, other) => return Err(wrong_type(other, "TypeMeta")),
            (2, other) => return Err(wrong_type(other, "Raw")),
            (3, other) => return Err(wrong_type(other, "ContentEncoding")),
            (4, other) => return Err(wrong_type(other, "ContentType")),
            _ => {}
        }
    }
    Ok(unknown)
}

/// Returns the error about a field of the envelope that is no bytes.
fn wrong_type(content: Content<'_>, field: &'static str) -> WireError {
    WireError::WrongType {
        wire_type: content.wire_type(),
        field,
    }
}

/// Returns the envelope and the kind of an object within another one.
///
/// # Errors
/// [`WireError`] when the envelope is broken, or of an unknown kind.
pub(super) fn typed(bytes: &[u8]) -> Result<(Unknown<'_>, Kind), WireError> {
    let unknown = unknown(bytes.strip_prefix(&MAGIC).unwrap_or(bytes))?;
    match kind(&unknown.api_version, &unknown.kind) {
        Some(found) => Ok((unknown, found)),
        None => Err(WireError::Json(format!(
            "no kind {:?} is registered for version {:?}",
            unknown.kind, unknown.api_version
        ))),
    }
}
