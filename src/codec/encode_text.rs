//! JSON text to the protobuf message that Go would write for it, without a tree: the same bytes as `encode` writes for
//! the tree of the text.
//!
//! The text is scanned once into a flat list of values (`json_nodes`), in which the fields of a message are found in
//! the order of their numbers. Text that the scan does not take is left to the caller, who has the parser of trees. So
//! are the few values whose JSON has a form of its own: each is read into a small tree of its own, for `encode`.

use std::borrow::Cow;

use serde_json::Value;
use smallvec::SmallVec;

use super::encode;
use super::envelope::{END, begin};
use super::json_nodes::{JsonNode, NodeForm, Nodes};
use super::message::{Arity, Field, FieldType, Message, Shape};
use super::tables::kind;
use super::typed::base64;
use super::unknown_fields::OldMessage;
use super::wire::{put_bytes, put_fixed64, put_nested, put_number};

/// The number of fields that nearly all messages have at most.
const FIELDS_MANY: usize = 64;

/// The values of a message's fields, by index.
type FieldValues<'n> = SmallVec<[Option<JsonNode<'n>>; FIELDS_MANY]>;

/// Encodes an object that is given as JSON; `None` if its kind has no message, or the text has white space or is
/// otherwise unlike what this server writes, so that it has to be read into a tree.
///
/// ```
/// use ringwatch::codec;
///
/// let json = br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}"#;
/// let tree: serde_json::Value = serde_json::from_slice(json)?;
/// assert_eq!(codec::encode_text(json), codec::encode_value(&tree));
/// assert_eq!(codec::encode_text(b"{ }"), None);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[must_use]
pub fn encode_text(json: &[u8]) -> Option<Vec<u8>> {
    let nodes = Nodes::scan(json)?;
    let (api_version, name) = type_of(nodes.root())?;
    let kind = kind(&api_version, &name)?;
    let mut out = begin(&api_version, &name);
    out.reserve(json.len());
    put_nested(&mut out, 2, |out| message(out, kind.0, Some(nodes.root())));
    out.extend_from_slice(END);
    Some(out)
}

/// Encodes an item of a list that is given as JSON, without its version and kind; `None` as [`encode_text`].
#[must_use]
pub fn list_item_of_text(json: &[u8]) -> Option<Vec<u8>> {
    let nodes = Nodes::scan(json)?;
    let (api_version, name) = type_of(nodes.root())?;
    let kind = kind(&api_version, &name)?;
    let mut out = Vec::with_capacity(json.len());
    put_nested(&mut out, 2, |out| message(out, kind.0, Some(nodes.root())));
    Some(out)
}

/// Returns the version and the kind of an object.
fn type_of(root: JsonNode<'_>) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
    let version = root.member("apiVersion")?.text()?;
    Some((version, root.member("kind")?.text()?))
}

/// Writes a message; an absent value is an empty one.
fn message(out: &mut Vec<u8>, message: &Message, value: Option<JsonNode<'_>>) {
    match message.shape {
        Shape::Object => members(out, message, value),
        Shape::Json if value.is_some_and(|value| is_as_written(value)) => {
            let raw = value.map(JsonNode::raw).unwrap_or_default();
            put_bytes(out, 1, raw.as_bytes());
        }
        _ => {
            let tree = value.map(tree);
            encode::message(out, message, tree.as_ref(), OldMessage::default());
        }
    }
}

fn members(out: &mut Vec<u8>, message: &Message, object: Option<JsonNode<'_>>) {
    for (field, value) in message.fields.iter().zip(parts(message, object)) {
        if value.is_none() && field.optional {
            continue;
        }
        match (field.inline, field.kind, field.arity) {
            (true, FieldType::Message(id), _) => {
                put_nested(out, field.number, |out| members(out, id.message(), object));
            }
            (_, _, Arity::One) => {
                let value = value.filter(|value| fits(field.kind, *value));
                if value.is_some() || !field.optional {
                    put(out, field.number, field.kind, value);
                }
            }
            (_, _, Arity::List) => {
                for item in value.into_iter().flat_map(JsonNode::items) {
                    put(out, field.number, field.kind, Some(item));
                }
            }
            (_, _, Arity::Map) => map(out, field, value),
        }
    }
}

/// Returns the value of each field; `None` if it is null or absent.
fn parts<'n>(message: &Message, object: Option<JsonNode<'n>>) -> FieldValues<'n> {
    let mut parts = FieldValues::from_elem(None, message.fields.len());
    let mut next = 0;
    for (name, value) in object.into_iter().flat_map(JsonNode::members) {
        let name = name.text().unwrap_or_default();
        if let Some(at) = message.name_at(&name, next) {
            parts[message.names[at].place] = Some(value).filter(|it| it.form() != NodeForm::Null);
            next = at + 1;
        }
    }
    parts
}

