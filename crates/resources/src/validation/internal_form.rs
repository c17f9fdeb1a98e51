//! The form in which errors show a list or an object: JSON of Kubernetes' internal type.
//!
//! kube-apiserver validates internal types, which have no names for JSON. So what `json.Marshal` makes of them has the
//! names of Go's fields, all of them, in their order: `{"Volumes":null,"InitContainers":null,…`.
//!
//! `internal_types.txt` has a line for each type, with its fields in order. Each is the name that is written, the name
//! in requests if that is not the same but for its first letter, and the shape of the value:
//!
//! | shape | of |
//! |---|---|
//! | `string`, `bool`, `int`, `quantity`, `duration` | a value with a zero; `int` stands for an integer or text too |
//! | `group.Type` | a type of the table |
//! | `*shape`, `[]shape`, `{}shape` | a pointer, a list, a map of texts to such values: `null` if there is none |
//! | `time`, `microtime` | a time, which is written in UTC, in seconds or microseconds; the begin of year 1 is none |
//! | `any` | what is written as it was sent |
//!
//! A field after `?` is left out while it is empty. The members of one after `+` are written in place of the field. A
//! name after `^` is that of a field beside the value in requests, one step higher. The name `-` stands for a field
//! that requests do not have.

use std::collections::HashMap;
use std::io;
use std::sync::LazyLock;

use jiff::Timestamp;
use ringwatch_apimachinery::go_text;
use serde::ser::{Error, SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};
use serde_json::{Map, Value};

/// Bytes that a value may have in this form. Since a short value can be long with all its empty fields, a client could
/// otherwise make errors of gigabytes.
const BYTES_MAX: usize = 1 << 20;

/// The zero value of Go's time, the begin of year 1, in seconds.
const ZERO_TIME_SECONDS: i64 = -62_135_596_800;

static TYPES: LazyLock<HashMap<&str, Vec<InternalField>>> = LazyLock::new(|| {
    let lines = include_str!("internal_types.txt").lines();
    let types = lines.filter_map(|line| line.split_once(": "));
    let fields = |text: &'static str| text.split(", ").filter_map(InternalField::read).collect();
    types.map(|(name, text)| (name, fields(text))).collect()
});

/// A field of an internal type.
struct InternalField {
    /// The name in Go, which is the name in JSON where the type has none for it.
    name: &'static str,
    /// The name in requests.
    sent: String,
    shape: &'static str,
    presence: Presence,
}

/// The way in which a field is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    Always,
    UnlessEmpty,
    /// Its members are written in its place.
    Promoted,
}

impl InternalField {
    fn read(text: &'static str) -> Option<Self> {
        let (names, shape) = text.split_once(' ')?;
        let (presence, names) = match names.split_at_checked(1)? {
            ("?", names) => (Presence::UnlessEmpty, names),
            ("+", names) => (Presence::Promoted, names),
            _ => (Presence::Always, names),
        };
        let (name, sent) = match names.split_once('=') {
            Some((name, sent)) => (name, sent.to_owned()),
            None => {
                let (first, rest) = names.split_at_checked(1)?;
                (names, first.to_lowercase() + rest)
            }
        };
        Some(Self {
            name,
            sent,
            shape,
            presence,
        })
    }
}

/// The shape of a value: that of a field of an internal type, or of an element of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape(&'static str);

impl Shape {
    /// Returns the shape of an object, by its apiVersion and kind; `None` if there is no such internal type.
    pub(crate) fn of(object: &Value) -> Option<Self> {
        let text = |name: &str| object.get(name).and_then(Value::as_str);
        let group = match text("apiVersion")?.split_once('/') {
            Some((group, _)) => group.split('.').next()?,
            None => "core",
        };
        Self::named(&format!("{group}.{}", text("kind")?))
    }

    /// Returns the shape of an internal type, by its group and name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        TYPES.get_key_value(name).map(|(name, _)| Self(name))
    }

    /// Returns the shape of the field that requests call so.
    pub(crate) fn at(self, name: &str) -> Option<Self> {
        let fields = TYPES.get(self.0.trim_start_matches('*'))?;
        let field = fields.iter().find(|it| it.sent == name)?;
        Some(Self(field.shape))
    }

    /// Returns the shape of the elements of a list or the members of a map.
    pub(crate) fn element(self) -> Option<Self> {
        let shape = self.0.trim_start_matches('*');
        let element = shape
            .strip_prefix("[]")
            .or_else(|| shape.strip_prefix("{}"))?;
        Some(Self(element))
    }

    /// Writes a value of the shape in one line, as errors show it; `None` if that is longer than an error may be.
    pub(crate) fn write(self, value: &Value) -> Option<String> {
        self.write_with(value, CompactFormatter)
    }

    /// Writes a value of the shape in lines that are indented by a space a level; `None` if that is longer than an
    /// error may be.
    pub(crate) fn write_indented(self, value: &Value) -> Option<String> {
        self.write_with(value, PrettyFormatter::with_indent(b" "))
    }

    fn write_with(self, value: &Value, formatter: impl Formatter) -> Option<String> {
        let mut written = BoundedText(Vec::new());
        let mut serializer = serde_json::Serializer::with_formatter(&mut written, formatter);
        let internal = Internal {
            shape: self.0,
            value,
            holder: &Value::Null,
        };
        internal.serialize(&mut serializer).ok()?;
        let text = String::from_utf8(written.0).ok()?;
        Some(go_text::html_escaped(text))
    }
}

