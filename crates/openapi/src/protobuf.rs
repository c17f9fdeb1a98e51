//! Documents in gnostic's protobuf, which kubectl and client-go ask for: the same tree in messages that know each
//! member.
//!
//! gnostic has a message for each kind of OpenAPI object, one of name and value for each entry of a map, and keeps
//! unknown members such as `x-kubernetes-...` as YAML text. JSON is valid YAML.

use serde_json::Value;

use super::form::OpenApiVersion;
use super::messages::{self, Message, MessageFieldType};

/// The numbers of the fields of a named value: its name and its value.
const NAME: u32 = 1;
const VALUE: u32 = 2;

/// The encoding of an entry of a document's paths or schemas.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// The number of the repeated field that has the entries.
    number: u32,
    message: &'static Message,
}

impl Piece {
    /// Returns the encoding of an entry of a document's `paths`.
    pub(super) fn path(form: OpenApiVersion) -> Self {
        match form {
            OpenApiVersion::V2 => Self {
                number: 2,
                message: &messages::V2_PATH_ITEM,
            },
            OpenApiVersion::V3 => Self {
                number: 1,
                message: &messages::V3_PATH_ITEM,
            },
        }
    }

    /// Returns the encoding of an entry of a document's schemas.
    pub(super) fn schema(form: OpenApiVersion) -> Self {
        let message = match form {
            OpenApiVersion::V2 => &messages::V2_SCHEMA,
            OpenApiVersion::V3 => &messages::V3_SCHEMA_OR_REFERENCE,
        };
        Self { number: 1, message }
    }

    /// Writes an entry under its name.
    pub(super) fn write(self, out: &mut Vec<u8>, name: &str, value: &Value) {
        named(out, self.number, name, value, self.message);
    }
}

/// Builds a document from paths and schemas that have been written.
pub(super) fn document(
    form: OpenApiVersion,
    head: &Value,
    paths: &[u8],
    schemas: &[u8],
    tail: &Value,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(paths.len() + schemas.len() + 4096);
    match form {
        OpenApiVersion::V2 => {
            message(&mut out, &messages::V2_DOCUMENT, head);
            bytes(&mut out, 8, paths);
            bytes(&mut out, 9, schemas);
            message(&mut out, &messages::V2_DOCUMENT, tail);
        }
        OpenApiVersion::V3 => {
            let mut components = Vec::with_capacity(schemas.len() + 1024);
            bytes(&mut components, 1, schemas);
            message(&mut components, &messages::V3_COMPONENTS, tail);
            message(&mut out, &messages::V3_DOCUMENT, head);
            bytes(&mut out, 4, paths);
            bytes(&mut out, 5, &components);
        }
    }
    out
}

/// Writes the fields of a value.
fn message(out: &mut Vec<u8>, message: &Message, value: &Value) {
    match message {
        Message::OneOf(choose) => {
            if let Some((number, kind)) = choose(value) {
                field(out, number, kind, value);
            }
        }
        Message::Members(number, inner) => members(out, *number, inner, value),
        Message::Fields { fields, extensions } => {
            for (name, member) in value.as_object().into_iter().flatten() {
                if let Some((_, number, kind)) = fields.iter().find(|(known, ..)| known == name) {
                    field(out, *number, *kind, member);
                } else if name.starts_with("x-") {
                    named(out, *extensions, name, member, &messages::ANY);
                }
            }
        }
    }
}

fn field(out: &mut Vec<u8>, number: u32, kind: MessageFieldType, value: &Value) {
    match kind {
        MessageFieldType::Text => bytes(out, number, value.as_str().unwrap_or_default().as_bytes()),
        MessageFieldType::Texts => {
            let one = std::slice::from_ref(value);
            for text in value.as_array().map_or(one, Vec::as_slice) {
                field(out, number, MessageFieldType::Text, text);
            }
        }
        MessageFieldType::Bool => {
            tag(out, number, 0);
            out.push(value.as_bool().unwrap_or_default().into());
        }
        MessageFieldType::Integer => {
            tag(out, number, 0);
            // As Go reads numbers for integer fields, such as 1.0 and 1e3.
            let integer = value
                .as_i64()
                .or_else(|| value.as_f64().map(|it| it as i64));
            varint(out, integer.unwrap_or_default() as u64);
        }
        MessageFieldType::Double => {
            tag(out, number, 1);
            out.extend_from_slice(&value.as_f64().unwrap_or_default().to_le_bytes());
        }
        MessageFieldType::Yaml => bytes(out, number, value.to_string().as_bytes()),
        MessageFieldType::One(inner) => {
            let mut content = Vec::new();
            message(&mut content, inner, value);
            bytes(out, number, &content);
        }
        MessageFieldType::Many(inner) => {
            for item in value.as_array().into_iter().flatten() {
                field(out, number, MessageFieldType::One(inner), item);
            }
        }
        MessageFieldType::Map(at, inner) => {
            let mut content = Vec::new();
            members(&mut content, at, inner, value);
            bytes(out, number, &content);
        }
    }
}

/// Writes the members of a map.
fn members(out: &mut Vec<u8>, number: u32, inner: &'static Message, value: &Value) {
    for (name, member) in value.as_object().into_iter().flatten() {
        named(out, number, name, member, inner);
    }
}

/// Writes one member of a map.
fn named(out: &mut Vec<u8>, number: u32, name: &str, value: &Value, inner: &'static Message) {
    let mut content = Vec::new();
    bytes(&mut content, NAME, name.as_bytes());
    field(&mut content, VALUE, MessageFieldType::One(inner), value);
    bytes(out, number, &content);
}

fn bytes(out: &mut Vec<u8>, number: u32, content: &[u8]) {
    tag(out, number, 2);
    varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

fn tag(out: &mut Vec<u8>, number: u32, wire_type: u32) {
    varint(out, u64::from(number << 3 | wire_type));
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
