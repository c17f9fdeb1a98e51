//! JSON trees as YAML in blocks, quoted as kube-apiserver's YAML writer does.
//!
//! The hard part is when text needs quotes: double quotes if it would otherwise be read as another type (`no`, `1e3`, a
//! date), single quotes if the syntax requires them (`- a`, `a: b`). Where kube-apiserver omits quotes because its own
//! parser reads text (`1e3`), they are written nevertheless, since other parsers read a number. Text goes on in another
//! line at the first space behind column 80.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::indent::indented_max;

/// Indentation of a block, in spaces.
const INDENT: usize = 2;

/// The column behind which a space of a text becomes the end of its line.
const COLUMN_MAX: usize = 80;

/// Keys of more bytes are written with a question mark, as YAML's explicit keys.
const SIMPLE_KEY_BYTES_MAX: usize = 128;

/// Words that YAML reads as other types than text unless they are quoted.
const RESERVED: &[&str] = &[
    "", "~", "<<", "null", "Null", "NULL", "true", "True", "TRUE", "false", "False", "FALSE", "y",
    "Y", "yes", "Yes", "YES", "n", "N", "no", "No", "NO", "on", "On", "ON", "off", "Off", "OFF",
];

/// The way in which text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Literal,
}

/// A text of bounded length, which stops growing when it becomes too long.
struct Text {
    written: String,
    /// Maximum number of bytes that it may have.
    bytes_max: usize,
}

impl Text {
    fn new(begin: &str, bytes_max: usize) -> Self {
        Self {
            written: begin.to_owned(),
            bytes_max,
        }
    }

    fn push(&mut self, char: char) {
        self.written.push(char);
    }

    fn push_str(&mut self, text: &str) {
        self.written.push_str(text);
    }

    /// Returns the number of characters on the last line.
    fn column(&self) -> usize {
        let line = self.written.rsplit('\n').next().unwrap_or_default();
        line.chars().count()
    }

    fn is_too_long(&self) -> bool {
        self.written.len() > self.bytes_max
    }

    /// Returns the text, or if it became too long the value as JSON, which is YAML as well.
    fn or_json(self, begin: &str, value: &Value) -> String {
        if self.is_too_long() {
            format!("{begin}{value}\n")
        } else {
            self.written
        }
    }
}

/// Writes a document that has so many bytes in JSON.
pub(crate) fn yaml(value: &Value, json_bytes: usize) -> String {
    let mut out = Text::new("", indented_max(json_bytes));
    match value {
        Value::Object(members) if !members.is_empty() => mapping(&mut out, members, 0),
        Value::Array(items) if !items.is_empty() => sequence(&mut out, items, 0),
        scalar => leaf(&mut out, scalar, 0),
    }
    out.or_json("", value)
}

/// Writes a document up to the items of one of its lists, and the rest behind them. The document has that list, empty.
pub(crate) fn yaml_around(
    document: &Map<String, Value>,
    list: &str,
    is_empty: bool,
) -> (String, String) {
    let part = |wanted: Ordering| {
        let members = document.iter();
        let members = members.filter(|(name, _)| name.as_str().cmp(list) == wanted);
        let members: Map<_, _> = members
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let mut out = Text::new("", usize::MAX);
        mapping(&mut out, &members, 0);
        out
    };
    let (mut before, after) = (part(Ordering::Less), part(Ordering::Greater));
    words(&mut before, list, None);
    before.push_str(if is_empty { ": []\n" } else { ":\n" });
    (before.written, after.written)
}

/// Encodes an item of a list in YAML. `json_bytes` is its length in JSON, which bounds that of the text.
pub(crate) fn yaml_item(value: &Value, json_bytes: usize) -> String {
    const MARK: &str = "- ";
    let mut out = Text::new(MARK, indented_max(json_bytes));
    item(&mut out, value, 0);
    out.or_json(MARK, value)
}

/// Writes members, the first of them where the text stands.
fn mapping(out: &mut Text, members: &Map<String, Value>, depth: usize) {
    for (index, (key, value)) in members.iter().enumerate() {
        if out.is_too_long() {
            return;
        }
        if index > 0 {
            spaces(out, depth);
        }
        if key.len() > SIMPLE_KEY_BYTES_MAX {
            out.push_str("? ");
            words(out, key, Some(depth + INDENT));
            out.push('\n');
            spaces(out, depth);
            out.push_str(": ");
            item(out, value, depth);
            continue;
        }
        words(out, key, None);
        out.push(':');
        match value {
            Value::Object(members) if !members.is_empty() => {
                out.push('\n');
                spaces(out, depth + INDENT);
                mapping(out, members, depth + INDENT);
            }
            Value::Array(items) if !items.is_empty() => {
                out.push('\n');
                spaces(out, depth);
                sequence(out, items, depth);
            }
            scalar => {
                out.push(' ');
                leaf(out, scalar, depth);
            }
        }
    }
}

