//! An object is its JSON bytes and the few fields by which it is selected.
//!
//! The bytes are canonical: `kind`, `apiVersion` and `metadata` come first, the rest in the order of
//! its names, without white space. So the form in which an object stands in a list is a tail of
//! its bytes, its version stands at a known place, and equal objects have equal bytes.
//!
//! ```text
//! {"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"7","name":"a",...},"spec":...}
//!                                 ^ item      ^ version (absent in the stored form)
//! ```

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::encodings::{Encoded, EncodedBytes, EncodingKey, Encodings};

/// An immutable version of an object.
#[derive(Clone, Debug)]
pub struct Object {
    /// Canonical JSON, with `metadata.resourceVersion` unless the revision is 0.
    json: Bytes,
    /// Where `"metadata":` begins: everything from here on, after a `{`, is the list item.
    item_at: u32,
    /// How much was spliced into the stored form to carry the revision; nothing for revision 0.
    version_bytes: u32,
    /// The revision that wrote this version; 0 for an object that is not stored (dry-run).
    revision: u64,
    /// What selectors look at. Shared among versions that differ in their revision alone.
    attributes: Arc<Attributes>,
    /// What has been made of `json` for clients.
    encodings: Encodings,
}

/// The fields by which objects are selected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Empty for cluster-scoped objects.
    pub namespace: Box<str>,
    /// `metadata.name`.
    pub name: Box<str>,
    /// `metadata.uid`.
    pub uid: Box<str>,
    /// `metadata.labels`.
    pub labels: Labels,
    /// The values of the type's [`FieldSchema`], in its order.
    fields: Box<[(Cow<'static, str>, Box<str>)]>,
}

/// An object's labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(BTreeMap<Box<str>, Box<str>>);

/// The fields that a type's field selectors may name, `metadata.name` and `metadata.namespace`
/// aside, which all types have.
#[derive(Clone, Debug, Default)]
pub struct FieldSchema {
    paths: Arc<[FieldPath]>,
}

/// A selectable field.
#[derive(Clone, Debug)]
pub struct FieldPath {
    /// What selectors call it; mostly the names of the members that lead to it, joined by dots.
    pub name: Cow<'static, str>,
    /// Its value where the object does not have it.
    pub default: &'static str,
    /// Where its value is, if not under its name: the first of these paths that has one.
    pub from: &'static [&'static str],
}

/// The bytes are not an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DecodeError(String);

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

/// The metadata that selection needs.
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
    self_link: Option<Cow<'a, str>>,
    #[serde(default)]
    labels: Option<BTreeMap<Box<str>, Box<str>>>,
}

impl Object {
    /// Reads the stored form of an object that was written at `revision`.
    ///
    /// Any JSON will do; what is not canonical is made so.
    ///
    /// # Errors
    /// [`DecodeError`] when the bytes are not a JSON object with kind, apiVersion and metadata.
    pub fn decode(stored: &[u8], revision: u64, schema: &FieldSchema) -> Result<Self, DecodeError> {
        let head: Head<'_> = serde_json::from_slice(stored)?;
        let meta: HeadMeta<'_> = serde_json::from_str(head.metadata.get())?;
        let start = prefix(&head.kind, &head.api_version);
        let canonical = stored.starts_with(start.as_bytes())
            && stored[start.len()..].starts_with(b"\"metadata\":{\"")
            && meta.resource_version.is_none()
            && meta.self_link.is_none();
        if !canonical {
            let value: Value = serde_json::from_slice(stored)?;
            let bytes = encode(&value);
            return if bytes == stored {
                Err(DecodeError("metadata has no members".to_owned()))
            } else {
                Self::decode(&bytes, revision, schema)
            };
        }
        let attributes = Attributes {
            namespace: meta.namespace.into(),
            name: meta.name.into(),
            uid: meta.uid.into(),
            labels: Labels(meta.labels.unwrap_or_default()),
            fields: schema.extract(stored),
        };
        Ok(Self::splice(
            stored,
            start.len(),
            revision,
            Arc::new(attributes),
        ))
    }

    /// Makes an object of a value. A resource version in the value is replaced by `revision`;
    /// revision 0, of what is not stored, leaves none.
    ///
    /// # Errors
    /// [`DecodeError`] as [`Object::decode`].
    pub fn from_value(
        value: &Value,
        revision: u64,
        schema: &FieldSchema,
    ) -> Result<Self, DecodeError> {
        Self::decode(&encode(value), revision, schema)
    }

    /// Writes the revision into the stored form, as the first member of its metadata.
    fn splice(stored: &[u8], item_at: usize, revision: u64, attributes: Arc<Attributes>) -> Self {
        let at = version_at(item_at);
        let version = if revision == 0 {
            String::new()
        } else {
            format!("\"resourceVersion\":\"{revision}\",")
        };
        let mut json = Vec::with_capacity(stored.len() + version.len());
        json.extend_from_slice(&stored[..at]);
        json.extend_from_slice(version.as_bytes());
        json.extend_from_slice(&stored[at..]);
        Self {
            json: json.into(),
            // Both are lengths of a few names; an object of 4 GiB is taken by no store.
            item_at: u32::try_from(item_at).unwrap_or(u32::MAX),
            version_bytes: u32::try_from(version.len()).unwrap_or(u32::MAX),
            revision,
            attributes,
            encodings: Encodings::default(),
        }
    }

    /// The same content as of another revision: what a DELETED event carries.
    #[must_use]
    pub fn at_revision(&self, revision: u64) -> Self {
        Self::splice(
            &self.stored(),
            self.item_at as usize,
            revision,
            Arc::clone(&self.attributes),
        )
    }

