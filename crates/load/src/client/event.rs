//! An event of a watch, decoded as far as its readers need: type, object, version.

use bytes::Bytes;
use prost::Message;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::field::{DigitField, leading_number, position};
use super::protobuf::{RawExtension, WatchEvent};
use super::status::StatusFailure;
use super::{ClientError, Encoding, frames, protobuf};

/// The fields of a WatchEvent in protobuf, of a RawExtension in it, and of an object's metadata.
const EVENT_TYPE: u32 = 1;
const EVENT_OBJECT: u32 = 2;
const EXTENSION_RAW: u32 = 1;
const OBJECT_METADATA: u32 = 1;
const METADATA_VERSION: u32 = 6;

/// The annotation of the bookmark that ends the initial events of a streaming list.
const INITIAL_EVENTS_END: &[u8] = b"k8s.io/initial-events-end";

thread_local! {
    static VERSION: DigitField = const { DigitField::new(br#""resourceVersion":""#) };
}

/// The type of a watch event.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum EventKind {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
}

/// An event as it lies in the buffer it was read into.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceivedEvent<'a> {
    pub(crate) kind: EventKind,
    /// The object as it was sent: JSON, or protobuf with its envelope.
    pub(crate) object: &'a [u8],
    encoding: Encoding,
}

/// An event with a copy of its object, for readers that hold on to it.
#[derive(Clone, Debug)]
pub(crate) struct OwnedEvent {
    pub(crate) kind: EventKind,
    /// The object's version; 0 if it has none.
    pub(crate) revision: u64,
    /// The object as it was sent.
    pub(crate) object: Bytes,
    pub(crate) encoding: Encoding,
    /// True for the bookmark that ends the initial events.
    pub(crate) ends_initial_events: bool,
}

#[derive(Deserialize)]
struct JsonEvent<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

impl EventKind {
    fn from_name(name: &[u8]) -> Result<Self, ClientError> {
        Ok(match name {
            b"ADDED" => Self::Added,
            b"MODIFIED" => Self::Modified,
            b"DELETED" => Self::Deleted,
            b"BOOKMARK" => Self::Bookmark,
            b"ERROR" => Self::Error,
            _ => return Err(ClientError::Malformed("an event of an unknown type")),
        })
    }

    /// Returns the name in the `type` field of a watch event.
    fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
            Self::Bookmark => "BOOKMARK",
            Self::Error => "ERROR",
        }
    }
}

impl<'a> ReceivedEvent<'a> {
    /// Reads a frame of a watch.
    pub(super) fn parse(frame: &'a [u8], encoding: Encoding) -> Result<Self, ClientError> {
        let read = match encoding {
            Encoding::Json => json(frame),
            Encoding::Protobuf => binary(frame),
        };
        let (name, object) = read.ok_or(ClientError::Malformed("not a watch event"))?;
        Ok(Self {
            kind: EventKind::from_name(name)?,
            object,
            encoding,
        })
    }

    /// Returns the object's resource version; `None` if it has none that is a number.
    pub(crate) fn revision(&self) -> Option<u64> {
        match self.encoding {
            // Metadata come before whatever else may be called so.
            Encoding::Json => {
                VERSION.with(|field| field.after(self.object).and_then(leading_number))
            }
            Encoding::Protobuf => {
                leading_number(protobuf::bytes(self.metadata()?, METADATA_VERSION)?)
            }
        }
    }

    /// Returns the Status of an event of the type `ERROR`.
    pub(crate) fn failure(&self) -> ClientError {
        StatusFailure::read(self.object).into_error(0)
    }

    /// Returns true for the bookmark that ends the initial events.
    pub(crate) fn ends_initial_events(&self) -> bool {
        self.kind == EventKind::Bookmark && position(self.object, INITIAL_EVENTS_END).is_some()
    }

    /// Copies the event out of the buffer that it lies in.
    pub(crate) fn kept(self) -> OwnedEvent {
        OwnedEvent {
            kind: self.kind,
            revision: self.revision().unwrap_or_default(),
            object: Bytes::copy_from_slice(self.object),
            encoding: self.encoding,
            ends_initial_events: self.ends_initial_events(),
        }
    }

    fn metadata(&self) -> Option<&'a [u8]> {
        protobuf::bytes(protobuf::unwrap_envelope(self.object)?, OBJECT_METADATA)
    }
}

