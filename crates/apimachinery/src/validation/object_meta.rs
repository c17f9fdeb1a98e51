//! Validation of metadata on every write.

use serde_json::Value;

use super::formats;
use crate::accessor::{finalizers, text};
use crate::error::ERROR_BYTES_MAX;
use crate::go_text::is_printed;
use crate::{FieldError, FieldErrorKind, NameRule, go_text};

/// Maximum size of an object's annotations in bytes, keys and values together.
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;
/// Maximum length of a field manager's name in bytes.
pub const FIELD_MANAGER_BYTES_MAX: usize = 128;
/// Maximum length of the subresource in `managedFields` in bytes.
const SUBRESOURCE_BYTES_MAX: usize = 256;

/// Finalizers of Kubernetes' own, the only ones without a prefix.
const STANDARD_FINALIZERS: &[&str] = &["kubernetes", "orphan", "foregroundDeletion"];

/// Validates the metadata of an object to be written, whose name is generated already, and returns the errors of its
/// fields.
#[must_use]
pub fn validate_object_meta(object: &Value, namespaced: bool, rule: NameRule) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate_names(object, rule, &mut errors);
    validate_namespace(object, namespaced, &mut errors);
    let metadata = &object["metadata"];
    if metadata["generation"].as_i64().unwrap_or(0) < 0 {
        errors.push(FieldError::invalid(
            "metadata.generation",
            &metadata["generation"],
            "must be greater than or equal to 0",
        ));
    }
    errors.extend(validate_labels(&metadata["labels"], "metadata.labels"));
    errors.extend(validate_annotations(
        &metadata["annotations"],
        "metadata.annotations",
    ));
    validate_owner_references(&metadata["ownerReferences"], &mut errors);
    validate_finalizers(object, &mut errors);
    validate_managed_fields(&metadata["managedFields"], &mut errors);
    errors
}

/// Validates finalizers without a prefix, which must be Kubernetes' own, and returns the errors of their fields. Only
/// kinds that Kubernetes' core validates are checked so.
#[must_use]
pub fn validate_kube_finalizers(object: &Value) -> Vec<FieldError> {
    let finalizers = finalizers(object);
    let unknown = finalizers.iter().enumerate().filter(|(_, finalizer)| {
        !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(finalizer)
    });
    unknown
        .map(|(index, finalizer)| {
            FieldError::invalid(
                format!("metadata.finalizers[{index}]"),
                &Value::from(*finalizer),
                "name is neither a standard finalizer name nor is it fully qualified",
            )
        })
        .collect()
}

/// Validates the name of an object, and that from which it was generated, by a second rule, and returns the errors that
/// are not among those of the first one: kube-apiserver tells those of both, but equal ones once.
#[must_use]
pub fn validate_names_too(object: &Value, rule: NameRule, told: &[FieldError]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate_names(object, rule, &mut errors);
    errors.retain(|error| !told.contains(error));
    errors
}

fn validate_names(object: &Value, rule: NameRule, errors: &mut Vec<FieldError>) {
    let generate_name = text(object, "generateName");
    let name = text(object, "name");
    // What is only looked at as a segment of a path is so once the rest is right.
    let is_late = rule == NameRule::GeneratedDnsSubdomain;
    let is_told = !is_late || formats::name(name, rule, false).is_empty();
    if !generate_name.is_empty() && is_told {
        let wrong = formats::name(generate_name, rule, true);
        push_all("metadata.generateName", generate_name, wrong, errors);
    }
    if name.is_empty() {
        errors.push(FieldError::new(
            FieldErrorKind::Required,
            "metadata.name",
            "name or generateName is required",
        ));
    } else {
        let wrong = formats::name(name, rule, false);
        push_all("metadata.name", name, wrong, errors);
    }
}

fn validate_namespace(object: &Value, namespaced: bool, errors: &mut Vec<FieldError>) {
    const FIELD: &str = "metadata.namespace";
    let namespace = text(object, "namespace");
    match (namespaced, namespace.is_empty()) {
        (true, true) => errors.push(FieldError::required(FIELD)),
        (true, false) => push_all(FIELD, namespace, formats::dns_label(namespace), errors),
        (false, true) => {}
        (false, false) => errors.push(FieldError::forbidden(FIELD, "not allowed on this type")),
    }
}

/// Validates the keys and values of labels and returns the errors, which name them by `field`. Follows
/// `ValidateLabels`.
#[must_use]
pub fn validate_labels(labels: &Value, field: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, value) in members(labels) {
        push_all(field, key, formats::label_key(key), &mut errors);
        push_all(field, value, formats::label_value(value), &mut errors);
    }
    errors
}

