//! Checks of numbers: their type and format, bounds and divisors.

use ringwatch_apimachinery::{FieldError, FieldErrorKind, go_text};
use serde_json::Value;

use super::kind::JsonType;
use super::node::{NumberBound, SchemaNode};
use super::outcome::SchemaErrors;
use super::path::Path;

/// Returns true if a number is whole and fits into 64 bits.
fn fits_integer(value: &Value) -> bool {
    let fits = |float: f64| float.fract() == 0.0 && (-LARGEST..LARGEST).contains(&float);
    value.is_i64() || value.as_f64().is_some_and(fits)
}

/// The first float that is too large for an integer of 64 bits, 2^63.
const LARGEST: f64 = 9_223_372_036_854_775_808.0;

/// Returns true if a number is whole, and small enough to differ from its neighbours if it is a float.
pub(super) fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.as_f64().is_some_and(is_whole)
}

/// Returns true if a float is a whole number small enough to differ from its neighbours.
fn is_whole(float: f64) -> bool {
    float.fract() == 0.0 && float.abs() < INTEGERS_END
}

/// Returns true if a float is about as near to a whole number as floats get. Follows `IsFloat64AJSONInteger`.
fn is_nearly_whole(float: f64) -> bool {
    let (whole, off) = (float.round(), (float - float.round()).abs());
    float.abs() < INTEGERS_END && (off == 0.0 || off < 1e-9 * whole.abs())
}

/// The number from which on floats are further apart than integers, 2^53.
const INTEGERS_END: f64 = 9_007_199_254_740_992.0;

/// Checks a number: its type and format, divisor and bounds. Follows `numberValidator.Validate`.
pub(super) fn check_number(
    node: &SchemaNode,
    value: &Value,
    path: &Path,
    outcome: &mut SchemaErrors,
) {
    check_range(node, value, "Checked", path, outcome);
    // It applies, and has been made: `SchemaErrors::applied`.
    outcome.applied += 2;
    let Some(checks) = node.checks.as_deref() else {
        return;
    };
    if let Some(factor) = checks.multiple_of {
        let compared = compared(node, value, factor, "MultipleOf", path, outcome);
        check_multiple(&compared, factor, path, outcome);
    }
    if let Some(bound) = checks.minimum {
        let compared = compared(node, value, bound.at, "Minimum boundary", path, outcome);
        if compare(&compared, bound.at).is_some_and(|order| order.is_lt() || bound.excludes(order))
        {
            let words = if bound.exclusive { "" } else { " or equal to" };
            let at = shown_bound(&compared, bound.at);
            outcome.invalid(
                path,
                &compared,
                &format!("should be greater than{words} {at}"),
            );
        }
    }
    if let Some(bound) = checks.maximum {
        let compared = compared(node, value, bound.at, "Maximum boundary", path, outcome);
        if compare(&compared, bound.at).is_some_and(|order| order.is_gt() || bound.excludes(order))
        {
            let words = if bound.exclusive { "" } else { " or equal to" };
            let at = shown_bound(&compared, bound.at);
            outcome.invalid(path, &compared, &format!("should be less than{words} {at}"));
        }
    }
}

/// Checks that a number fits into the type and format of a schema, and returns true if it does. Such an error has no
/// field, but names it. Follows `IsValueValidAgainstRange`.
fn check_range(
    node: &SchemaNode,
    value: &Value,
    what: &str,
    path: &Path,
    outcome: &mut SchemaErrors,
) -> bool {
    let Some(kind @ (JsonType::Integer | JsonType::Number)) =
        node.kind.filter(|_| !node.int_or_string)
    else {
        return true;
    };
    let format = node.checks.as_ref().and_then(|checks| checks.format);
    let fits = kind == JsonType::Number || fits_integer(value);
    if fits && format.is_none_or(|format| format.has(value)) {
        return true;
    }
    outcome.push(path, || {
        let format = match format {
            Some(format) => format!("with format {}", format.name()),
            None => "(default format)".to_owned(),
        };
        let (kind, place) = (kind.name(), path.as_str());
        let detail = format!("\"\": {what} value must be of type {kind} {format} in {place}");
        FieldError::new(FieldErrorKind::Invalid, path.base(), detail)
    });
    false
}

/// Returns the number that is compared with a bound: the value itself or, if the bound is not of the schema's type,
/// which is an error too, the value as a float.
fn compared(
    node: &SchemaNode,
    value: &Value,
    bound: f64,
    what: &str,
    path: &Path,
    outcome: &mut SchemaErrors,
) -> Value {
    if check_range(node, &Value::from(bound), what, path, outcome) {
        return value.clone();
    }
    value.as_f64().map_or(Value::Null, Value::from)
}

/// Checks that a number is a multiple. Follows `MultipleOfNativeType`.
fn check_multiple(compared: &Value, factor: f64, path: &Path, outcome: &mut SchemaErrors) {
    let shown = shown_bound(compared, factor);
    // Of an integer only what is before the point of a factor divides it.
    if factor <= 0.0 || compared.is_i64() && factor < 1.0 {
        let place = path.as_str();
        outcome.push(path, || {
            let detail = format!(
                "{shown}: factor MultipleOf declared for {place} must be positive: {shown}"
            );
            FieldError::new(FieldErrorKind::Invalid, path.field(), detail)
        });
    } else if !is_multiple(compared, factor) {
        outcome.invalid(path, compared, &format!("should be a multiple of {shown}"));
    }
}

impl NumberBound {
    fn excludes(self, order: std::cmp::Ordering) -> bool {
        self.exclusive && order.is_eq()
    }
}

/// Integers are compared as integers, with what is before the point of a bound, as kube-apiserver does.
#[allow(clippy::cast_possible_truncation)] // saturating is what is wanted
fn compare(value: &Value, bound: f64) -> Option<std::cmp::Ordering> {
    match value.as_i64() {
        Some(integer) => Some(integer.cmp(&(bound as i64))),
        None => value.as_f64()?.partial_cmp(&bound),
    }
}

#[allow(clippy::cast_possible_truncation)] // saturating is what is wanted
fn shown_bound(value: &Value, bound: f64) -> String {
    if value.is_i64() {
        (bound as i64).to_string()
    } else {
        go_text::float(bound)
    }
}

#[allow(clippy::cast_possible_truncation)] // saturating is what is wanted
fn is_multiple(value: &Value, factor: f64) -> bool {
    let whole = factor as i64;
    match (value.as_i64(), value.as_f64()) {
        (Some(integer), _) => integer.checked_rem(whole).is_none_or(|rest| rest == 0),
        (_, Some(float)) if factor < 1.0 => is_nearly_whole(1.0 / factor * float),
        (_, Some(float)) => is_nearly_whole(float / factor),
        _ => true,
    }
}
