//! Checks patterns, durations and timestamps that are literals of an expression.

use kube_cel::cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue};

use super::CheckError;
use crate::convert;
use crate::pattern;

/// Returns the error in a string literal that a conversion or matching function is called with.
pub(super) fn check(whole: &IdedExpr, name: &str, call: &CallExpr) -> Option<CheckError> {
    let literal = call.args.last()?;
    let Expr::Literal(LiteralValue::String(text)) = &literal.expr else {
        return None;
    };
    let text = text.inner();
    let why = match name {
        "matches" => {
            let why = pattern::check(text).err()?;
            format!("invalid matches argument: {why}")
        }
        "find" | "findAll" if call.args.len() == 1 => pattern::check(text).err()?.to_string(),
        "duration" | "timestamp" if call.args.len() == 1 && convert(name, text).is_none() => {
            format!("invalid {name} argument")
        }
        _ => return None,
    };
    let at = if name.starts_with("find") {
        whole
    } else {
        literal
    };
    Some(CheckError::at(at, why))
}
