//! Runs programs, which come from clients.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use kube_cel::cel::{Context, ExecutionError, Program, Value as CelValue};

/// Bytes of stack for the interpreter: unoptimised, it takes 35 KB for a level of a rule's tree.
const STACK_BYTES: usize = 16 << 20;

/// Runs what runs programs where there is room for deep trees.
pub(in crate::registry) fn on_large_stack<T>(run: impl FnOnce() -> T) -> T {
    stacker::grow(STACK_BYTES, run)
}

/// Why an expression could not be run.
pub(in crate::registry) enum Failure {
    /// Its values are of types that do not go together.
    NoOverload,
    /// Something else, as it is told.
    Other(Cow<'static, str>),
}

/// Runs a program. Expressions and values come from clients, and the functions are not ours: if one of them panics, that
/// is an error of the expression. Nothing is shared with it that could be left half-done.
pub(in crate::registry) fn execute(
    program: &Program,
    scope: &Context<'_>,
) -> Result<CelValue, Failure> {
    let run = AssertUnwindSafe(|| program.execute(scope));
    match catch_unwind(run) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(failure(error)),
        Err(_) => Err(Failure::Other(Cow::Borrowed("internal error"))),
    }
}

fn failure(error: ExecutionError) -> Failure {
    let why: Cow<'static, str> = match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}").into(),
        ExecutionError::UndeclaredReference(name) => format!("no such attribute(s): {name}").into(),
        ExecutionError::DivisionByZero(_) => "division by zero".into(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".into(),
        ExecutionError::Overflow(..) => "integer overflow".into(),
        ExecutionError::IndexOutOfBounds(CelValue::Int(index)) => {
            format!("index out of bounds: {index}").into()
        }
        ExecutionError::IndexOutOfBounds(_) => "index out of bounds".into(),
        ExecutionError::FunctionError { message, .. } => message.into(),
        _ => return Failure::NoOverload,
    };
    Failure::Other(why)
}
