//! Parses YAML into a tree as Go's library does, with its words for errors, and finds keys that one map has twice.
//!
//! The parser's events become the tree; what a scalar says is decided here, since Go reads words, numbers and tags as
//! YAML 1.1 has them. Of two values of one key the last wins.

use std::borrow::Cow;
use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, Span, Tag, YamlVersion};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

use self::scalar::Word;
use self::size::Size;
use crate::go_text::{float, quoted};
use crate::numbers;

mod scalar;
mod size;
mod words;

/// Maximum number of duplicate keys that are reported.
const REPEATED_MAX: usize = 100;

/// Maximum number of levels of a document, as many as of JSON.
const DEPTH_MAX: usize = 127;

/// Maximum number of aliases of a document; Kubernetes objects have none.
const ALIASES_MAX: usize = 1000;

/// Maximum number of values that are kept for aliases or that these stand for, together.
const ALIASED_MAX: usize = 20_000;

/// Maximum number of bytes of the texts of these values, with keys.
const ALIASED_BYTES_MAX: usize = 8 << 20;

/// The error about a value whose members cannot be taken over.
const NO_MERGE: &str = "yaml: map merge requires map or sequence of maps as the value";

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
    let text = text_of(content)?;
    let mut tree = Tree {
        text: &text,
        nodes_left: nodes_max,
        ..Tree::default()
    };
    let options = granit_parser::options! {
        emit_comments: false,
        emit_unresolved_aliases: true,
    };
    for event in Parser::new_from_str_with_options(&text, options) {
        let (event, span) = event.map_err(|error| words::of(&error, &text))?;
        tree.take(event, &span)?;
        if tree.root.is_some() {
            // What follows is not looked at.
            break;
        }
    }
    let mut value = tree.root.unwrap_or_default();
    numbers::normalize(&mut value);
    Ok(Document {
        value,
        repeated: tree.repeated,
    })
}

/// Reads the first document as [`read`] does, without the keys that one map has twice.
///
/// # Errors
/// The message of Go's parser, where it is known.
pub fn value(content: &[u8], nodes_max: usize) -> Result<Value, String> {
    read(content, nodes_max).map(|document| document.value)
}

/// Returns the text of a document in UTF-8, or in UTF-16 with its mark.
fn text_of(content: &[u8]) -> Result<Cow<'_, str>, String> {
    let unit: fn([u8; 2]) -> u16 = match content {
        [0xff, 0xfe, ..] => u16::from_le_bytes,
        [0xfe, 0xff, ..] => u16::from_be_bytes,
        _ => {
            return str::from_utf8(content).map(Cow::Borrowed).map_err(|error| {
                let before = String::from_utf8_lossy(&content[..error.valid_up_to()]);
                let has_control =
                    before.contains(|it: char| it.is_control() && !it.is_whitespace());
                let what = if has_control {
                    words::CONTROL_CHARACTERS
                } else {
                    "yaml: invalid leading UTF-8 octet"
                };
                what.to_owned()
            });
        }
    };
    let (units, rest) = content.as_chunks();
    let units: Vec<u16> = units.iter().copied().map(unit).collect();
    match String::from_utf16(&units) {
        Ok(text) if rest.is_empty() => Ok(Cow::Owned(text)),
        _ => Err("yaml: incomplete UTF-16 character".to_owned()),
    }
}

/// The tree that events become.
#[derive(Default)]
struct Tree<'a> {
    text: &'a str,
    /// The value of the document, once it is complete.
    root: Option<Value>,
    open: Vec<Collection>,
    /// The values of anchors by the parser's numbers. Those that are not complete are not there yet.
    anchored: HashMap<usize, AnchorValue>,
    aliases: usize,
    /// The size of all values that are kept for aliases or that these stand for.
    aliased: Size,
    nodes_left: usize,
    repeated: Vec<String>,
}

/// A list or map that is not complete.
struct Collection {
    items: Items,
    line: usize,
    /// The line of the last key of a map.
    key_line: usize,
    /// The parser's number of its anchor; 0 if it has none.
    anchor: usize,
}

