//! Frames the events of a watch: JSON, one a line, or protobuf, each with its length.

use bytes::Bytes;
use ringwatch::codec;
use ringwatch_registry::Resource;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::protobuf;
use crate::errors::Failure;
use crate::negotiation::Format;

/// Frames a watch event about an object that is given as JSON.
///
/// # Errors
/// Fails when the format is protobuf and the bytes are no JSON of a kind that has a form in protobuf.
pub(crate) fn event(format: Format, kind: &str, object: &[u8]) -> Result<Bytes, Failure> {
    if format == Format::Protobuf {
        let object = protobuf(object).map_err(Failure::internal)?;
        let object =
            object.ok_or_else(|| Failure::internal("a kind without a form in protobuf"))?;
        return Ok(protobuf_event(kind, &object));
    }
    let parts: [&[u8]; 5] = [
        b"{\"type\":\"",
        kind.as_bytes(),
        b"\",\"object\":",
        object,
        b"}\n",
    ];
    Ok(parts.concat().into())
}

/// Frames a watch event about an object that is given as protobuf with its envelope.
pub(crate) fn protobuf_event(kind: &str, object: &[u8]) -> Bytes {
    let frame = codec::event_frame(kind, object);
    // It may be cached for long, so its spare capacity is freed.
    frame.into_boxed_slice().into()
}

/// Returns the object of a bookmark, which says that everything up to a revision has been delivered.
pub(crate) fn bookmark(
    resource: &Resource,
    partial: bool,
    revision: u64,
    initial_events_end: bool,
) -> String {
    let (kind, version) = if partial {
        ("PartialObjectMetadata", "meta.k8s.io/v1".to_owned())
    } else {
        (resource.kind.as_str(), resource.group_version.to_string())
    };
    let annotations = if initial_events_end {
        ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}"
    } else {
        ""
    };
    format!(
        "{{\"kind\":\"{kind}\",\"apiVersion\":\"{version}\",\"metadata\":{{\"resourceVersion\":\
         \"{revision}\"{annotations}}}}}"
    )
}

/// Returns an object's metadata as PartialObjectMetadata, in a version of `meta.k8s.io`.
///
/// # Errors
/// Fails when the bytes are not an object with metadata.
pub(crate) fn partial_metadata(json: &[u8], version: &str) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Partial<'a> {
        #[serde(borrow)]
        metadata: &'a RawValue,
    }
    let partial: Partial<'_> = serde_json::from_slice(json)?;
    let metadata = partial.metadata.get();
    Ok(format!(
        "{{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/{version}\",\
         \"metadata\":{metadata}}}"
    )
    .into_bytes())
}
