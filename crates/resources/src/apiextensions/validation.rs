//! Validation of a CustomResourceDefinition, its spec aside.
//!
//! The rules are those of apiextensions-apiserver's `ValidateCustomResourceDefinition`. Most important is that a group
//! has a dot: otherwise the keys of its objects could be those of a built-in kind.

use std::collections::BTreeMap;

use ringwatch_apiextensions::approval::{APPROVED, Approval, annotation};
use ringwatch_apimachinery::accessor::ZERO_TIME;
use ringwatch_apimachinery::error::ERROR_BYTES_MAX;
use ringwatch_apimachinery::path::{get, get_mut, list, set, text};
use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use ringwatch_registry::subresource::{SubresourceMetadata, SubresourceStrategy};
use serde_json::{Value, json};

use super::conversion::is_established;
use super::names_validation::wrong_names;
use super::spec_validation::spec_errors;
use crate::built_in;

/// Validates a new definition and returns the errors in kube-apiserver's order.
pub(super) fn validate_create(object: &Value) -> Vec<FieldError> {
    let mut errors = name_errors(object);
    errors.extend(spec_errors(object, None));
    errors.extend(wrong_names(object, "status.acceptedNames"));
    errors.extend(stored_versions_errors(object));
    errors.extend(approval_errors(object, None));
    errors.extend(preserve_errors(object));
    errors.extend(built_in_errors(object));
    errors
}

/// Returns an error if `spec.preserveUnknownFields` is true, which only v1beta1 had; schemas have it per field now.
fn preserve_errors(object: &Value) -> Option<FieldError> {
    let path = "spec.preserveUnknownFields";
    let why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
    preserves(object).then(|| FieldError::invalid(path, &json!(true), why))
}

fn preserves(object: &Value) -> bool {
    get(object, "spec.preserveUnknownFields") == Some(&Value::Bool(true))
}

/// Returns an error if a definition of a group of Kubernetes has no approval, unless it was so before. Follows
/// `validateAPIApproval`.
fn approval_errors(object: &Value, old: Option<&Value>) -> Option<FieldError> {
    let approval = Approval::of(object)?;
    if old.and_then(Approval::of) == Some(approval) {
        return None;
    }
    let field = format!("metadata.annotations[{APPROVED}]");
    let why = approval.message(object);
    match approval {
        Approval::Approved | Approval::Bypassed => None,
        Approval::Missing => Some(FieldError::new(FieldErrorKind::Required, field, why)),
        Approval::Invalid => Some(FieldError::invalid(field, &json!(annotation(object)), why)),
    }
}

/// Returns an error if the definition is of a built-in resource: it would own its objects, and their deletion would
/// follow that of the definition. kube-apiserver accepts such a definition and serves the built-in resource.
fn built_in_errors(object: &Value) -> Option<FieldError> {
    let (group, plural) = (
        text(object, "spec.group"),
        text(object, "spec.names.plural"),
    );
    let is_built_in = built_in()
        .iter()
        .any(|it| it.group_version.group == group && it.plural == plural);
    let why = "the group has a built-in resource of this name";
    is_built_in.then(|| FieldError::forbidden("spec.names.plural", why))
}

/// Validates an update of a definition: the parts on which stored objects depend are immutable.
pub(super) fn validate_update(object: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = spec_errors(object, Some(old));
    let when_established = ["spec.scope", "spec.names.kind"].into_iter();
    let fixed = when_established.filter(|_| is_established(old));
    let fixed = fixed.chain(["spec.group", "spec.names.plural"]);
    let changed = fixed.filter(|path| get(object, path) != get(old, path));
    errors.extend(
        changed.map(|path| {
            FieldError::invalid(path, &json!(text(object, path)), "field is immutable")
        }),
    );
    errors.extend(wrong_names(object, "status.acceptedNames"));
    errors.extend(stored_versions_errors(object));
    errors.extend(approval_errors(object, Some(old)));
    if !preserves(old) {
        errors.extend(preserve_errors(object));
    }
    errors
}

fn name_errors(object: &Value) -> Vec<FieldError> {
    let (plural, group) = (
        text(object, "spec.names.plural"),
        text(object, "spec.group"),
    );
    let why = "must be spec.names.plural+\".\"+spec.group";
    let wanted = format!("{plural}.{group}");
    let names = ["metadata.generateName", "metadata.name"];
    let names = names.map(|path| (path, text(object, path)));
    // That there must be a name is said of all objects.
    let wrong = names
        .into_iter()
        .filter(|it| !it.1.is_empty() && it.1 != wanted);
    let errors = wrong.map(|(path, name)| FieldError::invalid(path, &json!(name), why));
    errors.collect()
}

