//! Runs programs, which come from clients.

use std::borrow::Cow;

use kube_cel::cel::{ExecutionError, Value as CelValue};
use ringwatch_apimachinery::work;

use super::Program;
use super::interpreter::Interpreter;
use super::meter::Meter;
use super::scope::Scope;

/// Bytes of stack for the interpreter: unoptimised, it takes some 10 KB for a level of a rule's tree.
const STACK_BYTES: usize = 16 << 20;

/// Runs what runs programs where there is room for deep trees.
pub fn on_large_stack<T>(run: impl FnOnce() -> T) -> T {
    stacker::grow(STACK_BYTES, run)
}

/// Why an expression could not be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Its values are of types that do not go together.
    #[error("no such overload")]
    NoOverload,
    /// It makes a value that is larger than any may be.
    #[error("operation cancelled: a value is too large")]
    TooLarge,
    /// It costs more than one expression may.
    #[error("operation cancelled: actual cost limit exceeded")]
    CallLimit,
    /// All expressions together cost more than they may.
    #[error(
        "validation failed due to running out of cost budget, no further validation rules will be run"
    )]
    OutOfBudget,
    /// Something else, as it is told.
    #[error("{0}")]
    Other(Cow<'static, str>),
}

impl Failure {
    /// Returns true if no other outcome outweighs this failure, so that the run is over.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Self::TooLarge | Self::CallLimit | Self::OutOfBudget)
    }
}

/// Runs a program.
///
/// # Errors
/// Why it has no value; [`Failure::OutOfBudget`] also when nobody waits for the answer any more.
pub fn execute(program: &Program, scope: &Scope, meter: &mut Meter) -> Result<CelValue, Failure> {
    if work::is_abandoned() {
        return Err(Failure::OutOfBudget);
    }
    meter.begin();
    Interpreter::new(scope, meter).value(&program.expression)
}

impl From<ExecutionError> for Failure {
    fn from(error: ExecutionError) -> Self {
        let why: Cow<'static, str> = match error {
            ExecutionError::NoSuchKey(key) => format!("no such key: {key}").into(),
            ExecutionError::UndeclaredReference(name) => {
                format!("no such attribute(s): {name}").into()
            }
            ExecutionError::DivisionByZero(_) => "division by zero".into(),
            ExecutionError::RemainderByZero(_) => "modulus by zero".into(),
            ExecutionError::Overflow(..) => "integer overflow".into(),
            ExecutionError::IndexOutOfBounds(CelValue::Int(index)) => {
                format!("index out of bounds: {index}").into()
            }
            ExecutionError::IndexOutOfBounds(_) => "index out of bounds".into(),
            ExecutionError::FunctionError { message, .. } => message.into(),
            _ => return Self::NoOverload,
        };
        Self::Other(why)
    }
}
