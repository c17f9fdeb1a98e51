//! Access to the metadata of an object that is still a tree: Kubernetes' `meta.Accessor`.
//!
//! [`normalize`] is the gate: behind it metadata is a JSON object whose members have their types
//! and are left out when empty, as Kubernetes' own types would have it.

use jiff::{SignedDuration, Timestamp};
use ringwatch::codec;
use ringwatch::meta::OwnedLabels;
use serde_json::{Map, Value};

use super::{Error, numbers};

/// The text of Go's zero time.
pub const ZERO_TIME: &str = "0001-01-01T00:00:00Z";

/// Returns a string member of the metadata; empty if there is none.
pub fn text<'a>(object: &'a Value, member: &str) -> &'a str {
    object["metadata"][member].as_str().unwrap_or_default()
}

/// Returns an integer member of the metadata.
pub fn integer(object: &Value, member: &str) -> Option<i64> {
    object["metadata"][member].as_i64()
}

/// Returns an RFC 3339 time of the metadata, or `None` if it is missing or malformed.
pub fn time(object: &Value, member: &str) -> Option<Timestamp> {
    text(object, member).parse().ok()
}

/// Returns true if the object has a `deletionTimestamp`, that is, if its deletion has begun.
pub fn is_terminating(object: &Value) -> bool {
    !text(object, "deletionTimestamp").is_empty()
}

/// Returns the labels.
pub fn labels(object: &Value) -> OwnedLabels {
    let labels = object["metadata"]["labels"].as_object();
    let labels = labels.into_iter().flatten();
    labels
        .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
        .collect()
}

/// Returns the finalizers, each of which has to be removed before the object can be deleted.
pub fn finalizers(object: &Value) -> Vec<&str> {
    object["metadata"]["finalizers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// Sets a member of the metadata.
pub fn set(object: &mut Value, member: &str, value: impl Into<Value>) {
    if let Some(metadata) = metadata(object) {
        metadata.insert(member.to_owned(), value.into());
    }
}

/// Removes a member of the metadata.
pub fn remove(object: &mut Value, member: &str) {
    if let Some(metadata) = metadata(object) {
        metadata.remove(member);
    }
}

/// Copies a member of the metadata from another object; removes it if that object has none.
pub fn copy(object: &mut Value, from: &Value, member: &str) {
    match &from["metadata"][member] {
        Value::Null => remove(object, member),
        value => set(object, member, value.clone()),
    }
}

/// Sets the finalizers; removes the member if the list is empty.
pub fn set_finalizers(object: &mut Value, finalizers: Vec<String>) {
    if finalizers.is_empty() {
        remove(object, "finalizers");
    } else {
        set(object, "finalizers", finalizers);
    }
}

/// Increments the generation of an object that has one.
pub fn bump_generation(object: &mut Value) {
    if let Some(generation) = integer(object, "generation").filter(|it| *it > 0) {
        set(object, "generation", generation.saturating_add(1));
    }
}

/// Formats a time as objects carry it: RFC 3339 in UTC with whole seconds.
pub fn format_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Adds seconds, which may be negative, to a time; saturates at [`Timestamp::MIN`] and [`Timestamp::MAX`].
pub fn later(time: Timestamp, seconds: i64) -> Timestamp {
    let end = if seconds < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    };
    time.checked_add(SignedDuration::from_secs(seconds))
        .unwrap_or(end)
}

/// Checks the types of the metadata's members and drops null and empty ones.
///
/// # Errors
/// [`Error::BadRequest`] when a member has the wrong type, in the words of Go's decoder.
pub fn normalize(object: &mut Value, version: &str, kind: &str) -> Result<(), Error> {
    normalize_metadata(object)
        .map_err(|why| cannot_be_handled(version, kind, &format!("json: {why}")))
}

/// Decodes metadata of an object whose kind has no types, such as a custom resource, and gives them the form that Go's
/// type writes. Returns the paths in them of members that metadata do not have, which are dropped. A number may have
/// any form that has the worth of an integer, since Go reads such an object with floats first.
///
/// # Errors
/// [`codec::TypeError`] for the first member of a wrong type.
pub fn decode_members(metadata: &mut Map<String, Value>) -> Result<Vec<String>, codec::TypeError> {
    metadata.values_mut().for_each(numbers::normalize);
    let unknown = codec::check_metadata(metadata)?;
    codec::canonicalize_metadata(metadata);
    Ok(unknown)
}

/// Decodes the metadata of an object whose kind has no types, as [`decode_members`] does.
///
/// # Errors
/// [`Error::BadRequest`] when a member has the wrong type, in the words of Go's decoder.
pub fn decode_metadata(object: &mut Value, version: &str, kind: &str) -> Result<(), Error> {
    let Some(metadata) = metadata(object) else {
        return Ok(());
    };
    let unknown = decode_members(metadata);
    let unknown = unknown.map_err(|why| cannot_be_handled(version, kind, &why.to_string()));
    unknown.map(drop)
}

fn cannot_be_handled(version: &str, kind: &str, why: &str) -> Error {
    Error::BadRequest(format!(
        "{kind} in version {version:?} cannot be handled as a {kind}: {why}"
    ))
}

fn normalize_metadata(object: &mut Value) -> Result<(), String> {
    let found = type_name(object);
    let Some(members) = object.as_object_mut() else {
        return Err(format!(
            "cannot unmarshal {found} into Go value of type v1.Object"
        ));
    };
    let metadata = members.entry("metadata").or_insert(Value::Null);
    if metadata.is_null() {
        *metadata = Value::Object(Map::new());
    }
    let found = type_name(metadata);
    let Some(metadata) = metadata.as_object_mut() else {
        return Err(format!(
            "cannot unmarshal {found} into Go struct field .metadata of type v1.ObjectMeta"
        ));
    };
    metadata.retain(|name, value| !says_nothing(name, value));
    for (name, value) in metadata.iter_mut() {
        check_type(name, value)?;
    }
    Ok(())
}

/// Returns true if Kubernetes' `ObjectMeta` omits a member with this value when it is encoded.
pub fn says_nothing(name: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Number(number) => name == "generation" && number.as_i64() == Some(0),
        Value::Bool(_) => false,
    }
}

