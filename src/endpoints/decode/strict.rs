//! A document as a tree, and the fields that appear in it twice.
//!
//! The last of two fields wins, as in Go; the trees of both serde formats would drop the first
//! silently, hence the visitor here. Nesting is limited by the parsers.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::DuplicateKeyPolicy;

/// How many duplicate fields are told.
const COMPLAINTS_MAX: usize = 100;

/// How many aliases a YAML document may have; objects have none.
const YAML_ALIASES_MAX: usize = 1000;

/// How much all aliases of a YAML document may stand for, in parser events.
const YAML_ALIAS_EVENTS_MAX: usize = 20_000;

/// How many values a YAML document may have; the largest bodies have fewer.
const YAML_NODES_MAX: usize = 1_000_000;

/// A document.
#[derive(Clone, Debug)]
pub(in super::super) struct Decoded {
    /// Its content.
    pub(in super::super) value: Value,
    /// What is wrong with it that does not keep it from being read.
    pub(in super::super) complaints: Vec<String>,
}

/// Reads JSON.
pub(super) fn json(content: &[u8]) -> Result<Decoded, serde_json::Error> {
    let mut complaints = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_slice(content);
    let value = Node {
        path: &Path::Root,
        complaints: &mut complaints,
    }
    .deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(Decoded { value, complaints })
}

/// Reads one YAML document.
pub(super) fn yaml(content: &[u8]) -> Result<Decoded, String> {
    match read_yaml(content, DuplicateKeyPolicy::Error) {
        Ok(value) => Ok(Decoded {
            value,
            complaints: Vec::new(),
        }),
        Err(error @ serde_saphyr::Error::DuplicateMappingKey { .. }) => {
            match read_yaml(content, DuplicateKeyPolicy::LastWins) {
                Ok(value) => Ok(Decoded {
                    value,
                    complaints: vec![error.to_string()],
                }),
                Err(error) => Err(error.to_string()),
            }
        }
        Err(error) => Err(error.to_string()),
    }
}

fn read_yaml(content: &[u8], duplicates: DuplicateKeyPolicy) -> Result<Value, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        duplicate_keys: duplicates,
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_aliases: YAML_ALIASES_MAX,
            max_nodes: YAML_NODES_MAX,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: YAML_ALIAS_EVENTS_MAX,
        },
    };
    serde_saphyr::from_slice_with_options(content, options)
}

/// Where a value is.
enum Path<'a> {
    Root,
    Field(&'a Self, &'a str),
    Index(&'a Self, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Path::Root, name) => formatter.write_str(name),
            Self::Field(parent, name) => write!(formatter, "{parent}.{name}"),
            Self::Index(parent, index) => write!(formatter, "{parent}[{index}]"),
        }
    }
}

/// A value that is to be read.
struct Node<'a> {
    path: &'a Path<'a>,
    complaints: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("number is not finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        loop {
            let path = Path::Index(self.path, values.len());
            let node = Node {
                path: &path,
                complaints: self.complaints,
            };
            match items.next_element_seed(node)? {
                Some(value) => values.push(value),
                None => return Ok(Value::Array(values)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let path = Path::Field(self.path, &name);
            let node = Node {
                path: &path,
                complaints: self.complaints,
            };
            let value = members.next_value_seed(node)?;
            if object.contains_key(&name) {
                if self.complaints.len() >= COMPLAINTS_MAX {
                    return Err(A::Error::custom("too many duplicate fields"));
                }
                self.complaints.push(format!("duplicate field \"{path}\""));
            }
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_are_told_with_their_path() {
        let decoded = json(br#"{"a":[{"b":1,"b":2}],"c":{"d":1,"d":3}}"#).expect("json");
        assert_eq!(
            decoded.complaints,
            ["duplicate field \"a[0].b\"", "duplicate field \"c.d\""]
        );
        assert_eq!(
            decoded.value,
            serde_json::json!({"a": [{"b": 2}], "c": {"d": 3}})
        );
    }

    #[test]
    fn reads_yaml_with_duplicates_and_refuses_bombs() {
        let decoded = yaml(b"a: 1\nb:\n- x\n- 1.5\n- true\n- null\n").expect("yaml");
        assert_eq!(
            decoded.value,
            serde_json::json!({"a": 1, "b": ["x", 1.5, true, null]})
        );
        let decoded = yaml(b"a: 1\na: 2\n").expect("yaml");
        assert_eq!(decoded.value, serde_json::json!({"a": 2}));
        assert_eq!(decoded.complaints.len(), 1);
        let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
        for level in 1..12 {
            let below = level - 1;
            let aliases = vec![format!("*a{below}"); 10].join(",");
            bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
        }
        assert!(yaml(bomb.as_bytes()).is_err());
    }

    #[test]
    fn nesting_is_limited() {
        let deep = "[".repeat(100_000);
        assert!(json(deep.as_bytes()).is_err());
        assert!(yaml(deep.as_bytes()).is_err());
    }
}
