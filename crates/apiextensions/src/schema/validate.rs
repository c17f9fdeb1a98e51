//! Validates a value by its schema: types first, then alternatives, then the value itself, then its parts.
//!
//! A value that has not changed since an older object was written counts as valid, since the schema may have been
//! another then.
//!
//! One walk over the object; every alternative of a node looks at the value once more. So the work is at most the
//! size of the object times the alternatives above a place, and the depth is that of the schema.

use std::collections::BTreeMap;

use ringwatch::meta::json_text;
use ringwatch_apimachinery::go_text::{bad_value, quoted};
use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use serde_json::{Map, Value};

use super::kind::JsonType;
use super::node::{Additional, Checks, SchemaNode, Sizes};
use super::number_checks::{check_number, is_integer};
use super::outcome::SchemaErrors;
use super::path::Path;
use super::walk::ObjectWalk;

/// Checks a value, which was another one before, and everything in it.
pub(super) fn validate<'v>(
    node: &'v SchemaNode,
    value: &Value,
    old: Option<&'v Value>,
    path: &mut ObjectWalk<'_, 'v>,
) -> SchemaErrors {
    let mut outcome = SchemaErrors::default();
    if old.is_some_and(|old| path.is_unchanged(node, value, old)) {
        return outcome;
    }
    check_type(node, value, path, &mut outcome);
    let checks = node.checks.as_deref();
    if !value.is_null() {
        // Of alternatives, of what is allowed, and of all together: these apply even if they ask for nothing.
        outcome.applied += 4;
        if let Some(checks) = checks {
            check_alternatives(checks, value, path, &mut outcome);
        }
    }
    match value {
        Value::String(text) => check_string(checks, text, path, &mut outcome),
        Value::Number(_) => check_number(node, value, path, &mut outcome),
        Value::Array(items) => {
            let old = old.and_then(Value::as_array);
            check_items(node, items, old, path, &mut outcome);
        }
        _ => {}
    }
    if let Some(checks) = checks {
        check_allowed(checks, value, path, &mut outcome);
    }
    if let Value::Object(members) = value {
        let old = old.and_then(Value::as_object);
        check_object(node, members, old, path, &mut outcome);
    }
    outcome
}

/// Follows `typeValidator.Validate`.
fn check_type<'v>(
    node: &'v SchemaNode,
    value: &Value,
    path: &ObjectWalk<'_, 'v>,
    outcome: &mut SchemaErrors,
) {
    let format = node.checks.as_deref().and_then(|it| path.format_name(it));
    let kinds: &[JsonType] = match (node.int_or_string, &node.kind) {
        // Kubernetes does not tell the types to the validation of defaults.
        (true, _) if path.is_default() => &[],
        (true, _) => &[JsonType::Integer, JsonType::String],
        (false, Some(kind)) => std::slice::from_ref(kind),
        (false, None) => &[],
    };
    let unknown = node
        .checks
        .as_deref()
        .and_then(|it| it.unknown_type.as_deref());
    if value.is_null() && (node.nullable || kinds.is_empty()) {
        outcome.applied += 1;
        return;
    }
    if kinds.is_empty() && unknown.is_none() && format.is_none() {
        return;
    }
    outcome.applied += usize::from(!value.is_null());
    if kinds.iter().any(|kind| is_of(*kind, value)) {
        outcome.applied += 1;
        return;
    }
    match (format, value) {
        (Some(format), Value::Number(_) | Value::Bool(_) | Value::Object(_))
            if format != go_format(value) =>
        {
            return outcome.invalid_type(path, format, go_format(value));
        }
        // Go's types for text of a format are texts and lists of bytes, so it looks no further at these.
        (Some(_), Value::String(_) | Value::Array(_))
            if !kinds.iter().any(|it| it.is_numeric()) =>
        {
            outcome.applied += 1;
            return;
        }
        _ => {}
    }
    let wanted = kinds.iter().map(|kind| kind.name()).chain(unknown);
    let wanted: Vec<&str> = wanted.collect();
    outcome.invalid_type(path, &wanted.join(","), type_name(value));
}

fn is_of(kind: JsonType, value: &Value) -> bool {
    match kind {
        JsonType::Object => value.is_object(),
        JsonType::Array => value.is_array(),
        JsonType::String => value.is_string(),
        JsonType::Boolean => value.is_boolean(),
        JsonType::Number => value.is_number(),
        JsonType::Integer => is_integer(value),
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => JsonType::Boolean.name(),
        Value::Number(number) if number.is_i64() => JsonType::Integer.name(),
        Value::Number(_) => JsonType::Number.name(),
        Value::String(_) => JsonType::String.name(),
        Value::Array(_) => JsonType::Array.name(),
        Value::Object(_) => JsonType::Object.name(),
    }
}

