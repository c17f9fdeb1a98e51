//! The place and the version of an object, read from its bytes without decoding the rest of it.

use std::borrow::Cow;

use ringwatch::codec::wire::{Content, Fields};
use ringwatch::codec::{MAGIC, WireError};
use ringwatch::meta::ResourceVersion;
use serde::Deserialize;

use super::error::MalformedAnswer;

/// The number of the envelope's field with the message.
const MESSAGE: u32 = 2;
/// The number of the metadata in every object's message.
const METADATA: u32 = 1;
/// The numbers of fields of the metadata.
const NAME: u32 = 1;
const NAMESPACE: u32 = 3;
const VERSION: u32 = 6;
const ANNOTATIONS: u32 = 12;

/// The annotation of the bookmark that ends the initial state of a watch.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// The place and the version of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectHead {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) revision: u64,
    /// True for the bookmark that ends the initial state of a watch.
    pub(crate) ends_initial_events: bool,
}

#[derive(Default, Deserialize)]
struct JsonObject<'a> {
    #[serde(borrow, default)]
    metadata: JsonMetadata<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JsonMetadata<'a> {
    #[serde(borrow)]
    namespace: Option<Cow<'a, str>>,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "resourceVersion")]
    resource_version: Option<Cow<'a, str>>,
    annotations: Option<Mark>,
}

/// The annotations, of which one matters.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Mark {
    #[serde(rename = "k8s.io/initial-events-end")]
    initial_events_end: Option<String>,
}

/// Reads the head of an object in JSON or in protobuf with its envelope.
///
/// # Errors
/// [`MalformedAnswer`] when it is not an object, or its version is not a number above 0.
pub(crate) fn object_head(bytes: &[u8]) -> Result<ObjectHead, MalformedAnswer> {
    let (head, version) = match bytes.strip_prefix(&MAGIC) {
        Some(envelope) => protobuf(envelope).map_err(|error| MalformedAnswer(error.to_string()))?,
        None => json(bytes).map_err(|error| MalformedAnswer(error.to_string()))?,
    };
    let revision = revision(&version)?;
    Ok(ObjectHead { revision, ..head })
}

/// Reads a version that an upstream gives to objects and lists.
///
/// # Errors
/// [`MalformedAnswer`] when it is not a number above 0.
pub(crate) fn revision(version: &str) -> Result<u64, MalformedAnswer> {
    match ResourceVersion::parse(version) {
        Ok(Some(ResourceVersion(revision))) if revision > 0 => Ok(revision),
        _ => Err(MalformedAnswer(format!(
            "{version:?} is no resource version"
        ))),
    }
}

fn json(bytes: &[u8]) -> Result<(ObjectHead, String), serde_json::Error> {
    let JsonObject { metadata } = serde_json::from_slice(bytes)?;
    let mark = metadata.annotations.unwrap_or_default();
    let head = ObjectHead {
        namespace: metadata.namespace.unwrap_or_default().into_owned(),
        name: metadata.name.unwrap_or_default().into_owned(),
        revision: 0,
        ends_initial_events: mark.initial_events_end.as_deref() == Some("true"),
    };
    let version = metadata.resource_version.unwrap_or_default().into_owned();
    Ok((head, version))
}

fn protobuf(envelope: &[u8]) -> Result<(ObjectHead, String), WireError> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (mut head, mut version) = (ObjectHead::default(), String::new());
    let message = last_field(envelope, MESSAGE)?;
    let mut fields = Fields::new(last_field(message, METADATA)?);
    while let Some((number, content)) = fields.next_field()? {
        let Content::Bytes(bytes) = content else {
            continue;
        };
        match number {
            NAME => head.name = text(bytes),
            NAMESPACE => head.namespace = text(bytes),
            VERSION => version = text(bytes),
            ANNOTATIONS if last_field(bytes, 1)? == INITIAL_EVENTS_END.as_bytes() => {
                head.ends_initial_events = last_field(bytes, 2)? == b"true";
            }
            _ => {}
        }
    }
    Ok((head, version))
}

/// Returns the bytes of the last field with a number; none if there is no such field.
pub(crate) fn last_field(message: &[u8], number: u32) -> Result<&[u8], WireError> {
    let mut found: &[u8] = &[];
    let mut fields = Fields::new(message);
    while let Some((next, content)) = fields.next_field()? {
        if let Content::Bytes(bytes) = content
            && next == number
        {
            found = bytes;
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringwatch::codec;
    use serde_json::json;

    #[test]
    fn both_encodings_have_the_same_head() {
        let object = json!({
            "kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"name": "a\"b", "namespace": "n", "resourceVersion": "7",
                "annotations": {"x": "true", INITIAL_EVENTS_END: "true"}},
            "data": {"a": "b"},
        });
        let expected = ObjectHead {
            namespace: "n".to_owned(),
            name: "a\"b".to_owned(),
            revision: 7,
            ends_initial_events: true,
        };
        let kind = codec::kind("v1", "ConfigMap").expect("a kind");
        for bytes in [
            object.to_string().into_bytes(),
            codec::encode(kind, &object),
        ] {
            assert_eq!(object_head(&bytes), Ok(expected.clone()));
        }
    }

    #[test]
    fn what_is_no_object_or_has_no_version_is_refused() {
        for bytes in [
            &b""[..],
            b"[]",
            b"{}",
            br#"{"metadata":{"resourceVersion":"0"}}"#,
            br#"{"metadata":{"resourceVersion":"x1"}}"#,
            b"k8s\0",
            b"k8s\0\x12\xff",
        ] {
            object_head(bytes).expect_err("no version");
        }
    }
}
