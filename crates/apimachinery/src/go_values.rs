//! Decoded JSON as Go's `fmt` writes it, where maps are in the order of their names.

use serde_json::Value;

use crate::go_text::{float, quoted};

/// The marks of `%v`.
const PLAIN: Marks = Marks {
    null: "<nil>",
    list_begin: "[",
    map_begin: "map[",
    separator: " ",
    end: ']',
    quotes: false,
};

/// The marks of `%#v`.
const SYNTAX: Marks = Marks {
    null: "interface {}(nil)",
    list_begin: "[]interface {}{",
    map_begin: "map[string]interface {}{",
    separator: ", ",
    end: '}',
    quotes: true,
};

/// The marks around and between values by which one of Go's forms differs from the other.
struct Marks {
    null: &'static str,
    list_begin: &'static str,
    map_begin: &'static str,
    /// The mark between two items or members.
    separator: &'static str,
    /// The end of a list or a map.
    end: char,
    /// True if texts and names are quoted.
    quotes: bool,
}

impl Marks {
    fn write_text(&self, text: &str, words: &mut String) {
        if self.quotes {
            words.push_str(&quoted(text));
        } else {
            words.push_str(text);
        }
    }
}

/// Writes a value as Go's `%v` does, such as `map[a:[1 <nil>]]`. No item or member is begun after so many bytes.
#[must_use]
pub fn plain(value: &Value, bytes_max: usize) -> String {
    let mut words = String::new();
    write(value, &PLAIN, bytes_max, &mut words);
    words
}

/// Writes a value in Go's syntax as `%#v` does, such as `[]interface {}{1, "a"}`. No item or member is begun after so
/// many bytes.
#[must_use]
pub fn syntax(value: &Value, bytes_max: usize) -> String {
    let mut words = String::new();
    write(value, &SYNTAX, bytes_max, &mut words);
    words
}

/// Returns Go's name of the type of a value, as `%T` writes it.
#[must_use]
pub fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Writes a value with the marks of a form.
fn write(value: &Value, marks: &Marks, bytes_max: usize, words: &mut String) {
    if words.len() >= bytes_max {
        return;
    }
    match value {
        Value::Null => words.push_str(marks.null),
        Value::String(text) => marks.write_text(text, words),
        Value::Bool(_) | Value::Number(_) => match value.as_f64().filter(|_| !value.is_i64()) {
            Some(number) => words.push_str(&float(number)),
            None => words.push_str(&value.to_string()),
        },
        Value::Array(items) => {
            words.push_str(marks.list_begin);
            for (index, item) in items.iter().enumerate() {
                if words.len() >= bytes_max {
                    break;
                }
                if index > 0 {
                    words.push_str(marks.separator);
                }
                write(item, marks, bytes_max, words);
            }
            words.push(marks.end);
        }
        Value::Object(members) => {
            words.push_str(marks.map_begin);
            for (index, (name, value)) in members.iter().enumerate() {
                if words.len() >= bytes_max {
                    break;
                }
                if index > 0 {
                    words.push_str(marks.separator);
                }
                marks.write_text(name, words);
                words.push(':');
                write(value, marks, bytes_max, words);
            }
            words.push(marks.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_written_as_go_prints_them() {
        let value = json!({"a": [1, "x", null, {"b": true}], "c": 1e6, "d": 18_446_744_073_709_551_615_u64});
        assert_eq!(
            plain(&value, usize::MAX),
            "map[a:[1 x <nil> map[b:true]] c:1e+06 d:1.8446744073709552e+19]"
        );
        let list =
            r#"[]interface {}{1, "x", interface {}(nil), map[string]interface {}{"b":true}}"#;
        assert_eq!(syntax(&value["a"], usize::MAX), list);
        assert_eq!(
            [json!(5.0), json!(1.5), json!("\u{7}")].map(|it| syntax(&it, usize::MAX)),
            ["5", "1.5", r#""\a""#]
        );
        assert_eq!(go_type(&value["a"]), "[]interface {}");
        assert_eq!(plain(&json!(["ab", {"c": "d", "e": 1}, 1]), 4), "[ab ]");
        assert_eq!(
            syntax(&json!([{"long": 1, "e": 1}, 1]), 40)
                .matches("map")
                .count(),
            1
        );
        assert!(plain(&Value::from(vec!["a"; 1000]), 100).len() < 110);
    }
}
