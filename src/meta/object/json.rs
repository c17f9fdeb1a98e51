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

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::json_text::{json_text, put_json};
use super::attributes::{AttributeSpans, FieldSchema, PlacesBuilder};
use super::versioned::{HeadBytes, VersionedObject};
use super::{DecodeError, offset};

/// The offset in the stored form.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// The offset of `"metadata":`; everything from here on, after a `{`, is the list item.
    pub(super) item_at: u32,
}

impl Layout {
    /// Returns true if this API version comes before the list item.
    pub(super) fn is_of_version(self, stored: &[u8], api_version: &str) -> bool {
        let head = stored[..self.item_at as usize].strip_suffix(b"\",");
        let before = head.and_then(|head| head.strip_suffix(api_version.as_bytes()));
        // A quote inside of a text has a backslash before it, so this is the name of the member.
        before.is_some_and(|before| before.ends_with(b",\"apiVersion\":\""))
    }

    /// Returns the object with a version from an offset on, which must not lie after the item's.
    pub(super) fn from<'a>(
        self,
        from: usize,
        stored: &'a [u8],
        version: &[u8],
    ) -> VersionedObject<'a> {
        let at = version_at(self.item_at as usize);
        let mut member = HeadBytes::new();
        if !version.is_empty() {
            for part in [b"\"resourceVersion\":\"", version, b"\","] {
                member.extend_from_slice(part);
            }
        }
        VersionedObject {
            start: &[],
            lengths: HeadBytes::new(),
            before: &stored[from..at],
            version: member,
            rest: &stored[at..],
        }
    }
}

/// The members that every object has, borrowed from its bytes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ObjectHead<'a> {
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
    #[serde(default, rename = "resourceVersion", deserialize_with = "version")]
    has_version: bool,
    #[serde(borrow, default)]
    labels: Option<BTreeMap<Text<'a>, Text<'a>>>,
}

/// A text that is borrowed unless it has escapes. In a map, serde borrows no other.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Reads a resource version, of which only matters that it is there, even as `null`.
fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Option::<Cow<'_, str>>::deserialize(deserializer).map(|_| true)
}

/// Reads the stored form: returns its canonical bytes if they are others, the offset of the list item in these, and the
/// places of the attributes in them.
///
/// # Errors
/// [`DecodeError`] when the bytes are not a JSON object in UTF-8 with kind, apiVersion and metadata.
pub(super) fn read(
    stored: &[u8],
    schema: &FieldSchema,
) -> Result<(Option<Vec<u8>>, u32, AttributeSpans), DecodeError> {
    // serde_json does not look at what nobody asks for.
    let text = str::from_utf8(stored).map_err(|error| DecodeError(error.to_string()))?;
    let head: ObjectHead<'_> = serde_json::from_str(text)?;
    let meta: HeadMeta<'_> = serde_json::from_str(head.metadata.get())?;
    let start = prefix(&head.kind, &head.api_version);
    let canonical = stored.starts_with(start.as_bytes())
        && stored[start.len()..].starts_with(b"\"metadata\":{\"")
        && !meta.has_version
        // Go's encoder ends with one, which would end a frame of a watch.
        && !stored.contains(&b'\n');
    if !canonical {
        let value: Value = serde_json::from_slice(stored)?;
        let bytes = encode(&value);
        if bytes == stored {
            return Err(DecodeError("metadata has no members".to_owned()));
        }
        // They are canonical now, so the places are those in them.
        let (_, item_at, places) = read(&bytes, schema)?;
        return Ok((Some(bytes), item_at, places));
    }
    let mut places = PlacesBuilder::new(stored);
    places.namespace(meta.namespace.as_bytes());
    places.name(meta.name.as_bytes());
    places.uid(meta.uid.as_bytes());
    for (key, value) in meta.labels.iter().flatten() {
        places.label(key.0.as_bytes(), value.0.as_bytes());
    }
    let places = places.finish(schema.values(|path| member(text, path)));
    Ok((None, offset(start.len()), places))
}