    /// The object as clients read it: canonical JSON with its resource version.
    #[must_use]
    pub fn json(&self) -> &Bytes {
        &self.json
    }

    /// The object as it stands in a typed list, without kind and apiVersion. The opening brace is
    /// not part of it: write `{` first.
    #[must_use]
    pub fn item_after_brace(&self) -> &[u8] {
        &self.json[self.item_at as usize..]
    }

    /// An encoding of the object; made if nobody has made it yet. While it is kept, its cost is in
    /// the sum.
    ///
    /// # Errors
    /// That of `make`.
    pub fn encoding<E>(
        &self,
        key: EncodingKey,
        sum: &EncodedBytes,
        make: impl FnOnce() -> Result<Bytes, E>,
    ) -> Result<Encoded, E> {
        self.encodings.get_or_make(key, sum, make)
    }

    /// Keeps an encoding no longer.
    pub fn forget_encoding(&self, key: EncodingKey) {
        self.encodings.forget(key);
    }

    /// The object as it is stored: canonical JSON without a resource version.
    #[must_use]
    pub fn stored(&self) -> Vec<u8> {
        let from = version_at(self.item_at as usize);
        let to = from + self.version_bytes as usize;
        [&self.json[..from], &self.json[to..]].concat()
    }

    /// The object as a tree, with its resource version.
    ///
    /// # Errors
    /// [`DecodeError`] when a part that decoding did not look at is nested too deeply.
    pub fn to_value(&self) -> Result<Value, DecodeError> {
        Ok(serde_json::from_slice(&self.json)?)
    }

    /// The revision that wrote this version; 0 if it is not stored.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// What selectors look at.
    #[must_use]
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// `metadata.namespace`; empty for cluster-scoped objects.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.attributes.namespace
    }

    /// `metadata.name`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.attributes.name
    }

    /// `metadata.uid`.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.attributes.uid
    }
}

impl Attributes {
    /// The value of a selectable field; `None` if the type does not have it.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        match name {
            "metadata.name" => Some(&self.name),
            "metadata.namespace" => Some(&self.namespace),
            _ => self
                .fields
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| &**value),
        }
    }
}

impl Labels {
    /// The value of a label.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(|value| &**value)
    }

    /// All labels, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }
}

impl<K: Into<Box<str>>, V: Into<Box<str>>> FromIterator<(K, V)> for Labels {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        Self(
            pairs
                .into_iter()
                .map(|(key, value)| (key.into(), value.into()))
                .collect(),
        )
    }
}

impl FieldSchema {
    /// A schema of these fields.
    #[must_use]
    pub fn new(paths: impl IntoIterator<Item = FieldPath>) -> Self {
        Self {
            paths: paths.into_iter().collect(),
        }
    }

    /// The names that selectors may use, `metadata.name` and `metadata.namespace` aside.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(|path| &*path.name)
    }

    fn extract(&self, stored: &[u8]) -> Box<[(Cow<'static, str>, Box<str>)]> {
        let text = std::str::from_utf8(stored).unwrap_or_default();
        self.paths
            .iter()
            .map(|path| {
                let found = if path.from.is_empty() {
                    member(text, &path.name)
                } else {
                    path.from
                        .iter()
                        .find_map(|from| member(text, from).filter(|value| !value.is_empty()))
                };
                (
                    path.name.clone(),
                    found.unwrap_or_else(|| path.default.into()),
                )
            })
            .collect()
    }
}

/// The scalar at a dotted path of a JSON object, as selectors compare it.
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

/// The stored form of a value: canonical JSON without `resourceVersion` and `selfLink`.
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
        meta.remove("selfLink");
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

/// Where the version of canonical bytes is, whose metadata begin at `item_at`.
fn version_at(item_at: usize) -> usize {
    item_at + "\"metadata\":{".len()
}

/// How canonical bytes begin.
fn prefix(kind: &str, api_version: &str) -> String {
    let quoted = |text: &str| Value::String(text.to_owned()).to_string();
    format!(
        "{{\"kind\":{},\"apiVersion\":{},",
        quoted(kind),
        quoted(api_version)
    )
}

impl From<serde_json::Error> for DecodeError {
    fn from(error: serde_json::Error) -> Self {
        Self(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pods() -> FieldSchema {
        FieldSchema::new([
            FieldPath {
                name: "spec.nodeName".into(),
                default: "",
                from: &[],
            },
            FieldPath {
                name: "spec.hostNetwork".into(),
                default: "false",
                from: &["spec.noSuchField", "spec.hostNetwork"],
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
        let json = std::str::from_utf8(object.json()).expect("text");
        assert!(json.starts_with(
            r#"{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"7","labels":{"#
        ));
        assert!(object.item_after_brace().starts_with(b"\"metadata\":{"));
        assert_eq!(object.stored(), encode(&pod()));
        let again = Object::decode(&object.stored(), 9, &pods()).expect("the stored form");
        assert_eq!(again.json(), object.at_revision(9).json());
    }

    #[test]
    fn any_layout_decodes_to_the_same_object() {
        let foreign = serde_json::to_vec_pretty(&pod()).expect("json");
        let object = Object::decode(&foreign, 7, &pods()).expect("a pod");
        let own = Object::from_value(&pod(), 7, &pods()).expect("a pod");
        assert_eq!(object.json(), own.json());
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
        assert!(!String::from_utf8_lossy(object.json()).contains("resourceVersion"));
        assert_eq!(object.stored(), object.json().to_vec());
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
            assert!(Object::decode(bytes, 1, &pods()).is_err(), "{bytes:?}");
        }
        let bare = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {}});
        assert!(Object::from_value(&bare, 1, &pods()).is_err());
    }
}
