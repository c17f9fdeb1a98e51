//! Puts a tree of values into the types of its kind, as Kubernetes converts what is unstructured: without JSON.
//!
//! Unlike a decoder it takes what is left of an integer that is too large, and of the first error there is but a few
//! words, in which the field is not named. That is the first one in the order of Go's fields, not of the object. Types
//! that read their own JSON are given it, so that their errors are those of the decoder.

use serde_json::{Map, Number, Value};

use super::path::{Path, found};
use super::walk::{UnknownFields, Walk};
use super::{Decoder, TypeError, duration, formats};
use crate::codec::message::{FieldType, Kind, Message, Shape};
use crate::codec::tables::object_meta;

/// The first float beyond the integers of 64 bits.
const INT64_END: f64 = 9_223_372_036_854_775_808.0;

/// An error about a value that cannot be converted to the type of its field, with Go's text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConversionError {
    /// A value that is of none of the types that convert to a text, a number or a boolean.
    #[error("unrecognized type: {0}")]
    Unrecognized(&'static str),
    /// A number of another kind.
    #[error("cannot convert {found} to {expected}")]
    Number {
        /// The kind of the number.
        found: &'static str,
        /// Go's name of the field's type.
        expected: String,
    },
    /// A value that is no object, where there should be a struct.
    #[error("cannot restore struct from: {0}")]
    Struct(&'static str),
    /// A value that is no object, where there should be a map.
    #[error("cannot restore map from {0}")]
    Map(&'static str),
    /// A value that is no list.
    #[error("cannot restore slice from {0}")]
    List(&'static str),
    /// Text that should be base64.
    #[error("error decoding from json: {0}")]
    Bytes(TypeError),
    /// A value that a type cannot read from its JSON.
    #[error("json: cannot unmarshal {found} into Go value of type {expected}")]
    Json {
        /// The type of the value.
        found: String,
        /// Go's name of the type that should be read.
        expected: &'static str,
    },
    /// A value that a type of its own cannot read.
    #[error(transparent)]
    Read(#[from] TypeError),
}

/// Converts an object to its kind. Members that its kind does not have are removed, and their paths returned, sorted.
///
/// # Errors
/// [`ConversionError`] for the first value that does not convert.
///
/// ```
/// use ringwatch::codec;
/// use serde_json::{Value, json};
///
/// let kind = codec::kind("apps/v1", "Deployment").expect("a built-in kind");
/// let Value::Object(mut object) = json!({"spec": {"replicas": 4_294_967_298_u64}}) else {
///     unreachable!("it is an object");
/// };
/// codec::convert(kind, &mut object)?;
/// assert_eq!(object["spec"]["replicas"], 2);
///
/// object["spec"]["replicas"] = "2".into();
/// let error = codec::convert(kind, &mut object).expect_err("no number");
/// assert_eq!(error.to_string(), "unrecognized type: int32");
/// # Ok::<(), codec::ConversionError>(())
/// ```
pub fn convert(
    kind: Kind,
    object: &mut Map<String, Value>,
) -> Result<Vec<String>, ConversionError> {
    let mut converter = Converter::default();
    converter.members(&Path::Root, kind.0, object)?;
    converter.unknown.paths.sort();
    Ok(converter.unknown.paths)
}

/// Returns true if each value converts to an entry of an object's managed fields.
#[must_use]
pub fn are_managed_fields(entries: &[Value]) -> bool {
    let field = object_meta().fields.iter();
    let mut field = field.filter(|field| field.name == "managedFields");
    let Some(kind) = field.next().map(|field| field.kind) else {
        return false;
    };
    let converts = |entry: &Value| {
        let converted = Converter::default().value(&Path::Root, kind, &mut entry.clone());
        entry.is_object() && converted.is_ok()
    };
    entries.iter().all(converts)
}

/// The walk over the object.
#[derive(Default)]
struct Converter {
    /// The unknown fields that were found.
    unknown: UnknownFields,
}

impl Walk for Converter {
    type Error = ConversionError;

    const TELLS_FIRST_FIELD: bool = true;

    fn unknown(&mut self) -> &mut UnknownFields {
        &mut self.unknown
    }

    fn no_list(_: &Path<'_>, _: FieldType, value: &Value) -> ConversionError {
        ConversionError::List(go_kind(value))
    }

    fn no_map(_: &Path<'_>, _: FieldType, value: &Value) -> ConversionError {
        ConversionError::Map(go_kind(value))
    }

    fn value(
        &mut self,
        path: &Path<'_>,
        kind: FieldType,
        value: &mut Value,
    ) -> Result<(), ConversionError> {
        match (kind, &mut *value) {
            (_, Value::Null)
            | (FieldType::Text, Value::String(_))
            | (FieldType::Bool, Value::Bool(_))
            | (FieldType::Double, Value::Number(_)) => Ok(()),
            (FieldType::Text, Value::Number(number)) if number.is_i64() => {
                let named = path.named_type();
                Err(ConversionError::Number {
                    found: "int64",
                    expected: named.unwrap_or_else(|| "string".to_owned()),
                })
            }
            (FieldType::Bytes, _) => bytes(value),
            // Of an integer that is too large, the lowest bits are left.
            (FieldType::Int32, Value::Number(number)) => {
                *number = (whole(number, "int32")? as i32).into();
                Ok(())
            }
            (FieldType::Int64, Value::Number(number)) => {
                *number = whole(number, "int64")?.into();
                Ok(())
            }
            (FieldType::Message(id), value) => self.message(path, id.message(), value),
            (FieldType::Text, _) => Err(ConversionError::Unrecognized("string")),
            (FieldType::Bool, _) => Err(ConversionError::Unrecognized("bool")),
            (FieldType::Int32, _) => Err(ConversionError::Unrecognized("int32")),
            (FieldType::Int64, _) => Err(ConversionError::Unrecognized("int64")),
            (FieldType::Double, _) => Err(ConversionError::Unrecognized("float64")),
        }
    }
}

impl Converter {
    fn message(
        &mut self,
        path: &Path<'_>,
        message: &'static Message,
        value: &mut Value,
    ) -> Result<(), ConversionError> {
        match (message.shape, &mut *value) {
            (Shape::RawExtension | Shape::Json, _) | (Shape::IntOrString, Value::String(_)) => {
                Ok(())
            }
            (Shape::Object, Value::Object(members)) => self.members(path, message, members),
            (Shape::Object, value) => Err(ConversionError::Struct(go_kind(value))),
            (Shape::Items, Value::Array(items)) => self.items(path, FieldType::Text, items),
            (Shape::Items, value) => Err(ConversionError::List(go_kind(value))),
            (Shape::IntOrString, value) => int32(value),
            (Shape::Time | Shape::MicroTime | Shape::Duration, Value::String(text)) => {
                Ok(match message.shape {
                    Shape::Duration if duration::parse(text).is_none() => {
                        Err(TypeError::Duration(text.clone()))
                    }
                    Shape::Duration => Ok(()),
                    shape => formats::time(text, shape == Shape::MicroTime),
                }?)
            }
            (Shape::Time | Shape::MicroTime | Shape::Duration, value) => {
                Err(unread(value, "string"))
            }
            (Shape::Quantity, value) => Ok(formats::quantity(value)?),
            (Shape::SchemaOrArray | Shape::SchemaOrBool | Shape::SchemaOrTexts, value) => {
                let mut decoder = Decoder::default();
                decoder.unknown.is_silent = true;
                Ok(decoder.message(&Path::Root, message, value)?)
            }
        }
    }
}

/// Returns the kind of Go's type for a value.
fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

/// Converts a number to an integer of 64 bits.
fn whole(number: &Number, expected: &str) -> Result<i64, ConversionError> {
    match (number.as_i64(), number.as_f64()) {
        (Some(whole), _) => Ok(whole),
        (None, Some(float)) if float.fract() != 0.0 => Err(ConversionError::Number {
            found: "float64",
            expected: expected.to_owned(),
        }),
        // As processors convert floats that are no integers of 64 bits.
        (None, Some(float)) if !(-INT64_END..INT64_END).contains(&float) => Ok(i64::MIN),
        (None, float) => Ok(float.unwrap_or_default() as i64),
    }
}

/// Reads the integer of a value that may be one or a text from its JSON.
fn int32(value: &mut Value) -> Result<(), ConversionError> {
    let whole = value.as_f64().filter(|float| float.fract() == 0.0);
    let whole = whole.filter(|float| (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(float));
    let Some(whole) = whole else {
        return Err(unread(value, "int32"));
    };
    if value.is_f64() {
        *value = (whole as i64).into();
    }
    Ok(())
}

/// Returns the error about a value that a type cannot read from its JSON.
fn unread(value: &Value, expected: &'static str) -> ConversionError {
    ConversionError::Json {
        found: found(value, expected == "int32", 0.0),
        expected,
    }
}

/// Converts bytes, which are base64 or a list of numbers.
fn bytes(value: &mut Value) -> Result<(), ConversionError> {
    let items = match value {
        Value::String(text) => {
            return formats::canonical_base64(text).map_err(ConversionError::Bytes);
        }
        Value::Array(items) => items,
        value => return Err(ConversionError::List(go_kind(value))),
    };
    let bytes = items.iter().map(|item| match item {
        Value::Null => Ok(0),
        Value::Number(number) => whole(number, "uint8").map(|whole| whole as u8),
        _ => Err(ConversionError::Unrecognized("uint8")),
    });
    let bytes = bytes.collect::<Result<Vec<u8>, _>>()?;
    *value = Value::String(formats::to_base64(&bytes));
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::codec::kind;

    fn converted(version: &str, name: &str, mut object: Value) -> Result<Value, String> {
        let kind = kind(version, name).expect("a kind");
        let members = object.as_object_mut().expect("an object");
        let unknown = convert(kind, members).map_err(|error| error.to_string())?;
        assert!(unknown.is_empty(), "{unknown:?}");
        Ok(object)
    }

    /// Objects with a value of a wrong type: the version, the kind, the object, and the words of the converter.
    const WRONG: &[(&str, &str, &str, &str)] = &[
        (
            "apps/v1",
            "Deployment",
            r#"{"spec": {"replicas": "5"}}"#,
            "unrecognized type: int32",
        ),
        (
            "apps/v1",
            "Deployment",
            r#"{"spec": {"replicas": 1.5}}"#,
            "cannot convert float64 to int32",
        ),
        (
            "apps/v1",
            "Deployment",
            r#"{"spec": {"paused": 1}}"#,
            "unrecognized type: bool",
        ),
        (
            "apps/v1",
            "Deployment",
            r#"{"spec": 5}"#,
            "cannot restore struct from: int64",
        ),
        (
            "apps/v1",
            "Deployment",
            r#"{"spec": []}"#,
            "cannot restore struct from: slice",
        ),
        (
            "apps/v1",
            "Deployment",
            r#"{"kind": 1.5}"#,
            "unrecognized type: string",
        ),
        (
            "apps/v1",
            "Deployment",
            r#"{"apiVersion": 1}"#,
            "cannot convert int64 to string",
        ),
        (
            "apps/v1",
            "Deployment",
            r#"{"spec": {"strategy": {"type": 5}}}"#,
            "cannot convert int64 to v1.DeploymentStrategyType",
        ),
        (
            "apps/v1",
            "Deployment",
            r#"{"spec": {"strategy": {"rollingUpdate": {"maxSurge": 1.5}}}}"#,
            "json: cannot unmarshal number 1.5 into Go value of type int32",
        ),
        (
            "v1",
            "Service",
            r#"{"spec": {"ports": [{"targetPort": 4294967376.0}]}}"#,
            "json: cannot unmarshal number 4294967376 into Go value of type int32",
        ),
        (
            "v1",
            "Service",
            r#"{"spec": {"ports": {}}}"#,
            "cannot restore slice from map",
        ),
        (
            "v1",
            "ConfigMap",
            r#"{"data": true}"#,
            "cannot restore map from bool",
        ),
        (
            "v1",
            "ConfigMap",
            r#"{"binaryData": {"a": 5}}"#,
            "cannot restore slice from int64",
        ),
        (
            "v1",
            "ConfigMap",
            r#"{"binaryData": {"a": ["x"]}}"#,
            "unrecognized type: uint8",
        ),
        (
            "v1",
            "ConfigMap",
            r#"{"binaryData": {"a": "!!"}}"#,
            "error decoding from json: illegal base64 data at input byte 0",
        ),
        (
            "v1",
            "ConfigMap",
            r#"{"metadata": {"creationTimestamp": 5}}"#,
            "json: cannot unmarshal number into Go value of type string",
        ),
        (
            "v1",
            "ConfigMap",
            r#"{"metadata": {"creationTimestamp": "x"}}"#,
            "parsing time \"x\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"x\" as \"2006\"",
        ),
        (
            "v1",
            "ResourceQuota",
            r#"{"spec": {"hard": {"pods": true}}}"#,
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
    ];

    #[test]
    fn values_of_other_types_are_told_in_the_words_of_the_converter() {
        for (version, name, object, words) in WRONG {
            let found = converted(version, name, serde_json::from_str(object).expect("JSON"));
            assert_eq!(found, Err((*words).to_owned()), "{object}");
        }
    }

    #[test]
    fn the_first_field_of_gos_struct_is_told() {
        let wrong = json!({"spec": {"replicas": "5"}, "metadata": {"labels": 5}, "kind": true});
        assert_eq!(
            converted("apps/v1", "Deployment", wrong),
            Err("unrecognized type: string".to_owned())
        );
        // The ports come after the selector, and the rule that is inlined before what stands beside it.
        let wrong = json!({"spec": {"ports": 5, "clusterIP": 5, "selector": true}});
        assert_eq!(
            converted("v1", "Service", wrong),
            Err("cannot restore slice from int64".to_owned())
        );
    }

    #[test]
    fn schemas_are_decoded_apart() {
        let definition = |schema: Value| {
            let spec = json!({"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]});
            converted(
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                json!({"spec": spec}),
            )
        };
        let why = |field: &str| {
            format!(
                "json: cannot unmarshal number into Go struct field JSONSchemaProps.{field} of type string"
            )
        };
        assert_eq!(definition(json!({"items": {"type": 5}})), Err(why("type")));
        let deep = json!({"additionalProperties": {"properties": {"a": {"pattern": 5}}}});
        assert_eq!(definition(deep), Err(why("properties.pattern")));
        assert_eq!(
            definition(json!({"type": 5})),
            Err("cannot convert int64 to string".to_owned())
        );
    }

    #[test]
    fn numbers_become_what_their_fields_hold() {
        for (sent, kept) in [
            (json!(4_294_967_298_u64), 2),
            (json!(2_147_483_648_u64), -2_147_483_648),
            (json!(2.0), 2),
            (json!(1e30), 0),
            (json!(u64::MAX), 0),
            (json!(-2_147_483_649_i64), 2_147_483_647),
        ] {
            let object = json!({"spec": {"replicas": sent}});
            let object = converted("apps/v1", "Deployment", object).expect("converted");
            assert_eq!(object["spec"]["replicas"], kept);
        }
        let revision = json!({"revision": 1e30, "data": 5});
        let revision = converted("apps/v1", "ControllerRevision", revision).expect("converted");
        assert_eq!(revision["revision"], i64::MIN);
        let map = json!({"binaryData": {"a": [1, 2.0, 256, null]}, "data": {"a": null}});
        let map = converted("v1", "ConfigMap", map).expect("converted");
        assert_eq!(
            map,
            json!({"binaryData": {"a": "AQIAAA=="}, "data": {"a": ""}})
        );
        for (sent, kept) in [("YWJj\nZGVm\n", "YWJjZGVm"), ("YR==", "YQ==")] {
            let map = json!({"binaryData": {"a": sent}});
            let map = converted("v1", "ConfigMap", map).expect("converted");
            assert_eq!(map, json!({"binaryData": {"a": kept}}));
        }
    }

    #[test]
    fn entries_of_managed_fields_are_told_from_others() {
        for (entries, are) in [
            (json!([]), true),
            (json!([{}, {"fieldsV1": 5, "zz": 1}]), true),
            (json!([{"time": "bogus"}]), false),
            (json!([{"manager": 5}]), false),
            (json!([{}, "x"]), false),
            (json!([null]), false),
        ] {
            assert_eq!(
                are_managed_fields(entries.as_array().expect("a list")),
                are,
                "{entries}"
            );
        }
    }
}
