//! Values as structured-merge-diff compares, orders, writes and shows them.
//!
//! Numbers are compared by value, whether they are integers or floats. What `fieldsV1` has of a value is written as
//! json-iterator writes it in its form that is compatible with `encoding/json`; that escapes what is special in HTML,
//! and has no short form for a backspace or a form feed.

use std::cmp::Ordering;
use std::io::{self, Write};

use ringwatch_apimachinery::go_text;
use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter, Serializer};
use serde_json::{Map, Number, Value};

/// The characters that json-iterator escapes although JSON does not require it; not in the names of the keys of an
/// item.
const SPECIAL: [char; 5] = ['<', '>', '&', '\u{2028}', '\u{2029}'];

/// Returns true if the values are the same. Follows `Equals` of structured-merge-diff.
pub(super) fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => equal_numbers(one, other),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let mut pairs = one.iter().zip(other);
            one.len() == other.len()
                && pairs.all(|((name, one), (same, other))| name == same && equal(one, other))
        }
        _ => one == other,
    }
}

fn equal_numbers(one: &Number, other: &Number) -> bool {
    match (one.as_i64(), other.as_i64()) {
        (Some(one), Some(other)) => one == other,
        _ => one.as_f64() == other.as_f64(),
    }
}

/// A value in the order of `Compare` of structured-merge-diff. Numbers that only differ as integers, beyond the 53 bits
/// of floats, are in the order of their texts, and so are lists and maps.
#[derive(Debug)]
pub(super) struct OrderedValue(Value);

impl OrderedValue {
    /// Orders a value, in the text that [`encode`] writes.
    pub(super) fn parse(text: &str) -> Self {
        Self(serde_json::from_str(text).unwrap_or_default())
    }

    /// Orders a value.
    pub(super) fn new(value: Value) -> Self {
        Self(value)
    }

    fn rank(&self) -> u8 {
        match self.0 {
            Value::Number(_) => 0,
            Value::String(_) => 1,
            Value::Bool(_) => 2,
            Value::Array(_) => 3,
            Value::Object(_) => 4,
            Value::Null => 5,
        }
    }
}

impl Ord for OrderedValue {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Value::String(one), Value::String(other)) => one.cmp(other),
            (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
            (Value::Number(one), Value::Number(other)) => {
                let float = |it: &Number| it.as_f64().unwrap_or_default() + 0.0;
                let by_value = float(one).total_cmp(&float(other));
                by_value.then_with(|| number(one).cmp(&number(other)))
            }
            (one, two) => {
                let by_type = self.rank().cmp(&other.rank());
                by_type.then_with(|| encode(one).cmp(&encode(two)))
            }
        }
    }
}

