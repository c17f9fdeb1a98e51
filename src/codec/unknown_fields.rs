//! Unknown fields: those of an older message that the tables do not have, which are kept when the object is written
//! again.
//!
//! They come from a newer Kubernetes, and JSON cannot carry them. So the old message is read in parallel with the new
//! value: its unknown fields are copied to their place among the others, and each part of the value is matched with the
//! old part that it replaces.
//!
//! ```text
//! value   {"name": "b", "ports": [...]}
//! old     1:name  6:ports  99:?          written: 1:name (new)  6:ports (new, each over its old one)  99:?
//! ```

use std::collections::HashMap;

use serde_json::Value;

use super::field_order;
use super::go_json::whole;
use super::message::{Arity, Field, FieldType, Kind, Message, Shape};
use super::wire::{Content, Fields, NESTING_MAX, entry_of};

/// The kind of a part of an item's key, by which parts of different kinds differ.
#[derive(Clone, Copy)]
enum KeyPart {
    Absent,
    Number,
    Text,
}

/// The unread rest of an older message with its fields in order. The default is an empty message.
#[derive(Clone, Debug, Default)]
pub(super) struct OldMessage<'a> {
    /// The bytes that have not been read yet.
    rest: &'a [u8],
}

/// The old parts that the items of a list or the entries of a map replace.
#[derive(Debug)]
pub(super) enum OldItems<'a, 'f> {
    ByPlace(Vec<&'a [u8]>),
    ByKey(HashMap<Vec<u8>, &'a [u8]>, &'f [&'static str]),
}

/// Returns the message in order if it has an unknown field, or JSON that is kept as it was written; `None` if there is
/// nothing to keep.
pub(super) fn to_keep(kind: Kind, raw: &[u8]) -> Option<Vec<u8>> {
    if !has_something_to_keep(kind.0, raw, 0) {
        return None;
    }
    // Bytes that cannot be read have no fields to keep.
    field_order::ordered(kind.0, raw, 0).ok()
}

/// Returns true if a message, or one within it, has a field that the tables do not know, or is a RawExtension: its JSON
/// has the order and the white space of the client that wrote it, which a tree does not have. Messages that nest too
/// deep are left to be refused when the fields are put in order.
fn has_something_to_keep(message: &Message, bytes: &[u8], depth: usize) -> bool {
    if depth >= NESTING_MAX {
        return true;
    }
    let mut fields = Fields::new(bytes);
    while let Ok(Some((number, content))) = fields.next_field() {
        let Some(field) = message.field(number) else {
            return true;
        };
        let (FieldType::Message(id), Content::Bytes(content)) = (field.kind, content) else {
            continue;
        };
        let content = match field.arity {
            Arity::Map => value_of(content),
            _ => content,
        };
        if id.message().shape == Shape::RawExtension
            || has_something_to_keep(id.message(), content, depth + 1)
        {
            return true;
        }
    }
    false
}

impl<'a> OldMessage<'a> {
    /// Begins to read an older message, which must be in order.
    pub(super) fn new(ordered: &'a [u8]) -> Self {
        Self { rest: ordered }
    }

    /// Copies the fields before the one of this number, all of which are unknown, and returns the occurrences of that
    /// one.
    #[inline]
    pub(super) fn advance(&mut self, out: &mut Vec<u8>, number: u32) -> &'a [u8] {
        if self.rest.is_empty() {
            return &[];
        }
        let (unknown, rest) = self.split(|it| it < number);
        out.extend_from_slice(unknown);
        self.rest = rest;
        let (found, rest) = self.split(|it| it == number);
        self.rest = rest;
        found
    }

    /// Returns the bytes of a message that is JSON.
    pub(super) fn raw_json(&self) -> Option<&'a [u8]> {
        let mut fields = Fields::new(self.rest);
        while let Ok(Some((number, content))) = fields.next_field() {
            if let (1, Content::Bytes(raw)) = (number, content) {
                return Some(raw);
            }
        }
        None
    }

    /// Copies the rest, after the last known field.
    pub(super) fn finish(self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.rest);
    }

    /// Splits the rest after the next fields for whose numbers `is_taken` returns true.
    fn split(&self, is_taken: impl Fn(u32) -> bool) -> (&'a [u8], &'a [u8]) {
        let mut fields = Fields::new(self.rest);
        let mut taken = 0;
        while let Ok(Some((number, _))) = fields.next_field() {
            if !is_taken(number) {
                break;
            }
            taken = self.rest.len() - fields.bytes_left();
        }
        self.rest.split_at(taken)
    }
}