/// A writer that fails at [`BYTES_MAX`].
struct BoundedText(Vec<u8>);

impl io::Write for BoundedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A value and its shape.
struct Internal<'v> {
    shape: &'static str,
    value: &'v Value,
    /// The object that has the value.
    holder: &'v Value,
}

impl Serialize for Internal<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { shape, value, .. } = *self;
        if let Some(pointer) = shape.strip_prefix('*') {
            if value.is_null() {
                return serializer.serialize_unit();
            }
            let shape = pointer;
            return Self { shape, ..*self }.serialize(serializer);
        }
        match (shape.strip_prefix("[]"), shape.strip_prefix("{}")) {
            (Some(shape), _) => match value {
                Value::Array(items) => {
                    let mut list = serializer.serialize_seq(Some(items.len()))?;
                    for value in items {
                        list.serialize_element(&Internal {
                            shape,
                            value,
                            holder: value,
                        })?;
                    }
                    list.end()
                }
                other => other.serialize(serializer),
            },
            (_, Some(shape)) => match value {
                Value::Object(members) => {
                    let mut map = serializer.serialize_map(Some(members.len()))?;
                    for (name, value) in members {
                        map.serialize_entry(
                            name,
                            &Internal {
                                shape,
                                value,
                                holder: value,
                            },
                        )?;
                    }
                    map.end()
                }
                other => other.serialize(serializer),
            },
            _ => self.serialize_plain(serializer),
        }
    }
}

impl Internal<'_> {
    /// Writes a value that is no pointer, list or map.
    fn serialize_plain<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(fields) = TYPES.get(self.shape) {
            let mut map = serializer.serialize_map(None)?;
            self.serialize_fields(fields, &mut map)?;
            return map.end();
        }
        if let (Some(format), Some(sent)) = (time_format(self.shape), self.value.as_str()) {
            return time(sent, format).serialize(serializer);
        }
        if !self.value.is_null() {
            return self.value.serialize(serializer);
        }
        match self.shape {
            "string" => serializer.serialize_str(""),
            "bool" => serializer.serialize_bool(false),
            "int" => serializer.serialize_u8(0),
            "quantity" => serializer.serialize_str("0"),
            "duration" => serializer.serialize_str("0s"),
            "any" => Map::new().serialize(serializer),
            unknown => Err(S::Error::custom(format!(
                "there is no internal type {unknown}"
            ))),
        }
    }

    fn serialize_fields<M: SerializeMap>(
        &self,
        fields: &[InternalField],
        map: &mut M,
    ) -> Result<(), M::Error> {
        for field in fields {
            let value = match field.sent.strip_prefix('^') {
                Some(sent) => self.holder.get(sent),
                None => self.value.get(&field.sent),
            };
            let value = value.unwrap_or(&Value::Null);
            let inner = Internal {
                shape: field.shape,
                value,
                holder: self.value,
            };
            match (field.presence, TYPES.get(field.shape)) {
                (Presence::Promoted, Some(fields)) => inner.serialize_fields(fields, map)?,
                (Presence::UnlessEmpty, _) if is_empty(value, field.shape) => {}
                _ => map.serialize_entry(field.name, &inner)?,
            }
        }
        Ok(())
    }
}

/// Returns the format of times of a shape; `None` if they are none.
fn time_format(shape: &str) -> Option<&'static str> {
    match shape {
        "time" => Some("%Y-%m-%dT%H:%M:%SZ"),
        "microtime" => Some("%Y-%m-%dT%H:%M:%S.%6fZ"),
        _ => None,
    }
}

/// Returns a time as Go writes it, which has null for the zero value. What is no time stays as it is.
fn time(sent: &str, format: &str) -> Value {
    match sent.parse::<Timestamp>() {
        Ok(time) if time.as_second() == ZERO_TIME_SECONDS => Value::Null,
        Ok(time) => Value::from(time.strftime(format).to_string()),
        Err(_) => Value::from(sent),
    }
}