/// Writes items, the first of them where the text stands.
fn sequence(out: &mut Text, items: &[Value], depth: usize) {
    for (index, value) in items.iter().enumerate() {
        if out.is_too_long() {
            return;
        }
        if index > 0 {
            spaces(out, depth);
        }
        out.push_str("- ");
        item(out, value, depth);
    }
}

/// Writes the value after an indicator of two characters on the same line.
fn item(out: &mut Text, value: &Value, depth: usize) {
    match value {
        Value::Object(members) if !members.is_empty() => mapping(out, members, depth + INDENT),
        Value::Array(items) if !items.is_empty() => sequence(out, items, depth + INDENT),
        scalar => leaf(out, scalar, depth),
    }
}

/// Writes a scalar or empty collection, to the end of its line.
fn leaf(out: &mut Text, value: &Value, depth: usize) {
    match value {
        Value::Object(_) => out.push_str("{}"),
        Value::Array(_) => out.push_str("[]"),
        Value::String(text) if style(text) == Style::Literal => {
            literal(out, text, depth + INDENT);
            return;
        }
        Value::String(text) => words(out, text, Some(depth + INDENT)),
        other => out.push_str(&other.to_string()),
    }
    out.push('\n');
}

/// Writes lines as they are, in a block of their own.
fn literal(out: &mut Text, text: &str, depth: usize) {
    out.push('|');
    if text.starts_with([' ', '\n']) {
        out.push_str(&INDENT.to_string());
    }
    let body = text.strip_suffix('\n');
    match body {
        None => out.push('-'),
        Some(body) if body.is_empty() || body.ends_with('\n') => out.push('+'),
        Some(_) => {}
    }
    out.push('\n');
    for line in body.unwrap_or(text).split('\n') {
        if out.is_too_long() {
            return;
        }
        if !line.is_empty() {
            spaces(out, depth);
            out.push_str(line);
        }
        out.push('\n');
    }
}

/// Writes text within a line, or in several with this indentation.
fn words(out: &mut Text, text: &str, indent: Option<usize>) {
    let style = match style(text) {
        Style::Literal => Style::DoubleQuoted,
        style => style,
    };
    let quote = match style {
        Style::SingleQuoted => "'",
        Style::DoubleQuoted => "\"",
        Style::Plain | Style::Literal => "",
    };
    out.push_str(quote);
    let mut column = out.column();
    let mut after_space = false;
    for (at, char) in text.char_indices() {
        let rest = &text[at + char.len_utf8()..];
        let breaks =
            char == ' ' && column > COLUMN_MAX && !after_space && can_break(style, at, rest);
        after_space = char == ' ';
        match indent.filter(|_| breaks) {
            Some(indent) => {
                out.push('\n');
                spaces(out, indent);
                column = indent;
                if rest.starts_with(' ') {
                    out.push('\\');
                    column += 1;
                }
            }
            None => {
                let begin = out.written.len();
                match style {
                    Style::DoubleQuoted => escaped(out, char),
                    Style::SingleQuoted if char == '\'' => out.push_str("''"),
                    _ => out.push(char),
                }
                column += out.written[begin..].chars().count();
            }
        }
    }
    out.push_str(quote);
}

/// Returns true if a line may end at a space of a text, `at` its place, before the `rest`.
fn can_break(style: Style, at: usize, rest: &str) -> bool {
    let is_inner = at > 0 && !rest.is_empty();
    match style {
        Style::Plain => !rest.starts_with(' '),
        Style::SingleQuoted => is_inner && !rest.starts_with(' '),
        Style::DoubleQuoted | Style::Literal => is_inner,
    }
}

/// Writes a character between double quotes.
fn escaped(out: &mut Text, char: char) {
    let letter = match char {
        '"' | '\\' => char,
        '\0' => '0',
        '\x07' => 'a',
        '\x08' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\x0b' => 'v',
        '\x0c' => 'f',
        '\r' => 'r',
        '\x1b' => 'e',
        '\u{85}' => 'N',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        _ if is_printable(char) => {
            out.push(char);
            return;
        }
        _ => {
            let code = u32::from(char);
            out.push_str(&match code {
                0..=0xff => format!("\\x{code:02X}"),
                0x100..=0xffff => format!("\\u{code:04X}"),
                _ => format!("\\U{code:08X}"),
            });
            return;
        }
    };
    out.push('\\');
    out.push(letter);
}

