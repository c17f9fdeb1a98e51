//! JSON in annotations, as kube-apiserver reads it into structs whose members have the names that they have in Go.

use ringwatch_apimachinery::go_json;
use serde_json::{Map, Value};

/// The name of a member, and its type in Go.
pub(crate) type Member = (&'static str, &'static str);

/// Reads a list of structs of a Go type, of which these members count. The letters of their names may be small or
/// capital. The error has Go's words.
pub(crate) fn structs(text: &str, go_type: &str, members: &[Member]) -> Result<Value, String> {
    let items = match serde_json::from_str(text) {
        Ok(Value::Array(items)) => items,
        Ok(Value::Null) => Vec::new(),
        Ok(other) => return Err(go_json::not_of_type(&other, &format!("[]{go_type}"))),
        Err(error) => return Err(go_json::message(&error, text.as_bytes())),
    };
    let items = items.into_iter().map(|item| read(item, go_type, members));
    items.collect::<Result<_, _>>().map(Value::Array)
}

fn read(item: Value, go_type: &str, members: &[Member]) -> Result<Value, String> {
    let found = match item {
        Value::Object(found) => found,
        Value::Null => Map::new(),
        other => return Err(go_json::not_of_type(&other, go_type)),
    };
    let mut known = Map::new();
    for (name, value) in found {
        let member = members
            .iter()
            .find(|(it, _)| it.eq_ignore_ascii_case(&name));
        let Some((name, member_type)) = member.filter(|_| !value.is_null()) else {
            continue;
        };
        let fits = match *member_type {
            "int64" => value.is_i64(),
            _ => value.is_string(),
        };
        if !fits {
            let (_, kind) = go_type.split_once('.').unwrap_or_default();
            let (first, rest) = name.split_at(1);
            let name = format!("{}{rest}", first.to_uppercase());
            return Err(go_json::wrong(&value, kind, &name, member_type));
        }
        known.insert((*name).to_owned(), value);
    }
    Ok(Value::Object(known))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_are_read_as_go_reads_them() {
        let read = |text: &str| {
            structs(
                text,
                "core.Taint",
                &[("key", "string"), ("seconds", "int64")],
            )
        };
        for (text, list) in [
            ("null", json!([])),
            ("[]", json!([])),
            (
                r#"[{"KEY": "k", "seconds": 3, "other": []}, null]"#,
                json!([{"key": "k", "seconds": 3}, {}]),
            ),
        ] {
            assert_eq!(read(text), Ok(list));
        }
        for (text, why) in [
            ("[", "unexpected end of JSON input"),
            (
                "{}",
                "json: cannot unmarshal object into Go value of type []core.Taint",
            ),
            (
                "[1]",
                "json: cannot unmarshal number into Go value of type core.Taint",
            ),
            (
                r#"[{"key": 1}]"#,
                "json: cannot unmarshal number into Go struct field Taint.Key of type string",
            ),
            (
                r#"[{"seconds": "1"}]"#,
                "json: cannot unmarshal string into Go struct field Taint.Seconds of type int64",
            ),
        ] {
            assert_eq!(read(text), Err(why.to_owned()));
        }
    }
}
