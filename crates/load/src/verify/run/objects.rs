//! The objects of the run, which carry the write that made them, in JSON or protobuf.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::resource::Resource;
use crate::client::protobuf::{self, ObjectMeta, Secret, SecretList};
use crate::client::{Encoding, ListHead, RequestContent};
use crate::verify::history::{LabelValue, ObjectKey, ObjectType, Selector, ShownObject, WriteId};

/// The prefix of our objects' names. Others in the namespace are not ours.
const NAME_PREFIX: &str = "object-";
const GROUP_PREFIX: &str = "group-";
/// The label by which watchers select, and the one that all objects of a run share.
const GROUP_LABEL: &str = "ringwatch.load/group";
const RUN_LABEL: &str = "ringwatch.load/run";
/// The annotation with the write that made the object.
const WRITE_ANNOTATION: &str = "ringwatch.load/write";

/// An object that is to be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct ObjectContent<'a> {
    pub(super) resource: &'a Resource,
    pub(super) run: &'a str,
    pub(super) key: ObjectKey,
    pub(super) group: LabelValue,
    pub(super) write: WriteId,
    /// The version that it must have.
    pub(super) base: Option<u64>,
}

impl ObjectContent<'_> {
    pub(super) fn content(&self, encoding: Encoding) -> RequestContent {
        match encoding {
            Encoding::Json => RequestContent::json(&self.json()),
            Encoding::Protobuf => RequestContent {
                media_type: encoding.media_type(),
                bytes: self.protobuf(),
            },
        }
    }

    fn json(&self) -> Value {
        json!({
            "kind": self.resource.kind,
            "apiVersion": self.resource.api_version,
            "type": ObjectType::from_key(self.key).to_string(),
            "metadata": {
                "name": self.key.to_string(),
                "resourceVersion": self.base.map(|base| base.to_string()),
                "labels": {GROUP_LABEL: self.group.to_string(), RUN_LABEL: self.run},
                "annotations": {WRITE_ANNOTATION: self.write.0.to_string()},
            },
        })
    }

    fn protobuf(&self) -> Bytes {
        let base = self.base.map(|base| base.to_string());
        let secret = Secret {
            metadata: Some(ObjectMeta {
                name: self.key.to_string(),
                resource_version: base.unwrap_or_default(),
                labels: [
                    (GROUP_LABEL.to_owned(), self.group.to_string()),
                    (RUN_LABEL.to_owned(), self.run.to_owned()),
                ]
                .into(),
                annotations: [(WRITE_ANNOTATION.to_owned(), self.write.0.to_string())].into(),
            }),
            r#type: ObjectType::from_key(self.key).to_string(),
        };
        protobuf::envelope(&self.resource.api_version, &self.resource.kind, &secret)
    }
}

/// The reason why an object cannot be recognised as ours.
const NO_OBJECT: &str = "an object without name or version";

/// Reads an object in its envelope; `None` if it is not ours.
pub(super) fn object(
    bytes: &[u8],
    encoding: Encoding,
) -> Result<Option<ShownObject>, &'static str> {
    match encoding {
        Encoding::Json => {
            let object: JsonObject = serde_json::from_slice(bytes).map_err(|_| NO_OBJECT)?;
            object.version()
        }
        Encoding::Protobuf => binary(&protobuf::decode_enveloped(bytes).ok_or(NO_OBJECT)?),
    }
}

/// Reads a list: its head, and our objects in it.
pub(super) fn list(
    bytes: &[u8],
    encoding: Encoding,
) -> Result<(ListHead, Vec<ShownObject>), &'static str> {
    let (head, objects): (_, Result<Vec<_>, _>) = match encoding {
        Encoding::Json => {
            let head = ListHead::read(bytes, encoding);
            let list: JsonList = serde_json::from_slice(bytes).map_err(|_| NO_OBJECT)?;
            (head, list.items.iter().map(JsonObject::version).collect())
        }
        Encoding::Protobuf => {
            let list: SecretList = protobuf::decode_enveloped(bytes).ok_or(NO_OBJECT)?;
            let head = list.metadata.and_then(ListHead::from_metadata);
            (head, list.items.iter().map(binary).collect())
        }
    };
    let head = head.ok_or("a list without a version")?;
    Ok((head, objects?.into_iter().flatten().collect()))
}

#[derive(Deserialize)]
struct JsonList {
    items: Vec<JsonObject>,
}

#[derive(Deserialize)]
struct JsonObject {
    metadata: JsonMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsonMetadata {
    name: String,
    resource_version: String,
    #[serde(default)]
    labels: Value,
    #[serde(default)]
    annotations: Value,
}

impl JsonObject {
    fn version(&self) -> Result<Option<ShownObject>, &'static str> {
        let metadata = &self.metadata;
        version(
            &metadata.name,
            &metadata.resource_version,
            metadata.labels[GROUP_LABEL].as_str(),
            metadata.annotations[WRITE_ANNOTATION].as_str(),
        )
    }
}

