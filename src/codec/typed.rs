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
mod walk;

use serde_json::{Map, Value};

use super::duration;
use super::message::{FieldType, Kind, Message, Shape};
use super::tables::object_meta;
use path::Path;
use walk::{UnknownFields, Walk};

pub use converter::{ConversionError, are_managed_fields, convert};
pub use error::TypeError;
pub use formats::base64;

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
    Decoder::default().check(kind.0, object)
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
    let decoder = Decoder {
        takes_points: true,
        ..Decoder::default()
    };
    decoder.check(kind.0, object)
}

/// Checks the types of the members of any object's `metadata`, as [`check_types`] does. Errors and paths begin inside
/// of it.
///
/// # Errors
/// [`TypeError`] for the first value that its field cannot have.
pub fn check_metadata(metadata: &mut Map<String, Value>) -> Result<Vec<String>, TypeError> {
    Decoder::default().check(object_meta(), metadata)
}

/// The walk over the object.
#[derive(Default)]
struct Decoder {
    /// The unknown fields that were found.
    unknown: UnknownFields,
    /// True if integers may have a decimal point.
    takes_points: bool,
}

impl Walk for Decoder {
    type Error = TypeError;

    const TELLS_FIRST_FIELD: bool = false;

    fn unknown(&mut self) -> &mut UnknownFields {
        &mut self.unknown
    }

    fn no_list(path: &Path<'_>, kind: FieldType, value: &Value) -> TypeError {
        path.wrong(value, format!("[]{}", go_type(kind)))
    }

    fn no_map(path: &Path<'_>, kind: FieldType, value: &Value) -> TypeError {
        path.wrong(value, format!("map[string]{}", go_type(kind)))
    }

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
}

impl Decoder {
    /// Checks all members of an object, and returns the paths of those that are unknown.
    fn check(
        mut self,
        message: &'static Message,
        object: &mut Map<String, Value>,
    ) -> Result<Vec<String>, TypeError> {
        self.members(&Path::Root, message, object)?;
        Ok(self.unknown.paths)
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
        let was_silent = std::mem::replace(&mut self.unknown.is_silent, true);
        let checked = match (schema, value) {
            (Some(schema), value @ Value::Object(_)) => self.value(path, schema, value),
            (Some(schema), Value::Array(items)) if message.shape == Shape::SchemaOrArray => {
                self.items(path, schema, items)
            }
            _ => Err(TypeError::Schema),
        };
        self.unknown.is_silent = was_silent;
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
