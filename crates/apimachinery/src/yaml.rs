//! Parses YAML into a tree as Go's libraries do, with their words for errors, and reports keys that one map has twice.
//!
//! The last of two wins. Go reports such keys by the lines of their values, so a document with repeated keys is parsed
//! once more to find the lines.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::{DuplicateKeyPolicy, Spanned};

use crate::numbers;

/// Maximum number of duplicate keys that are reported.
const REPEATED_MAX: usize = 100;

/// Maximum number of aliases of a document; Kubernetes objects have none.
const ALIASES_MAX: usize = 1000;

/// Maximum number of parser events that all aliases of a document may expand to.
const ALIAS_EVENTS_MAX: usize = 20_000;

/// A document, and the keys that its maps have twice.
#[derive(Debug)]
pub struct Document {
    /// The tree; of two values of one key it has the last. Whole numbers are integers however they were written, since
    /// Go turns YAML into JSON first.
    pub value: Value,
    /// Go's words about keys that one map has twice, in their order; at most 100.
    pub repeated: Vec<String>,
}

/// Reads the first document, which may be empty, and finds keys that one map has twice. Others that follow are not
/// looked at, as by Go's library. It may have `nodes_max` values at most.
///
/// # Errors
/// The message of Go's parser, where it is known.
pub fn read(content: &[u8], nodes_max: usize) -> Result<Document, String> {
    match tree(content, nodes_max, DuplicateKeyPolicy::Error) {
        Err(Unreadable::Parsing(serde_saphyr::Error::DuplicateMappingKey { .. })) => Ok(Document {
            value: value(content, nodes_max)?,
            repeated: repeated_keys(content, nodes_max),
        }),
        read => Ok(Document {
            value: read.map_err(Unreadable::into_go_words)?,
            repeated: Vec::new(),
        }),
    }
}

/// Reads the first document as [`read`] does, and does not look for keys that one map has twice.
///
/// # Errors
/// The message of Go's parser, where it is known.
pub fn value(content: &[u8], nodes_max: usize) -> Result<Value, String> {
    let value = tree(content, nodes_max, DuplicateKeyPolicy::LastWins);
    value.map_err(Unreadable::into_go_words)
}

/// The reason why a document cannot be read.
enum Unreadable {
    /// It says that it is of another version of YAML.
    OtherVersion,
    Parsing(serde_saphyr::Error),
}

impl Unreadable {
    fn into_go_words(self) -> String {
        match self {
            Self::OtherVersion => "yaml: found incompatible YAML document".to_owned(),
            Self::Parsing(error) => in_go_words(&error),
        }
    }
}

/// Returns true if a directive before the first document says that it is of another version of YAML than 1.1, which
/// Go's parser refuses.
fn is_of_another_version(content: &[u8]) -> bool {
    let mut lines = content.split(|byte| *byte == b'\n');
    let directive = lines
        .by_ref()
        .take_while(|line| matches!(line.first(), None | Some(b'%' | b'#' | b'\r')))
        .find_map(|line| line.strip_prefix(b"%YAML "));
    directive.is_some_and(|version| version.trim_ascii() != b"1.1")
}

/// Returns an error as Go's libraries begin it: with the line, which stands at the end here. The commonest, a bracket
/// that is not closed, has their words too.
fn in_go_words(error: &serde_saphyr::Error) -> String {
    let text = error.to_string();
    let (what, place) = text.rsplit_once(" at line ").unwrap_or((&text, ""));
    let number = what.strip_prefix("non-finite float `");
    if let Some(number) = number.and_then(|it| it.split('`').next()) {
        let number = match number.to_ascii_lowercase().trim_start_matches(['+', '-']) {
            ".nan" => "NaN",
            _ if number.starts_with('-') => "-Inf",
            _ => "+Inf",
        };
        return format!("json: unsupported value: {number}");
    }
    let what = match what {
        "unclosed bracket '{'" => "did not find expected ',' or '}'",
        "unclosed bracket '['" => "did not find expected ',' or ']'",
        other if other.starts_with("unexpected character: ") => {
            "found character that cannot start any token"
        }
        other => other,
    };
    let line = place.split(',').next().filter(|line| !line.is_empty());
    let line = line
        .map(|line| format!("line {line}: "))
        .unwrap_or_default();
    format!("yaml: {line}{what}")
}

fn options(nodes_max: usize, duplicates: DuplicateKeyPolicy) -> serde_saphyr::Options {
    serde_saphyr::options! {
        duplicate_keys: duplicates,
        with_snippet: false,
        // Go reads `0400` as YAML 1.1 does.
        legacy_octal_numbers: true,
        budget: serde_saphyr::budget! {
            max_aliases: ALIASES_MAX,
            max_nodes: nodes_max,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: ALIAS_EVENTS_MAX,
        },
    }
}

fn tree(
    content: &[u8],
    nodes_max: usize,
    duplicates: DuplicateKeyPolicy,
) -> Result<Value, Unreadable> {
    if is_of_another_version(content) {
        return Err(Unreadable::OtherVersion);
    }
    let mut first = None;
    let read = serde_saphyr::with_deserializer_from_slice_with_options(
        content,
        options(nodes_max, duplicates),
        |deserializer| {
            first = Some(Value::deserialize(deserializer)?);
            Ok(())
        },
    );
    // An error after the first document is one of what is not looked at.
    let mut value = match (first, read) {
        (Some(value), _) => value,
        (None, read) => read.map(|()| Value::Null).map_err(Unreadable::Parsing)?,
    };
    numbers::normalize(&mut value);
    Ok(value)
}