impl<'a, 'f> OldItems<'a, 'f> {
    /// Returns the old items of a list of messages.
    pub(super) fn of_list(field: &'f Field, item: &Message, occurrences: &'a [u8]) -> Self {
        let items = contents(occurrences);
        if field.item_keys.is_empty() {
            return Self::ByPlace(items.collect());
        }
        let items: Vec<&[u8]> = items.collect();
        let keyed = items.iter();
        let keyed = keyed.map(|bytes| (old_key(item, &field.item_keys, bytes), *bytes));
        let keyed: HashMap<_, _> = keyed.collect();
        if keyed.len() < items.len() {
            return Self::ByPlace(items);
        }
        Self::ByKey(keyed, &field.item_keys)
    }

    /// Returns the old item that an item replaces; an empty message if it is new.
    pub(super) fn find(&self, place: usize, item: &Value) -> OldMessage<'a> {
        let found = match self {
            Self::ByPlace(items) => items.get(place),
            Self::ByKey(items, keys) => items.get(&new_key(keys, item)),
        };
        found
            .map(|bytes| OldMessage::new(bytes))
            .unwrap_or_default()
    }
}

/// Returns the values of a map's old entries.
pub(super) fn entries(occurrences: &[u8]) -> HashMap<&[u8], &[u8]> {
    let entries = contents(occurrences).filter_map(|entry| {
        let (key, _) = entry_of(entry).ok()?;
        Some((key, value_of(entry)))
    });
    entries.collect()
}

/// Returns the content of a field that occurs once: its last occurrence.
pub(super) fn content(occurrences: &[u8]) -> &[u8] {
    contents(occurrences).last().unwrap_or_default()
}

fn contents(occurrences: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut fields = Fields::new(occurrences);
    std::iter::from_fn(move || match fields.next_field() {
        Ok(Some((_, Content::Bytes(content)))) => Some(content),
        _ => None,
    })
}

/// Returns the message of a map's entry.
fn value_of(entry: &[u8]) -> &[u8] {
    match entry_of(entry) {
        Ok((_, Some(mut value))) => value.run().unwrap_or_default(),
        _ => &[],
    }
}

/// Returns the key of an old item.
fn old_key(message: &Message, names: &[&str], item: &[u8]) -> Vec<u8> {
    let mut key = Vec::new();
    for name in names {
        match member(message, name, item) {
            Some(Content::Varint(number)) => add(&mut key, KeyPart::Number, &number.to_le_bytes()),
            Some(Content::Bytes(text)) => add(&mut key, KeyPart::Text, text),
            _ => add(&mut key, KeyPart::Absent, &[]),
        }
    }
    key
}

/// Returns the key of a new item.
fn new_key(names: &[&str], item: &Value) -> Vec<u8> {
    let mut key = Vec::new();
    for name in names {
        match item.get(name) {
            Some(Value::String(text)) => add(&mut key, KeyPart::Text, text.as_bytes()),
            number @ Some(Value::Number(_)) => {
                let number = whole(number) as u64;
                add(&mut key, KeyPart::Number, &number.to_le_bytes());
            }
            _ => add(&mut key, KeyPart::Absent, &[]),
        }
    }
    key
}

fn add(key: &mut Vec<u8>, part: KeyPart, bytes: &[u8]) {
    // An empty member counts as absent: Go writes it and may omit it in JSON.
    let is_empty = bytes.iter().all(|byte| *byte == 0);
    let part = if is_empty { KeyPart::Absent } else { part };
    let bytes = if is_empty { &[] } else { bytes };
    key.push(part as u8);
    key.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    key.extend_from_slice(bytes);
}

