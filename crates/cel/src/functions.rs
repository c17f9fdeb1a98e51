//! The library's functions that expressions may call.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

use kube_cel::KubeCelExt as _;
use kube_cel::cel::common::ast::{CallExpr, Expr, IdedExpr};
use kube_cel::cel::{Context, Value as CelValue};

use super::failure::{Failure, ValueResult};

/// The functions that expressions may call.
pub(super) static FUNCTIONS: LazyLock<Context<'static>> =
    LazyLock::new(|| Context::default().with_all());

/// Calls a function of the library. It is not ours, and values come from clients: if it panics, that is an error of the
/// expression. Nothing is shared with it that could be left half-done.
pub(super) fn in_library(
    name: &str,
    target: Option<CelValue>,
    arguments: Vec<CelValue>,
) -> ValueResult {
    let variable = |name: String| IdedExpr {
        id: 0,
        expr: Expr::Ident(name),
    };
    let mut context: Context<'_> = FUNCTIONS.new_inner_scope();
    let target = target.map(|value| {
        context.add_variable_from_value("@target", value);
        Box::new(variable("@target".to_owned()))
    });
    let mut args = Vec::with_capacity(arguments.len());
    for (index, value) in arguments.into_iter().enumerate() {
        let name = format!("@{index}");
        context.add_variable_from_value(name.clone(), value);
        args.push(variable(name));
    }
    let call = IdedExpr {
        id: 0,
        expr: Expr::Call(CallExpr {
            func_name: name.to_owned(),
            target,
            args,
        }),
    };
    let run = AssertUnwindSafe(|| CelValue::resolve(&call, &context));
    match catch_unwind(run) {
        Ok(outcome) => Ok(outcome?),
        Err(_) => Err(Failure::Other("internal error".into())),
    }
}
