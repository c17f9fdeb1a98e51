//! Values as rules see them.
//!
//! The schema determines the type: a number without type integer is a double, dates are timestamps. Names of members
//! that are no identifiers are escaped; names in maps are data and stay.

use std::borrow::Cow;
use std::sync::Arc;

use kube_cel::cel::Value as CelValue;
use kube_cel::cel::objects::{Key, Map};
use ringwatch_apimachinery::go_values::go_type;
use ringwatch_cel::{RESERVED, convert, keyed_list, plain, set_list, untyped_float, wrong_data};
use serde_json::{Number, Value};

use super::formats::Format;
use super::kind::JsonType;
use super::node::{ListType, SchemaNode};

#[cfg(test)]
thread_local! {
    /// The values that this thread has converted, those in others included.
    pub(super) static CONVERTED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Returns a value as rules of its schema see it. Follows `UnstructuredToVal` of Kubernetes.
pub(super) fn to_cel(value: &Value, node: Option<&SchemaNode>) -> CelValue {
    #[cfg(test)]
    CONVERTED.with(|count| count.set(count.get() + 1));
    if let Some(why) = node.and_then(|node| mismatch(value, node)) {
        return wrong_data(why);
    }
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(flag) => CelValue::Bool(*flag),
        Value::Number(number) => number_to_cel(number, node),
        Value::String(text) => text_to_cel(text, node),
        Value::Array(items) => list_to_cel(items, node),
        Value::Object(members) => {
            let has_own = node.is_some_and(|node| !node.properties.is_empty());
            // A null that a member may be is the same as none. Follows `unstructuredMap.Find`.
            let members = members.iter().filter(|(_, it)| !(has_own && it.is_null()));
            let members = members.map(|(name, value)| {
                let key = member_key(node, name);
                let inner = node.and_then(|node| node.member(name));
                (Key::String(Arc::new(key)), to_cel(value, inner))
            });
            CelValue::Map(Map {
                map: Arc::new(members.collect()),
            })
        }
    }
}

fn list_to_cel(items: &[Value], node: Option<&SchemaNode>) -> CelValue {
    let inner = node.and_then(|node| node.items.as_deref());
    let seen: Vec<CelValue> = items.iter().map(|item| to_cel(item, inner)).collect();
    match node.map(|node| &node.list) {
        None | Some(ListType::Atomic) => CelValue::List(Arc::new(seen)),
        Some(ListType::Set) => {
            let is_changed = inner.is_some_and(|node| {
                node.kind == Some(JsonType::Number) || converted_format(node).is_some()
            });
            let written = is_changed.then(|| items.iter().map(plain).collect());
            set_list(seen, written)
        }
        // Kubernetes looks for the name that rules have for a key, among names that they have themselves others for.
        Some(ListType::Map(keys)) => {
            keyed_list(seen, keys.iter().map(|key| escaped(&escaped(key))))
        }
    }
}

/// Returns the reason why rules cannot use a value, if it has another type than its schema says: such as a float that
/// is whole instead of an integer, which the schema itself allows.
fn mismatch(value: &Value, node: &SchemaNode) -> Option<Cow<'static, str>> {
    if value.is_null() {
        return None;
    }
    let is_integer = value.is_i64();
    if node.int_or_string {
        let why = "invalid data, expected XIntOrString value to be either a string or integer";
        return (!is_integer && !value.is_string()).then_some(why.into());
    }
    let (is_right, wanted) = match node.kind? {
        JsonType::Object if value.is_object() => return None,
        JsonType::Object => {
            let why = "invalid data, expected a map for the provided schema with type=object";
            return Some(why.into());
        }
        JsonType::Array if value.is_array() => return None,
        JsonType::Array => {
            let why = "invalid data, expected an array for the provided schema with type=array";
            return Some(why.into());
        }
        JsonType::String => (value.is_string(), "string"),
        JsonType::Number => (value.is_number(), "float"),
        JsonType::Integer => (is_integer, "int"),
        JsonType::Boolean => (value.is_boolean(), "bool"),
    };
    let why = || format!("invalid data, expected {wanted}, got {}", go_type(value));
    (!is_right).then(|| why().into())
}