/// Returns true if annotations have more bytes than Kubernetes accepts. Follows `ValidateAnnotationsSize`.
pub fn annotations_too_long(annotations: &Value) -> bool {
    let bytes = members(annotations).map(|(key, value)| key.len() + value.len());
    bytes.sum::<usize>() > ANNOTATIONS_BYTES_MAX
}

/// Validates the keys of annotations and the size of all, and returns the errors, which name them by `field`. Follows
/// `ValidateAnnotations`.
#[must_use]
pub fn validate_annotations(annotations: &Value, field: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, _) in members(annotations) {
        let wrong = formats::label_key(&key.to_lowercase());
        push_all(field, key, wrong, &mut errors);
    }
    if annotations_too_long(annotations) {
        errors.push(FieldError::new(
            FieldErrorKind::TooLong,
            field,
            format!("may not be more than {ANNOTATIONS_BYTES_MAX} bytes"),
        ));
    }
    errors
}

fn validate_owner_references(references: &Value, errors: &mut Vec<FieldError>) {
    const FIELD: &str = "metadata.ownerReferences";
    let mut controller: Option<String> = None;
    // An error about controllers shows all references.
    let mut shown_bytes = 0;
    for reference in references.as_array().into_iter().flatten() {
        let part = |name: &str| reference[name].as_str().unwrap_or_default();
        let api_version = part("apiVersion");
        // The version of what is no group and version is empty, as in `FromAPIVersionAndKind`.
        let version = api_version
            .split_once('/')
            .map_or(api_version, |(_, it)| it);
        let version = if version.contains('/') { "" } else { version };
        for (member, value, why) in [
            ("apiVersion", version, "version must not be empty"),
            ("kind", part("kind"), "must not be empty"),
            ("name", part("name"), "must not be empty"),
            ("uid", part("uid"), "must not be empty"),
        ] {
            if value.is_empty() {
                let found = Value::from(part(member));
                errors.push(FieldError::invalid(
                    format!("{FIELD}.{member}"),
                    &found,
                    why,
                ));
            }
        }
        if matches!(api_version, "v1" | "/v1") && part("kind") == "Event" {
            let why = "/v1, Kind=Event is disallowed from being an owner";
            let detail = format!("{}: {why}", shown(reference));
            errors.push(FieldError::new(FieldErrorKind::Invalid, FIELD, detail));
        }
        if reference["controller"] == Value::Bool(true) {
            let this = format!("{}/{}", part("kind"), part("name"));
            match &controller {
                None => controller = Some(this),
                Some(_) if shown_bytes > ERROR_BYTES_MAX => {}
                Some(first) => {
                    let why = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                    );
                    let detail = format!("{}: {why}", shown(references));
                    let error = FieldError::new(FieldErrorKind::Invalid, FIELD, detail);
                    shown_bytes += error.detail.len();
                    errors.push(error);
                }
            }
        }
    }
}

/// Writes an owner reference, or a list of them, as errors show it: with its members in Go's order.
fn shown(references: &Value) -> String {
    const ALWAYS: [&str; 4] = ["apiVersion", "kind", "name", "uid"];
    const IF_SET: [&str; 2] = ["controller", "blockOwnerDeletion"];
    if let Some(list) = references.as_array() {
        let list: Vec<String> = list.iter().map(shown).collect();
        return format!("[{}]", list.join(","));
    }
    let empty = Value::from("");
    let value = |name: &str| references.get(name).filter(|it| !it.is_null());
    let always = ALWAYS.map(|name| (name, Some(value(name).unwrap_or(&empty))));
    let members = always
        .into_iter()
        .chain(IF_SET.map(|name| (name, value(name))));
    let members = members.filter_map(|(name, value)| Some((name, go_text::json(value?))));
    let members: Vec<String> = members
        .map(|(name, value)| format!("{name:?}:{value}"))
        .collect();
    format!("{{{}}}", members.join(","))
}

fn validate_finalizers(object: &Value, errors: &mut Vec<FieldError>) {
    const FIELD: &str = "metadata.finalizers";
    let finalizers = finalizers(object);
    for finalizer in &finalizers {
        push_all(FIELD, finalizer, formats::label_key(finalizer), errors);
    }
    if finalizers.contains(&"orphan") && finalizers.contains(&"foregroundDeletion") {
        errors.push(FieldError::invalid(
            FIELD,
            &object["metadata"]["finalizers"],
            "finalizer orphan and foregroundDeletion cannot be both set",
        ));
    }
}