impl PartialOrd for OrderedValue {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for OrderedValue {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for OrderedValue {}

/// Returns a value as keys of `fieldsV1` have it: the same text for values that are the same.
pub(super) fn encode(value: &Value) -> String {
    written(value, true)
}

/// Returns the keys of an item as keys of `fieldsV1` have them. Follows `serializePathElementToWriter` of
/// structured-merge-diff, which does not escape what is special in HTML in their names, unlike in those within their
/// values.
pub(super) fn encode_keys(keys: &Map<String, Value>) -> String {
    let keys = keys.iter();
    let keys = keys.map(|(name, value)| format!("{}:{}", written(name, false), encode(value)));
    format!("{{{}}}", keys.collect::<Vec<_>>().join(","))
}

fn written(value: &impl Serialize, escapes_special: bool) -> String {
    let mut out = Vec::new();
    let form = AsInKeys { escapes_special };
    // This cannot fail: a tree is JSON, and memory accepts it.
    let _ = value.serialize(&mut Serializer::with_formatter(&mut out, form));
    String::from_utf8(out).unwrap_or_default()
}

/// Returns a value as paths in messages have it. Follows `ToString` of structured-merge-diff, but with members in the
/// order of their names.
pub(super) fn show(value: &Value) -> String {
    match value {
        Value::String(text) => go_text::quoted(text),
        Value::Number(number) if !number.is_i64() => {
            go_text::float(number.as_f64().unwrap_or_default())
        }
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(show).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(members) => {
            let members = members.iter();
            let members = members.map(|(name, member)| format!("{name}={}", show(member)));
            members.collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// Returns a number as json-iterator writes it. Zero has no sign.
fn number(number: &Number) -> String {
    if number.is_i64() {
        return number.to_string();
    }
    let float = number.as_f64().unwrap_or_default() + 0.0;
    let size = float.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        float.to_string()
    } else {
        go_text::with_exponent(float).0
    }
}

/// The form of values in keys of `fieldsV1`.
struct AsInKeys {
    /// True if the characters that are special in HTML are escaped.
    escapes_special: bool,
}

impl Formatter for AsInKeys {
    fn write_i64<W: ?Sized + Write>(&mut self, out: &mut W, value: i64) -> io::Result<()> {
        write!(out, "{value}")
    }

    fn write_u64<W: ?Sized + Write>(&mut self, out: &mut W, value: u64) -> io::Result<()> {
        out.write_all(number(&value.into()).as_bytes())
    }

    fn write_f64<W: ?Sized + Write>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        let value = Number::from_f64(value).map(|it| number(&it));
        out.write_all(value.unwrap_or_default().as_bytes())
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, special)) = rest
            .match_indices(SPECIAL)
            .next()
            .filter(|_| self.escapes_special)
        {
            out.write_all(&rest.as_bytes()[..at])?;
            for character in special.chars() {
                write!(out, "\\u{:04x}", u32::from(character))?;
            }
            rest = &rest[at + special.len()..];
        }
        out.write_all(rest.as_bytes())
    }

    fn write_char_escape<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        let short = match escape {
            CharEscape::Quote => "\\\"",
            CharEscape::ReverseSolidus => "\\\\",
            CharEscape::Solidus => "/",
            CharEscape::LineFeed => "\\n",
            CharEscape::CarriageReturn => "\\r",
            CharEscape::Tab => "\\t",
            CharEscape::Backspace => "\\u0008",
            CharEscape::FormFeed => "\\u000c",
            CharEscape::AsciiControl(byte) => return write!(out, "\\u{byte:04x}"),
        };
        out.write_all(short.as_bytes())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Returns the value with whole numbers as floats, as far as floats tell them apart.
    pub(crate) fn in_floats(value: &Value) -> Value {
        match value {
            Value::Number(number) => {
                let whole = number.as_i64().filter(|it| it.unsigned_abs() < 1 << 53);
                whole.map_or_else(|| value.clone(), |it| json!(it as f64))
            }
            Value::Array(items) => items.iter().map(in_floats).collect(),
            Value::Object(members) => {
                let members = members.iter();
                let floats = members.map(|(name, member)| (name.clone(), in_floats(member)));
                Value::Object(floats.collect())
            }
            other => other.clone(),
        }
    }

