//! The events of a watch as JSON, one a line.

use bytes::{BufMut, BytesMut};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::meta::Status;
use crate::registry::Resource;

/// Writes an event about an object, given as JSON.
pub(crate) fn write_event(out: &mut BytesMut, kind: &str, object: &[u8]) {
    out.put_slice(b"{\"type\":\"");
    out.put_slice(kind.as_bytes());
    out.put_slice(b"\",\"object\":");
    out.put_slice(object);
    out.put_slice(b"}\n");
}

/// Writes that everything up to a revision has been delivered.
pub(crate) fn write_bookmark(
    out: &mut BytesMut,
    resource: &Resource,
    partial: bool,
    revision: u64,
    initial_events_end: bool,
) {
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
    let object = format!(
        "{{\"kind\":\"{kind}\",\"apiVersion\":\"{version}\",\"metadata\":{{\"resourceVersion\":\
         \"{revision}\"{annotations}}}}}"
    );
    write_event(out, "BOOKMARK", object.as_bytes());
}

/// Writes why the watch ends.
pub(crate) fn write_error(out: &mut BytesMut, status: &Status) {
    let object = serde_json::to_vec(status).unwrap_or_default();
    write_event(out, "ERROR", &object);
}

/// An object's metadata as PartialObjectMetadata.
///
/// # Errors
/// When the bytes are not an object with metadata.
pub(crate) fn partial_metadata(json: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Partial<'a> {
        #[serde(borrow)]
        metadata: &'a RawValue,
    }
    let partial: Partial<'_> = serde_json::from_slice(json)?;
    let metadata = partial.metadata.get();
    Ok(format!(
        "{{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":\
         {metadata}}}"
    )
    .into_bytes())
}