/// Returns a number of the type that its schema says. One without a type can only be compared, as Go compares numbers.
fn number_to_cel(number: &Number, node: Option<&SchemaNode>) -> CelValue {
    let float = || number.as_f64().unwrap_or(f64::NAN);
    match (number.as_i64(), node.and_then(|node| node.kind)) {
        (_, Some(JsonType::Number)) => CelValue::Float(float()),
        (Some(integer), _) => CelValue::Int(integer),
        (None, _) => untyped_float(float()),
    }
}

fn text_to_cel(text: &str, node: Option<&SchemaNode>) -> CelValue {
    let converted = match node.and_then(converted_format) {
        Some("byte") => convert("base64.decode", text),
        Some("date") => convert("timestamp", &format!("{text}T00:00:00Z")),
        Some("date-time") => convert("timestamp", text),
        Some("duration") => convert("duration", text),
        _ => None,
    };
    // What is not of its format has been refused before, or is not the rule's business.
    converted.unwrap_or_else(|| CelValue::String(Arc::new(text.to_owned())))
}

/// Returns the format of a text that rules do not see as a text.
fn converted_format(node: &SchemaNode) -> Option<&'static str> {
    let format = node.checks.as_ref()?.format.map(Format::name)?;
    ["byte", "date", "date-time", "duration"]
        .contains(&format)
        .then_some(format)
}

/// Returns the key of a member in the form in which rules see an object: names in maps are data, all others
/// identifiers.
pub(super) fn member_key(node: Option<&SchemaNode>, name: &str) -> String {
    let is_data =
        |node: &SchemaNode| node.additional.is_some() && !node.properties.contains_key(name);
    if node.is_some_and(is_data) {
        name.to_owned()
    } else {
        escaped(name)
    }
}

/// Returns the name of a member as an identifier.
pub(super) fn escaped(name: &str) -> String {
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    if !name.contains(['.', '-', '/']) && !name.contains("__") {
        return name.to_owned();
    }
    let escaped = name.replace("__", "__underscores__");
    let escaped = escaped.replace('.', "__dot__").replace('-', "__dash__");
    escaped.replace('/', "__slash__")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_as_the_documentation_says() {
        for (name, identifier) in [
            ("plain", "plain"),
            ("my_field", "my_field"),
            ("namespace", "__namespace__"),
            ("x-prop", "x__dash__prop"),
            ("a.b/c", "a__dot__b__slash__c"),
            ("redact__d", "redact__underscores__d"),
        ] {
            assert_eq!(escaped(name), identifier);
        }
    }

    #[test]
    fn a_null_member_of_an_object_is_none_and_a_value_of_a_map() {
        let node = |schema: Value| {
            let schema = serde_json::json!({"type": "object", "properties": {"x": schema}});
            let schema = crate::schema::StructuralSchema::read(&schema, false).expect("a schema");
            let CelValue::Map(map) =
                to_cel(&serde_json::json!({"x": {"a": null}}), Some(&schema.root))
            else {
                panic!("not a map");
            };
            map
        };
        let text = || serde_json::json!({"type": "string", "nullable": true});
        let key = Key::String(Arc::new("x".to_owned()));
        for (schema, count) in [
            (
                serde_json::json!({"type": "object", "properties": {"a": text()}}),
                0,
            ),
            (
                serde_json::json!({"type": "object", "additionalProperties": text()}),
                1,
            ),
        ] {
            let map = node(schema);
            let Some(CelValue::Map(x)) = map.map.get(&key) else {
                panic!("no map");
            };
            assert_eq!(x.map.len(), count);
        }
    }
}
