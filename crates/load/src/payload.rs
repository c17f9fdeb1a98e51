//! The objects that are written: of a given size, each with a stamp that says which write it is and
//! when that was due.
//!
//! A stamp is text that looks the same in JSON and in protobuf, so a watcher finds it in an event
//! without reading the rest.

use bytes::Bytes;

use super::client::protobuf::{self, ConfigMap, Container, ObjectMeta, PodMessage, PodSpec};
use super::client::{ClientRequest, DigitField, Encoding, RequestContent, leading_number};

/// The beginning of a stamp. No other value in our objects has it.
const MARKER: &[u8] = b"rwl1:";
/// The lengths of a stamp's numbers never change, so that all events are equally long.
const OBJECT_DIGITS: usize = 6;
const NUMBER_DIGITS: usize = 8;
const AT_DIGITS: usize = 19;
const ANNOTATION: &str = "ringwatch.load/stamp";
const PADDING: &str = "padding";
/// The image of pods that never run.
const IMAGE: &str = "registry.invalid/never-pulled";

thread_local! {
    static STAMP: DigitField = const { DigitField::new(MARKER) };
}

/// The text in an object that says which write made it, and when that was due.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Stamp {
    /// The object's index among those of the scenario.
    pub(crate) object: u32,
    /// Counts the writes to the object.
    pub(crate) number: u32,
    /// The time at which the write was due, in nanoseconds since 1970.
    pub(crate) at: u64,
}

/// The content of the objects that a scenario writes: their encoding and their padding.
#[derive(Clone, Debug)]
pub(crate) struct Payload {
    encoding: Encoding,
    padding: String,
}

/// The kinds of objects that scenarios use.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ObjectKind {
    ConfigMaps,
    /// Pods, each bound to a node of its own that does not exist, so that they never run.
    Pods,
}

impl Stamp {
    /// Finds the stamp in an object, in whatever encoding that is.
    pub(crate) fn find(object: &[u8]) -> Option<Self> {
        let rest = STAMP.with(|field| field.after(object))?;
        let (number, at) = (OBJECT_DIGITS + 1, OBJECT_DIGITS + NUMBER_DIGITS + 2);
        let field = |from: usize, digits: usize| leading_number(rest.get(from..from + digits)?);
        Some(Self {
            object: field(0, OBJECT_DIGITS)?.try_into().ok()?,
            number: field(number, NUMBER_DIGITS)?.try_into().ok()?,
            at: field(at, AT_DIGITS)?,
        })
    }

    /// Counts the stamped objects in a list, in whatever encoding that is.
    pub(crate) fn count(list: &[u8]) -> usize {
        let mut count = 0;
        let mut at = 0;
        while let Some(end) = list[at..].iter().position(|byte| *byte == MARKER[0]) {
            at += end;
            if list[at..].starts_with(MARKER) {
                count += 1;
            }
            at += 1;
        }
        count
    }

    /// Overwrites the due time of the stamp in an object or frame, whose length stays. Returns false if there is no
    /// stamp.
    pub(crate) fn set_due(object: &mut [u8], at: u64) -> bool {
        let from = MARKER.len() + OBJECT_DIGITS + NUMBER_DIGITS + 2;
        let marker = object
            .windows(MARKER.len())
            .position(|bytes| bytes == MARKER);
        let digits =
            marker.and_then(|marker| object.get_mut(marker + from..)?.get_mut(..AT_DIGITS));
        let Some(digits) = digits else {
            return false;
        };
        digits.copy_from_slice(format!("{at:0AT_DIGITS$}").as_bytes());
        true
    }

    fn text(self) -> String {
        let Self { object, number, at } = self;
        format!("rwl1:{object:0OBJECT_DIGITS$}:{number:0NUMBER_DIGITS$}:{at:0AT_DIGITS$};")
    }
}

impl ObjectKind {
    /// Returns the resource's name in paths.
    pub(crate) fn resource(self) -> &'static str {
        match self {
            Self::ConfigMaps => "configmaps",
            Self::Pods => "pods",
        }
    }
}

/// Returns the name of an object.
pub(crate) fn name(object: u32) -> String {
    format!("load-{object}")
}

/// Returns the node of a pod.
pub(crate) fn node(object: u32) -> String {
    format!("ringwatch-load-{object}")
}

impl Payload {
    /// Returns objects with so many bytes of padding.
    pub(crate) fn new(encoding: Encoding, padding: usize) -> Self {
        Self {
            encoding,
            padding: "x".repeat(padding),
        }
    }

    /// Returns the encoding in which objects are sent.
    pub(crate) fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Returns the request that creates an object in this collection.
    pub(crate) fn create(&self, kind: ObjectKind, collection: &str, stamp: Stamp) -> ClientRequest {
        let request = ClientRequest::post(collection, self.whole(kind, stamp));
        request.accepting(self.encoding)
    }

    /// Returns the request that writes an object's next version, whatever its present one is. Sent twice, it changes
    /// nothing more.
    pub(crate) fn update(&self, kind: ObjectKind, collection: &str, stamp: Stamp) -> ClientRequest {
        let path = format!("{collection}/{}", name(stamp.object));
        let request = match kind {
            ObjectKind::ConfigMaps => ClientRequest::put(path, self.whole(kind, stamp)),
            // What else is in a pod is the server's business and may not change.
            ObjectKind::Pods => ClientRequest::patch(path, patch(stamp)),
        };
        request.accepting(self.encoding)
    }