    /// Trees with numbers of all forms.
    pub(crate) fn tree() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            4 => (-3..4_i64).prop_map(Value::from),
            1 => any::<i64>().prop_map(Value::from),
            1 => any::<u64>().prop_map(Value::from),
            1 => any::<f64>().prop_map(Value::from),
            1 => Just(json!(1.5)),
            1 => "[<&\u{8}\u{c}\u{2028}é]{0,3}".prop_map(Value::from),
            1 => prop_oneof![Just(json!(null)), Just(json!(true))],
        ];
        leaf.prop_recursive(2, 12, 3, |inner| {
            let members = prop::collection::btree_map("[a-c<]", inner.clone(), 0..3);
            prop_oneof![
                prop::collection::vec(inner, 0..3).prop_map(Value::from),
                members.prop_map(|it| Value::Object(it.into_iter().collect())),
            ]
        })
    }

    #[test]
    fn values_are_written_as_json_iterator_writes_them() {
        for (value, written, shown) in [
            (json!("a<b>&c"), r#""a\u003cb\u003e\u0026c""#, r#""a<b>&c""#),
            (
                json!("\u{2028}\u{2029}é"),
                r#""\u2028\u2029é""#,
                r#""\u2028\u2029é""#,
            ),
            (
                json!("\u{7}\u{8}\u{c}\u{7f}"),
                "\"\\u0007\\u0008\\u000c\u{7f}\"",
                r#""\a\b\f\x7f""#,
            ),
            (json!("\"\\\n\r\t/"), r#""\"\\\n\r\t/""#, r#""\"\\\n\r\t/""#),
            (
                json!({"<&": "<", "\u{2028}": [{"\u{8}": null}, 1e-7]}),
                r#"{"\u003c\u0026":"\u003c","\u2028":[{"\u0008":null},1e-07]}"#,
                "<&=\"<\"\u{2028}=[\u{8}=null,1e-07]",
            ),
            (json!(5.0), "5", "5"),
            (json!(-0.0), "0", "-0"),
            (json!(1000000), "1000000", "1000000"),
            (json!(1000000.5), "1000000.5", "1.0000005e+06"),
            (json!(1e-7), "1e-07", "1e-07"),
            (json!(0.00001), "0.00001", "1e-05"),
            (json!(1e21), "1e+21", "1e+21"),
            (
                json!(u64::MAX),
                "18446744073709552000",
                "1.8446744073709552e+19",
            ),
            (
                json!(9007199254740993_i64),
                "9007199254740993",
                "9007199254740993",
            ),
            (json!(true), "true", "true"),
        ] {
            assert_eq!(encode(&value), written);
            assert_eq!(show(&value), shown);
        }
    }

    #[test]
    fn numbers_are_compared_by_value() {
        for (one, other, same) in [
            (json!(5), json!(5.0), true),
            (json!({"a": [0]}), json!({"a": [-0.0]}), true),
            (json!(1.5), json!(1), false),
            (json!(5), json!("5"), false),
            (
                json!(9007199254740993_i64),
                json!(9007199254740992_i64),
                false,
            ),
            (json!({"a": 1}), json!({"b": 1}), false),
            (json!([1]), json!([1, 1]), false),
            (json!(null), json!(0), false),
        ] {
            assert_eq!(equal(&one, &other), same, "{one} {other}");
            assert_eq!(equal(&other, &one), same, "{other} {one}");
        }
    }

    #[test]
    fn values_are_ordered_by_type_then_value() {
        let mut values = [
            json!(null),
            json!({}),
            json!([]),
            json!(true),
            json!(false),
            json!("b"),
            json!("a"),
            json!(10),
            json!(9.5),
            json!(-1),
            json!(1e-7),
        ];
        values.sort_by_cached_key(|it| OrderedValue::new(it.clone()));
        assert_eq!(
            json!(values),
            json!([-1, 1e-7, 9.5, 10, "a", "b", false, true, [], {}, null])
        );
    }

    proptest! {
        #[test]
        fn the_form_of_numbers_makes_no_difference(value in tree()) {
            let floats = in_floats(&value);
            prop_assert!(equal(&value, &floats));
            prop_assert_eq!(encode(&value), encode(&floats));
        }

        #[test]
        fn what_is_written_is_read_as_the_same(value in tree()) {
            let text = encode(&value);
            let read: Value = serde_json::from_str(&text).expect("JSON");
            prop_assert!(equal(&read, &value), "{text}");
            prop_assert_eq!(encode(&read), text);
        }

        #[test]
        fn values_with_one_text_are_the_same(one in tree(), other in tree()) {
            if encode(&one) == encode(&other) {
                prop_assert!(equal(&one, &other));
                prop_assert_eq!(OrderedValue::new(one), OrderedValue::new(other));
            }
        }
    }
}
