//! The parsers of bodies and patches as functions of bytes, for the fuzz targets: what the handlers call after they
//! have read a body, without a request around it.

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};
use ringwatch_apimachinery::GroupVersion;
use serde_json::Value;

use super::decode::{self, DecodedBody, ExpectedKind};
use super::errors::Failure;
use super::params::FieldValidation;
use super::patches::{Patch, Syntax};

/// A body, parsed as any document.
#[derive(Clone, Debug)]
pub struct ParsedDocument {
    /// Its tree.
    pub value: Value,
    /// True if a map in it has a key twice, of which the last is in the tree.
    pub repeats_keys: bool,
}

/// Parses a body as any document. If it is protobuf and does not tell its version and kind, they are `default`.
///
/// # Errors
/// The message to the client.
pub fn document(
    media_type: &'static str,
    content: &[u8],
    default: (&str, &str),
) -> Result<ParsedDocument, String> {
    let DecodedBody {
        value,
        complaints,
        repeated,
    } = decoded(media_type, content, default)?;
    Ok(ParsedDocument {
        value,
        repeats_keys: !complaints.is_empty() || !repeated.is_empty(),
    })
}

/// Parses a body as an object of a kind, without its unknown fields.
///
/// # Errors
/// The message to the client.
pub fn object(
    media_type: &'static str,
    content: &[u8],
    group_version: &GroupVersion,
    kind: &str,
) -> Result<Value, String> {
    let expected = ExpectedKind {
        group_version,
        kind,
        strategy: None,
        custom: false,
    };
    let decoded = decoded(media_type, content, ("", ""))?;
    let typed = decode::typed(decoded, content, expected, FieldValidation::Strict);
    typed
        .map(|it| it.value)
        .map_err(|failure| message(&failure))
}

/// Parses a patch and applies it to an object.
///
/// # Errors
/// The message to the client.
pub fn patched(media_type: &str, content: &[u8], object: &Value) -> Result<Value, String> {
    let syntax = Syntax::from_media_type(media_type).map_err(|failure| message(&failure))?;
    let DecodedBody {
        value, complaints, ..
    } = decode::patch(content)?;
    let patch = Patch::read(syntax, value, complaints, FieldValidation::Strict);
    let patch = patch.map_err(|failure| message(&failure))?;
    patch.apply(object).map_err(|error| error.to_string())
}

fn decoded(
    media_type: &'static str,
    content: &[u8],
    default: (&str, &str),
) -> Result<DecodedBody, String> {
    let media_type = HeaderValue::from_static(media_type);
    let headers = HeaderMap::from_iter([(CONTENT_TYPE, media_type)]);
    decode::document(&headers, content, default).map_err(|failure| message(&failure))?
}

fn message(failure: &Failure) -> String {
    failure.status().message.clone()
}
