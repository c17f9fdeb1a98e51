//! Decoded JSON as Go's `fmt` writes it, where maps are in the order of their names.

use serde_json::{Map, Value};

use crate::go_text::{float, quoted};

/// Writes a value as Go's `%v` does, such as `map[a:[1 <nil>]]`. No item or member is begun after so many bytes.
#[must_use]
pub fn plain(value: &Value, bytes_max: usize) -> String {
    let mut words = String::new();
    write_plain(value, bytes_max, &mut words);
    words
}

/// Writes a value in Go's syntax as `%#v` does, such as `[]interface {}{1, "a"}`. No item or member is begun after so
/// many bytes.
#[must_use]
pub fn syntax(value: &Value, bytes_max: usize) -> String {
    let mut words = String::new();
    write_syntax(value, bytes_max, &mut words);
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

fn write_plain(value: &Value, bytes_max: usize, words: &mut String) {
    if words.len() >= bytes_max {
        return;
    }
    match value {
        Value::Null => words.push_str("<nil>"),
        Value::String(text) => words.push_str(text),
        Value::Bool(_) | Value::Number(_) => write_scalar(value, words),
        Value::Array(items) => {
            words.push('[');
            for (index, item) in items.iter().enumerate() {
                if words.len() >= bytes_max {
                    break;
                }
                if index > 0 {
                    words.push(' ');
                }
                write_plain(item, bytes_max, words);
            }
            words.push(']');
        }
        Value::Object(members) => {
            words.push_str("map[");
            write_members(members, (" ", bytes_max), words, |name, value, words| {
                words.extend([name, ":"]);
                write_plain(value, bytes_max, words);
            });
            words.push(']');
        }
    }
}

fn write_syntax(value: &Value, bytes_max: usize, words: &mut String) {
    if words.len() >= bytes_max {
        return;
    }
    match value {
        Value::Null => words.push_str("interface {}(nil)"),
        Value::String(text) => words.push_str(&quoted(text)),
        Value::Bool(_) | Value::Number(_) => write_scalar(value, words),
        Value::Array(items) => {
            words.push_str("[]interface {}{");
            for (index, item) in items.iter().enumerate() {
                if words.len() >= bytes_max {
                    break;
                }
                if index > 0 {
                    words.push_str(", ");
                }
                write_syntax(item, bytes_max, words);
            }
            words.push('}');
        }
        Value::Object(members) => {
            words.push_str("map[string]interface {}{");
            write_members(members, (", ", bytes_max), words, |name, value, words| {
                words.extend([&quoted(name), ":"]);
                write_syntax(value, bytes_max, words);
            });
            words.push('}');
        }
    }
}

fn write_members(
    members: &Map<String, Value>,
    (between, bytes_max): (&str, usize),
    words: &mut String,
    write: impl Fn(&str, &Value, &mut String),
) {
    for (index, (name, value)) in members.iter().enumerate() {
        if words.len() >= bytes_max {
            break;
        }
        if index > 0 {
            words.push_str(between);
        }
        write(name, value, words);
    }
}

fn write_scalar(value: &Value, words: &mut String) {
    match value.as_f64().filter(|_| !value.is_i64()) {
        Some(number) => words.push_str(&float(number)),
        None => words.push_str(&value.to_string()),
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
