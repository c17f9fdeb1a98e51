//! The files that volumes make of secrets, config maps, fields of pods and tokens.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use std::collections::HashSet;

use ringwatch_apimachinery::error::ERROR_BYTES_MAX;

use crate::core::field_reference::{POD_FIELDS_OF_FILES, pod_field, resource_field};
use crate::validation::field::{Errors, Field};
use crate::validation::later_rules::TOKEN_PATHS;
use crate::validation::values::below;

/// The permissions that a file may have: 0777.
const MODE_MAX: i64 = 0o777;
/// Bounds of the life of a token, in seconds.
const TOKEN_SECONDS_MIN: i64 = 600;
const TOKEN_SECONDS_MAX: i64 = 1 << 32;

/// Checks the keys of a secret or config map that are files. Follows `validateSecretVolumeSource` and
/// `validateConfigMapVolumeSource`.
pub(super) fn keys(source: &Field<'_, '_>, errors: &mut Errors) {
    mode(&source.at("defaultMode"), errors);
    for item in source.items("items") {
        key(&item, errors);
    }
}

/// Checks a key as a file. Follows `validateKeyToPath`.
fn key(item: &Field<'_, '_>, errors: &mut Errors) {
    item.at("key").must_be_set(errors);
    file_path(&item.at("path"), errors);
    mode(&item.at("mode"), errors);
}

/// Checks the files of a downward API. Follows `validateDownwardAPIVolumeSource`.
pub(super) fn downward_api(source: &Field<'_, '_>, errors: &mut Errors) {
    mode(&source.at("defaultMode"), errors);
    for file in source.items("items") {
        pod_file(source, &file, errors);
    }
}

/// Checks a file of a downward API. Errors name its list's owner and not the file, as in Kubernetes. Follows
/// `validateDownwardAPIVolumeFile`.
fn pod_file(source: &Field<'_, '_>, file: &Field<'_, '_>, errors: &mut Errors) {
    let first = errors.len();
    file_path(&file.at("path"), errors);
    let (field, resource) = (file.at("fieldRef"), file.at("resourceFieldRef"));
    if field.is_set() {
        pod_field(&field, POD_FIELDS_OF_FILES, errors);
        if resource.is_set() {
            let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
            errors.push(file.invalid_value("resource", why));
        }
    } else if resource.is_set() {
        resource_field(&resource, true, errors);
    } else {
        errors.push(file.required("one of fieldRef and resourceFieldRef is required"));
    }
    mode(&file.at("mode"), errors);
    if errors.len() > first {
        let (named, name) = (file.field(), source.field());
        for error in &mut errors[first..] {
            if let Some(rest) = error.field.strip_prefix(&named) {
                error.field = format!("{name}{rest}");
            }
        }
    }
}

/// Checks that a path is set and leads to a file of the volume.
fn file_path(path: &Field<'_, '_>, errors: &mut Errors) {
    path.must_be_set(errors);
    local_path(path, path.text(), errors);
}

/// Checks that a path stays in the volume, and blames a field for it. Follows `ValidateLocalNonReservedPath`.
fn local_path(blamed: &Field<'_, '_>, path: &str, errors: &mut Errors) {
    let wrong = below(path).into_iter();
    errors.extend(wrong.map(|why| blamed.invalid_value(path, why)));
    if path.starts_with("..") && !path.starts_with("../") {
        errors.push(blamed.invalid_value(path, "must not start with '..'"));
    }
}

fn mode(at: &Field<'_, '_>, errors: &mut Errors) {
    if at
        .number()
        .is_some_and(|mode| !(0..=MODE_MAX).contains(&mode))
    {
        let why = "must be a number between 0 and 0777 (octal), both inclusive";
        errors.push(at.invalid(why));
    }
}

/// Checks the sources of a projected volume, which may also be empty, and of which no two may have the same file.
/// Follows `validateProjectedVolumeSource`.
pub(super) fn projected(volume: &Field<'_, '_>, errors: &mut Errors) {
    const TWICE: &str = "conflicting duplicate paths";
    mode(&volume.at("defaultMode"), errors);
    let mut paths = HashSet::new();
    // Each error shows a text of the client's, which may be long.
    let mut room = ERROR_BYTES_MAX;
    let mut twice = |shown: &str, errors: &mut Errors| {
        if room > 0 {
            room = room.saturating_sub(shown.len() + 1);
            errors.push(volume.invalid_value(shown, TWICE));
        }
    };
    for source in volume.items("sources") {
        for from in ["secret", "configMap"].map(|kind| source.at(kind)) {
            if !from.is_set() {
                continue;
            }
            let name = from.at("name");
            name.must_be_set(errors);
            for item in from.items("items") {
                key(&item, errors);
                let path = item.at("path").text();
                if !path.is_empty() && !paths.insert(path) {
                    twice(name.text(), errors);
                }
            }
        }
        let api = source.at("downwardAPI");
        for file in api.items("items") {
            pod_file(&api, &file, errors);
            let path = file.at("path").text();
            if !path.is_empty() && !paths.insert(path) {
                twice(path, errors);
            }
        }
        token(volume, &source.at("serviceAccountToken"), errors);
        let sources = source.value().as_object().into_iter().flatten();
        if sources.filter(|(_, it)| !it.is_null()).count() > 1 {
            let why = "may not specify more than 1 volume type per source";
            errors.push(source.forbidden(why));
        }
    }
}

/// Checks the token of a service account, if there is one.
fn token(volume: &Field<'_, '_>, token: &Field<'_, '_>, errors: &mut Errors) {
    if !token.is_set() {
        return;
    }
    let seconds = token.at("expirationSeconds");
    let number = seconds.number().unwrap_or(0);
    if number < TOKEN_SECONDS_MIN {
        let why = "may not specify a duration less than 10 minutes";
        errors.push(seconds.invalid_value(number, why));
    } else if number > TOKEN_SECONDS_MAX {
        let why = "may not specify a duration larger than 2^32 seconds";
        errors.push(seconds.invalid_value(number, why));
    }
    // Kubernetes names the path as if it was one of the volume.
    let (path, blamed) = (token.at("path").text(), volume.at("path"));
    if path.is_empty() {
        errors.push(blamed.required(""));
    } else {
        let mut wrong = Errors::new();
        local_path(&blamed, path, &mut wrong);
        let wrong = wrong.into_iter();
        errors.extend(wrong.map(|it| it.by_later_rule(TOKEN_PATHS)));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_have_a_bound_however_long_the_names_are() {
        let items = vec![json!({"key": "k", "path": "p"}); 100];
        let name = "x".repeat(ERROR_BYTES_MAX / 10);
        let volume = json!({"sources": [{"secret": {"name": name, "items": items}}]});
        let mut errors = Errors::new();
        projected(&Field::root(&volume), &mut errors);
        assert_eq!(errors.len(), 10);
    }

    #[test]
    fn tokens_of_stored_pods_may_be_elsewhere() {
        let volume = json!({"sources": [{"serviceAccountToken": {"expirationSeconds": 600, "path": "../t"}}]});
        let mut errors = Errors::new();
        projected(&Field::root(&volume), &mut errors);
        let rules: Vec<_> = errors.iter().map(|it| it.later_rule).collect();
        assert_eq!(rules, [Some(TOKEN_PATHS)]);
    }
}