fn style(text: &str) -> Style {
    if !text.chars().all(|char| char == '\n' || is_printable(char)) {
        return Style::DoubleQuoted;
    }
    if text.contains('\n') {
        let exact = !text.contains(" \n") && !text.ends_with(' ');
        return if exact {
            Style::Literal
        } else {
            Style::DoubleQuoted
        };
    }
    if RESERVED.contains(&text) || is_numeric(text) || is_date(text) {
        return Style::DoubleQuoted;
    }
    if is_syntax(text) {
        Style::SingleQuoted
    } else {
        Style::Plain
    }
}

/// Returns true if a parser would read the text as syntax.
fn is_syntax(text: &str) -> bool {
    let mut chars = text.chars();
    let first = chars.next().unwrap_or(' ');
    let alone = chars.next().is_none_or(|second| second == ' ');
    text.starts_with(' ')
        || text.ends_with([' ', ':'])
        || text.starts_with("---")
        || text.starts_with("...")
        || "#,[]{}&*!|>'\"%@`".contains(first)
        || "-?:".contains(first) && alone
        || text.contains(": ")
        || text.contains(" #")
}

/// Returns true if a character need not be escaped.
fn is_printable(char: char) -> bool {
    matches!(char, ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}')
        && !matches!(char, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

/// Returns true if some reader takes the text for a number: any base, infinities, and base 60 (`1:30`).
fn is_numeric(text: &str) -> bool {
    let text = text.replace('_', "").to_ascii_lowercase();
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(&text);
    if matches!(unsigned, ".inf" | ".nan") {
        return true;
    }
    let based = [("0x", 16), ("0o", 8), ("0b", 2)];
    let digits = based.iter().find_map(|(prefix, base)| {
        let digits = unsigned.strip_prefix(prefix)?;
        Some((digits, *base))
    });
    if let Some((digits, base)) = digits {
        return !digits.is_empty() && digits.chars().all(|char| char.is_digit(base));
    }
    let mut sixties = unsigned.split(':');
    let head = sixties.next().unwrap_or_default();
    if !all_digits(head) || !unsigned.contains(':') {
        return is_decimal(unsigned);
    }
    sixties.all(is_decimal)
}

/// Digits with at most one point and an exponent.
fn is_decimal(text: &str) -> bool {
    let (number, exponent) = match text.split_once('e') {
        Some((number, exponent)) => (number, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.chars().all(|char| char.is_ascii_digit());
    let exponent = exponent.map(|it| it.strip_prefix(['-', '+']).unwrap_or(it));
    digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(all_digits)
}

fn all_digits(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|char| char.is_ascii_digit())
}

/// Returns true if the text looks like a date, alone or with a time.
fn is_date(text: &str) -> bool {
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let parts: Vec<&str> = date.split('-').collect();
    let [year, month, day] = parts.as_slice() else {
        return false;
    };
    let short = |part: &str| all_digits(part) && part.len() <= 2;
    let hour = time.get(1..).and_then(|rest| rest.chars().next());
    year.len() == 4
        && all_digits(year)
        && short(month)
        && short(day)
        && (time.is_empty() || hour.is_some_and(|char| char.is_ascii_digit()))
}

fn spaces(out: &mut Text, count: usize) {
    out.written.extend(std::iter::repeat_n(' ', count));
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_list_in_pieces_is_the_list() {
        let item = serde_json::json!({"cells": ["a", 1], "object": {"metadata": {"name": "x"}}});
        let table = serde_json::json!({"kind": "Table", "apiVersion": "v1", "zone": [1],
            "metadata": {}, "columnDefinitions": [{"name": "Name"}], "rows": []});
        for count in 0..3 {
            let around = table.as_object().expect("an object");
            let (before, after) = yaml_around(around, "rows", count == 0);
            let items = yaml_item(&item, usize::MAX).repeat(count);
            let mut whole = table.clone();
            whole["rows"] = vec![item.clone(); count].into();
            assert_eq!(before + &items + &after, written(&whole));
        }
    }

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn written(value: &Value) -> String {
        yaml(value, value.to_string().len())
    }

    #[test]
    fn what_indentation_would_make_much_longer_is_json() {
        let deep = |inner: Value| (0..90).fold(inner, |inner, _| json!({"a": inner}));
        for inner in [json!(vec![1; 10_000]), json!("a\n".repeat(10_000))] {
            let value = deep(inner);
            assert_eq!(written(&value), format!("{value}\n"));
            let bytes = value.to_string().len();
            assert_eq!(yaml_item(&value, bytes), format!("- {value}\n"));
        }
        assert!(written(&deep(json!(1))).ends_with("a: 1\n"));
    }

    #[test]
    fn blocks_are_laid_out_as_kubectl_users_know_them() {
        let value = json!({"data": {"a": "one\ntwo\n", "b": "one\n\ntwo"}, "metadata": {
            "creationTimestamp": "2026-11-21T03:16:14Z", "managedFields": [{"fieldsV1": {
            "f:data": {".": {}, "f:a": {}}}, "manager": "golden"}], "resourceVersion": "244"},
            "list": [[1, 2], [], {}, null, true]});
        assert_eq!(
            written(&value),
            "data:\n  a: |\n    one\n    two\n  b: |-\n    one\n\n    two\n\
             list:\n- - 1\n  - 2\n- []\n- {}\n- null\n- true\n\
             metadata:\n  creationTimestamp: \"2026-11-21T03:16:14Z\"\n  managedFields:\n  \
             - fieldsV1:\n      f:data:\n        .: {}\n        f:a: {}\n    manager: golden\n  \
             resourceVersion: \"244\"\n"
        );
    }

    #[test]
    fn text_is_quoted_where_it_must_be() {
        for plain in [
            ".",
            "f:data",
            "a b",
            "10.0.0.1",
            "a#b",
            "-a",
            "v1",
            "100m",
            "0.5Gi",
            "=",
            "1-2",
            "k:{\"name\":\"c\"}",
            "nginx:1.27",
            "é",
            "12:ab",
            "2026-01-02-x",
            "e5",
        ] {
            assert_eq!(style(plain), Style::Plain, "{plain}");
        }
        for single in [
            "- a", "a: b", "a:", "*", "'a", " a", "a ", "a #b", "---", "{a", "@a", "-", "?",
        ] {
            assert_eq!(style(single), Style::SingleQuoted, "{single}");
        }
        for double in [
            "",
            "no",
            "Y",
            "~",
            "1",
            "-1.5",
            "1e5",
            "0x1F",
            "1_000",
            "12:30",
            "2026-01-02",
            "2026-1-2 3:04:05",
            ".inf",
            "a\tb",
            "a \nb",
            "😀",
        ] {
            assert_eq!(style(double), Style::DoubleQuoted, "{double}");
        }
        let mut out = Text::new("", usize::MAX);
        words(&mut out, "\"\\\t\0\u{1}\u{2028}😀é", None);
        assert_eq!(out.written, "\"\\\"\\\\\\t\\0\\x01\\L\\U0001F600é\"");
    }

    #[test]
    fn lines_end_at_the_first_space_behind_column_80() {
        let causes = json!({"details": {"causes": [{"field": "resourceVersionMatch", "message":
            "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"}]},
            "message": "the object has been modified; please apply your changes to the latest version and try"});
        let text = "details:\n  causes:\n  - field: resourceVersionMatch\n    message: 'Forbidden: \
            resourceVersionMatch is forbidden unless resourceVersion\n      is provided'\nmessage: the object has \
            been modified; please apply your changes to the latest version\n  and try\n";
        assert_eq!(written(&causes), text);
        let long = "x".repeat(90);
        for (value, expected) in [
            (format!("{long} y"), format!("{long}\n  y\n")),
            (format!("{long}  y"), format!("{long}  y\n")),
            (format!("{long} y "), format!("'{long}\n  y '\n")),
            (format!("{long}\t  y"), format!("\"{long}\\t\n  \\ y\"\n")),
        ] {
            assert_eq!(written(&json!(value)), expected);
            let read: String = serde_saphyr::from_str(&expected).expect("YAML");
            assert_eq!(read, value);
        }
        assert_eq!(
            written(&json!({format!("{} y z", "x".repeat(90)): 1}))
                .lines()
                .count(),
            1
        );
    }

    #[test]
    fn long_keys_are_explicit() {
        let key = "k".repeat(129);
        let value = json!({"a": {&key: {"b": 1, "c": [2]}}});
        let text = written(&value);
        assert_eq!(text, format!("a:\n  ? {key}\n  : b: 1\n    c:\n    - 2\n"));
        let read: Value = serde_saphyr::from_str(&text).expect("YAML");
        assert_eq!(read, value);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            texts in proptest::collection::vec("[-a0-9 :#'\"{}\\[\\]\n\\\\.,?&*!|>%@`~_+enoxT\t]{0,8}|\\PC{0,6}", 1..6),
        ) {
            let members: Map<String, Value> = texts
                .iter()
                .map(|text| (text.clone(), json!([text, {"in": text}, [text]])))
                .collect();
            let value = Value::Object(members);
            let text = written(&value);
            let read: Value = serde_saphyr::from_str(&text)
                .map_err(|error| TestCaseError::fail(format!("{error}: {text}")))?;
            prop_assert_eq!(read, value, "{}", text);
        }
    }
}
