//! Evaluates the constants of an expression as cel-go does when it makes a program of one: conversions of literals, and
//! patterns. One that fails is an error, though the expression might never come to it.

use kube_cel::cel::common::ast::operators as op;
use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue};

use crate::failure::Failure;
use crate::interpreter::Interpreter;
use crate::meter::Meter;
use crate::scope::Scope;
use crate::{parts, pattern, type_values};

/// The functions that are evaluated on constants. Follows `IsTypeConversionFunction` of cel-go.
const CONVERSIONS: [&str; 10] = [
    "bool",
    "bytes",
    "double",
    "duration",
    "dyn",
    "int",
    "string",
    "timestamp",
    "type",
    "uint",
];

/// Checks the constants of an expression. The error is what is wrong with the first.
pub(super) fn check(expression: &IdedExpr) -> Result<(), String> {
    let mut outcome = Ok(());
    parts::for_each_of(expression, &mut |part| {
        if outcome.is_ok()
            && let Expr::Call(call) = &part.expr
        {
            outcome = check_call(part, call);
        }
    });
    outcome
}

fn check_call(part: &IdedExpr, call: &CallExpr) -> Result<(), String> {
    match (call.func_name.as_str(), call.args.as_slice()) {
        (op::INDEX | op::OPT_INDEX, [_, place]) => match literal(place) {
            Some(LiteralValue::Bytes(_)) => Err("invalid qualifier type: types.Bytes".to_owned()),
            Some(LiteralValue::Null) => Err("invalid qualifier type: types.Null".to_owned()),
            _ => Ok(()),
        },
        ("find" | "findAll", [pattern, ..]) if call.target.is_some() => match literal(pattern) {
            Some(LiteralValue::String(text)) => {
                pattern::check(text.inner()).map_err(|why| why.to_string())?;
                Ok(())
            }
            _ => Ok(()),
        },
        (name, [value]) if call.target.is_none() && CONVERSIONS.contains(&name) => {
            if is_constant(value) {
                evaluate(part)
            } else {
                Ok(())
            }
        }
        _ => Ok(()),
    }
}

/// Returns the literal that a part is, also one that is made `dyn`.
fn literal(part: &IdedExpr) -> Option<&LiteralValue> {
    match &part.expr {
        Expr::Literal(literal) => Some(literal),
        Expr::Call(call) if call.func_name == "dyn" => literal(call.args.first()?),
        _ => None,
    }
}

/// Returns true if a part is a literal or a type, made of these, or a conversion of them.
fn is_constant(part: &IdedExpr) -> bool {
    match &part.expr {
        Expr::Literal(_) => true,
        Expr::Ident(name) => type_values::named(name).is_some(),
        Expr::List(list) => {
            list.optional_indices.is_empty() && list.elements.iter().all(is_constant)
        }
        Expr::Map(map) => map.entries.iter().all(|entry| match &entry.expr {
            EntryExpr::MapEntry(it) => {
                !it.optional && is_constant(&it.key) && is_constant(&it.value)
            }
            EntryExpr::StructField(_) => false,
        }),
        Expr::Call(call) => {
            call.target.is_none()
                && CONVERSIONS.contains(&call.func_name.as_str())
                && call.args.len() == 1
                && is_constant(&call.args[0])
        }
        _ => false,
    }
}

fn evaluate(part: &IdedExpr) -> Result<(), String> {
    let (scope, mut meter) = (Scope::default(), Meter::new());
    match Interpreter::new(&scope, &mut meter).value(part) {
        Ok(_) | Err(Failure::TooLarge | Failure::CallLimit | Failure::OutOfBudget) => Ok(()),
        Err(why) => Err(why.to_string()),
    }
}
