//! The steps of a path to a field, as `fieldsV1` writes them and as messages show them.

use std::fmt;

use serde_json::{Map, Value};

use super::value::{self, OrderedValue};

/// One step of a path. JSON inside has the one form in which `fieldsV1` is written, with names in order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PathElement {
    /// A member of an object: `f:NAME`.
    Field(String),
    /// An item of a list by the values of its keys: `k:{"NAME":VALUE}`.
    Key(String),
    /// An item of a set by its value: `v:VALUE`.
    Value(String),
    /// An item of a list by its index: `i:N`. This server never creates it, but keeps one that a client wrote.
    Index(u64),
}

impl PathElement {
    /// Makes the step to a member of an object.
    pub(super) fn field(name: &str) -> Self {
        Self::Field(name.to_owned())
    }

    /// Makes the step to an item by its keys.
    pub(super) fn key(keys: &Map<String, Value>) -> Self {
        Self::Key(value::encode_keys(keys))
    }

    /// Makes the step to an item by its value.
    pub(super) fn value(value: &Value) -> Self {
        Self::Value(value::encode(value))
    }

    /// Reads a step as `fieldsV1` writes it; `None` if it is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "f" => Some(Self::field(rest)),
            "k" => serde_json::from_str(rest).ok().as_ref().map(Self::key),
            "v" => serde_json::from_str(rest).ok().as_ref().map(Self::value),
            "i" => rest.parse().ok().map(Self::Index),
            _ => None,
        }
    }

    /// Returns the place of the step in messages. Follows `PathElement.Compare` of structured-merge-diff.
    pub(super) fn place(&self) -> impl Ord + use<> {
        match self {
            Self::Field(name) => (0, vec![(name.clone(), OrderedValue::new(Value::Null))]),
            Self::Key(keys) => {
                let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
                let keys = keys.into_iter();
                (
                    1,
                    keys.map(|(name, value)| (name, OrderedValue::new(value)))
                        .collect(),
                )
            }
            Self::Value(value) => (2, vec![(String::new(), OrderedValue::parse(value))]),
            Self::Index(index) => (3, vec![(String::new(), OrderedValue::new((*index).into()))]),
        }
    }

    /// Returns the step as `fieldsV1` writes it.
    pub(super) fn encode(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(keys) => format!("k:{keys}"),
            Self::Value(value) => format!("v:{value}"),
            Self::Index(index) => format!("i:{index}"),
        }
    }
}

/// The step as messages show it: `.name`, `[name="c"]`, `[="x"]`, `[0]`.
impl fmt::Display for PathElement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(formatter, ".{name}"),
            Self::Key(keys) => {
                let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
                let shown: Vec<_> = keys
                    .iter()
                    .map(|(name, value)| format!("{name}={}", value::show(value)))
                    .collect();
                write!(formatter, "[{}]", shown.join(","))
            }
            Self::Value(value) => {
                let value = serde_json::from_str(value).unwrap_or_default();
                write!(formatter, "[={}]", value::show(&value))
            }
            Self::Index(index) => write!(formatter, "[{index}]"),
        }
    }
}

/// Returns a whole path as messages show it.
pub(super) fn show(path: &[PathElement]) -> String {
    path.iter().map(PathElement::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_written_and_shown() {
        for (text, shown) in [
            ("f:a.b/c", ".a.b/c"),
            (
                r#"k:{"containerPort":80,"protocol":"TCP"}"#,
                r#"[containerPort=80,protocol="TCP"]"#,
            ),
            (r#"v:"x""#, r#"[="x"]"#),
            ("i:3", "[3]"),
        ] {
            let element = PathElement::parse(text).expect(text);
            assert_eq!(element.encode(), text);
            assert_eq!(element.to_string(), shown);
        }
        let disordered = PathElement::parse(r#"k:{"b":1, "a":2}"#).expect("a key");
        assert_eq!(disordered.encode(), r#"k:{"a":2,"b":1}"#);
        for (read, written) in [
            ("v:5.0", "v:5"),
            ("v:1e3", "v:1000"),
            (r#"v:"a<b""#, r#"v:"a\u003cb""#),
            (r#"k:{"a":"\u0026\b"}"#, r#"k:{"a":"\u0026\u0008"}"#),
            (r#"k:{"\u003c":"<"}"#, r#"k:{"<":"\u003c"}"#),
            ("k:{\"\u{2028}\\b\":1}", "k:{\"\u{2028}\\u0008\":1}"),
            (r#"k:{"<":{"<":["<"]}}"#, r#"k:{"<":{"\u003c":["\u003c"]}}"#),
            (r#"v:{"<":{"&":1}}"#, r#"v:{"\u003c":{"\u0026":1}}"#),
            (r#"v:{"\u2028":["<"]}"#, r#"v:{"\u2028":["\u003c"]}"#),
        ] {
            assert_eq!(PathElement::parse(read).expect(read).encode(), written);
        }
        for text in ["", ".", "x:a", "k:[]", "k:{", "v:", "i:-1", "f"] {
            assert_eq!(PathElement::parse(text), None, "{text}");
        }
    }
}