impl OwnedEvent {
    /// Encodes the event as a frame of a watch: what [`ReceivedEvent::parse`] reads, with its delimiter.
    pub(crate) fn frame(&self) -> Vec<u8> {
        let kind = self.kind.name();
        match self.encoding {
            Encoding::Json => {
                let head = format!(r#"{{"type":"{kind}","object":"#);
                [head.as_bytes(), &self.object, b"}\n"].concat()
            }
            Encoding::Protobuf => {
                let event = WatchEvent {
                    r#type: kind.to_owned(),
                    object: Some(RawExtension {
                        raw: self.object.clone(),
                    }),
                };
                frames::length_delimited(&event.encode_to_vec())
            }
        }
    }

    /// Returns the event in the form that is handed over without copying.
    pub(crate) fn borrowed(&self) -> ReceivedEvent<'_> {
        ReceivedEvent {
            kind: self.kind,
            object: &self.object,
            encoding: self.encoding,
        }
    }
}

/// Returns type and object of a line: quickly if it looks as servers write it, else in any form of JSON.
fn json(line: &[u8]) -> Option<(&[u8], &[u8])> {
    const AFTER_TYPE: &[u8] = br#"","object":"#;
    let quickly = || {
        let rest = line.strip_prefix(br#"{"type":""#)?.strip_suffix(b"}")?;
        let end = rest.iter().position(|byte| *byte == b'"')?;
        Some((&rest[..end], rest[end..].strip_prefix(AFTER_TYPE)?))
    };
    quickly().or_else(|| {
        let event: JsonEvent<'_> = serde_json::from_slice(line).ok()?;
        Some((event.r#type.as_bytes(), event.object.get().as_bytes()))
    })
}

/// Returns type and object of a frame.
fn binary(frame: &[u8]) -> Option<(&[u8], &[u8])> {
    let object = protobuf::bytes(frame, EVENT_OBJECT)?;
    Some((
        protobuf::bytes(frame, EVENT_TYPE)?,
        protobuf::bytes(object, EXTENSION_RAW)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::protobuf::{ObjectMeta, Secret};

    #[test]
    fn events_in_json_are_read() {
        let object =
            r#"{"kind":"K","metadata":{"name":"n","namespace":"s","resourceVersion":"7"}}"#;
        for line in [
            format!(r#"{{"type":"MODIFIED","object":{object}}}"#),
            format!(r#" {{ "object" : {object} , "type" : "MODIFIED" }}"#),
        ] {
            let event = ReceivedEvent::parse(line.as_bytes(), Encoding::Json).expect("an event");
            assert_eq!(event.kind, EventKind::Modified);
            assert_eq!(event.object, object.as_bytes());
            assert_eq!(event.revision(), Some(7));
        }
    }

    #[test]
    fn events_in_protobuf_are_read() {
        let secret = Secret {
            metadata: Some(ObjectMeta {
                name: "n".to_owned(),
                resource_version: "7".to_owned(),
                ..ObjectMeta::default()
            }),
            ..Secret::default()
        };
        let object = protobuf::envelope("v1", "K", &secret);
        let frame = WatchEvent {
            r#type: "DELETED".to_owned(),
            object: Some(RawExtension {
                raw: object.clone(),
            }),
        };
        let frame = frame.encode_to_vec();
        let event = ReceivedEvent::parse(&frame, Encoding::Protobuf).expect("an event");
        assert_eq!(event.kind, EventKind::Deleted);
        assert_eq!(event.revision(), Some(7));
        assert_eq!(event.object, object);
    }

    #[test]
    fn a_frame_of_an_event_is_read_again() {
        let object = Bytes::from_static(br#"{"metadata":{"resourceVersion":"7"}}"#);
        for (encoding, delimiters) in [(Encoding::Json, (0, 1)), (Encoding::Protobuf, (4, 0))] {
            let event = OwnedEvent {
                kind: EventKind::Deleted,
                revision: 7,
                object: object.clone(),
                encoding,
                ends_initial_events: false,
            };
            let frame = event.frame();
            let inside = &frame[delimiters.0..frame.len() - delimiters.1];
            let read = ReceivedEvent::parse(inside, encoding).expect("an event");
            assert_eq!((read.kind, read.object), (EventKind::Deleted, &object[..]));
        }
    }

    #[test]
    fn what_is_no_event_is_refused() {
        for frame in [&b""[..], b"{}", b"{\"type\":\"ADDED\"}", b"\x0a\xff"] {
            for encoding in [Encoding::Json, Encoding::Protobuf] {
                assert!(ReceivedEvent::parse(frame, encoding).is_err());
            }
        }
        let line = br#"{"type":"OTHER","object":{}}"#;
        assert!(ReceivedEvent::parse(line, Encoding::Json).is_err());
    }

    #[test]
    fn a_gone_position_is_told_apart() {
        let line = br#"{"type":"ERROR","object":{"kind":"Status","message":"too old","code":410}}"#;
        let event = ReceivedEvent::parse(line, Encoding::Json).expect("an event");
        assert!(event.failure().is_gone());
    }
}
