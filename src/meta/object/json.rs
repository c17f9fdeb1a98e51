//! Objects as canonical JSON.
//!
//! The bytes are canonical: `kind`, `apiVersion` and `metadata` come first, the other members in the order of their
//! names, without white space. So an item of a list is a suffix of the bytes, the resource version is at a known place,
//! and equal objects have equal bytes.
//!
//! ```text
//! {"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"7","name":"a",...},"spec":...}
//!                                 ^ item      ^ version (absent in the stored form)
//! ```

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::attributes::{Attributes, FieldSchema};
use super::{DecodeError, offset};

/// The offsets in the bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// The offset of `"metadata":`; everything from here on, after a `{`, is the list item.
    pub(super) item_at: u32,
    /// The number of bytes that were spliced into the stored form for the resource version; 0 for revision 0.
    version_bytes: u32,
}

/// The members that every object has, borrowed from its bytes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    api_version: Cow<'a, str>,
    #[serde(borrow)]
    metadata: &'a RawValue,
}

/// The metadata that selectors need.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeadMeta<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    namespace: Cow<'a, str>,
    #[serde(borrow, default)]
    uid: Cow<'a, str>,
    #[serde(default)]
    resource_version: Option<Cow<'a, str>>,
    #[serde(default)]
    labels: Option<BTreeMap<Box<str>, Box<str>>>,
}

/// Reads the stored form: returns its canonical bytes, the offset of the list item, and the attributes.
///
/// # Errors
/// [`DecodeError`] when the bytes are not a JSON object with kind, apiVersion and metadata.
pub(super) fn read<'a>(
    stored: &'a [u8],
    schema: &FieldSchema,
) -> Result<(Cow<'a, [u8]>, usize, Attributes), DecodeError> {
    let head: Head<'_> = serde_json::from_slice(stored)?;
    let meta: HeadMeta<'_> = serde_json::from_str(head.metadata.get())?;
    let start = prefix(&head.kind, &head.api_version);
    let canonical = stored.starts_with(start.as_bytes())
        && stored[start.len()..].starts_with(b"\"metadata\":{\"")
        && meta.resource_version.is_none();
    if !canonical {
        let value: Value = serde_json::from_slice(stored)?;
        let bytes = encode(&value);
        if bytes == stored {
            return Err(DecodeError("metadata has no members".to_owned()));
        }
        let (bytes, item_at, attributes) = read(&bytes, schema)?;
        return Ok((Cow::Owned(bytes.into_owned()), item_at, attributes));
    }
    let text = std::str::from_utf8(stored).unwrap_or_default();
    let attributes = Attributes {
        namespace: meta.namespace.into(),
        name: meta.name.into(),
        uid: meta.uid.into(),
        labels: meta.labels.unwrap_or_default().into(),
        fields: schema.values(|path| member(text, path)),
    };
    Ok((Cow::Borrowed(stored), start.len(), attributes))
}

/// Splices the revision into the stored form, as the first member of its metadata.
pub(super) fn splice(stored: &[u8], item_at: usize, revision: u64) -> (Vec<u8>, Layout) {
    let at = version_at(item_at);
    let version = if revision == 0 {
        String::new()
    } else {
        format!("\"resourceVersion\":\"{revision}\",")
    };
    let json = [&stored[..at], version.as_bytes(), &stored[at..]].concat();
    let layout = Layout {
        item_at: offset(item_at),
        version_bytes: offset(version.len()),
    };
    (json, layout)
}

/// Returns the stored form: without a resource version.
pub(super) fn stored(json: &[u8], layout: Layout) -> Vec<u8> {
    let from = version_at(layout.item_at as usize);
    let to = from + layout.version_bytes as usize;
    [&json[..from], &json[to..]].concat()
}