fn go_format(value: &Value) -> &'static str {
    match value {
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        _ => "",
    }
}

/// Checks `allOf`, `anyOf`, `oneOf` and `not`. The older value does not count here: it would be valid under every
/// alternative, whichever it was written for.
fn check_alternatives<'v>(
    checks: &'v Checks,
    value: &Value,
    path: &mut ObjectWalk<'_, 'v>,
    outcome: &mut SchemaErrors,
) {
    if !checks.any_of.is_empty() {
        let (valid, closest) = try_all(&checks.any_of, value, path, true);
        if valid == 0 {
            outcome.alternatives(path, "must validate at least one schema (anyOf)");
        }
        outcome.merge(closest);
    }
    if !checks.one_of.is_empty() {
        let (valid, closest) = try_all(&checks.one_of, value, path, false);
        let found = match valid {
            0 => "Found none valid".to_owned(),
            valid => format!("Found {valid} valid alternatives"),
        };
        if valid != 1 {
            let text = format!("must validate one and only one schema (oneOf). {found}");
            outcome.alternatives(path, &text);
        }
        if valid < 2 {
            outcome.merge(closest);
        }
    }
    check_all_of(checks, value, path, outcome);
    if let Some(not) = &checks.not
        && validate(not, value, None, path).is_valid()
    {
        outcome.alternatives(path, "must not validate the schema (not)");
    }
}

/// Returns how many alternatives hold, all or only the first; and what the first of them has found, or, if none holds,
/// the closest one.
fn try_all<'v>(
    alternatives: &'v [SchemaNode],
    value: &Value,
    path: &mut ObjectWalk<'_, 'v>,
    first_only: bool,
) -> (usize, SchemaErrors) {
    let mut valid = 0;
    let mut closest: Option<SchemaErrors> = None;
    for alternative in alternatives {
        let found = validate(alternative, value, None, path);
        let is_closer = |closest: &SchemaErrors| found.applied > closest.applied;
        if found.is_valid() {
            valid += 1;
            if valid == 1 {
                closest = Some(found);
            }
            if first_only {
                break;
            }
        } else if valid == 0 && closest.as_ref().is_none_or(is_closer) {
            closest = Some(found);
        }
    }
    (valid, closest.unwrap_or_default())
}

fn check_all_of<'v>(
    checks: &'v Checks,
    value: &Value,
    path: &mut ObjectWalk<'_, 'v>,
    outcome: &mut SchemaErrors,
) {
    let mut valid = 0;
    for all in &checks.all_of {
        let found = validate(all, value, None, path);
        valid += usize::from(found.is_valid());
        outcome.merge(found);
    }
    if valid < checks.all_of.len() {
        let none = if valid == 0 { ". None validated" } else { "" };
        outcome.alternatives(
            path,
            &format!("must validate all the schemas (allOf){none}"),
        );
    }
}

fn check_string(
    checks: Option<&Checks>,
    text: &str,
    path: &mut ObjectWalk<'_, '_>,
    outcome: &mut SchemaErrors,
) {
    outcome.applied += 1;
    let Some(checks) = checks else { return };
    let value = || Value::from(text);
    let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    if let Some(max) = checks.sizes.length_max.filter(|max| length > *max) {
        outcome.push(path, || {
            let detail = match max {
                ..=-1 => "value is too long".to_owned(),
                1 => "may not be more than 1 byte".to_owned(),
                _ => format!("may not be more than {max} bytes"),
            };
            FieldError::new(FieldErrorKind::TooLong, path.field(), detail)
        });
    } else if let Some(min) = checks.sizes.length_min.filter(|min| length < *min) {
        let text = format!("should be at least {min} chars long");
        outcome.invalid(path, &value(), &text);
    } else if let Some(pattern) = &checks.pattern
        && !path.matches(pattern, text)
    {
        outcome.invalid(path, &value(), &format!("should match '{pattern}'"));
    }
    if let Some(format) = path.text_format(checks) {
        outcome.applied += 1;
        if !format.accepts(text) {
            outcome.invalid_type(path, format.name(), text);
        }
    }
}

