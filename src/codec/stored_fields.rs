//! Single fields of an object that is stored as protobuf, read without decoding the rest.

use super::envelope::{self, MAGIC};
use super::message::{Arity, Field, FieldType, Message};
use super::tables::kind;
use super::wire::{Content, Fields, entry_of};
use crate::meta::Object;

/// A message within an object, or the object itself. Paths are the names that lead to a field in JSON, joined by dots;
/// they include all items of lists.
///
/// ```
/// use ringwatch::codec::{self, StoredFields};
/// use ringwatch::meta::FieldSchema;
/// use serde_json::json;
///
/// let pod = json!({
///     "kind": "Pod",
///     "apiVersion": "v1",
///     "metadata": {"name": "a"},
///     "spec": {"nodeName": "node-1", "containers": [{"name": "x"}, {"name": "y"}]},
/// });
/// let stored = codec::encode_value(&pod).expect("pods have a message");
/// let object = codec::object(&stored, 1, &FieldSchema::default())?;
/// let fields = StoredFields::new(&object).expect("protobuf");
/// assert_eq!(fields.text("spec.nodeName"), "node-1");
///
/// let containers = fields.messages("spec.containers");
/// let names: Vec<&str> = containers.iter().map(|it| it.text("name")).collect();
/// assert_eq!(names, ["x", "y"]);
/// # Ok::<(), codec::ObjectError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct StoredFields<'a> {
    message: &'static Message,
    bytes: &'a [u8],
}

impl<'a> StoredFields<'a> {
    /// Returns the fields of an object; `None` if it is stored as JSON.
    #[must_use]
    pub fn new(object: &'a Object) -> Option<Self> {
        let bytes = object.message()?;
        let content = object.stored().strip_prefix(&MAGIC)?;
        let envelope = envelope::unknown(content).ok()?;
        let message = kind(&envelope.api_version, &envelope.kind)?.0;
        Some(Self { message, bytes })
    }

    /// Returns the fields of a message.
    pub(super) fn within(message: &'static Message, bytes: &'a [u8]) -> Self {
        Self { message, bytes }
    }

    /// Returns the definition of the message.
    pub(super) fn message(self) -> &'static Message {
        self.message
    }

    /// Returns the bytes of the message.
    pub(super) fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// Returns true if there is a message, a string or an item of a list or a map at a path.
    #[must_use]
    pub fn has(self, path: &str) -> bool {
        let mut found = false;
        self.visit(path, &mut |_, _| found = true);
        found
    }

    /// Returns the first string at a path; empty if there is none.
    #[must_use]
    pub fn text(self, path: &str) -> &'a str {
        let mut first = None;
        self.visit(path, &mut |_, content| {
            first.get_or_insert(content);
        });
        first
            .and_then(|text| std::str::from_utf8(text).ok())
            .unwrap_or_default()
    }

    /// Returns the messages at a path.
    #[must_use]
    pub fn messages(self, path: &str) -> Vec<Self> {
        let mut found = Vec::new();
        self.visit(path, &mut |field, bytes| {
            if let Some(message) = message_of(field) {
                found.push(Self { message, bytes });
            }
        });
        found
    }

    /// Returns the keys of a map.
    #[must_use]
    pub fn keys(self, path: &str) -> Vec<&'a [u8]> {
        let mut found = Vec::new();
        self.visit(path, &mut |field, entry| {
            if let (Arity::Map, Ok((key, _))) = (field.arity, entry_of(entry)) {
                found.push(key);
            }
        });
        found
    }

    /// Returns the value of a key in a map of strings or bytes; `None` if there is none, or it is empty.
    #[must_use]
    pub fn entry(self, path: &str, key: &str) -> Option<&'a [u8]> {
        let mut last = None;
        self.visit(path, &mut |field, entry| {
            if let (Arity::Map, Ok((found, value))) = (field.arity, entry_of(entry))
                && found == key.as_bytes()
            {
                last = value;
            }
        });
        last?.run().ok()
    }

    /// Calls `found` with the content of every occurrence of a field that is bytes.
    fn visit(self, path: &str, found: &mut dyn FnMut(&'static Field, &'a [u8])) {
        let (name, rest) = path
            .split_once('.')
            .map_or((path, None), |(name, rest)| (name, Some(rest)));
        let Some(field) = self.message.fields.iter().find(|it| it.name == name) else {
            return;
        };
        let mut fields = Fields::new(self.bytes);
        // The object has been decoded as a whole before, so broken bytes are not reported here.
        while let Ok(Some((number, content))) = fields.next_field() {
            let Content::Bytes(bytes) = content else {
                continue;
            };
            match (number == field.number, rest, message_of(field)) {
                (true, None, _) => found(field, bytes),
                (true, Some(rest), Some(message)) => Self { message, bytes }.visit(rest, found),
                _ => {}
            }
        }
    }
}

/// Returns the message of a field, or of the items of a list.
pub(super) fn message_of(field: &Field) -> Option<&'static Message> {
    match (field.arity, field.kind) {
        (Arity::One | Arity::List, FieldType::Message(id)) => Some(id.message()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::codec::{encode_value, object};

    fn pod() -> Value {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
            "spec": {"serviceAccountName": "a", "containers": [
                {"name": "c", "resources": {"limits": {"cpu": "1", "memory": "0"}}},
                {"name": "d", "resources": {}}]}})
    }

    #[test]
    fn paths_lead_through_messages_lists_and_maps() {
        let bytes = encode_value(&pod()).expect("a kind");
        let pod = object(&bytes, 7, &Default::default()).expect("an object");
        let fields = StoredFields::new(&pod).expect("protobuf");
        assert_eq!(fields.text("spec.serviceAccountName"), "a");
        assert_eq!(fields.text("spec.serviceAccount"), "");
        assert_eq!(fields.text("spec.containers.name"), "c");
        assert_eq!(fields.text("spec.nothing.name"), "");
        let containers = fields.messages("spec.containers");
        let limits = |at: usize| containers[at].keys("resources.limits");
        assert_eq!(limits(0), [&b"cpu"[..], b"memory"]);
        assert!(limits(1).is_empty());
    }

    #[test]
    fn maps_have_entries() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "s", "labels": {"l": "label"}},
            "data": {"a": "YQ==", "empty": ""}});
        let bytes = encode_value(&secret).expect("a kind");
        let secret = object(&bytes, 7, &Default::default()).expect("an object");
        let fields = StoredFields::new(&secret).expect("protobuf");
        assert_eq!(fields.entry("data", "a"), Some(&b"a"[..]));
        assert_eq!(fields.entry("data", "empty").unwrap_or_default(), &b""[..]);
        assert_eq!(fields.entry("data", "b"), None);
        assert_eq!(fields.entry("metadata.labels", "l"), Some(&b"label"[..]));
        assert_eq!(fields.entry("type", "a"), None);
        assert!(fields.has("data") && !fields.has("metadata.deletionTimestamp"));
    }

    #[test]
    fn json_has_no_stored_fields() {
        let bytes = pod().to_string();
        let pod = object(bytes.as_bytes(), 7, &Default::default()).expect("an object");
        assert!(StoredFields::new(&pod).is_none());
    }
}