/// Returns the stored form of a value: canonical JSON without `resourceVersion`.
#[must_use]
pub fn encode(value: &Value) -> Vec<u8> {
    let Some(members) = value.as_object() else {
        return value.to_string().into_bytes();
    };
    let text = |name: &str| {
        members
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let mut json = prefix(text("kind"), text("apiVersion"));
    json.push_str("\"metadata\":");
    let mut meta = members
        .get("metadata")
        .cloned()
        .unwrap_or_else(|| Value::Object(Map::new()));
    if let Some(meta) = meta.as_object_mut() {
        meta.remove("resourceVersion");
    }
    json.push_str(&meta.to_string());
    for (name, member) in members {
        if !matches!(name.as_str(), "kind" | "apiVersion" | "metadata") {
            json.push(',');
            json.push_str(&Value::String(name.clone()).to_string());
            json.push(':');
            json.push_str(&member.to_string());
        }
    }
    json.push('}');
    json.into_bytes()
}

/// Returns the scalar at a dotted path of a JSON object, as selectors compare it.
fn member(json: &str, path: &str) -> Option<Box<str>> {
    let (name, rest) = path
        .split_once('.')
        .map_or((path, None), |(name, rest)| (name, Some(rest)));
    let members: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(json).ok()?;
    let found = members.get(name)?.get();
    if let Some(rest) = rest {
        return member(found, rest);
    }
    match serde_json::from_str(found).ok()? {
        Value::String(text) => Some(text.into()),
        Value::Number(number) => Some(number.to_string().into()),
        Value::Bool(yes) => Some(yes.to_string().into()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns the offset of the resource version in canonical bytes whose metadata begin at `item_at`.
fn version_at(item_at: usize) -> usize {
    item_at + "\"metadata\":{".len()
}

/// Returns the beginning of canonical bytes, up to the metadata.
fn prefix(kind: &str, api_version: &str) -> String {
    let quoted = |text: &str| Value::String(text.to_owned()).to_string();
    format!(
        "{{\"kind\":{},\"apiVersion\":{},",
        quoted(kind),
        quoted(api_version)
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::meta::object::attributes::FieldPath;
    use crate::meta::object::{Item, Object};

    fn pods() -> FieldSchema {
        FieldSchema::new([
            FieldPath {
                name: "spec.nodeName".into(),
                default: "",
                from: &[],
                indexed: false,
            },
            FieldPath {
                name: "spec.hostNetwork".into(),
                default: "false",
                from: &["spec.noSuchField", "spec.hostNetwork"],
                indexed: false,
            },
        ])
    }

    fn pod() -> Value {
        json!({"spec": {"nodeName": "n1"}, "metadata": {"uid": "u", "name": "a", "namespace": "b",
            "labels": {"app": "x"}, "resourceVersion": "3"}, "apiVersion": "v1", "kind": "Pod"})
    }

    #[test]
    fn canonical_bytes_carry_the_revision_and_give_it_back() {
        let object = Object::from_value(&pod(), 7, &pods()).expect("a pod");
        let json = std::str::from_utf8(object.bytes()).expect("text");
        assert!(json.starts_with(
            r#"{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"7","labels":{"#
        ));
        let Item::Json(item) = object.item() else {
            panic!("it is JSON");
        };
        assert!(item.starts_with(b"\"metadata\":{"));
        assert_eq!(object.stored(), encode(&pod()));
        let again = Object::from_json(&object.stored(), 9, &pods()).expect("the stored form");
        assert_eq!(again.bytes(), object.at_revision(9).bytes());
    }

    #[test]
    fn any_layout_decodes_to_the_same_object() {
        let foreign = serde_json::to_vec_pretty(&pod()).expect("json");
        let object = Object::from_json(&foreign, 7, &pods()).expect("a pod");
        let own = Object::from_value(&pod(), 7, &pods()).expect("a pod");
        assert_eq!(object.bytes(), own.bytes());
        assert_eq!(object.attributes(), own.attributes());
    }

    #[test]
    fn fields_are_extracted_with_their_defaults() {
        let object = Object::from_value(&pod(), 7, &pods()).expect("a pod");
        let attributes = object.attributes();
        assert_eq!(attributes.field("spec.nodeName"), Some("n1"));
        assert_eq!(attributes.field("spec.hostNetwork"), Some("false"));
        assert_eq!(attributes.field("metadata.namespace"), Some("b"));
        assert_eq!(attributes.field("status.phase"), None);
        assert_eq!(attributes.labels.get("app"), Some("x"));
    }

    #[test]
    fn an_unstored_object_has_no_version() {
        let object = Object::from_value(&pod(), 0, &pods()).expect("a pod");
        assert!(!String::from_utf8_lossy(object.bytes()).contains("resourceVersion"));
        assert_eq!(object.stored(), object.bytes().to_vec());
    }

    #[test]
    fn refuses_what_is_not_an_object() {
        for bytes in [
            &b""[..],
            b"null",
            b"[]",
            b"{}",
            b"{\"kind\":\"Pod\"",
            b"\xff",
        ] {
            assert!(Object::from_json(bytes, 1, &pods()).is_err(), "{bytes:?}");
        }
        let bare = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {}});
        assert!(Object::from_value(&bare, 1, &pods()).is_err());
    }
}
