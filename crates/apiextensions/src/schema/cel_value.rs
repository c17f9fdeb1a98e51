//! Values as rules see them.
//!
//! The schema determines the type: a number without type integer is a double, dates are timestamps. Names of members
//! that are no identifiers are escaped; names in maps are data and stay.

use std::borrow::Cow;
use std::sync::Arc;

use kube_cel::cel::Value as CelValue;
use kube_cel::cel::objects::{Key, Map};
use ringwatch_apimachinery::go_values::go_type;
use ringwatch_cel::{
    RESERVED, convert, keyed_list, no_member, plain, set_list, text_list, untyped_float, wrong_data,
};
use serde_json::{Number, Value};

use super::formats::{Format, nanoseconds};
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
            let members = members.iter().map(|(name, value)| {
                let key = member_key(node, name);
                let value = if has_own && value.is_null() {
                    // A null that a member may be is the same as none, except that it counts. Follows
                    // `unstructuredMap`.
                    no_member(&key)
                } else {
                    to_cel(value, node.and_then(|node| node.member(name)))
                };
                (Key::String(Arc::new(key)), value)
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
        None | Some(ListType::Atomic) => match inner.and_then(converted_format) {
            Some(_) => text_list(seen),
            None => CelValue::List(Arc::new(seen)),
        },
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
    let format = node.and_then(converted_format).unwrap_or_default();
    let converted = match format {
        "byte" => convert("base64.decode", text),
        "date" => convert("timestamp", &format!("{text}T00:00:00Z")),
        "date-time" => convert("timestamp", text),
        "duration" => convert("duration", text).or_else(|| {
            let nanoseconds = nanoseconds(text)?;
            convert("duration", &format!("{nanoseconds}ns"))
        }),
        _ => None,
    };
    converted.unwrap_or_else(|| match format {
        "date-time" => wrong_data(no_time(text)),
        // What is not of another format has been refused before, or is not the rule's business.
        _ => CelValue::String(Arc::new(text.to_owned())),
    })
}

/// Returns the words of Go about a text that has the format of a time and that Go cannot read: with a small letter, or
/// with an offset that there is not.
fn no_time(text: &str) -> String {
    let (date, time) = text
        .split_at_checked("2006-01-02".len())
        .unwrap_or((text, ""));
    let why = if time.starts_with('T') {
        let past_seconds = time.get("T15:04:05".len()..).unwrap_or_default();
        let digits = past_seconds
            .strip_prefix('.')
            .map(|it| it.trim_start_matches(|it: char| it.is_ascii_digit()));
        format!(": extra text: {:?}", digits.unwrap_or(past_seconds))
    } else {
        let (rest, part) = if time.is_empty() {
            (date, "2006")
        } else {
            (time, "T")
        };
        format!(" as \"2006-01-02T15:04:05\": cannot parse {rest:?} as {part:?}")
    };
    format!("Invalid date-time formatted string {text}: parsing time {text:?}{why}")
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
    use serde_json::json;

    use super::super::rule_tests::{about_x, lines};
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
    fn a_null_member_of_an_object_counts_alone_and_is_a_value_of_a_map() {
        let text = json!({"type": "string", "nullable": true});
        let o = json!({"type": "object", "properties": {"a": text, "b": text}});
        let m = json!({"type": "object", "additionalProperties": text});
        let of = |rule: &str| {
            let rules = json!([{"rule": rule}]);
            let x = json!({"type": "object", "properties": {"o": o, "m": m}, "x-kubernetes-validations": rules});
            let object = |o: Value| json!({"spec": {"x": {"o": o, "m": {"a": null}}}});
            let (old, new) = (object(json!({})), object(json!({"a": null})));
            lines(&about_x(x).validate_rules(&new, Some(&old)))
        };
        for rule in [
            "!has(self.o.a)",
            "self.?o.?a == optional.none()",
            "self.o == self.o",
            "self.o != oldSelf.o",
            "oldSelf.o != self.o",
            "has(self.m.a) && self.m.a == null",
            "!('a' in dyn(self.o))",
        ] {
            assert_eq!(of(rule), [""; 0], "{rule}");
        }
        let why = "Invalid value: \"object\": no such key: a evaluating rule";
        assert_eq!(
            of("self.o.a == ''"),
            [format!("spec.x: {why}: self.o.a == ''")]
        );
    }

    #[test]
    fn durations_and_times_are_read_as_the_formats_are() {
        let said = |format: &str, text: &str, rule: &str| {
            let x = json!({"type": "string", "format": format, "x-kubernetes-validations": [{"rule": rule}]});
            lines(&about_x(x).validate_rules(&json!({"spec": {"x": text}}), None))
        };
        for (text, duration) in [
            ("1h30m", "5400s"),
            ("1 day", "24h"),
            ("about 2 weeks, 1 DAY", "360h"),
            ("-1.5s", "-1500ms"),
        ] {
            let rule = format!("self == duration('{duration}')");
            assert_eq!(said("duration", text, &rule), [""; 0], "{text}");
        }
        for (text, why) in [
            (
                "2020-01-01t00:00:00Z",
                " as \"2006-01-02T15:04:05\": cannot parse \"t00:00:00Z\" as \"T\"",
            ),
            ("2020-01-01T00:00:00.5z", ": extra text: \"z\""),
        ] {
            let why =
                format!("Invalid date-time formatted string {text}: parsing time {text:?}{why}");
            assert_eq!(
                said("date-time", text, "self == self"),
                [format!(
                    "spec.x: Invalid value: \"string\": {why} evaluating rule: self == self"
                )]
            );
        }
    }
}
