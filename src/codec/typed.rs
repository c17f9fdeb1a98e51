//! Checks that a JSON object has the types of its kind's fields.
//!
//! One walk over the object, beside the tables: the first value of a wrong type is an error with Go's text, and members
//! that are no fields are removed and reported. `null` may stand for any member; entries of maps
//! and items of lists get the zero value of their type instead. Values of any type (extensions, managed
//! fields, defaults in schemas) are not checked.

mod converter;
mod error;
mod formats;
mod path;

use serde_json::{Map, Value};

use super::duration;
use super::message::{Arity, Field, FieldType, Kind, Message, Shape};
use super::tables::object_meta;
use path::Path;

pub use converter::{ConversionError, are_managed_fields, convert};
pub use error::TypeError;
pub use formats::base64;

/// Maximum number of unknown fields that are reported; all of them are removed.
const UNKNOWN_REPORTED_MAX: usize = 100;

/// Maximum number of bytes of reported paths of unknown fields: one key of a megabyte may contain all of them.
const UNKNOWN_BYTES_MAX: usize = 256 << 10;

/// The members that every kind has beside its fields.
pub(super) const TYPE_META: &[&str] = &["kind", "apiVersion"];

/// The size below which every whole number is exact in a double.
const EXACT_DOUBLE: f64 = 9_007_199_254_740_992.0;

/// Checks the types of an object's members. Members that its kind does not have are removed, and their paths returned.
///
/// # Errors
/// [`TypeError`] for the first value that its field cannot have.
///
/// ```
/// use ringwatch::codec;
/// use serde_json::{Value, json};
///
/// let kind = codec::kind("v1", "ConfigMap").expect("a built-in kind");
/// let Value::Object(mut object) = json!({"metadata": {"name": "a", "colour": "red"}}) else {
///     unreachable!("it is an object");
/// };
/// assert_eq!(codec::check_types(kind, &mut object)?, ["metadata.colour"]);
/// assert_eq!(object["metadata"], json!({"name": "a"}));
///
/// object["metadata"] = json!({"name": 7});
/// assert!(codec::check_types(kind, &mut object).is_err());
/// # Ok::<(), codec::TypeError>(())
/// ```
pub fn check_types(kind: Kind, object: &mut Map<String, Value>) -> Result<Vec<String>, TypeError> {
    let mut walk = UnknownFields::default();
    walk.members(&Path::Root, kind.0, object)?;
    Ok(walk.unknown)
}

/// Checks the types of an object that has been merged and not decoded, as [`check_types`] does. There a whole number
/// may be written with a decimal point, which is removed.
///
/// # Errors
/// [`TypeError`] for the first value that its field cannot have.
pub fn check_merged_types(
    kind: Kind,
    object: &mut Map<String, Value>,
) -> Result<Vec<String>, TypeError> {
    let mut walk = UnknownFields {
        takes_points: true,
        ..UnknownFields::default()
    };
    walk.members(&Path::Root, kind.0, object)?;
    Ok(walk.unknown)
}