/// Writes a map, whose entries are in the order of their keys; of entries with one key the last counts.
fn map(out: &mut Vec<u8>, field: &Field, value: Option<JsonNode<'_>>) {
    let members = value.into_iter().flat_map(JsonNode::members);
    let mut entries: SmallVec<[_; FIELDS_MANY]> = members
        .map(|(key, value)| (key.text().unwrap_or_default(), value))
        .collect();
    if !entries.is_sorted_by(|(one, _), (other, _)| one < other) {
        entries.reverse();
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        entries.dedup_by(|(later, _), (kept, _)| later == kept);
    }
    for (key, value) in entries {
        put_nested(out, field.number, |out| {
            put_bytes(out, 1, key.as_bytes());
            put(out, 2, field.kind, Some(value));
        });
    }
}

/// Returns true if the value has the field's type.
fn fits(kind: FieldType, value: JsonNode<'_>) -> bool {
    let form = value.form();
    match kind {
        FieldType::Text | FieldType::Bytes => {
            matches!(form, NodeForm::Text | NodeForm::EscapedText)
        }
        FieldType::Bool => matches!(form, NodeForm::True | NodeForm::False),
        FieldType::Int32 | FieldType::Int64 | FieldType::Double => form == NodeForm::Number,
        FieldType::Message(id) => match id.message().shape {
            Shape::Object => form == NodeForm::Object,
            Shape::Items => form == NodeForm::List,
            _ => true,
        },
    }
}

/// Writes one value as a field.
fn put(out: &mut Vec<u8>, number: u32, kind: FieldType, value: Option<JsonNode<'_>>) {
    let text = || value.and_then(JsonNode::text).unwrap_or_default();
    let whole = || value.and_then(JsonNode::whole).unwrap_or_default();
    match kind {
        FieldType::Text => put_bytes(out, number, text().as_bytes()),
        FieldType::Bytes => put_bytes(out, number, &base64(&text()).unwrap_or_default()),
        FieldType::Bool => {
            let truth = value.is_some_and(|value| value.form() == NodeForm::True);
            put_number(out, number, u64::from(truth));
        }
        // 32 bits are written as 64, sign-extended.
        FieldType::Int32 => put_number(out, number, i64::from(whole() as i32) as u64),
        FieldType::Int64 => put_number(out, number, whole() as u64),
        FieldType::Double => put_fixed64(out, number, (whole() as f64).to_bits()),
        FieldType::Message(id) => {
            put_nested(out, number, |out| message(out, id.message(), value));
        }
    }
}

/// Returns a value as a tree.
fn tree(value: JsonNode<'_>) -> Value {
    match value.form() {
        NodeForm::Text | NodeForm::EscapedText => value.text().unwrap_or_default().into(),
        NodeForm::Number => value.whole().unwrap_or_default().into(),
        NodeForm::True => true.into(),
        NodeForm::False => false.into(),
        NodeForm::Null => Value::Null,
        NodeForm::List => value.items().map(tree).collect(),
        NodeForm::Object => {
            let member = |(name, value): (JsonNode<'_>, JsonNode<'_>)| {
                (name.text().unwrap_or_default().into_owned(), tree(value))
            };
            value.members().map(member).collect()
        }
    }
}

/// Returns true if the tree of a value, written as JSON, is the value's own text: the names of each object are in order
/// and there once, and the escapes are those that are written.
fn is_as_written(value: JsonNode<'_>) -> bool {
    match value.form() {
        NodeForm::Null => false,
        NodeForm::EscapedText => has_usual_escapes(value),
        NodeForm::List => value
            .items()
            .all(|item| item.form() == NodeForm::Null || is_as_written(item)),
        NodeForm::Object => {
            let mut last = None;
            value.members().all(|(name, member)| {
                let text = name.text();
                let follows = last < text;
                last = text;
                let usual = name.form() == NodeForm::Text || has_usual_escapes(name);
                follows && usual && (member.form() == NodeForm::Null || is_as_written(member))
            })
        }
        NodeForm::Text | NodeForm::Number | NodeForm::True | NodeForm::False => true,
    }
}

/// Returns true if no slash is escaped, which JSON allows and nobody here writes.
fn has_usual_escapes(text: JsonNode<'_>) -> bool {
    !text.raw().contains("\\/")
}

#[cfg(test)]
mod tests;
