//! The path of a value, as Go reports it: errors have the names of fields, unknown fields keys and indexes too.

use std::fmt;

use serde_json::Value;

use super::{TYPE_META, TypeError};
use crate::codec::message::Message;

/// The fields whose types read their own JSON in Go. Errors of what is in them name the struct that has the first of
/// them.
const READ_APART: [&str; 4] = [
    "items",
    "additionalProperties",
    "additionalItems",
    "dependencies",
];

/// The fields whose types have names of their own in Go, a line each: the group by the name of its Go package, the
/// struct, the field, and the type. The name of a type of the struct's own package begins with a point: its version is
/// that of the struct.
const NAMED_TYPES: &str = include_str!("named_types.txt");

/// The size, rounded down, beyond which whole numbers of JSON are read as floats.
const INTEGERS_END: f64 = 9.2e18;

/// The first float that Go's JSON has with an exponent.
const POINTLESS_END: f64 = 1e21;

/// The path of a value.
#[derive(Clone, Copy)]
pub(super) enum Path<'a> {
    Root,
    /// A member of a struct.
    Field(&'a Self, &'static Message, &'a str),
    /// An entry of a map.
    Key(&'a Self, &'a str),
    Index(&'a Self, usize),
}

impl Path<'_> {
    /// Returns the error about a value of the wrong type.
    pub(super) fn wrong(&self, value: &Value, expected: String) -> TypeError {
        let expects_integer = matches!(&*expected, "int32" | "int64");
        let mut names = Vec::new();
        let owner = self.fields(&mut names);
        TypeError::Wrong {
            found: found(value, expects_integer, INTEGERS_END),
            field: format!("{owner}.{}", names.join(".")),
            expected: self.named_type().unwrap_or(expected),
        }
    }

    /// Returns Go's name of the type of a field, or of an item of a list or map, if it has one of its own.
    pub(super) fn named_type(&self) -> Option<String> {
        let (name, version) = self.type_in_table()?;
        let mut named = String::new();
        for letter in name.chars() {
            if letter == '.' && (named.is_empty() || named.ends_with(['[', ']'])) {
                named.push_str(version);
            }
            named.push(letter);
        }
        Some(named)
    }

    /// Returns the type as the table names it, and the version of the package of the struct that has the field.
    fn type_in_table(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Root => None,
            Self::Key(map, _) => {
                let (map, version) = map.type_in_table()?;
                let (_, of_values) = map.strip_prefix("map[")?.split_once(']')?;
                Some((of_values, version))
            }
            Self::Index(list, _) => {
                let (list, version) = list.type_in_table()?;
                Some((list.strip_prefix("[]")?, version))
            }
            Self::Field(_, owner, name) => {
                let (group, version) = owner.package.rsplit_once('.')?;
                let group = group.rsplit('.').next();
                NAMED_TYPES.lines().find_map(|line| {
                    let mut parts = line.split(' ');
                    let is_field = parts.next() == group
                        && parts.next() == Some(owner.name)
                        && parts.next() == Some(name);
                    Some((parts.next().filter(|_| is_field)?, version))
                })
            }
        }
    }

    /// Returns true if the value is in a field that Go reads apart.
    fn is_apart(&self) -> bool {
        match self {
            Self::Root => false,
            Self::Key(parent, _) | Self::Index(parent, _) => parent.is_apart(),
            Self::Field(parent, owner, name) => {
                owner.name == "JSONSchemaProps" && READ_APART.contains(name) || parent.is_apart()
            }
        }
    }

    /// Adds the names of the fields of the path, with those of embedded structs, and returns the name of the struct
    /// that errors name: the last one's, if nothing around is read apart.
    fn fields<'a>(&'a self, names: &mut Vec<&'a str>) -> &'static str {
        match self {
            Self::Root => "",
            Self::Key(parent, _) | Self::Index(parent, _) => parent.fields(names),
            Self::Field(parent, owner, name) => {
                let around = parent.fields(names);
                names.extend(owner.embedded(name));
                if owner.is_kind && TYPE_META.contains(name) {
                    names.push("TypeMeta");
                }
                names.push(name);
                if parent.is_apart() {
                    around
                } else {
                    owner.name
                }
            }
        }
    }
}

/// Returns the words with which Go names a value in JSON. That is its type, and if an integer is expected, a number as
/// well: without a point if it is whole and `pointless_from` or more, up to those with an exponent.
pub(super) fn found(value: &Value, expects_integer: bool, pointless_from: f64) -> String {
    let name = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(number) if expects_integer => {
            let is_pointless =
                |it: &f64| it.fract() == 0.0 && (pointless_from..POINTLESS_END).contains(&it.abs());
            return match number.as_f64().filter(is_pointless) {
                Some(float) if number.is_f64() => format!("number {float}"),
                _ => format!("number {number}"),
            };
        }
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    name.to_owned()
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Path::Root, _, name) => formatter.write_str(name),
            Self::Field(parent, _, name) | Self::Key(parent, name) => {
                write!(formatter, "{parent}.{name}")
            }
            Self::Index(parent, at) => write!(formatter, "{parent}[{at}]"),
        }
    }
}
