//! A frame of a watch of the upstream, decoded.

use std::borrow::Cow;

use bytes::Bytes;
use ringwatch::codec::WireError;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::MalformedAnswer;
use super::object_head::{ObjectHead, last_field, object_head};
use super::refusal::Refusal;

/// An event of the upstream.
#[derive(Debug)]
pub(crate) enum UpstreamEvent {
    /// An object that came to be, changed, or was deleted, with its version in it.
    Object(EventKind, ObjectHead, Bytes),
    /// Everything up to the version has been sent.
    Bookmark(ObjectHead),
    /// The watch has failed, and this is its end.
    Failed(Refusal),
}

/// The change of an object, as a watch tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    Added,
    Modified,
    Deleted,
}

#[derive(Deserialize)]
struct JsonEvent<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

impl UpstreamEvent {
    /// Decodes a frame.
    ///
    /// # Errors
    /// [`MalformedAnswer`] when it is no event, or its object has no version.
    pub(crate) fn decode(frame: &Bytes, is_protobuf: bool) -> Result<Self, MalformedAnswer> {
        let (kind, object) = match is_protobuf {
            true => protobuf(frame).map_err(|error| MalformedAnswer(error.to_string()))?,
            false => json(frame).map_err(|error| MalformedAnswer(error.to_string()))?,
        };
        let kind = match &*kind {
            "ADDED" => EventKind::Added,
            "MODIFIED" => EventKind::Modified,
            "DELETED" => EventKind::Deleted,
            "BOOKMARK" => return Ok(Self::Bookmark(object_head(object)?)),
            "ERROR" => return Ok(Self::Failed(Refusal::read(object))),
            other => return Err(MalformedAnswer(format!("there is no event {other:?}"))),
        };
        // Not a slice of the frame, which would be kept for as long as the object.
        let head = object_head(object)?;
        Ok(Self::Object(kind, head, Bytes::copy_from_slice(object)))
    }
}

fn json(frame: &[u8]) -> Result<(Cow<'_, str>, &[u8]), serde_json::Error> {
    let event: JsonEvent<'_> = serde_json::from_slice(frame)?;
    Ok((event.kind, event.object.get().as_bytes()))
}

fn protobuf(frame: &[u8]) -> Result<(Cow<'_, str>, &[u8]), WireError> {
    let kind = String::from_utf8_lossy(last_field(frame, 1)?);
    let object = last_field(last_field(frame, 2)?, 1)?;
    Ok((kind, object))
}

#[cfg(test)]
mod tests {
    use ringwatch::codec;
    use ringwatch::codec::wire::put_bytes;
    use serde_json::{Value, json};

    use super::*;

    fn frames(kind: &str, object: &Value) -> [(Bytes, bool); 2] {
        let text = json!({"type": kind, "object": object}).to_string();
        let name = object["kind"].as_str().expect("a kind");
        let of = codec::kind("v1", name).expect("a kind");
        let (mut raw, mut frame) = (Vec::new(), Vec::new());
        put_bytes(&mut raw, 1, &codec::encode(of, object));
        put_bytes(&mut frame, 1, kind.as_bytes());
        put_bytes(&mut frame, 2, &raw);
        [(text.into(), false), (frame.into(), true)]
    }

    fn config_map() -> Value {
        json!({"kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"name": "a", "namespace": "n", "resourceVersion": "7"}})
    }

    #[test]
    fn both_encodings_have_the_same_events() {
        for (kind, expected) in [
            ("ADDED", EventKind::Added),
            ("MODIFIED", EventKind::Modified),
            ("DELETED", EventKind::Deleted),
        ] {
            for (frame, is_protobuf) in frames(kind, &config_map()) {
                let event = UpstreamEvent::decode(&frame, is_protobuf).expect("an event");
                let UpstreamEvent::Object(kind, head, bytes) = event else {
                    panic!("an object, not {event:?}");
                };
                assert_eq!(
                    (kind, head.name.as_str(), head.revision),
                    (expected, "a", 7)
                );
                assert_eq!(object_head(&bytes).as_ref(), Ok(&head));
            }
        }
        for (frame, is_protobuf) in frames("BOOKMARK", &config_map()) {
            let event = UpstreamEvent::decode(&frame, is_protobuf).expect("an event");
            assert!(matches!(event, UpstreamEvent::Bookmark(head) if head.revision == 7));
        }
        let gone = json!({"kind": "Status", "apiVersion": "v1", "code": 410});
        for (frame, is_protobuf) in frames("ERROR", &gone) {
            let event = UpstreamEvent::decode(&frame, is_protobuf).expect("an event");
            assert!(matches!(event, UpstreamEvent::Failed(refusal) if refusal.code == 410));
        }
    }

    #[test]
    fn frames_that_are_no_events_are_refused() {
        for frame in [
            &b"{}"[..],
            b"null",
            br#"{"type":"ADDED","object":{}}"#,
            br#"{"type":"CHANGED","object":{"metadata":{"resourceVersion":"7"}}}"#,
        ] {
            UpstreamEvent::decode(&Bytes::from_static(frame), false).expect_err("no event");
        }
        let [_, (whole, _)] = frames("ADDED", &config_map());
        for end in 0..whole.len() {
            UpstreamEvent::decode(&whole.slice(..end), true).expect_err("a part");
        }
    }
}