fn check_items<'v>(
    node: &'v SchemaNode,
    items: &[Value],
    old: Option<&'v Vec<Value>>,
    path: &mut ObjectWalk<'_, 'v>,
    outcome: &mut SchemaErrors,
) {
    if let Some(inner) = node.items.as_deref() {
        let old = path.older_items(node, old.map_or(&[], Vec::as_slice));
        for (index, item) in items.iter().enumerate() {
            let mark = path.index(index);
            outcome.merge(validate(inner, item, old.get(item), path));
            path.leave(mark);
        }
    }
    let sizes = node.checks.as_ref().map(|checks| &checks.sizes);
    check_count(items.len(), sizes.map(Sizes::items), path, outcome);
    // As with numbers: `SchemaErrors::applied`.
    outcome.applied += 2;
}

impl Sizes {
    fn items(&self) -> (Option<i64>, Option<i64>, &'static str) {
        (self.items_min, self.items_max, "items")
    }

    fn properties(&self) -> (Option<i64>, Option<i64>, &'static str) {
        (self.properties_min, self.properties_max, "properties")
    }
}

/// Checks a number of characters, items or members.
fn check_count(
    count: usize,
    sizes: Option<(Option<i64>, Option<i64>, &'static str)>,
    path: &Path,
    outcome: &mut SchemaErrors,
) {
    let Some((min, max, what)) = sizes else {
        return;
    };
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    if let Some(min) = min.filter(|min| count < *min) {
        let text = format!("should have at least {min} {what}");
        outcome.invalid(path, &Value::from(count), &text);
    }
    if let Some(max) = max.filter(|max| count > *max) {
        outcome.push(path, || {
            let items = if max == 1 { "item" } else { "items" };
            let detail = format!("{count}: must have at most {max} {items}");
            FieldError::new(FieldErrorKind::TooMany, path.field(), detail)
        });
    }
}

fn check_allowed(checks: &Checks, value: &Value, path: &Path, outcome: &mut SchemaErrors) {
    if checks.allowed.has(value) {
        return;
    }
    outcome.push(path, || {
        let allowed = checks.allowed.values().iter();
        let supported: Vec<String> = allowed
            .map(|allowed| match allowed {
                Value::String(text) => quoted(text),
                other => quoted(&json_text(other)),
            })
            .collect();
        let (found, supported) = (bad_value(value), supported.join(", "));
        let detail = format!("{found}: supported values: {supported}");
        FieldError::new(FieldErrorKind::NotSupported, path.field(), detail)
    });
}

fn check_object<'v>(
    node: &'v SchemaNode,
    members: &Map<String, Value>,
    old: Option<&'v Map<String, Value>>,
    path: &mut ObjectWalk<'_, 'v>,
    outcome: &mut SchemaErrors,
) {
    outcome.applied += 1;
    let checks = node.checks.as_deref();
    let sizes = checks.map(|checks| checks.sizes.properties());
    check_count(members.len(), sizes, path, outcome);
    let others = members
        .iter()
        .filter(|(name, _)| !node.properties.contains_key(*name));
    match &node.additional {
        Some(Additional::Schema(additional)) => {
            for (name, value) in others {
                let before = old.and_then(|old| old.get(name));
                check_member(additional, name, value, before, path, outcome);
            }
        }
        Some(Additional::Nothing) => others.for_each(|(name, _)| {
            outcome.push(path, || {
                let place = path.as_str();
                let why = format!("{place}.{name} in body is a forbidden property");
                FieldError::invalid(path.field(), &Value::from(name.as_str()), why)
            });
        }),
        Some(Additional::Any) | None => {}
    }
    check_properties(&node.properties, members, old, path, outcome);
    for name in checks.iter().flat_map(|checks| &checks.required) {
        if !members.contains_key(name) {
            let mark = path.member(name);
            outcome.push(path, || FieldError::required(path.field()));
            path.leave(mark);
        }
    }
}

fn check_properties<'v>(
    properties: &'v BTreeMap<String, SchemaNode>,
    members: &Map<String, Value>,
    old: Option<&'v Map<String, Value>>,
    path: &mut ObjectWalk<'_, 'v>,
    outcome: &mut SchemaErrors,
) {
    for (name, value) in members {
        if let Some(property) = properties.get(name) {
            let before = old.and_then(|old| old.get(name));
            check_member(property, name, value, before, path, outcome);
        }
    }
}

fn check_member<'v>(
    node: &'v SchemaNode,
    name: &str,
    value: &Value,
    old: Option<&'v Value>,
    path: &mut ObjectWalk<'_, 'v>,
    outcome: &mut SchemaErrors,
) {
    // The object before has been converted to the type of this one, so that these say nothing of it.
    let is_type = path.as_str().is_empty() && matches!(name, "apiVersion" | "kind");
    let old = old.filter(|_| !is_type);
    let mark = path.member(name);
    outcome.merge(validate(node, value, old, path));
    path.leave(mark);
}
