//! Runs programs, which come from clients.

use kube_cel::cel::Value as CelValue;
use ringwatch_offload::is_abandoned;

use super::compile::Program;
use super::failure::Failure;
use super::interpreter::Interpreter;
use super::meter::Meter;
use super::scope::Scope;

/// Bytes of stack for the interpreter: unoptimised, it takes some 10 KB for a level of a rule's tree.
const STACK_BYTES: usize = 16 << 20;

/// Calls a function on a stack of 16 MiB, which has room for the deepest tree that an expression may have.
pub fn on_large_stack<T>(run: impl FnOnce() -> T) -> T {
    stacker::grow(STACK_BYTES, run)
}

/// Evaluates a program with the variables of `scope`, and charges what it costs to `meter`.
///
/// # Errors
/// The [`Failure`] of the evaluation; [`Failure::OutOfBudget`] also if nobody waits for the answer of the request any
/// more.
pub fn execute(program: &Program, scope: &Scope, meter: &mut Meter) -> Result<CelValue, Failure> {
    if is_abandoned() {
        return Err(Failure::OutOfBudget);
    }
    meter.begin();
    let outcome = Interpreter::new(scope, meter).value(&program.expression);
    meter.end()?;
    outcome
}