fn binary(object: &Secret) -> Result<Option<ShownObject>, &'static str> {
    let metadata = object.metadata.as_ref().ok_or(NO_OBJECT)?;
    version(
        &metadata.name,
        &metadata.resource_version,
        metadata.labels.get(GROUP_LABEL).map(String::as_str),
        metadata
            .annotations
            .get(WRITE_ANNOTATION)
            .map(String::as_str),
    )
}

fn version(
    name: &str,
    revision: &str,
    group: Option<&str>,
    write: Option<&str>,
) -> Result<Option<ShownObject>, &'static str> {
    let Some(key) = number(Some(name), NAME_PREFIX) else {
        return Ok(None);
    };
    let revision = revision.parse().map_err(|_| NO_OBJECT)?;
    Ok(Some(ShownObject {
        key: ObjectKey(key),
        revision,
        write: number(write, "").map_or(WriteId::FOREIGN, WriteId),
        group: number(group, GROUP_PREFIX).map_or(LabelValue::NONE, LabelValue),
    }))
}

fn number<T: std::str::FromStr>(text: Option<&str>, prefix: &str) -> Option<T> {
    text?.strip_prefix(prefix)?.parse().ok()
}

/// Returns the part of a query that makes the selection; empty for everything.
pub(super) fn query(selector: &Selector) -> String {
    let name = |operator, key: &ObjectKey| format!("&fieldSelector=metadata.name{operator}{key}");
    match selector {
        Selector::Type(of) => format!("&fieldSelector=type%3D{}", escaped(&of.to_string())),
        Selector::Everything => String::new(),
        Selector::Name(key) => name("%3D", key),
        Selector::NotName(key) => name("!%3D", key),
        Selector::Groups(groups) => {
            let groups: Vec<String> = groups.iter().map(ToString::to_string).collect();
            let groups = groups.join("%2C");
            format!("&labelSelector={}+in+({groups})", escaped(GROUP_LABEL))
        }
    }
}

/// Returns the part of a query that selects the objects of a run among those of all namespaces.
pub(super) fn run_query(run: &str) -> String {
    format!("&labelSelector={}%3D{run}", escaped(RUN_LABEL))
}

fn escaped(text: &str) -> String {
    text.replace('/', "%2F")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::protobuf::ListMeta;

    fn content(encoding: Encoding) -> Bytes {
        let wanted = ObjectContent {
            resource: &Resource::secrets(),
            run: "r",
            key: ObjectKey(7),
            group: LabelValue(2),
            write: WriteId(31),
            base: Some(12),
        };
        wanted.content(encoding).bytes
    }
    const VERSION: ShownObject = ShownObject {
        key: ObjectKey(7),
        revision: 12,
        write: WriteId(31),
        group: LabelValue(2),
    };

    #[test]
    fn what_is_wanted_is_read_again() {
        for encoding in [Encoding::Json, Encoding::Protobuf] {
            let bytes = content(encoding);
            assert_eq!(object(&bytes, encoding), Ok(Some(VERSION)), "{encoding:?}");
        }
    }

    #[test]
    fn what_is_not_ours_is_left_out() {
        let foreign = br#"{"metadata":{"name":"kube-root-ca.crt","resourceVersion":"3"}}"#;
        assert_eq!(object(foreign, Encoding::Json), Ok(None));
        let bare = br#"{"metadata":{"name":"object-0007","resourceVersion":"3"}}"#;
        let found = object(bare, Encoding::Json)
            .expect("an object")
            .expect("ours");
        assert_eq!(
            (found.write, found.group),
            (WriteId::FOREIGN, LabelValue::NONE)
        );
        assert!(object(b"{}", Encoding::Json).is_err());
    }

    #[test]
    fn lists_are_read_in_both_forms() {
        let item = content(Encoding::Json);
        let item = String::from_utf8_lossy(&item);
        let json = format!(r#"{{"metadata":{{"resourceVersion":"40"}},"items":[{item}]}}"#);
        let item = content(Encoding::Protobuf);
        let secrets = SecretList {
            metadata: Some(ListMeta {
                resource_version: "40".to_owned(),
                r#continue: String::new(),
            }),
            items: vec![protobuf::decode_enveloped(&item).expect("a secret")],
        };
        let binary = protobuf::envelope("v1", "SecretList", &secrets);
        for (bytes, encoding) in [(json.into(), Encoding::Json), (binary, Encoding::Protobuf)] {
            let (head, objects) = list(&bytes, encoding).expect("a list");
            assert_eq!((head.revision, objects), (40, vec![VERSION]));
        }
    }
}
