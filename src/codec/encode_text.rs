//! JSON text to the protobuf message that Go would write for it, without a tree: the same bytes as `encode` writes for the
//! tree of the text.
//!
//! The text is scanned once into a flat list of values (`json_nodes`), in which the fields of a message are found in
//! the order of their numbers. Text that the scan does not take is left to the caller, who has the parser of trees. So are
//! the few values whose JSON has a form of its own: each is read into a small tree of its own, for `encode_custom`.

use std::borrow::Cow;

use serde_json::Value;
use smallvec::SmallVec;

use super::encode_custom;
use super::envelope::{END, begin};
use super::json_nodes::{Form, Nodes, Part};
use super::message::{Arity, Field, Message, Shape, Type};
use super::tables::kind;
use super::typed::base64;
use super::unknown_fields::Old;
use super::wire::{put_bytes, put_fixed64, put_nested, put_number};

/// The number of fields that nearly all messages have at most.
const FIELDS_MANY: usize = 64;

/// The values of a message's fields, by index.
type Parts<'n> = SmallVec<[Option<Part<'n>>; FIELDS_MANY]>;

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
fn type_of(root: Part<'_>) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
    let version = root.member("apiVersion")?.text()?;
    Some((version, root.member("kind")?.text()?))
}

/// Writes a message; an absent value is an empty one.
fn message(out: &mut Vec<u8>, message: &Message, value: Option<Part<'_>>) {
    match message.shape {
        Shape::Object => members(out, message, value),
        Shape::Json if value.is_some_and(|value| is_as_written(value)) => {
            let raw = value.map(Part::raw).unwrap_or_default();
            put_bytes(out, 1, raw.as_bytes());
        }
        _ => {
            let tree = value.map(tree);
            encode_custom::write(out, message, tree.as_ref(), Old::default());
        }
    }
}

fn members(out: &mut Vec<u8>, message: &Message, object: Option<Part<'_>>) {
    for (field, value) in message.fields.iter().zip(parts(message, object)) {
        if value.is_none() && field.optional {
            continue;
        }
        match (field.inline, field.kind, field.arity) {
            (true, Type::Message(id), _) => {
                put_nested(out, field.number, |out| members(out, id.message(), object));
            }
            (_, _, Arity::One) => {
                let value = value.filter(|value| fits(field.kind, *value));
                if value.is_some() || !field.optional {
                    put(out, field.number, field.kind, value);
                }
            }
            (_, _, Arity::List) => {
                for item in value.into_iter().flat_map(Part::items) {
                    put(out, field.number, field.kind, Some(item));
                }
            }
            (_, _, Arity::Map) => map(out, field, value),
        }
    }
}

/// Returns the value of each field; `None` if it is null or absent.
fn parts<'n>(message: &Message, object: Option<Part<'n>>) -> Parts<'n> {
    let mut parts = Parts::from_elem(None, message.fields.len());
    let mut next = 0;
    for (name, value) in object.into_iter().flat_map(Part::members) {
        let name = name.text().unwrap_or_default();
        if let Some(at) = message.name_at(&name, next) {
            parts[message.names[at].place] = Some(value).filter(|it| it.form() != Form::Null);
            next = at + 1;
        }
    }
    parts
}

/// Writes a map, whose entries are in the order of their keys; of entries with one key the last counts.
fn map(out: &mut Vec<u8>, field: &Field, value: Option<Part<'_>>) {
    let members = value.into_iter().flat_map(Part::members);
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
fn fits(kind: Type, value: Part<'_>) -> bool {
    let form = value.form();
    match kind {
        Type::Text | Type::Bytes => matches!(form, Form::Text | Form::EscapedText),
        Type::Bool => matches!(form, Form::True | Form::False),
        Type::Int32 | Type::Int64 | Type::Double => form == Form::Number,
        Type::Message(id) => match id.message().shape {
            Shape::Object => form == Form::Object,
            Shape::Items => form == Form::List,
            _ => true,
        },
    }
}

/// Writes one value as a field.
fn put(out: &mut Vec<u8>, number: u32, kind: Type, value: Option<Part<'_>>) {
    let text = || value.and_then(Part::text).unwrap_or_default();
    let whole = || value.and_then(Part::whole).unwrap_or_default();
    match kind {
        Type::Text => put_bytes(out, number, text().as_bytes()),
        Type::Bytes => put_bytes(out, number, &base64(&text()).unwrap_or_default()),
        Type::Bool => {
            let truth = value.is_some_and(|value| value.form() == Form::True);
            put_number(out, number, u64::from(truth));
        }
        // 32 bits are written as 64, sign-extended.
        Type::Int32 => put_number(out, number, i64::from(whole() as i32) as u64),
        Type::Int64 => put_number(out, number, whole() as u64),
        Type::Double => put_fixed64(out, number, (whole() as f64).to_bits()),
        Type::Message(id) => {
            put_nested(out, number, |out| message(out, id.message(), value));
        }
    }
}

/// Returns a value as a tree.
fn tree(value: Part<'_>) -> Value {
    match value.form() {
        Form::Text | Form::EscapedText => value.text().unwrap_or_default().into(),
        Form::Number => value.whole().unwrap_or_default().into(),
        Form::True => true.into(),
        Form::False => false.into(),
        Form::Null => Value::Null,
        Form::List => value.items().map(tree).collect(),
        Form::Object => {
            let member = |(name, value): (Part<'_>, Part<'_>)| {
                (name.text().unwrap_or_default().into_owned(), tree(value))
            };
            value.members().map(member).collect()
        }
    }
}

/// Returns true if the tree of a value, written as JSON, is the value's own text: the names of each object are in order
/// and there once, and the escapes are those that are written.
fn is_as_written(value: Part<'_>) -> bool {
    match value.form() {
        Form::Null => false,
        Form::EscapedText => has_usual_escapes(value),
        Form::List => value
            .items()
            .all(|item| item.form() == Form::Null || is_as_written(item)),
        Form::Object => {
            let mut last = None;
            value.members().all(|(name, member)| {
                let text = name.text();
                let follows = last < text;
                last = text;
                let usual = name.form() == Form::Text || has_usual_escapes(name);
                follows && usual && (member.form() == Form::Null || is_as_written(member))
            })
        }
        Form::Text | Form::Number | Form::True | Form::False => true,
    }
}

/// Returns true if no slash is escaped, which JSON allows and nobody here writes.
fn has_usual_escapes(text: Part<'_>) -> bool {
    !text.raw().contains("\\/")
}

#[cfg(test)]
mod tests;
