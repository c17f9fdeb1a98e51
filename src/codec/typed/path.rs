//! The path of a value, as Go reports it: errors have the names of fields, unknown fields keys and indexes too.

use std::fmt;

use serde_json::Value;

use super::TypeError;

/// The path of a value.
#[derive(Clone, Copy)]
pub(super) enum Path<'a> {
    Root,
    /// A member of a struct of this name.
    Field(&'a Self, &'static str, &'a str),
    /// An entry of a map.
    Key(&'a Self, &'a str),
    Index(&'a Self, usize),
}

impl Path<'_> {
    /// Returns the error about a value of the wrong type.
    pub(super) fn wrong(&self, value: &Value, expected: String) -> TypeError {
        let found = match value {
            Value::Null => "null".to_owned(),
            Value::Bool(_) => "bool".to_owned(),
            // Only for integers Go reports the number that does not fit.
            Value::Number(number) if matches!(&*expected, "int32" | "int64") => {
                format!("number {number}")
            }
            Value::Number(_) => "number".to_owned(),
            Value::String(_) => "string".to_owned(),
            Value::Array(_) => "array".to_owned(),
            Value::Object(_) => "object".to_owned(),
        };
        let mut names = Vec::new();
        let owner = self.fields(&mut names);
        TypeError::Wrong {
            found,
            field: format!("{owner}.{}", names.join(".")),
            expected,
        }
    }

    /// Adds the names of the fields of the path, and returns the name of the last one's struct.
    fn fields<'a>(&'a self, names: &mut Vec<&'a str>) -> &'static str {
        match self {
            Self::Root => "",
            Self::Key(parent, _) | Self::Index(parent, _) => parent.fields(names),
            Self::Field(parent, owner, name) => {
                parent.fields(names);
                names.push(name);
                owner
            }
        }
    }
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
