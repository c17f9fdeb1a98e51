//! Checks patterns, durations and timestamps that are literals of an expression.

use kube_cel::cel::common::ast::{CallExpr, Expr, LiteralValue};

use crate::part_error::PartError;
use crate::pattern;
use crate::{arithmetic, convert};

/// Returns the error in a literal that a conversion or matching function is called with.
pub(super) fn check(name: &str, call: &CallExpr) -> Option<PartError> {
    let literal = call.args.last()?;
    let Expr::Literal(value) = &literal.expr else {
        return None;
    };
    let is_right = match (name, value) {
        ("matches", LiteralValue::String(pattern)) => pattern::check(pattern.inner()).is_ok(),
        ("duration" | "timestamp", LiteralValue::String(text)) if call.args.len() == 1 => {
            convert(name, text.inner()).is_some()
        }
        ("timestamp", LiteralValue::Int(seconds)) => arithmetic::is_time(*seconds.inner()),
        // It is declared, and has no value.
        ("duration", LiteralValue::Int(_)) => false,
        _ => true,
    };
    let error = || PartError::at(literal.id, format!("invalid {name} argument"));
    (!is_right).then(error)
}
