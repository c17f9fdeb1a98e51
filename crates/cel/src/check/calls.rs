//! Estimates the cost of function calls and the size of their results.
//!
//! Follows `functionCost` of cel-go.

use kube_cel::cel::common::ast::operators as op;

use super::call::{CallCost, FunctionCall};
use super::library;
use super::part_estimate::{Entries, PartEstimate};
use super::ranges::Range;
use crate::types::Type;

/// The estimate of a call, arguments included.
pub(super) struct Estimate {
    pub(super) cost: Range,
    pub(super) size: Option<Range>,
    pub(super) entries: Option<Entries>,
}

/// Returns the cost of evaluating all arguments.
pub(super) fn sum(arguments: &[PartEstimate<'_>]) -> Range {
    arguments
        .iter()
        .fold(Range::NOTHING, |sum, it| sum.plus(it.cost))
}

/// Estimates the cost and the size of the result of a call.
pub(super) fn estimate(call: &FunctionCall<'_, '_>) -> Estimate {
    let all = sum(call.arguments);
    let mut estimate = Estimate {
        cost: all,
        size: None,
        entries: None,
    };
    match (call.name, call.arguments) {
        (op::LOGICAL_OR | op::LOGICAL_AND, [left, _]) => {
            estimate.cost.min = left.cost.min;
        }
        (op::CONDITIONAL, [condition, yes, no]) => {
            estimate.cost = condition.cost.plus(yes.cost.or(no.cost));
            estimate.size = Some(yes.size().or(no.size()));
            estimate.entries = either(yes, no);
        }
        (op::ADD, [left, right]) if is_sized(&call.takes[0]) => {
            let size = left.size().plus(right.size());
            let own = if matches!(call.takes[0], Type::List(_)) {
                Range::ONE
            } else {
                size.walk()
            };
            estimate.cost = all.plus(own);
            estimate.size = Some(size);
            estimate.entries = either(left, right);
        }
        _ => {
            let own = library::estimate(call).or_else(|| in_language(call));
            let (cost, size) = own.unwrap_or((Range::ONE, None));
            estimate.cost = all.plus(cost);
            estimate.size = size;
        }
    }
    estimate
}

fn either(one: &PartEstimate<'_>, other: &PartEstimate<'_>) -> Option<Entries> {
    Some(one.entries?.or(other.entries?))
}

fn is_sized(of: &Type) -> bool {
    matches!(of, Type::String | Type::Bytes | Type::List(_))
}

/// Estimates functions of the language, and those of cel-go's extension for strings that have no estimates there. Sizes
/// overflow where they do in cel-go.
fn in_language(call: &FunctionCall<'_, '_>) -> Option<CallCost> {
    let sizes: Vec<Range> = call.arguments.iter().map(PartEstimate::size).collect();
    let target = call.target.map(PartEstimate::size);
    Some(match (call.name, call.takes, target, sizes.as_slice()) {
        ("format", _, Some(format), [_]) => (format.walk(), None),
        ("bytes", [Type::String], _, [text]) => {
            let made = Range {
                min: text.min,
                max: text.max.wrapping_mul(4),
            };
            (text.walk(), Some(made))
        }
        ("string", [Type::Bytes], _, [bytes]) => {
            let made = Range {
                min: bytes.min / 4,
                max: bytes.max,
            };
            (bytes.walk(), Some(made))
        }
        ("strings.quote", _, _, [text]) => {
            let made = Range {
                min: text.min.wrapping_add(2),
                max: text.max.wrapping_mul(2).wrapping_add(2),
            };
            (text.walk(), Some(made))
        }
        ("startsWith" | "endsWith", _, _, [part]) => (part.walk(), None),
        (op::IN, [_, Type::List(_)], _, [_, all]) => (all.scaled(1.0), None),
        // The function of two arguments has no estimate of its own.
        ("matches", _, Some(text), [pattern]) => (text.search(*pattern), None),
        ("contains", _, Some(text), [part]) => (text.walk().times(part.walk()), None),
        (op::EQUALS | op::NOT_EQUALS, _, _, [left, right]) => (shorter(*left, *right), None),
        (
            op::LESS | op::LESS_EQUALS | op::GREATER | op::GREATER_EQUALS,
            [Type::String | Type::Bytes, _],
            _,
            [left, right],
        ) => (shorter(*left, *right), None),
        _ => return None,
    })
}

/// Estimates a comparison of two values, which takes as long as the shorter one.
fn shorter(left: Range, right: Range) -> Range {
    let max = left.max.min(right.max);
    let both = Range {
        min: u64::from(max > 0),
        max,
    };
    both.walk()
}