enum Items {
    List(Vec<Value>),
    Map(Map<String, Value>, Option<Key>),
}

/// A key whose value comes next.
enum Key {
    Name {
        name: String,
        /// True for a text, which errors quote.
        is_text: bool,
    },
    /// The members of the value are taken over.
    Merge,
}

/// A value that aliases may stand for.
struct AnchorValue {
    value: Value,
    size: Size,
}

impl Tree<'_> {
    fn take(&mut self, event: Event<'_>, span: &Span) -> Result<(), String> {
        let begin = span.tag_start().unwrap_or(span.start);
        let line = begin.line();
        match event {
            Event::DocumentStart(_, Some(version)) if version != YamlVersion::new(1, 1) => {
                Err(words::OTHER_VERSION.to_owned())
            }
            Event::Scalar(mut text, style, anchor, tag) => {
                self.count(1)?;
                if matches!(style, ScalarStyle::Literal | ScalarStyle::Folded)
                    && self.ends_within_line(span)
                {
                    text = text.strip_suffix('\n').unwrap_or(&text).to_owned().into();
                }
                self.scalar((text, style, tag.as_deref()), anchor, line)
            }
            Event::SequenceStart(_, anchor, _) => self.begin(Items::List(Vec::new()), anchor, line),
            Event::MappingStart(_, anchor, _) => {
                self.begin(Items::Map(Map::new(), None), anchor, line)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => {
                let name = span.slice(self.text).unwrap_or_default();
                self.alias(anchor, name.trim_start_matches('*'), line)
            }
            Event::UnresolvedAlias(name) => {
                Err(format!("yaml: unknown anchor '{name}' referenced"))
            }
            _ => Ok(()),
        }
    }

    /// Returns true if the last line of a block is the last of the document, and has no end: to Go the text has none
    /// then.
    fn ends_within_line(&self, block: &Span) -> bool {
        let lines = block.slice(self.text).unwrap_or_default();
        let last = lines.rsplit(['\n', '\r']).next().unwrap_or_default();
        block.end.byte_offset() == Some(self.text.len()) && !last.trim_matches(' ').is_empty()
    }

    /// Counts values of the document.
    fn count(&mut self, nodes: usize) -> Result<(), String> {
        let left = self.nodes_left.checked_sub(nodes);
        self.nodes_left = left.ok_or("yaml: document contains too many values")?;
        Ok(())
    }

    fn begin(&mut self, items: Items, anchor: usize, line: usize) -> Result<(), String> {
        self.count(1)?;
        if self.awaits_key() {
            return Err("yaml: invalid map key".to_owned());
        }
        self.open.push(Collection {
            items,
            line,
            key_line: line,
            anchor,
        });
        self.check_depth(0)
    }

    fn end(&mut self) -> Result<(), String> {
        let Some(Collection {
            items,
            line,
            anchor,
            ..
        }) = self.open.pop()
        else {
            return Ok(());
        };
        let value = match items {
            Items::List(items) => Value::Array(items),
            Items::Map(members, _) => Value::Object(members),
        };
        self.keep(anchor, &value)?;
        self.put(value, line)
    }

    fn scalar(
        &mut self,
        (text, style, tag): (Cow<'_, str>, ScalarStyle, Option<&Tag>),
        anchor: usize,
        line: usize,
    ) -> Result<(), String> {
        let is_plain = style == ScalarStyle::Plain;
        let tag = tag.map(|tag| [tag.handle(), tag.suffix()].concat());
        let is_merge = scalar::is_merge(&text, is_plain, tag.as_deref());
        let word = scalar::read(text, is_plain, tag.as_deref())?;
        if self.awaits_key() && (is_merge || anchor == 0) {
            let key = if is_merge {
                self.keep(anchor, &"<<".into())?;
                Key::Merge
            } else {
                key_of(word)?
            };
            self.set_key(key, line);
            return Ok(());
        }
        let line = match (style, self.open.last()) {
            // Its place is that of its text, which begins after the mark.
            (ScalarStyle::Literal | ScalarStyle::Folded, Some(map)) => map.key_line,
            _ => line,
        };
        let value = value_of(word)?;
        self.keep(anchor, &value)?;
        self.put(value, line)
    }

    fn alias(&mut self, anchor: usize, name: &str, line: usize) -> Result<(), String> {
        let size = self.anchored.get(&anchor).map(|it| it.size);
        let size = size.ok_or_else(|| format!("yaml: anchor '{name}' value contains itself"))?;
        self.aliases += 1;
        self.count_aliased(size)?;
        self.count(size.nodes)?;
        self.check_depth(size.depth)?;
        let value = &self.anchored[&anchor].value;
        if self.awaits_merge() && !value.is_object() {
            // A list must be written out.
            return Err(NO_MERGE.to_owned());
        }
        self.put(value.clone(), line)
    }

    /// Keeps a value that has an anchor.
    fn keep(&mut self, anchor: usize, value: &Value) -> Result<(), String> {
        if anchor == 0 {
            return Ok(());
        }
        let size = Size::of(value);
        self.count_aliased(size)?;
        let value = value.clone();
        self.anchored.insert(anchor, AnchorValue { value, size });
        Ok(())
    }

    /// Counts values that are kept for aliases or that these stand for, before they are copied.
    fn count_aliased(&mut self, more: Size) -> Result<(), String> {
        self.aliased.nodes += more.nodes;
        self.aliased.bytes += more.bytes;
        if self.aliases > ALIASES_MAX
            || self.aliased.nodes > ALIASED_MAX
            || self.aliased.bytes > ALIASED_BYTES_MAX
        {
            return Err("yaml: document contains excessive aliasing".to_owned());
        }
        Ok(())
    }

    fn check_depth(&self, more: usize) -> Result<(), String> {
        if self.open.len() + more > DEPTH_MAX {
            return Err(format!("yaml: exceeded max depth of {DEPTH_MAX}"));
        }
        Ok(())
    }

    /// Returns true if the next value is a key.
    fn awaits_key(&self) -> bool {
        let last = self.open.last().map(|it| &it.items);
        matches!(last, Some(Items::Map(_, None)))
    }

    /// Returns true if the members of the next value are taken over.
    fn awaits_merge(&self) -> bool {
        let last = self.open.last().map(|it| &it.items);
        matches!(last, Some(Items::Map(_, Some(Key::Merge))))
    }

    fn set_key(&mut self, next: Key, line: usize) {
        let Some(map) = self.open.last_mut() else {
            return;
        };
        map.key_line = line;
        if let Items::Map(_, key) = &mut map.items {
            *key = Some(next);
        }
    }

    /// Puts a complete value where it belongs; `line` is the one where it begins.
    fn put(&mut self, value: Value, line: usize) -> Result<(), String> {
        match self.open.last_mut().map(|it| &mut it.items) {
            None => self.root = Some(value),
            Some(Items::List(items)) => items.push(value),
            Some(Items::Map(members, key)) => match key.take() {
                None => *key = Some(key_of_value(value)?),
                Some(Key::Name { name, is_text }) => {
                    insert(members, (name, is_text), (value, line), &mut self.repeated);
                }
                Some(Key::Merge) => {
                    // What is named first counts, so it comes last.
                    let merged = match value {
                        Value::Array(maps) => maps.into_iter().rev().collect(),
                        value => vec![value],
                    };
                    for map in merged {
                        let Value::Object(map) = map else {
                            return Err(NO_MERGE.to_owned());
                        };
                        for (name, value) in map {
                            insert(members, (name, true), (value, line), &mut self.repeated);
                        }
                    }
                }
            },
        }
        Ok(())
    }
}

/// Sets a member of a map, and adds Go's words if the map has it already.
fn insert(
    members: &mut Map<String, Value>,
    (name, is_text): (String, bool),
    (value, line): (Value, usize),
    repeated: &mut Vec<String>,
) {
    match members.entry(name) {
        Entry::Vacant(place) => {
            place.insert(value);
        }
        Entry::Occupied(mut place) => {
            place.insert(value);
            if repeated.len() < REPEATED_MAX {
                let name = place.key();
                let shown = if is_text { quoted(name) } else { name.clone() };
                repeated.push(format!("line {line}: key {shown} already set in map"));
            }
        }
    }
}

/// Returns the value of a scalar, which JSON has to have.
fn value_of(word: Word) -> Result<Value, String> {
    Ok(match word {
        Word::Null => Value::Null,
        Word::Bool(truth) => truth.into(),
        Word::Int(number) => number.into(),
        Word::Uint(number) => number.into(),
        Word::Text(text) => text.into(),
        Word::Float(number) => {
            let shown = match number {
                _ if number.is_nan() => "NaN",
                _ if number < 0.0 => "-Inf",
                _ => "+Inf",
            };
            let number = Number::from_f64(number);
            number
                .ok_or_else(|| format!("json: unsupported value: {shown}"))?
                .into()
        }
    })
}

/// Returns the key that a scalar is. Go makes texts of numbers and booleans.
fn key_of(word: Word) -> Result<Key, String> {
    let name = match word {
        Word::Text(name) => {
            return Ok(Key::Name {
                name,
                is_text: true,
            });
        }
        Word::Bool(truth) => truth.to_string(),
        Word::Int(number) => number.to_string(),
        Word::Float(number) => float_name(number),
        Word::Null => return Err("unsupported map key of type: %!s(<nil>)".to_owned()),
        Word::Uint(_) => return Err("unsupported map key of type: uint64".to_owned()),
    };
    Ok(Key::Name {
        name,
        is_text: false,
    })
}

/// Returns the key that a float is: its digits are those of 32 bits.
#[expect(clippy::cast_possible_truncation, reason = "Go rounds it too")]
fn float_name(number: f64) -> String {
    let short = number as f32;
    if short.is_nan() {
        return ".nan".to_owned();
    }
    if short.is_infinite() {
        let sign = if short < 0.0 { "-" } else { "" };
        return format!("{sign}.inf");
    }
    float(short.to_string().parse().unwrap_or(number))
}

/// Returns the key that a value with an anchor or an alias is.
fn key_of_value(value: Value) -> Result<Key, String> {
    key_of(match value {
        Value::Null => Word::Null,
        Value::Bool(truth) => Word::Bool(truth),
        Value::String(text) => Word::Text(text),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Word::Int(number),
            (None, Some(number)) => Word::Uint(number),
            (None, None) => Word::Float(number.as_f64().unwrap_or_default()),
        },
        Value::Array(_) | Value::Object(_) => return Err("yaml: invalid map key".to_owned()),
    })
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
    fn values_of_repeated_keys_are_told_where_they_begin() {
        for (text, line) in [
            ("a: 1\na: |\n\n  x\n", 2),
            ("a: 1\na: !!str\n  x\n", 2),
            ("a: 1\na:\n  - x\n", 3),
            ("a: 1\na: {\n  b: 1}\n", 2),
            ("b: &b 1\na: 1\na: *b\n", 3),
        ] {
            let told = format!("line {line}: key \"a\" already set in map");
            assert_eq!(
                read(text.as_bytes()).expect("yaml").repeated,
                [told],
                "{text}"
            );
        }
        let decoded = read(b"1: a\n0x1: b\n").expect("yaml");
        assert_eq!(decoded.repeated, ["line 2: key 1 already set in map"]);
    }

    #[test]
    fn keys_are_texts() {
        let decoded = read(b"yes: 1\n0x10: 2\n.5: 3\n1e6: 4\n.Inf: 5\n0.1234567890123: 6\nx: 7\n");
        assert_eq!(
            decoded.expect("yaml").value,
            serde_json::json!({"true": 1, "16": 2, "0.5": 3, "1e+06": 4, ".inf": 5, "0.12345679": 6, "x": 7})
        );
        for text in [
            "~: 1\n",
            "? [a]\n: 1\n",
            "9223372036854775808: 1\n",
            "a: &a []\n*a : 1\n",
        ] {
            assert!(read(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn members_are_taken_over() {
        for (text, value) in [
            ("{<<: {a: 1}, a: 2}", serde_json::json!({"a": 2})),
            ("{a: 2, <<: {a: 1}}", serde_json::json!({"a": 1})),
            (
                "{<<: [{a: 1}, {a: 2, b: 2}]}",
                serde_json::json!({"a": 1, "b": 2}),
            ),
            (
                "{&x <<: {a: 1}, b: *x}",
                serde_json::json!({"a": 1, "b": "<<"}),
            ),
            ("{\"<<\": {a: 1}}", serde_json::json!({"<<": {"a": 1}})),
            (
                "{b: &b {a: 1}, c: {<<: *b}}",
                serde_json::json!({"b": {"a": 1}, "c": {"a": 1}}),
            ),
        ] {
            assert_eq!(read(text.as_bytes()).expect("yaml").value, value, "{text}");
        }
        for text in [
            "{<<: 1}",
            "{<<: [[{a: 1}]]}",
            "{b: &b [{a: 1}], c: {<<: *b}}",
            "{&a <<: 1}",
        ] {
            assert_eq!(read(text.as_bytes()).expect_err(text), NO_MERGE);
        }
    }

    #[test]
    fn errors_have_the_words_of_go() {
        for (text, words) in [
            ("a: *b", "yaml: unknown anchor 'b' referenced"),
            ("a: &b [*b]", "yaml: anchor 'b' value contains itself"),
            ("a: .inf", "json: unsupported value: +Inf"),
            (
                "a: b: c",
                "yaml: mapping values are not allowed in this context",
            ),
            (
                "a: 1\n b: 2\n",
                "yaml: line 2: mapping values are not allowed in this context",
            ),
            (
                "a:\n  b: 1\n c: 2\n",
                "yaml: line 2: did not find expected key",
            ),
            (
                "a: b\n\tc: d\n",
                "yaml: line 2: found a tab character that violates indentation",
            ),
            ("a: \"\\z\"", "yaml: found unknown escape character"),
            ("a: \u{1}", "yaml: control characters are not allowed"),
        ] {
            assert_eq!(read(text.as_bytes()).expect_err(text), words, "{text:?}");
        }
        let not_utf8 = read(b"a: \xff").expect_err("no UTF-8");
        assert_eq!(not_utf8, "yaml: invalid leading UTF-8 octet");
        assert_eq!(
            read(b"a\0\n\xff").expect_err("a zero"),
            words::CONTROL_CHARACTERS
        );
        let text: Vec<u8> = "a: ä".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let text = [&[0xff, 0xfe], &*text].concat();
        assert_eq!(
            read(&text).expect("yaml").value,
            serde_json::json!({"a": "ä"})
        );
        assert!(read(&text[..text.len() - 1]).is_err());
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
    fn the_text_of_a_block_ends_with_its_last_line() {
        for (text, value) in [
            ("a: |\n  x\n  y", "x\ny"),
            ("a: |\n  x\n  y\n", "x\ny\n"),
            ("a: >\n  x\n  y", "x y"),
            ("a: |+\n  x\n\n  y", "x\n\ny"),
            ("a: |+\n  x\n\n", "x\n\n"),
            ("a: |-\n  x", "x"),
            ("a: |\n  x\n ", "x\n"),
            ("a: |\n  x\n  ", "x\n"),
            ("a: |\n  x\n# c", "x\n"),
            ("a: |", ""),
        ] {
            let decoded = read(text.as_bytes()).expect("yaml");
            assert_eq!(decoded.value, serde_json::json!({"a": value}), "{text:?}");
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

    #[test]
    fn copies_of_long_texts_are_refused() {
        let long = "x".repeat(ALIASED_BYTES_MAX / 100);
        let with = |text: &str, aliases: usize| {
            let aliases = vec!["*a"; aliases].join(",");
            read(format!("a: &a {text}\nb: [{aliases}]\n").as_bytes())
        };
        assert!(with(&long, 90).is_ok());
        for text in [
            long.clone(),
            format!("[{long}]"),
            format!("{{\n  ? {long}\n  : 1}}"),
        ] {
            let why = with(&text, 110).expect_err("too many copies");
            assert_eq!(why, "yaml: document contains excessive aliasing");
        }
    }
}
