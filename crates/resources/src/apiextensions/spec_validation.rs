//! Validation of the spec of a CustomResourceDefinition, in kube-apiserver's order.
//!
//! The rules are those of apiextensions-apiserver's `validateCustomResourceDefinitionSpec`.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use ringwatch_apimachinery::error::ERROR_BYTES_MAX;
use ringwatch_apimachinery::path::{get, list, text};
use ringwatch_apimachinery::validation::formats::{dns_1035_label, dns_subdomain};
use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use serde_json::{Value, json};

use super::names_validation::{joined, wrong_names};
use super::schema_validation::{self, SchemaCheck};
use super::version_validation::{part_errors, shared_errors, version_errors, warning_errors};
use super::{conversion, internal_form, stores};

/// Returns the errors of the spec of a definition, which may replace an older one.
pub(super) fn spec_errors(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = group_errors(object);
    errors.extend(scope_error(object));
    errors.extend(schema_validation::missing_errors(object, old));
    errors.extend(schema_validation::unpruned_defaults(object));

    // Errors that the old object has as well are ignored in some parts, since otherwise its definition could not be
    // deleted.
    let known: HashSet<FieldError> = old.into_iter().flat_map(lenient_errors).collect();
    let fresh = |errors: Vec<FieldError>| {
        let errors = errors.into_iter();
        errors.filter(|it| !known.contains(it)).collect::<Vec<_>>()
    };
    let old_schemas = old.filter(|old| get(old, "spec") != get(object, "spec"));
    let old_schemas = old_schemas.map(schema_validation::readable);
    let old_schemas = old_schemas.unwrap_or_default();
    let mut schemas = SchemaCheck::of(object, old, &old_schemas);
    let common = get(object, "spec.validation.openAPIV3Schema");
    let statuses = VersionStatuses::of(object);
    let mut told_bytes = 0;
    for (place, version) in list(object, "spec.versions").iter().enumerate() {
        if told_bytes > ERROR_BYTES_MAX {
            break;
        }
        let first = errors.len();
        let path = format!("spec.versions[{place}]");
        let name = text(version, "name");
        errors.extend(wrong_label(&format!("{path}.name"), name));
        errors.extend(fresh(warning_errors(version, &path)));
        let schema = get(version, "schema.openAPIV3Schema");
        let has_status = statuses.of_version(name);
        errors.extend(schemas.errors(schema, &format!("{path}.schema"), has_status, name));
        errors.extend(fresh(version_errors(version, &path)));
        let bytes = errors[first..].iter();
        told_bytes += bytes
            .map(|it| it.field.len() + it.detail.len())
            .sum::<usize>();
    }
    let mut errors = FieldError::as_told(errors);
    errors.extend(versions_errors(object));
    errors.extend(names_errors(object));
    let has_status = has_any_status(object);
    let first = text(object, "spec.version");
    errors.extend(schemas.errors(common, "spec.validation", has_status, first));
    errors.extend(fresh(shared_errors(object)));
    errors.extend(fresh(conversion::validate(object, old)));
    errors
}

/// Returns the errors of the parts that definitions of earlier releases could have wrong.
fn lenient_errors(object: &Value) -> Vec<FieldError> {
    let mut errors = part_errors(object);
    errors.extend(conversion::validate(object, None));
    errors
}

fn group_errors(object: &Value) -> Vec<FieldError> {
    let path = "spec.group";
    let group = text(object, path);
    if group.is_empty() {
        return vec![FieldError::required(path)];
    }
    let wrong = joined(dns_subdomain(group)).or_else(|| {
        let why = "should be a domain with at least one dot";
        (!group.contains('.')).then(|| why.to_owned())
    });
    let error = wrong.map(|why| FieldError::invalid(path, &json!(group), why));
    error.into_iter().collect()
}

fn scope_error(object: &Value) -> Option<FieldError> {
    let path = "spec.scope";
    match text(object, path) {
        "" => Some(FieldError::required(path)),
        "Cluster" | "Namespaced" => None,
        scope => {
            let detail = format!("{scope:?}: supported values: \"Cluster\", \"Namespaced\"");
            Some(FieldError::new(FieldErrorKind::NotSupported, path, detail))
        }
    }
}

fn wrong_label(path: &str, name: &str) -> Option<FieldError> {
    let why = joined(dns_1035_label(name))?;
    Some(FieldError::invalid(path, &json!(name), why))
}

