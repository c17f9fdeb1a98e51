//! Checks of numbers: their type and format, bounds and divisors.

use ringwatch_apimachinery::{FieldError, FieldErrorKind, go_text};
use serde_json::Value;

use super::kind::Kind;
use super::node::{Bound, Checks, Node};
use super::outcome::Outcome;
use super::path::{Path, ROOT};

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

/// Checks that a number fits into its type and format. Such an error has no field, but names it. Follows
/// `IsValueValidAgainstRange`.
pub(super) fn check_range(node: &Node, value: &Value, path: &Path, outcome: &mut Outcome) {
    let Some(kind @ (Kind::Integer | Kind::Number)) = node.kind.filter(|_| !node.int_or_string)
    else {
        return;
    };
    let format = node.checks.as_ref().and_then(|checks| checks.format);
    let fits = kind == Kind::Number || is_integer(value);
    if fits && format.is_none_or(|format| format.has(value)) {
        return;
    }
    outcome.push(path, || {
        let format = match format {
            Some(format) => format!("with format {}", format.name()),
            None => "(default format)".to_owned(),
        };
        let (kind, place) = (kind.name(), path.as_str());
        let detail = format!("\"\": Checked value must be of type {kind} {format} in {place}");
        FieldError::new(FieldErrorKind::Invalid, ROOT, detail)
    });
}

pub(super) fn check_number(
    checks: Option<&Checks>,
    value: &Value,
    path: &Path,
    outcome: &mut Outcome,
) {
    outcome.applied += 1;
    let Some(checks) = checks else { return };
    if let Some(factor) = checks.multiple_of
        && !is_multiple(value, factor)
    {
        let factor = shown_bound(value, factor);
        outcome.invalid(path, value, &format!("should be a multiple of {factor}"));
    }
    if let Some(bound) = checks.minimum
        && compare(value, bound.at).is_some_and(|order| order.is_lt() || bound.excludes(order))
    {
        let words = if bound.exclusive { "" } else { " or equal to" };
        let at = shown_bound(value, bound.at);
        outcome.invalid(path, value, &format!("should be greater than{words} {at}"));
    }
    if let Some(bound) = checks.maximum
        && compare(value, bound.at).is_some_and(|order| order.is_gt() || bound.excludes(order))
    {
        let words = if bound.exclusive { "" } else { " or equal to" };
        let at = shown_bound(value, bound.at);
        outcome.invalid(path, value, &format!("should be less than{words} {at}"));
    }
}

impl Bound {
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
        (Some(integer), _) if whole != 0 => integer.checked_rem(whole).is_none_or(|rest| rest == 0),
        (_, Some(float)) if factor < 1.0 => is_nearly_whole(1.0 / factor * float),
        (_, Some(float)) => is_nearly_whole(float / factor),
        _ => true,
    }
}