fn check_type(name: &str, value: &mut Value) -> Result<(), String> {
    let expected = |right: bool, go_type: &str, value: &Value| {
        if right {
            return Ok(());
        }
        let found = type_name(value);
        Err(format!(
            "cannot unmarshal {found} into Go struct field ObjectMeta.metadata.{name} of type {go_type}"
        ))
    };
    match name {
        "labels" | "annotations" => {
            expected(value.is_object(), "map[string]string", value)?;
            for value in value.as_object_mut().into_iter().flat_map(Map::values_mut) {
                if value.is_null() {
                    *value = Value::String(String::new());
                }
                expected(value.is_string(), "string", value)?;
            }
            Ok(())
        }
        "finalizers" => {
            expected(value.is_array(), "[]string", value)?;
            let mut items = value.as_array().into_iter().flatten();
            items.try_for_each(|item| expected(item.is_string(), "string", item))
        }
        "ownerReferences" => {
            expected(value.is_array(), "[]v1.OwnerReference", value)?;
            let mut items = value.as_array().into_iter().flatten();
            items.try_for_each(|item| expected(item.is_object(), "v1.OwnerReference", item))
        }
        "managedFields" => {
            expected(value.is_array(), "[]v1.ManagedFieldsEntry", value)?;
            let mut items = value.as_array().into_iter().flatten();
            items.try_for_each(|item| expected(item.is_object(), "v1.ManagedFieldsEntry", item))
        }
        "generation" | "deletionGracePeriodSeconds" => {
            expected(value.as_i64().is_some(), "int64", value)
        }
        "creationTimestamp" | "deletionTimestamp" => {
            // The library does not have the last days of the year 9999.
            let is_late = || {
                let mut alone = Map::from_iter([(name.to_owned(), value.clone())]);
                value.is_string() && codec::check_metadata(&mut alone).is_ok()
            };
            let time = value.as_str().map(str::parse::<Timestamp>);
            let is_time = matches!(time, Some(Ok(_))) || is_late();
            expected(is_time, "v1.Time", value)
        }
        "name" | "generateName" | "namespace" | "uid" | "resourceVersion" | "selfLink" => {
            expected(value.is_string(), "string", value)
        }
        _ => Ok(()),
    }
}

