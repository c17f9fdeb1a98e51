//! Validation of the names of a definition's objects, wanted and accepted ones.

use ringwatch_apimachinery::FieldError;
use ringwatch_apimachinery::path::{list, text};
use ringwatch_apimachinery::validation::formats::dns_1035_label;
use serde_json::{Value, json};

/// Returns the errors of the names at a path that are there. Follows `ValidateCustomResourceDefinitionNames`.
pub(super) fn wrong_names(object: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for member in ["plural", "singular", "kind", "listKind"] {
        let path = format!("{path}.{member}");
        let name = text(object, &path);
        if name.is_empty() {
            continue;
        }
        let mixed = ["kind", "listKind"].contains(&member);
        let wrong = if mixed {
            let may = "may have mixed case, but should otherwise match";
            let wrong = dns_1035_label(&name.to_lowercase());
            (!wrong.is_empty()).then(|| format!("{may}: {}", wrong.join(",")))
        } else {
            joined(dns_1035_label(name))
        };
        errors.extend(wrong.map(|why| FieldError::invalid(path, &json!(name), why)));
    }
    let wrong_labels = |member: &str| {
        let path = format!("{path}.{member}");
        let names = list(object, &path).iter().enumerate();
        let wrong = names.filter_map(|(place, name)| {
            let name = name.as_str().unwrap_or_default();
            let wrong = joined(dns_1035_label(name));
            wrong.map(|why| FieldError::invalid(format!("{path}[{place}]"), &json!(name), why))
        });
        wrong.collect::<Vec<_>>()
    };
    errors.extend(wrong_labels("shortNames"));
    let path = format!("{path}.listKind");
    let list_kind = text(object, &path);
    if !list_kind.is_empty() && list_kind == text(object, &path.replace("listKind", "kind")) {
        let why = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(path, &json!(list_kind), why));
    }
    errors.extend(wrong_labels("categories"));
    errors
}

/// Returns all that is wrong with a text in one line, as kube-apiserver tells it of definitions.
pub(super) fn joined(wrong: Vec<String>) -> Option<String> {
    (!wrong.is_empty()).then(|| wrong.join(","))
}
