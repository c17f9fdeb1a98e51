//! Walks over an object, beside the tables, as the decoder and the converter both do. Members that are no fields are
//! removed and reported.

use serde_json::{Map, Value};

use super::TYPE_META;
use super::path::Path;
use crate::codec::message::{Arity, Field, FieldType, Message, Shape};

/// Maximum number of unknown fields that are reported; all of them are removed.
const UNKNOWN_REPORTED_MAX: usize = 100;

/// Maximum number of bytes of reported paths of unknown fields: one key of a megabyte may contain all of them.
const UNKNOWN_BYTES_MAX: usize = 256 << 10;

/// A walk over the members of an object.
pub(super) trait Walk {
    type Error;

    /// True if the error that is returned is the first one in the order of Go's fields; else it is in the object's, and
    /// ends the walk.
    const TELLS_FIRST_FIELD: bool;

    /// Returns the unknown fields that were found.
    fn unknown(&mut self) -> &mut UnknownFields;

    /// Walks through one value.
    fn value(
        &mut self,
        path: &Path<'_>,
        kind: FieldType,
        value: &mut Value,
    ) -> Result<(), Self::Error>;

    /// Returns the error about a value that is no list of a type.
    fn no_list(path: &Path<'_>, kind: FieldType, value: &Value) -> Self::Error;

    /// Returns the error about a value that is no map of a type.
    fn no_map(path: &Path<'_>, kind: FieldType, value: &Value) -> Self::Error;

    fn members(
        &mut self,
        path: &Path<'_>,
        message: &'static Message,
        object: &mut Map<String, Value>,
    ) -> Result<(), Self::Error> {
        let mut unknown = Vec::new();
        let mut first: Option<(Vec<usize>, Self::Error)> = None;
        // Names and members are sorted alike: each is found soon after the last one.
        let mut next = 0;
        for (name, value) in object.iter_mut() {
            let path = Path::Field(path, message, name);
            let found = message.name_at(name, next);
            next = found.map_or(next, |at| at + 1);
            let own = found.map(|at| &message.fields[message.names[at].place]);
            let walked = if let Some(field) = own.or_else(|| message.inline_field(name)) {
                self.field(&path, field, value)
            } else if message.is_kind && TYPE_META.contains(&name.as_str()) {
                self.value(&path, FieldType::Text, value)
            } else {
                self.unknown().report(&path);
                unknown.push(name.clone());
                Ok(())
            };
            let Err(error) = walked else {
                continue;
            };
            if !Self::TELLS_FIRST_FIELD {
                return Err(error);
            }
            let place = message.place_of(name);
            if first.as_ref().is_none_or(|(earliest, _)| place < *earliest) {
                first = Some((place, error));
            }
        }
        if let Some((_, error)) = first {
            return Err(error);
        }
        for name in unknown {
            object.remove(&name);
        }
        Ok(())
    }

    fn field(
        &mut self,
        path: &Path<'_>,
        field: &'static Field,
        value: &mut Value,
    ) -> Result<(), Self::Error> {
        match (field.arity, value) {
            (_, Value::Null) => Ok(()),
            (Arity::One, value) => self.value(path, field.kind, value),
            (Arity::List, Value::Array(items)) => self.items(path, field.kind, items),
            (Arity::Map, Value::Object(entries)) => {
                let mut entries = entries.iter_mut();
                entries.try_for_each(|(key, value)| {
                    fill(field.kind, value);
                    self.value(&Path::Key(path, key), field.kind, value)
                })
            }
            (Arity::List, value) => Err(Self::no_list(path, field.kind, value)),
            (Arity::Map, value) => Err(Self::no_map(path, field.kind, value)),
        }
    }

    fn items(
        &mut self,
        path: &Path<'_>,
        kind: FieldType,
        items: &mut [Value],
    ) -> Result<(), Self::Error> {
        let mut items = items.iter_mut().enumerate();
        items.try_for_each(|(at, item)| {
            fill(kind, item);
            self.value(&Path::Index(path, at), kind, item)
        })
    }
}

/// The unknown fields found by a walk.
#[derive(Default)]
pub(super) struct UnknownFields {
    /// The paths of unknown fields.
    pub(super) paths: Vec<String>,
    /// The bytes of these paths.
    bytes: usize,
    /// True where Go does not report unknown fields: in values of types that decode themselves.
    pub(super) is_silent: bool,
}

impl UnknownFields {
    fn report(&mut self, path: &Path<'_>) {
        let has_room = self.paths.len() < UNKNOWN_REPORTED_MAX && self.bytes < UNKNOWN_BYTES_MAX;
        if !self.is_silent && has_room {
            let path = path.to_string();
            self.bytes += path.len();
            self.paths.push(path);
        }
    }
}

impl Message {
    /// Returns the place of a field in Go's struct: those of the inlined structs that it is in, and its own. What all
    /// kinds have comes first.
    fn place_of(&self, name: &str) -> Vec<usize> {
        if let Some(at) = self.name_at(name, 0) {
            return vec![self.names[at].place];
        }
        let inlined = self.fields.iter().enumerate();
        let mut inlined = inlined.filter(|(_, field)| field.inline);
        let found = inlined.find_map(|(at, field)| match field.kind {
            FieldType::Message(id) => {
                let inner = id.message();
                let has_it = inner.name_at(name, 0).is_some() || inner.inline_field(name).is_some();
                has_it.then(|| [vec![at], inner.place_of(name)].concat())
            }
            _ => None,
        });
        found.unwrap_or_default()
    }
}

/// Puts the zero value of a type where an entry of a map or an item of a list is null, as Go's decoder does.
fn fill(kind: FieldType, value: &mut Value) {
    if !value.is_null() {
        return;
    }
    *value = match kind {
        FieldType::Text | FieldType::Bytes => "".into(),
        FieldType::Bool => false.into(),
        FieldType::Int32 | FieldType::Int64 => 0.into(),
        FieldType::Double => 0.0.into(),
        FieldType::Message(id) => match id.message().shape {
            Shape::Object => Value::Object(Map::new()),
            Shape::Quantity => "0".into(),
            Shape::IntOrString => 0.into(),
            // Null is the zero value of a list of strings; the others' types decode it themselves.
            Shape::Items
            | Shape::RawExtension
            | Shape::Json
            | Shape::Time
            | Shape::MicroTime
            | Shape::Duration
            | Shape::SchemaOrArray
            | Shape::SchemaOrBool
            | Shape::SchemaOrTexts => return,
        },
    };
}
