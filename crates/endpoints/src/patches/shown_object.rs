//! The JSON that errors show of an object after a JSON or merge patch.
//!
//! kube-apiserver patches the JSON in which it encodes objects. What the patch does not touch stays as it is, with its
//! fields in the order of the kind; the objects that it changes members of are sorted by name.

use std::collections::BTreeMap;

use ringwatch::codec;
use serde_json::Value;
use serde_json::value::RawValue;

/// Maximum length of an object of which the order is kept. It is read once for each level that a patch goes down.
const ORDERED_BYTES_MAX: usize = 64 << 10;

/// Returns the JSON of an object after a patch, which was another one before.
pub(super) fn json_after(after: &Value, before: &Value) -> String {
    let bytes = codec::encode_value(before);
    let text = bytes.and_then(|bytes| codec::to_json(&bytes, ("", "")).ok());
    let text = text.and_then(|text| String::from_utf8(text).ok());
    let text = text.filter(|text| text.len() <= ORDERED_BYTES_MAX);
    let raw = text.and_then(|text| RawValue::from_string(text).ok());
    let mut json = String::new();
    write(after, raw.as_deref(), &mut json);
    json
}

fn write(after: &Value, before: Option<&RawValue>, json: &mut String) {
    let members =
        before.and_then(|it| serde_json::from_str::<BTreeMap<&str, &RawValue>>(it.get()).ok());
    match (after, before) {
        (_, Some(before))
            if serde_json::from_str::<Value>(before.get()).is_ok_and(|it| it == *after) =>
        {
            json.push_str(before.get());
        }
        (Value::Object(after), _) if members.is_some() => {
            let members = members.unwrap_or_default();
            for (index, (name, value)) in after.iter().enumerate() {
                json.push(if index == 0 { '{' } else { ',' });
                json.push_str(&Value::from(name.as_str()).to_string());
                json.push(':');
                write(value, members.get(name.as_str()).copied(), json);
            }
            json.push_str(if after.is_empty() { "{}" } else { "}" });
        }
        _ => json.push_str(&after.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_patch_changes_is_sorted() {
        let before = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"},
            "metadata": {"name": "n", "labels": {"a": "1"}, "namespace": "m"}});
        let mut after = before.clone();
        after["zz"] = json!(1);
        assert_eq!(
            json_after(&after, &before),
            r#"{"apiVersion":"v1","data":{"a":"b"},"kind":"ConfigMap","metadata":{"name":"n","namespace":"m","labels":{"a":"1"}},"zz":1}"#
        );
        after["metadata"]["labels"] = json!({"c": "<", "b": {}});
        assert_eq!(
            json_after(&after, &before),
            r#"{"apiVersion":"v1","data":{"a":"b"},"kind":"ConfigMap","metadata":{"labels":{"b":{},"c":"<"},"name":"n","namespace":"m"},"zz":1}"#
        );
        let custom = json!({"apiVersion": "a/v1", "kind": "K", "b": 1});
        assert_eq!(json_after(&custom, &custom), custom.to_string());
    }
}