/// Returns the strategy of the status, whose names are checked and which always has the lists of its type.
pub(super) fn status() -> SubresourceStrategy {
    SubresourceStrategy::new("status", SubresourceMetadata::Free)
        .finish(|_, object, _| complete_status(object))
        .validate_update(|object, _| wrong_names(object, "status.acceptedNames"))
}

/// Adds the members that a status has even if they say nothing.
fn complete_status(object: &mut Value) {
    for name in ["conditions", "storedVersions"] {
        let path = format!("status.{name}");
        if get(object, &path).is_none() {
            set(object, &path, Value::Null);
        }
    }
    let conditions = get_mut(object, "status.conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        // Go writes a zero time as null.
        if ["", ZERO_TIME].contains(&text(condition, "lastTransitionTime")) {
            set(condition, "lastTransitionTime", Value::Null);
        }
    }
}

/// Returns the errors of the versions in which objects may be stored: the storage version is among them, and each is a
/// version of the definition. Follows `ValidateCustomResourceDefinitionStoredVersions`.
fn stored_versions_errors(object: &Value) -> Vec<FieldError> {
    let path = "status.storedVersions";
    let stored = list(object, path);
    let whole = get(object, path).unwrap_or(&Value::Null);
    if stored.is_empty() {
        let why = "must have at least one stored version";
        return vec![FieldError::invalid(path, whole, why)];
    }
    let names = stored.iter().enumerate();
    let names = names.map(|(place, it)| (it.as_str().unwrap_or_default(), place));
    let mut left: BTreeMap<&str, usize> = names.collect();
    let mut errors = Vec::new();
    let mut bytes = 0;
    for version in list(object, "spec.versions") {
        let name = text(version, "name");
        let is_missing = left.remove(name).is_none();
        let is_stored = version.get("storage") == Some(&Value::Bool(true));
        // Each shows the whole list, so no more are made than are told.
        if is_missing && is_stored && bytes < ERROR_BYTES_MAX {
            let why = format!("must have the storage version {name}");
            let error = FieldError::invalid(path, whole, why);
            bytes += error.detail.len();
            errors.push(error);
        }
    }
    errors.extend(left.into_iter().map(|(name, place)| {
        let why = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
        );
        FieldError::invalid(format!("{path}[{place}]"), &json!(name), why)
    }));
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition() -> Value {
        json!({
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com", "scope": "Namespaced",
                "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
                "versions": [{"name": "v1", "served": true, "storage": true}],
                "validation": {"openAPIV3Schema": {"type": "object"}},
            },
            "status": {
                "storedVersions": ["v1"],
                "conditions": [{"type": "Established", "status": "True"}],
            },
        })
    }

    fn with(path: &str, value: Value) -> Value {
        let mut object = definition();
        *object.pointer_mut(path).expect("there") = value;
        object
    }

    fn fields(errors: Vec<FieldError>) -> Vec<String> {
        errors.into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn a_usual_one_is_right() {
        let usual = definition();
        assert_eq!(validate_create(&usual), []);
        assert_eq!(validate_update(&usual, &usual), []);
    }

    #[test]
    fn no_group_reaches_the_keys_of_built_in_kinds() {
        let mut pods = with("/spec/group", json!("pods"));
        pods["spec"]["names"]["plural"] = json!("default");
        pods["metadata"]["name"] = json!("default.pods");
        let errors = spec_errors(&pods, None);
        let messages: Vec<_> = errors.iter().map(FieldError::message).collect();
        assert_eq!(
            messages,
            [r#"Invalid value: "pods": should be a domain with at least one dot"#]
        );
        for group in ["k8s.io", "apiextensions.k8s.io", "x.kubernetes.io"] {
            let mut protected = with("/spec/group", json!(group));
            protected["metadata"]["name"] =
                json!(format!("{}.{group}", text(&protected, "spec.names.plural")));
            let field = format!("metadata.annotations[{APPROVED}]");
            assert_eq!(fields(validate_create(&protected)), [field]);
            protected["metadata"]["annotations"] = json!({APPROVED: "unapproved, experimental"});
            assert_eq!(validate_create(&protected), []);
            let old = protected.clone();
            protected["metadata"]["annotations"] = json!({APPROVED: "yes"});
            let field = format!("metadata.annotations[{APPROVED}]");
            assert_eq!(fields(validate_create(&protected)), [field.as_str()]);
            assert_eq!(fields(validate_update(&protected, &old)), [field]);
            assert_eq!(validate_update(&protected, &protected), []);
        }
    }

    #[test]
    fn nobody_defines_what_is_built_in() {
        for (group, plural) in [
            ("apiextensions.k8s.io", "customresourcedefinitions"),
            ("storage.k8s.io", "storageclasses"),
        ] {
            let mut taken = with("/spec/group", json!(group));
            taken["spec"]["names"]["plural"] = json!(plural);
            taken["metadata"]["name"] = json!(format!("{plural}.{group}"));
            taken["metadata"]["annotations"] = json!({APPROVED: "unapproved"});
            assert_eq!(fields(validate_create(&taken)), ["spec.names.plural"]);
        }
    }

    #[test]
    fn names_scopes_and_versions_have_their_form() {
        for (path, value, field) in [
            ("/spec/scope", json!("Foo"), "spec.scope"),
            ("/spec/names/kind", json!("Wid.get"), "spec.names.kind"),
            (
                "/spec/names/singular",
                json!("Widget"),
                "spec.names.singular",
            ),
            (
                "/spec/names/listKind",
                json!("Widget"),
                "spec.names.listKind",
            ),
            (
                "/spec/versions/0/name",
                json!("V1"),
                "spec.versions[0].name",
            ),
            ("/spec/versions/0/storage", json!(false), "spec.versions"),
        ] {
            assert_eq!(fields(spec_errors(&with(path, value), None)), [field]);
        }
        let mut twice = definition();
        twice["spec"]["versions"] = json!([
            {"name": "v1", "storage": true}, {"name": "v1", "storage": false},
        ]);
        assert_eq!(fields(spec_errors(&twice, None)), ["spec.versions"]);
    }

    #[test]
    fn a_name_is_not_generated() {
        let mut object = definition();
        object["metadata"]["generateName"] = json!("widgets-");
        assert_eq!(fields(validate_create(&object)), ["metadata.generateName"]);
    }

    #[test]
    fn a_status_has_the_form_of_its_type() {
        let names = json!({"plural": "-", "kind": "K", "listKind": "K", "shortNames": ["ok", "NOT"],
            "categories": ["-"]});
        let object = json!({"status": {"acceptedNames": names}});
        assert_eq!(
            fields(wrong_names(&object, "status.acceptedNames")),
            ["plural", "shortNames[1]", "listKind", "categories[0]"]
                .map(|it| format!("status.acceptedNames.{it}"))
        );
        let conditions = json!([{"type": "A"}, {"lastTransitionTime": ZERO_TIME}]);
        let mut object = json!({"status": {"conditions": conditions}});
        complete_status(&mut object);
        let condition = json!({"type": "A", "lastTransitionTime": null});
        assert_eq!(
            object["status"],
            json!({"conditions": [condition, {"lastTransitionTime": null}], "storedVersions": null})
        );
    }

    #[test]
    fn what_objects_are_stored_by_stays() {
        let old = definition();
        for (path, value, field) in [
            ("/spec/scope", json!("Cluster"), "spec.scope"),
            ("/spec/names/kind", json!("Gadget"), "spec.names.kind"),
        ] {
            assert_eq!(fields(validate_update(&with(path, value), &old)), [field]);
        }
        let mut young = definition();
        young["status"]["conditions"] = json!([]);
        let changed = with("/spec/scope", json!("Cluster"));
        assert_eq!(validate_update(&changed, &young), []);
    }

    #[test]
    fn stored_versions_are_versions_and_have_the_storage_version() {
        let versions = |names: &[(&str, bool)], stored: Value| {
            let version =
                |(name, storage): &(&str, bool)| json!({"name": name, "storage": storage});
            let mut object = definition();
            object["spec"]["versions"] = names.iter().map(version).collect();
            object["status"]["storedVersions"] = stored;
            object
        };
        for (object, said) in [
            (versions(&[("v1", true)], json!(["v1"])), vec![]),
            (
                versions(&[("v1", false)], Value::Null),
                vec![
                    "status.storedVersions: Invalid value: null: must have at least one stored version",
                ],
            ),
            (
                versions(&[("v1", true), ("v1", true)], json!(["v1"])),
                vec![
                    r#"status.storedVersions: Invalid value: ["v1"]: must have the storage version v1"#,
                ],
            ),
            (
                versions(&[("v2", true)], json!(["v1", "v2"])),
                vec![
                    r#"status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions"#,
                ],
            ),
        ] {
            let errors = stored_versions_errors(&object).into_iter();
            let found: Vec<_> = errors
                .map(|it| format!("{}: {}", it.field, it.message()))
                .collect();
            assert_eq!(found, said);
        }
    }

    #[test]
    fn a_long_list_of_stored_versions_is_not_shown_for_each_storage_version() {
        let version = |place: usize| json!({"name": format!("v{place}"), "storage": true});
        let mut object = definition();
        object["spec"]["versions"] = (0..100).map(version).collect();
        object["status"]["storedVersions"] = json!(["x".repeat(ERROR_BYTES_MAX / 2)]);
        let shown = stored_versions_errors(&object).into_iter();
        let shown = shown.filter(|it| it.field == "status.storedVersions");
        assert_eq!(shown.count(), 2);
    }
}