/// Returns the stored form of a value: canonical JSON without `resourceVersion`.
#[must_use]
pub fn encode(value: &Value) -> Vec<u8> {
    let Some(members) = value.as_object() else {
        return json_text(value).into_bytes();
    };
    let text = |name: &str| {
        members
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let mut json = prefix(text("kind"), text("apiVersion")).into_bytes();
    json.extend_from_slice(b"\"metadata\":");
    match members.get("metadata") {
        Some(Value::Object(metadata)) => {
            json.push(b'{');
            let stored = metadata
                .iter()
                .filter(|(name, _)| *name != "resourceVersion");
            for (index, (name, member)) in stored.enumerate() {
                put_member(&mut json, index > 0, name, member);
            }
            json.push(b'}');
        }
        Some(other) => put_json(&mut json, other),
        None => json.extend_from_slice(b"{}"),
    }
    for (name, member) in members {
        if !matches!(name.as_str(), "kind" | "apiVersion" | "metadata") {
            put_member(&mut json, true, name, member);
        }
    }
    json.push(b'}');
    json
}

/// Appends a member of an object, after a comma unless it is the first.
fn put_member(json: &mut Vec<u8>, follows: bool, name: &str, member: &Value) {
    if follows {
        json.push(b',');
    }
    put_json(json, name);
    json.push(b':');
    put_json(json, member);
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
    use crate::meta::object::{Bytes, Object};

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
    fn a_version_that_is_null_is_not_served_beside_the_real_one() {
        let stored = br#"{"kind":"A","apiVersion":"v1","metadata":{"name":"a","resourceVersion":null},"x":1}"#;
        let object = Object::from_json(Bytes::from_static(stored), 7, &FieldSchema::default());
        let bytes = object.expect("an object").bytes();
        let wanted = br#"{"kind":"A","apiVersion":"v1","metadata":{"resourceVersion":"7","name":"a"},"x":1}"#;
        assert_eq!(bytes, &wanted[..]);
    }

    #[test]
    fn the_version_of_the_stored_form_is_told_without_decoding() {
        for (api_version, is_it) in [
            ("example.com/v1", true),
            ("example.com/v1alpha1", false),
            ("com/v1", false),
            ("v1", false),
            ("", false),
        ] {
            let value =
                json!({"kind": "A", "apiVersion": "example.com/v1", "metadata": {"name": "a"}});
            let object = Object::from_value(&value, 1, &FieldSchema::default());
            let object = object.expect("an object");
            assert_eq!(object.is_written_in(api_version), is_it, "{api_version}");
        }
        let odd =
            json!({"kind": "A", "apiVersion": ",\"apiVersion\":\"v1", "metadata": {"name": "a"}});
        let odd = Object::from_value(&odd, 1, &FieldSchema::default()).expect("an object");
        assert!(!odd.is_written_in("v1"));
    }

    #[test]
    fn the_end_of_the_line_that_go_writes_is_not_served() {
        let stored = b"{\"kind\":\"A\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"}}\n";
        let object = Object::from_json(Bytes::from_static(stored), 7, &FieldSchema::default());
        assert!(!object.expect("an object").bytes().contains(&b'\n'));
    }

    #[test]
    fn text_that_is_not_utf_8_is_refused() {
        let stored =
            b"{\"kind\":\"A\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"},\"x\":\"\xff\"}";
        let object = Object::from_json(Bytes::from_static(stored), 7, &FieldSchema::default());
        object.expect_err("no text");
    }

    #[test]
    fn canonical_bytes_carry_the_revision_and_give_it_back() {
        let object = Object::from_value(&pod(), 7, &pods()).expect("a pod");
        let bytes = object.bytes();
        let json = std::str::from_utf8(&bytes).expect("text");
        assert!(json.starts_with(
            r#"{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"7","labels":{"#
        ));
        let item = object.item().to_bytes();
        assert!(item.starts_with(b"\"metadata\":{\"resourceVersion\":\"7\","));
        assert!(bytes.ends_with(&item));
        assert_eq!(object.item_with_kind().to_bytes(), bytes[1..]);
        assert_eq!(*object.stored(), encode(&pod()));
        let again = Object::from_json(object.stored().clone(), 9, &pods());
        let again = again.expect("the stored form");
        assert_eq!(again.bytes(), object.at_revision(9).bytes());
    }

    #[test]
    fn any_layout_decodes_to_the_same_object() {
        let foreign = serde_json::to_vec_pretty(&pod()).expect("json");
        let object = Object::from_json(foreign.into(), 7, &pods()).expect("a pod");
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
        assert_eq!(attributes.labels().get("app"), Some("x"));
    }

    #[test]
    fn texts_with_escapes_are_attributes_too() {
        let mut value = pod();
        value["metadata"]["labels"] = json!({"a\"b": "\u{1}", "plain": "y"});
        let object = Object::from_value(&value, 7, &pods()).expect("a pod");
        let labels: Vec<_> = object.attributes().labels().iter().collect();
        assert_eq!(labels, [("a\"b", "\u{1}"), ("plain", "y")]);
        assert_eq!(object.attributes().labels().find("a\"b"), Some("\u{1}"));
    }

    #[test]
    fn an_unstored_object_has_no_version() {
        let object = Object::from_value(&pod(), 0, &pods()).expect("a pod");
        assert!(!String::from_utf8_lossy(&object.bytes()).contains("resourceVersion"));
        assert_eq!(*object.stored(), object.bytes());
    }

    #[test]
    fn canonical_bytes_are_shared_and_others_are_not() {
        let stored = Bytes::from(encode(&pod()));
        let object = Object::from_json(stored.clone(), 7, &pods()).expect("a pod");
        assert_eq!(object.stored().as_ptr(), stored.as_ptr());
        let later = object.at_revision(8);
        assert_eq!(later.stored().as_ptr(), stored.as_ptr());
        let foreign = Bytes::from(serde_json::to_vec_pretty(&pod()).expect("json"));
        let object = Object::from_json(foreign.clone(), 7, &pods()).expect("a pod");
        assert_eq!(*object.stored(), stored);
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
            assert!(
                Object::from_json(Bytes::from_static(bytes), 1, &pods()).is_err(),
                "{bytes:?}"
            );
        }
        let bare = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {}});
        assert!(Object::from_value(&bare, 1, &pods()).is_err());
    }
}