/// Returns the first keys that a readable document repeats, in its order.
fn repeated_keys(content: &[u8], nodes_max: usize) -> Vec<String> {
    let mut repeated = Vec::new();
    let read = serde_saphyr::with_deserializer_from_slice_with_options(
        content,
        options(nodes_max, DuplicateKeyPolicy::LastWins),
        |deserializer| Node(&mut repeated).deserialize(deserializer),
    );
    // It has been parsed before in the same way, so this fails for what follows alone, or because there are enough.
    drop(read);
    repeated
}

/// The seed that collects the complaints about a value's keys; it gives the line of the first key, if the value is a
/// map.
struct Node<'a>(&'a mut Vec<String>);

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Option<u64>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Option<u64>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element_seed(Node(self.0))?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut first_line = None;
        let mut seen = std::collections::BTreeSet::new();
        while let Some(key) = members.next_key::<Spanned<String>>()? {
            let line = key.referenced.line();
            first_line.get_or_insert(line);
            if self.0.len() >= REPEATED_MAX {
                return Err(serde::de::Error::custom("no more are reported"));
            }
            let inner = members.next_value_seed(Node(self.0))?;
            if seen.contains(&key.value) {
                let (line, name) = (inner.unwrap_or(line), &key.value);
                self.0
                    .push(format!("line {line}: key {name:?} already set in map"));
            }
            seen.insert(key.value);
        }
        Ok(first_line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES_MAX: usize = 100_000;

    fn read(content: &[u8]) -> Result<Document, String> {
        super::read(content, NODES_MAX)
    }

    #[test]
    fn repeated_keys_are_told_by_line() {
        let decoded = read(b"a: 1\nb:\n- x\n- 1.5\n- true\n- null\n").expect("yaml");
        assert_eq!(
            decoded.value,
            serde_json::json!({"a": 1, "b": ["x", 1.5, true, null]})
        );
        assert!(decoded.repeated.is_empty());
        let text = "\na: 1\na: 2\nb:\n- c: 1\n  d: x\n  c:\n    e: true\n    e: null\nb: []\n";
        let decoded = read(text.as_bytes()).expect("yaml");
        assert_eq!(decoded.value, serde_json::json!({"a": 2, "b": []}));
        assert_eq!(
            decoded.repeated,
            [
                "line 3: key \"a\" already set in map",
                "line 9: key \"e\" already set in map",
                "line 8: key \"c\" already set in map",
                "line 10: key \"b\" already set in map",
            ]
        );
        let twice = "a: 1\n".repeat(2 * REPEATED_MAX);
        let decoded = read(twice.as_bytes()).expect("yaml");
        assert_eq!(decoded.repeated.len(), REPEATED_MAX);
    }

    #[test]
    fn the_first_document_is_taken_whatever_follows() {
        for text in [
            "a: 1\n---\n",
            "---\na: 1\n---\nb: 2\n",
            "a: 1\n---\n- {\n",
            "a: 1\n...\n",
        ] {
            let decoded = read(text.as_bytes()).expect("yaml");
            assert_eq!(decoded.value, serde_json::json!({"a": 1}), "{text:?}");
        }
        let twice = read(b"a: 1\na: 2\n---\nb: 2\n").expect("yaml");
        assert_eq!(twice.value, serde_json::json!({"a": 2}));
        assert_eq!(twice.repeated.len(), 1);
        assert!(read(b"a: 1\nb\n---\nc: 2\n").is_err());
        for empty in ["---\n---\na: 1\n", "null\n---\na: 1\n"] {
            let decoded = read(empty.as_bytes()).expect("yaml");
            assert_eq!(decoded.value, Value::Null, "{empty:?}");
        }
    }

    #[test]
    fn documents_of_another_version_are_refused() {
        for (text, is_read) in [
            ("%YAML 1.1\n---\na: 1\n", true),
            ("# A comment.\n\n%YAML 1.2\n---\na: 1\n", false),
            ("%YAML 1.2\n---\n{}\n", false),
            ("a: |\n  x\n%YAML 1.2\n", true),
        ] {
            let why = read(text.as_bytes()).err();
            let expected = (!is_read).then_some("yaml: found incompatible YAML document");
            assert_eq!(why.as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn numbers_are_read_as_go_reads_them() {
        let decoded =
            read(b"- 0400\n- 0644\n- 0o17\n- 0x1f\n- 0\n- '0400'\n- 5.0\n- 1e3\n- -0.0\n- 1.5\n")
                .expect("yaml");
        assert_eq!(
            decoded.value,
            serde_json::json!([256, 420, 15, 31, 0, "0400", 5, 1000, 0, 1.5])
        );
    }

    #[test]
    fn bombs_and_deep_nesting_are_refused() {
        let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
        for level in 1..12 {
            let below = level - 1;
            let aliases = vec![format!("*a{below}"); 10].join(",");
            bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
        }
        assert!(read(bomb.as_bytes()).is_err());
        assert!(read("[".repeat(100_000).as_bytes()).is_err());
    }
}