/// Returns Go's name for the kind of a JSON value.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn metadata(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.get_mut("metadata").and_then(Value::as_object_mut)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_that_say_nothing_go() {
        let mut object = json!({"metadata": {
            "name": "a", "creationTimestamp": null, "labels": {}, "finalizers": [], "generation": 0,
            "generateName": "", "deletionGracePeriodSeconds": 0, "annotations": {"a": null},
        }});
        normalize_metadata(&mut object).expect("right types");
        assert_eq!(
            object,
            json!({"metadata": {"name": "a", "deletionGracePeriodSeconds": 0, "annotations": {"a": ""}}})
        );
        let late = json!({"metadata": {"deletionTimestamp": "9999-12-31T23:59:59Z"}});
        let mut object = late.clone();
        normalize_metadata(&mut object).expect("a time");
        assert_eq!(object, late);
        let mut object = json!({"kind": "A"});
        normalize_metadata(&mut object).expect("metadata is made");
        assert_eq!(object, json!({"kind": "A", "metadata": {}}));
    }

    #[test]
    fn members_of_untyped_metadata_are_decoded_from_floats() {
        let decoded = |text: &str| {
            let mut members: Map<String, Value> = serde_json::from_str(text).expect("an object");
            decode_members(&mut members).map(|_| Value::Object(members).to_string())
        };
        for (sent, read) in [
            (r#"{"generation":1.0}"#, r#"{"generation":1}"#),
            (
                r#"{"generation":1e18}"#,
                r#"{"generation":1000000000000000000}"#,
            ),
            (
                r#"{"deletionGracePeriodSeconds":-0.0,"finalizers":[null],"labels":null}"#,
                r#"{"deletionGracePeriodSeconds":0,"finalizers":[""]}"#,
            ),
        ] {
            assert_eq!(decoded(sent).as_deref(), Ok(read), "{sent}");
        }
        for (sent, found) in [
            (
                r#"{"generation":9223372036854775808}"#,
                "9223372036854776000",
            ),
            (
                r#"{"generation":-9223372036854775809}"#,
                "-9223372036854776000",
            ),
            (r#"{"generation":1e20}"#, "100000000000000000000"),
            (r#"{"generation":1e21}"#, "1e+21"),
            (r#"{"generation":1.5}"#, "1.5"),
        ] {
            let error = decoded(sent).expect_err(sent).to_string();
            let words = format!(
                "json: cannot unmarshal number {found} into Go struct field ObjectMeta.generation of type int64"
            );
            assert_eq!(error, words);
        }
    }

    #[test]
    fn wrong_types_are_refused_in_gos_words() {
        for (metadata, words) in [
            (
                json!([]),
                "cannot unmarshal array into Go struct field .metadata of type v1.ObjectMeta",
            ),
            (
                json!({"labels": 5}),
                "cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type map[string]string",
            ),
            (
                json!({"labels": {"a": true}}),
                "cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type string",
            ),
            (
                json!({"finalizers": "x"}),
                "cannot unmarshal string into Go struct field ObjectMeta.metadata.finalizers of type []string",
            ),
            (
                json!({"name": 1}),
                "cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string",
            ),
        ] {
            let mut object = json!({"metadata": metadata});
            assert_eq!(normalize_metadata(&mut object), Err(words.to_owned()));
        }
    }

    #[test]
    fn times_have_whole_seconds() {
        let time: Timestamp = "2026-01-02T03:04:05.999Z".parse().expect("a time");
        assert_eq!(format_time(time), "2026-01-02T03:04:05Z");
        assert_eq!(format_time(later(time, 30)), "2026-01-02T03:04:35Z");
        assert_eq!(later(time, i64::MAX), Timestamp::MAX);
    }
}
