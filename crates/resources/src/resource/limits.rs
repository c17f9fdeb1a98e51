//! The limits of lists and texts.
//!
//! Follows pkg/apis/resource/validation/validation.go of Kubernetes 1.36.

use std::collections::BTreeSet;

use ringwatch_apimachinery::{FieldError, FieldErrorKind};

use crate::validation::field::{Errors, Field};

/// Checks the items of a list, which is not too long, and that no two have the same value of a member; the same value
/// themselves, if the name of the member is empty. Follows `validateSet`.
pub(super) fn set(
    list: &Field<'_, '_>,
    most: usize,
    key: &str,
    errors: &mut Errors,
    item: impl Fn(&Field<'_, '_>, &mut Errors),
) {
    if has_too_many(list, most, errors) {
        return;
    }
    for it in list.items("") {
        item(&it, errors);
    }
    let mut seen = BTreeSet::new();
    for it in list.items("") {
        let name = if key.is_empty() {
            it.text()
        } else {
            it.at(key).text()
        };
        if !seen.insert(name) {
            errors.push(it.duplicate_of(name));
        }
    }
}

/// Refuses a list or map that is too long. Its items are not looked at then.
pub(super) fn has_too_many(list: &Field<'_, '_>, most: usize, errors: &mut Errors) -> bool {
    let members = list.value().as_object().map_or(0, serde_json::Map::len);
    let count = list.len() + members;
    if count > most {
        let why = format!("{count}: must have at most {most} items");
        errors.push(FieldError::new(FieldErrorKind::TooMany, list.field(), why));
    }
    count > most
}