/// Returns the errors of all versions together, and of the name of the first one.
fn versions_errors(object: &Value) -> Vec<FieldError> {
    let versions = list(object, "spec.versions");
    let mut names = BTreeSet::new();
    let is_unique = versions.iter().all(|it| names.insert(text(it, "name")));
    let wrong = |why: &str| {
        let shown = get(object, "spec.versions").and_then(Value::as_array);
        let detail = format!("{}: {why}", internal_form::versions(shown));
        FieldError::new(FieldErrorKind::Invalid, "spec.versions", detail)
    };
    let mut errors = Vec::new();
    if !is_unique {
        errors.push(wrong("must contain unique version names"));
    }
    if versions.iter().filter(stores).count() != 1 {
        let why = "must have exactly one version marked as storage version";
        errors.push(wrong(why));
    }
    let first = text(object, "spec.version");
    if !first.is_empty() {
        errors.extend(wrong_label("spec.version", first));
    }
    errors
}

fn names_errors(object: &Value) -> Vec<FieldError> {
    let members = ["plural", "singular", "kind", "listKind"];
    let paths = members.map(|member| format!("spec.names.{member}"));
    let missing = paths.into_iter().filter(|it| text(object, it).is_empty());
    let mut errors: Vec<_> = missing.map(FieldError::required).collect();
    errors.extend(wrong_names(object, "spec.names"));
    errors
}

fn has_status(holder: &Value) -> bool {
    get(holder, "subresources.status").is_some_and(|it| !it.is_null())
}

/// The versions that have objects with a status of their own. Follows `getSubresourcesForVersion`.
enum VersionStatuses<'o> {
    /// All, or none.
    Shared(bool),
    /// By the first version of each name.
    Own(BTreeMap<&'o str, bool>),
}

impl<'o> VersionStatuses<'o> {
    fn of(object: &'o Value) -> Self {
        let versions = list(object, "spec.versions");
        let has_own = |it: &Value| get(it, "subresources").is_some_and(|it| !it.is_null());
        if !versions.iter().any(has_own) {
            return Self::Shared(get(object, "spec").is_some_and(has_status));
        }
        let named = versions.iter().rev();
        Self::Own(named.map(|it| (text(it, "name"), has_status(it))).collect())
    }

    fn of_version(&self, name: &str) -> bool {
        match self {
            Self::Shared(has_status) => *has_status,
            Self::Own(statuses) => statuses.get(name).is_some_and(|it| *it),
        }
    }
}

/// Returns true if the objects of any version have a status of their own.
fn has_any_status(object: &Value) -> bool {
    get(object, "spec").is_some_and(has_status)
        || list(object, "spec.versions").iter().any(has_status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_come_in_the_order_of_the_spec() {
        let schema = json!({"openAPIV3Schema": {"type": "text"}});
        let version = json!({"name": "V", "deprecationWarning": "", "schema": schema,
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.a"}}});
        let object = json!({"spec": {"scope": "Other", "versions": [version, {"name": "V"}],
            "names": {"plural": "A_", "kind": "K", "singular": "k"},
            "conversion": {"strategy": "Some"}}});
        let errors = spec_errors(&object, None).into_iter();
        let fields: Vec<_> = errors.map(|it| it.field).collect();
        assert_eq!(
            fields,
            [
                "spec.group",
                "spec.scope",
                "spec.versions[1].schema.openAPIV3Schema",
                "spec.versions[0].name",
                "spec.versions[0].deprecationWarning",
                "spec.versions[0].schema.openAPIV3Schema.type",
                "spec.versions[0].schema.openAPIV3Schema.type",
                "spec.versions[0].schema.openAPIV3Schema.type",
                "spec.versions[0].subresources.scale.statusReplicasPath",
                "spec.versions[1].name",
                "spec.versions",
                "spec.versions",
                "spec.names.listKind",
                "spec.names.plural",
                "spec.conversion.strategy",
            ]
        );
    }

    #[test]
    fn all_that_is_wrong_with_a_name_is_one_error() {
        let long = "A".repeat(64);
        let wrong = dns_1035_label(&long);
        assert_eq!(wrong.len(), 2);
        let error = wrong_label("spec.version", &long).expect("an error");
        assert_eq!(error.detail, format!("\"{long}\": {}", wrong.join(",")));
    }

    #[test]
    fn versions_without_a_schema_stay_as_they_are() {
        let spec = |served: bool, preserve: bool| {
            json!({"spec": {"preserveUnknownFields": preserve,
                "versions": [{"name": "v1", "served": served}]}})
        };
        let why = |served, preserve, old: Option<&Value>| {
            let errors = schema_validation::missing_errors(&spec(served, preserve), old);
            errors.first().map(|it| it.detail.clone())
        };
        let old = spec(true, false);
        assert_eq!(why(false, false, None).as_deref(), Some(""));
        assert_eq!(why(false, false, Some(&old)), None);
        assert_eq!(why(true, true, Some(&old)), None);
        assert_eq!(
            why(true, false, Some(&old)).as_deref(),
            Some("because otherwise all fields are pruned")
        );
    }
}