fn validate_managed_fields(entries: &Value, errors: &mut Vec<FieldError>) {
    let mut room = ERROR_BYTES_MAX;
    for (index, entry) in entries.as_array().into_iter().flatten().enumerate() {
        let field = |member: &str| format!("metadata.managedFields[{index}].{member}");
        let part = |member: &str| entry[member].as_str().unwrap_or_default();
        if !matches!(part("operation"), "Apply" | "Update") {
            let found = Value::from(part("operation"));
            let why = "must be `Apply` or `Update`";
            errors.push(FieldError::invalid(field("operation"), &found, why));
        }
        if !matches!(part("fieldsType"), "" | "FieldsV1") {
            let why = "must be `FieldsV1`";
            errors.push(FieldError::invalid(
                field("fieldsType"),
                &entry["fieldsType"],
                why,
            ));
        }
        errors.extend(manager_errors(
            part("manager"),
            &field("manager"),
            &mut room,
        ));
        if part("subresource").len() > SUBRESOURCE_BYTES_MAX {
            errors.push(too_long(field("subresource"), SUBRESOURCE_BYTES_MAX));
        }
    }
}

/// Validates the name of a field manager, which is printed as it is, and returns its errors, which name it by `field`.
/// Follows `ValidateFieldManager`.
#[must_use]
pub fn validate_field_manager(manager: &str, field: &str) -> Vec<FieldError> {
    manager_errors(manager, field, &mut { ERROR_BYTES_MAX })
}

/// Returns the errors of the name of a field manager until their bytes use up the room.
fn manager_errors(manager: &str, field: &str, room: &mut usize) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if manager.len() > FIELD_MANAGER_BYTES_MAX {
        errors.push(too_long(field.to_owned(), FIELD_MANAGER_BYTES_MAX));
    }
    // Each error shows the whole name.
    for (position, letter) in manager.char_indices().filter(|(_, it)| !is_printed(*it)) {
        if *room == 0 {
            break;
        }
        let code = u32::from(letter);
        let why = format!("invalid character U+{code:04X} (at position {position})");
        let error = FieldError::invalid(field, &Value::from(manager), why);
        *room = room.saturating_sub(error.detail.len());
        errors.push(error);
    }
    errors
}

fn too_long(field: String, bytes_max: usize) -> FieldError {
    let why = format!("may not be more than {bytes_max} bytes");
    FieldError::new(FieldErrorKind::TooLong, field, why)
}

/// Returns the keys and values of a map of strings.
fn members(map: &Value) -> impl Iterator<Item = (&str, &str)> {
    map.as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}