/// Returns the member of a message or of its inlined fields.
fn member<'a>(message: &Message, name: &str, bytes: &'a [u8]) -> Option<Content<'a>> {
    let mut fields = Fields::new(bytes);
    while let Ok(Some((number, content))) = fields.next_field() {
        match (message.field(number), content) {
            (Some(field), Content::Bytes(inner)) if field.inline => {
                if let FieldType::Message(id) = field.kind
                    && let Some(found) = member(id.message(), name, inner)
                {
                    return Some(found);
                }
            }
            (Some(field), content) if field.name == name => return Some(content),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::codec::{decode, encode_over, encode_value, envelope, tables, wire};

    /// Returns a pod with containers of these names and images, each with a field of the future that holds
    /// its name.
    fn pod(containers: &[&str]) -> Vec<u8> {
        let field = |number: u32, content: &[u8]| {
            let mut out = Vec::new();
            wire::put_bytes(&mut out, number, content);
            out
        };
        let spec = containers.iter().flat_map(|name| {
            let container = [field(1, name.as_bytes()), field(777, name.as_bytes())];
            field(2, &container.concat())
        });
        let raw = [
            field(2, &spec.collect::<Vec<u8>>()),
            field(1, &[field(1, b"a"), field(16, b"between")].concat()),
            field(90, b"root"),
        ];
        let mut out = envelope::begin("v1", "Pod");
        wire::put_bytes(&mut out, 2, &raw.concat());
        out
    }

    /// Returns the fields of the future that the containers of a pod have.
    fn futures(pod: &[u8]) -> Vec<Option<String>> {
        let raw = |bytes, number| {
            let mut fields = Fields::new(bytes);
            std::iter::from_fn(move || fields.next_field().expect("a message"))
                .filter_map(move |it| match it {
                    (found, Content::Bytes(content)) if found == number => Some(content),
                    _ => None,
                })
                .collect::<Vec<&[u8]>>()
        };
        let spec = raw(raw(&pod[4..], 2)[0], 2);
        let containers = raw(spec[0], 2);
        let text = |bytes: &&[u8]| String::from_utf8_lossy(bytes).into_owned();
        let futures = containers.iter().map(|it| raw(it, 777).first().map(text));
        futures.collect()
    }

    #[test]
    fn items_keep_what_is_unknown_by_their_keys() {
        let old = pod(&["x", "y", "z"]);
        let kind = tables::kind("v1", "Pod").expect("a kind");
        let mut value = decode(&old, ("", "")).expect("a Pod");
        value["spec"]["containers"] = json!([{"name": "z"}, {"name": "new"}, {"name": "x"}]);
        let written = encode_over(kind, &value, &old);
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(futures(&written), [some("z"), None, some("x")]);
        for kept in [&b"root"[..], b"between"] {
            assert!(written.windows(kept.len()).any(|it| it == kept));
        }
        // What is written is read as if there were nothing unknown.
        assert_eq!(
            decode(&written, ("", "")),
            decode(&encode_value(&value).expect("a kind"), ("", ""))
        );
    }

    #[test]
    fn json_stays_as_it_was_written_while_it_says_the_same() {
        const WRITTEN: &[u8] = br#"{ "b": "x \u0026 y",  "a": 1.0 }"#;
        let kind = tables::kind("apps/v1", "ControllerRevision").expect("a kind");
        let value = json!({"apiVersion": "apps/v1", "kind": "ControllerRevision",
            "metadata": {"name": "r"}, "data": {"here": 1}, "revision": 1});
        let encoded = encode_value(&value).expect("a kind");
        let at = |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).position(|it| it == part);
        assert!(at(&encoded, br#"{"here":1}"#).is_some());
        let mut raw = Vec::new();
        for (number, content) in [
            (1, &b"\x0a\x01r"[..]),
            (2, &[&[0x0a, WRITTEN.len() as u8], WRITTEN].concat()),
        ] {
            wire::put_bytes(&mut raw, number, content);
        }
        let mut old = envelope::begin("apps/v1", "ControllerRevision");
        wire::put_bytes(&mut old, 2, &raw);
        let mut value = decode(&old, ("", "")).expect("a revision");
        value["metadata"]["labels"] = json!({"l": "m"});
        let labelled = encode_over(kind, &value, &old);
        assert!(at(&labelled, WRITTEN).is_some());
        value["data"]["a"] = json!(2);
        let changed = encode_over(kind, &value, &labelled);
        assert!(at(&changed, br#"{"a":2,"b":"x \u0026 y"}"#).is_some());
    }

    #[test]
    fn nothing_is_kept_of_another_kind_or_of_what_cannot_be_read() {
        let kind = tables::kind("v1", "ConfigMap").expect("a kind");
        let value = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}});
        let plain = encode_value(&value).expect("a known kind");
        for old in [
            &pod(&["x"])[..],
            b"",
            b"{}",
            b"k8s\0\x0a\x09",
            b"k8s\0\x12\x02\x0a\x7f",
        ] {
            assert_eq!(
                encode_over(kind, &value, old),
                plain,
                "{}",
                old.escape_ascii()
            );
        }
    }
}
