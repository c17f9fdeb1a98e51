//! Validation of objects of the built-in kinds, a file for each family of kinds.
//!
//! A check looks at a [`Field`] place and pushes what is wrong with it, in kube-apiserver's words and
//! under the path that it names. Checks are put together as the types are: that of a deployment
//! asks that of a template, which asks that of a container.

pub(crate) mod address_warnings;
pub(crate) mod annotation_json;
pub(crate) mod conditions;
pub(crate) mod difference;
pub(crate) mod field;
pub(crate) mod ingress_points;
pub(crate) mod internal_form;
pub(crate) mod labels;
pub(crate) mod later_rules;
pub(crate) mod quantities;
pub(crate) mod values;

#[cfg(test)]
mod tests;

pub(super) use field::{Errors, Field};

use std::collections::HashSet;

use ringwatch_apimachinery::FieldError;
use serde_json::Value;

/// A check of an object.
pub(super) type ObjectCheck = fn(&Field<'_, '_>, &mut Errors);

/// A check of a change: the new object and the old one.
pub(super) type CheckOfChange = fn(&Field<'_, '_>, &Field<'_, '_>, &mut Errors);

/// Collects the warnings about an object that is not refused.
pub(super) type Warn = fn(&Field<'_, '_>, &mut Vec<String>);

/// Returns the errors that a check finds in an object.
pub(super) fn found(check: ObjectCheck, object: &Value) -> Vec<FieldError> {
    let mut errors = Errors::new();
    check(&Field::root(object), &mut errors);
    errors
}

/// Returns the errors that a check finds in an updated object, but for those against later rules that the old object
/// breaks as well.
pub(super) fn found_in_update(check: ObjectCheck, object: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Errors::new();
    check_update(check, &Field::root(object), &Field::root(old), &mut errors);
    errors
}

/// Adds the errors that [`found_in_update`] returns.
pub(super) fn check_update(
    check: impl Fn(&Field<'_, '_>, &mut Errors),
    object: &Field<'_, '_>,
    old: &Field<'_, '_>,
    errors: &mut Errors,
) {
    let mut wrong = Errors::new();
    check(object, &mut wrong);
    if wrong.iter().any(|error| error.later_rule.is_some()) {
        let mut stored = Errors::new();
        check(old, &mut stored);
        let broken: HashSet<&str> = stored.iter().filter_map(|it| it.later_rule).collect();
        wrong.retain(|error| error.later_rule.is_none_or(|rule| !broken.contains(rule)));
    }
    errors.extend(wrong);
}

/// Returns the errors that a check finds in a change.
pub(super) fn found_in_change(
    check: CheckOfChange,
    object: &Value,
    old: &Value,
) -> Vec<FieldError> {
    let mut errors = Errors::new();
    check(&Field::root(object), &Field::root(old), &mut errors);
    errors
}

/// Returns the messages of errors, a line each.
#[cfg(test)]
pub(super) fn messages(errors: &[FieldError]) -> Vec<String> {
    let line = |error: &FieldError| format!("{}: {}", error.field, error.message());
    errors.iter().map(line).collect()
}