/// Checks the types of the members of any object's `metadata`, as [`check_types`] does. Errors and paths begin inside
/// of it.
///
/// # Errors
/// [`TypeError`] for the first value that its field cannot have.
pub fn check_metadata(metadata: &mut Map<String, Value>) -> Result<Vec<String>, TypeError> {
    let mut walk = UnknownFields::default();
    walk.members(&Path::Root, object_meta(), metadata)?;
    Ok(walk.unknown)
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
            Shape::Items => Value::Array(Vec::new()),
            // Their types decode null themselves.
            Shape::RawExtension
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

/// The unknown fields found by the walk.
#[derive(Default)]
struct UnknownFields {
    /// The paths of unknown fields.
    unknown: Vec<String>,
    /// The bytes of these paths.
    unknown_bytes: usize,
    /// True where Go does not report unknown fields: in values of types that decode themselves.
    is_silent: bool,
    /// True if integers may have a decimal point.
    takes_points: bool,
}

impl UnknownFields {
    fn members(
        &mut self,
        path: &Path<'_>,
        message: &'static Message,
        object: &mut Map<String, Value>,
    ) -> Result<(), TypeError> {
        let mut unknown = Vec::new();
        // Names and members are sorted alike: each is found soon after the last one.
        let mut next = 0;
        for (name, value) in object.iter_mut() {
            let path = Path::Field(path, message, name);
            let found = message.name_at(name, next);
            next = found.map_or(next, |at| at + 1);
            let place = found.map(|at| message.names[at].place);
            if let Some(field) = place.map(|at| &message.fields[at]) {
                self.field(&path, field, value)?;
            } else if let Some(field) = message.inline_field(name) {
                self.field(&path, field, value)?;
            } else if message.is_kind && TYPE_META.contains(&name.as_str()) {
                self.value(&path, FieldType::Text, value)?;
            } else {
                self.report(&path);
                unknown.push(name.clone());
            }
        }
        for name in unknown {
            object.remove(&name);
        }
        Ok(())
    }

    fn report(&mut self, path: &Path<'_>) {
        let has_room =
            self.unknown.len() < UNKNOWN_REPORTED_MAX && self.unknown_bytes < UNKNOWN_BYTES_MAX;
        if !self.is_silent && has_room {
            let path = path.to_string();
            self.unknown_bytes += path.len();
            self.unknown.push(path);
        }
    }

    fn field(
        &mut self,
        path: &Path<'_>,
        field: &'static Field,
        value: &mut Value,
    ) -> Result<(), TypeError> {
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
            (Arity::List, value) => Err(path.wrong(value, format!("[]{}", go_type(field.kind)))),
            (Arity::Map, value) => {
                Err(path.wrong(value, format!("map[string]{}", go_type(field.kind))))
            }
        }
    }

    fn items(
        &mut self,
        path: &Path<'_>,
        kind: FieldType,
        items: &mut [Value],
    ) -> Result<(), TypeError> {
        let mut items = items.iter_mut().enumerate();
        items.try_for_each(|(at, item)| {
            fill(kind, item);
            self.value(&Path::Index(path, at), kind, item)
        })
    }

    /// Checks one value.
    fn value(
        &mut self,
        path: &Path<'_>,
        kind: FieldType,
        value: &mut Value,
    ) -> Result<(), TypeError> {
        let fits = match (kind, &mut *value) {
            (_, Value::Null)
            | (FieldType::Text, Value::String(_))
            | (FieldType::Bool, Value::Bool(_)) => true,
            (FieldType::Bytes, Value::String(text)) => return formats::canonical_base64(text),
            (FieldType::Double, Value::Number(_)) => true,
            (FieldType::Int32, value) => self.is_integer(value, i32::MIN.into(), i32::MAX.into()),
            (FieldType::Int64, value) => self.is_integer(value, i64::MIN, i64::MAX),
            (FieldType::Message(id), value) => return self.message(path, id.message(), value),
            _ => false,
        };
        if fits {
            return Ok(());
        }
        Err(path.wrong(value, go_type(kind)))
    }

    /// Returns true if a value is an integer within bounds.
    fn is_integer(&self, value: &mut Value, min: i64, max: i64) -> bool {
        if self.takes_points {
            drop_point(value);
        }
        value.as_i64().is_some_and(|it| (min..=max).contains(&it))
    }

    fn message(
        &mut self,
        path: &Path<'_>,
        message: &'static Message,
        value: &mut Value,
    ) -> Result<(), TypeError> {
        match (message.shape, &mut *value) {
            (Shape::RawExtension | Shape::Json, _)
            | (Shape::IntOrString, Value::String(_))
            | (Shape::SchemaOrBool, Value::Bool(_)) => Ok(()),
            (Shape::Object, Value::Object(members)) => self.members(path, message, members),
            (Shape::Items | Shape::SchemaOrTexts, Value::Array(items)) => {
                self.items(path, FieldType::Text, items)
            }
            (Shape::IntOrString, value) => self.value(path, FieldType::Int32, value),
            (Shape::Quantity, value) => formats::quantity(value),
            (Shape::Time, Value::String(text)) => formats::time(text, false),
            (Shape::MicroTime, Value::String(text)) => formats::time(text, true),
            (Shape::Duration, Value::String(text)) if duration::parse(text).is_some() => Ok(()),
            (Shape::Duration, Value::String(text)) => Err(TypeError::Duration(text.clone())),
            (Shape::Time | Shape::MicroTime | Shape::Duration, value) => {
                Err(path.wrong(value, go_type(FieldType::Text)))
            }
            (
                Shape::SchemaOrArray | Shape::SchemaOrBool | Shape::SchemaOrTexts,
                Value::Object(_) | Value::Array(_),
            ) => self.schema(path, message, value),
            (Shape::SchemaOrBool, _) => Err(TypeError::Schema),
            // What is neither a schema nor a list becomes an empty one of Go's types, which is written as null.
            (Shape::SchemaOrArray | Shape::SchemaOrTexts, value) => {
                *value = Value::Null;
                Ok(())
            }
            (_, value) => Err(path.wrong(value, message.go_type())),
        }
    }

    /// Checks a schema or a list of them, which Go decodes by a type of its own.
    fn schema(
        &mut self,
        path: &Path<'_>,
        message: &'static Message,
        value: &mut Value,
    ) -> Result<(), TypeError> {
        let schemas = message.fields.iter().map(|field| field.kind);
        let schema = schemas
            .into_iter()
            .find(|it| matches!(it, FieldType::Message(_)));
        let was_silent = std::mem::replace(&mut self.is_silent, true);
        let checked = match (schema, value) {
            (Some(schema), value @ Value::Object(_)) => self.value(path, schema, value),
            (Some(schema), Value::Array(items)) if message.shape == Shape::SchemaOrArray => {
                self.items(path, schema, items)
            }
            _ => Err(TypeError::Schema),
        };
        self.is_silent = was_silent;
        checked
    }
}

/// Removes the decimal point of a whole number.
fn drop_point(value: &mut Value) {
    let double = value.as_f64().filter(|_| value.is_f64());
    if let Some(double) = double.filter(|it| it.fract() == 0.0 && it.abs() < EXACT_DOUBLE) {
        *value = Value::from(double as i64);
    }
}

/// Returns Go's name of a type.
fn go_type(kind: FieldType) -> String {
    let name = match kind {
        FieldType::Text => "string",
        FieldType::Bytes => "[]uint8",
        FieldType::Bool => "bool",
        FieldType::Int32 => "int32",
        FieldType::Int64 => "int64",
        FieldType::Double => "float64",
        FieldType::Message(id) => return id.message().go_type(),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests;