/// Returns true for what Go's `omitempty` leaves out of a field of a shape: of pointers those to nothing alone.
fn is_empty(value: &Value, shape: &str) -> bool {
    if shape.starts_with('*') {
        return value.is_null();
    }
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shape(api_version: &str, kind: &str, path: &[&str]) -> Shape {
        let object = json!({"apiVersion": api_version, "kind": kind});
        let root = Shape::of(&object).expect("an internal type");
        let steps = path.iter();
        steps.fold(root, |at, step| match *step {
            "*" => at.element().expect("elements"),
            name => at.at(name).expect("a field"),
        })
    }

    #[test]
    fn shapes_name_what_there_is() {
        let simple = [
            "string",
            "bool",
            "int",
            "quantity",
            "duration",
            "time",
            "microtime",
            "any",
        ];
        for (name, fields) in TYPES.iter() {
            assert!(!fields.is_empty(), "{name}");
            for field in fields {
                let plain = field.shape.trim_start_matches(['*', '[', ']', '{', '}']);
                let is_there = simple.contains(&plain) || TYPES.contains_key(plain);
                assert!(is_there, "{name}: {} {}", field.name, field.shape);
            }
        }
        assert!(TYPES.len() > 400, "{} types", TYPES.len());
    }

    #[test]
    fn empty_fields_are_shown_in_the_order_of_go() {
        let role = shape("rbac.authorization.k8s.io/v1", "RoleBinding", &["roleRef"]);
        let value = json!({"name": "a&b", "kind": "Role"});
        let written = role.write(&value).expect("written");
        assert_eq!(
            written,
            r#"{"APIGroup":"","Kind":"Role","Name":"a\u0026b"}"#
        );
        let selector = shape("apps/v1", "Deployment", &["spec", "selector"]);
        let value = json!({"matchExpressions": [{"key": "k", "operator": "Exists"}], "matchLabels": {"a": "b"}});
        assert_eq!(
            selector.write(&value).expect("written"),
            r#"{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"k","operator":"Exists"}]}"#
        );
    }

    #[test]
    fn times_are_written_in_utc() {
        let allocation = |time: &str| {
            let value = json!({"allocationTimestamp": time});
            let shape = Shape::named("resource.AllocationResult").expect("a type");
            let written = shape.write(&value).expect("short");
            written
                .split_once("AllocationTimestamp\":")
                .expect("the field")
                .1
                .to_owned()
        };
        for (sent, written) in [
            ("2020-01-01T00:00:00.5+01:00", "\"2019-12-31T23:00:00Z\"}"),
            ("0001-01-01T00:00:00Z", "null}"),
            ("soon", "\"soon\"}"),
        ] {
            assert_eq!(allocation(sent), written);
        }
        let lease = Shape::named("coordination.LeaseSpec").expect("a type");
        let written = lease.write(&json!({"renewTime": "2020-01-01T00:00:00.5Z"}));
        let written = written.expect("short");
        assert!(
            written.contains("\"RenewTime\":\"2020-01-01T00:00:00.500000Z\""),
            "{written}"
        );
    }

    #[test]
    fn settings_of_the_host_are_in_the_security_context() {
        let pod = shape("v1", "Pod", &["spec"]);
        let written = pod
            .write(&json!({"hostPID": true, "serviceAccount": "s"}))
            .expect("written");
        let context = r#""SecurityContext":{"HostNetwork":false,"HostPID":true,"HostIPC":false,"ShareProcessNamespace":null"#;
        assert!(
            written.starts_with(r#"{"Volumes":null,"InitContainers":null,"#),
            "{written}"
        );
        assert!(written.contains(context), "{written}");
    }

    #[test]
    fn metadata_of_a_template_is_promoted() {
        let template = shape("batch/v1", "Job", &["spec", "template"]);
        let value = json!({"metadata": {"labels": {"a": "b"}}, "spec": {}});
        let written = template.write(&value).expect("written");
        assert!(
            written.starts_with(r#"{"labels":{"a":"b"},"Spec":{"Volumes":null"#),
            "{written}"
        );
    }

    #[test]
    fn pointers_to_zeros_are_shown() {
        let owner = Shape::named("meta.OwnerReference").expect("a type");
        let value = json!({"uid": "u", "controller": null, "blockOwnerDeletion": false});
        assert_eq!(
            owner.write(&value).expect("written"),
            r#"{"apiVersion":"","kind":"","name":"","uid":"u","blockOwnerDeletion":false}"#
        );
    }

    #[test]
    fn a_value_that_would_be_too_long_is_not_written() {
        let containers = shape("v1", "Pod", &["spec", "containers"]);
        let many = Value::Array(vec![json!({}); 100_000]);
        assert_eq!(containers.write(&many), None);
    }
}