fn push_all(field: &str, value: &str, wrong: Vec<String>, errors: &mut Vec<FieldError>) {
    let value = Value::from(value);
    errors.extend(
        wrong
            .into_iter()
            .map(|why| FieldError::invalid(field, &value, why)),
    );
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wrong(metadata: Value) -> Vec<String> {
        let object = json!({"metadata": metadata});
        validate_object_meta(&object, true, NameRule::DnsSubdomain)
            .iter()
            .map(|error| format!("{}: {}", error.field, error.message()))
            .collect()
    }

    #[test]
    fn what_is_right_passes() {
        let metadata = json!({
            "name": "a", "namespace": "b", "labels": {"app": "x"}, "annotations": {"Example.com/A": "any thing"},
            "finalizers": ["example.com/x", "orphan"], "generation": 1,
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "1", "controller": true}],
            "managedFields": [{"manager": "m", "operation": "Update", "fieldsType": "FieldsV1"}],
        });
        assert_eq!(wrong(metadata), Vec::<String>::new());
    }

    #[test]
    fn managers_have_printed_names() {
        let of = |manager: &str| {
            wrong(json!({"name": "a", "namespace": "b",
                "managedFields": [{"operation": "Apply", "manager": manager}]}))
        };
        assert_eq!(of("kubectl édit"), [""; 0]);
        assert_eq!(
            of("a\u{7}\u{a0}"),
            [
                "metadata.managedFields[0].manager: Invalid value: \"a\\a\\u00a0\": invalid character U+0007 (at position 1)",
                "metadata.managedFields[0].manager: Invalid value: \"a\\a\\u00a0\": invalid character U+00A0 (at position 2)",
            ]
        );
        let bytes = of(&"\u{7}".repeat(10_000)).concat().len();
        assert!(bytes < 2 * ERROR_BYTES_MAX, "{bytes}");
    }

    #[test]
    fn events_own_nothing() {
        for version in ["v1", "/v1"] {
            let owner = json!({"apiVersion": version, "kind": "Event", "name": "n", "uid": "u"});
            let errors = wrong(json!({"name": "a", "namespace": "b", "ownerReferences": [owner]}));
            assert_eq!(errors.len(), 1, "{version}");
            assert!(errors[0].ends_with("/v1, Kind=Event is disallowed from being an owner"));
        }
    }

    #[test]
    fn name_and_namespace_are_required() {
        assert_eq!(
            wrong(json!({})),
            [
                "metadata.name: Required value: name or generateName is required",
                "metadata.namespace: Required value",
            ]
        );
        let object = json!({"metadata": {"name": "a", "namespace": "b"}});
        let errors = validate_object_meta(&object, false, NameRule::DnsSubdomain);
        assert_eq!(errors[0].message(), "Forbidden: not allowed on this type");
    }

    #[test]
    fn a_bad_generate_name_is_named_as_well() {
        let errors = wrong(json!({"generateName": "A.B-", "name": "A.B-x", "namespace": "b"}));
        assert!(
            errors[0].starts_with("metadata.generateName: Invalid value: \"A.B-\": a lowercase")
        );
        assert!(errors[1].starts_with("metadata.name: Invalid value: \"A.B-x\": a lowercase"));
    }

    #[test]
    fn labels_are_keys_and_values() {
        let errors = wrong(json!({"name": "a", "namespace": "b", "labels": {"a b": "c d"}}));
        assert!(errors[0].starts_with("metadata.labels: Invalid value: \"a b\": name part must"));
        assert!(errors[1].starts_with("metadata.labels: Invalid value: \"c d\": a valid label"));
    }

    #[test]
    fn annotations_hold_256_kib_together() {
        let metadata =
            |bytes| json!({"name": "a", "namespace": "b", "annotations": {"k": "v".repeat(bytes)}});
        assert_eq!(wrong(metadata(256 * 1024 - 1)), Vec::<String>::new());
        assert_eq!(
            wrong(metadata(256 * 1024)),
            ["metadata.annotations: Too long: may not be more than 262144 bytes"]
        );
        let errors = wrong(json!({"name": "a", "namespace": "b", "annotations": {"a b": ""}}));
        assert!(errors[0].starts_with("metadata.annotations: Invalid value: \"a b\": name part"));
    }

    #[test]
    fn owner_references_are_complete_and_one_controls() {
        let owner = |kind: &str| json!({"apiVersion": "v1", "kind": kind, "name": "n", "uid": "u", "controller": true});
        let errors = wrong(json!({"name": "a", "namespace": "b", "ownerReferences": [{}]}));
        assert_eq!(
            errors,
            [
                "metadata.ownerReferences.apiVersion: Invalid value: \"\": version must not be empty",
                "metadata.ownerReferences.kind: Invalid value: \"\": must not be empty",
                "metadata.ownerReferences.name: Invalid value: \"\": must not be empty",
                "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
            ]
        );
        let two = json!([owner("Node"), owner("Pod")]);
        let errors = wrong(json!({"name": "a", "namespace": "b", "ownerReferences": two}));
        assert!(
            errors[0].ends_with("in references for Node/n and Pod/n"),
            "{errors:?}"
        );
        let event = json!([owner("Event")]);
        let errors = wrong(json!({"name": "a", "namespace": "b", "ownerReferences": event}));
        assert!(errors[0].ends_with("/v1, Kind=Event is disallowed from being an owner"));
    }

    #[test]
    fn finalizers_are_qualified_and_do_not_contradict() {
        let metadata = json!({"name": "a", "namespace": "b", "finalizers": ["orphan", "x", "a/b"]});
        assert_eq!(wrong(metadata.clone()), Vec::<String>::new());
        let errors = validate_kube_finalizers(&json!({"metadata": metadata}));
        assert_eq!(errors.len(), 1);
        assert_eq!(errors[0].field, "metadata.finalizers[1]");
        assert_eq!(
            errors[0].message(),
            "Invalid value: \"x\": name is neither a standard finalizer name nor is it fully qualified"
        );
        let both = json!(["orphan", "foregroundDeletion"]);
        let errors = wrong(json!({"name": "a", "namespace": "b", "finalizers": both}));
        assert_eq!(
            errors,
            [
                "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and foregroundDeletion cannot be both set"
            ]
        );
    }

    #[test]
    fn managed_fields_say_how_and_by_whom() {
        let entry = json!([{"operation": "Guess", "fieldsType": "X", "manager": "m".repeat(129)}]);
        let errors = wrong(json!({"name": "a", "namespace": "b", "managedFields": entry}));
        assert_eq!(
            errors,
            [
                "metadata.managedFields[0].operation: Invalid value: \"Guess\": must be `Apply` or `Update`",
                "metadata.managedFields[0].fieldsType: Invalid value: \"X\": must be `FieldsV1`",
                "metadata.managedFields[0].manager: Too long: may not be more than 128 bytes",
            ]
        );
    }
}