    fn whole(&self, kind: ObjectKind, stamp: Stamp) -> RequestContent {
        let bytes = match (kind, self.encoding) {
            (ObjectKind::ConfigMaps, Encoding::Json) => self.config_map_json(stamp),
            (ObjectKind::ConfigMaps, Encoding::Protobuf) => self.config_map_protobuf(stamp),
            (ObjectKind::Pods, Encoding::Json) => self.pod_json(stamp),
            (ObjectKind::Pods, Encoding::Protobuf) => self.pod_protobuf(stamp),
        };
        RequestContent {
            media_type: self.encoding.media_type(),
            bytes,
        }
    }

    fn config_map_json(&self, stamp: Stamp) -> Bytes {
        format!(
            r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"{}","annotations":{{"{ANNOTATION}":"{}"}}}},"data":{{"{PADDING}":"{}"}}}}"#,
            name(stamp.object),
            stamp.text(),
            self.padding
        )
        .into()
    }

    fn pod_json(&self, stamp: Stamp) -> Bytes {
        format!(
            r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{}","annotations":{{"{PADDING}":"{}","{ANNOTATION}":"{}"}}}},"spec":{{"containers":[{{"name":"c","image":"{IMAGE}"}}],"nodeName":"{}","automountServiceAccountToken":false}}}}"#,
            name(stamp.object),
            self.padding,
            stamp.text(),
            node(stamp.object)
        )
        .into()
    }

    fn config_map_protobuf(&self, stamp: Stamp) -> Bytes {
        let config_map = ConfigMap {
            metadata: Some(metadata(stamp, None)),
            data: [(PADDING.to_owned(), self.padding.clone())].into(),
        };
        protobuf::envelope("v1", "ConfigMap", &config_map)
    }

    fn pod_protobuf(&self, stamp: Stamp) -> Bytes {
        let pod = PodMessage {
            metadata: Some(metadata(stamp, Some(&self.padding))),
            spec: Some(PodSpec {
                containers: vec![Container {
                    name: "c".to_owned(),
                    image: IMAGE.to_owned(),
                }],
                node_name: node(stamp.object),
                automount_service_account_token: Some(false),
            }),
        };
        protobuf::envelope("v1", "Pod", &pod)
    }
}

/// Returns the metadata of an object, with its stamp and the padding among the annotations.
fn metadata(stamp: Stamp, padding: Option<&str>) -> ObjectMeta {
    let padding = padding.map(|padding| (PADDING.to_owned(), padding.to_owned()));
    let stamped = (ANNOTATION.to_owned(), stamp.text());
    ObjectMeta {
        name: name(stamp.object),
        annotations: padding.into_iter().chain([stamped]).collect(),
        ..ObjectMeta::default()
    }
}

fn patch(stamp: Stamp) -> RequestContent {
    let text = stamp.text();
    let patch = format!(r#"{{"metadata":{{"annotations":{{"{ANNOTATION}":"{text}"}}}}}}"#);
    RequestContent {
        media_type: "application/merge-patch+json",
        bytes: patch.into(),
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;

    const STAMP: Stamp = Stamp {
        object: 3,
        number: 12,
        at: 1_789_999_999_123_456_789,
    };

    fn bytes(kind: ObjectKind, encoding: Encoding) -> Bytes {
        Payload::new(encoding, 100).whole(kind, STAMP).bytes
    }

    #[test]
    fn stamps_are_found_in_every_form() {
        for kind in [ObjectKind::ConfigMaps, ObjectKind::Pods] {
            for encoding in [Encoding::Json, Encoding::Protobuf] {
                let object = bytes(kind, encoding);
                assert_eq!(Stamp::find(&object), Some(STAMP), "{kind:?} {encoding:?}");
                assert_eq!(Stamp::count(&object.repeat(7)), 7);
            }
        }
        assert_eq!(Stamp::find(b"rwl1:000001:"), None);
        assert_eq!(Stamp::find(b"nothing"), None);
    }

    #[test]
    fn the_due_time_of_a_stamp_is_overwritten_in_place() {
        for encoding in [Encoding::Json, Encoding::Protobuf] {
            let mut object = bytes(ObjectKind::ConfigMaps, encoding).to_vec();
            let length = object.len();
            assert!(Stamp::set_due(&mut object, 5));
            let expected = Stamp { at: 5, ..STAMP };
            assert_eq!(Stamp::find(&object), Some(expected));
            assert_eq!(object.len(), length);
        }
        assert!(!Stamp::set_due(
            &mut b"rwl1:000001:00000001:12;".to_vec(),
            5
        ));
    }

    #[test]
    fn objects_are_what_others_read() {
        let object = bytes(ObjectKind::ConfigMaps, Encoding::Json);
        let json: serde_json::Value = serde_json::from_slice(&object).expect("JSON");
        assert_eq!(json["metadata"]["name"], "load-3");
        assert_eq!(json["data"]["padding"].as_str().map(str::len), Some(100));
        let object = bytes(ObjectKind::Pods, Encoding::Json);
        let json: serde_json::Value = serde_json::from_slice(&object).expect("JSON");
        assert_eq!(json["spec"]["nodeName"], "ringwatch-load-3");
        let object = bytes(ObjectKind::Pods, Encoding::Protobuf);
        let inner = protobuf::unwrap_envelope(&object).expect("an envelope");
        let pod = k8s_pb::api::core::v1::Pod::decode(inner).expect("a pod");
        let spec = pod.spec.expect("a spec");
        assert_eq!(spec.node_name.as_deref(), Some("ringwatch-load-3"));
        assert_eq!(spec.containers[0].name.as_deref(), Some("c"));
        assert_eq!(spec.automount_service_account_token, Some(false));
    }

    #[test]
    fn all_stamps_are_equally_long() {
        let least = Stamp {
            object: 0,
            number: 0,
            at: 0,
        };
        assert_eq!(least.text().len(), STAMP.text().len());
    }
}
