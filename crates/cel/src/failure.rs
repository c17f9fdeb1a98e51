//! Failures of expressions, in the words of kube-apiserver.

use std::borrow::Cow;

use kube_cel::cel::{ExecutionError, Value as CelValue};

/// The value of an expression or of a part of it, or the reason why it has none.
pub(super) type ValueResult = Result<CelValue, Failure>;

/// The reason why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// A function or an operator has no overload for the types of its arguments.
    #[error("no such overload")]
    NoOverload,
    /// An operator or a function has none for the types of its arguments, and is named.
    #[error("no such overload: {0}")]
    NoOverloadOf(Cow<'static, str>),
    /// A value would exceed the maximum size of values.
    #[error("operation cancelled: a value is too large")]
    TooLarge,
    /// The expression exceeds the cost limit of one expression.
    #[error("operation cancelled: actual cost limit exceeded")]
    CallLimit,
    /// The expressions of the request exceed their cost limit together.
    #[error(
        "validation failed due to running out of cost budget, no further validation rules will be run"
    )]
    OutOfBudget,
    /// An item of a set is of a type by which Go cannot look it up, which ends the evaluation there.
    #[error("internal error: runtime error: hash of unhashable type {0}")]
    NoHash(&'static str),
    /// Any other reason, as kube-apiserver words it.
    #[error("{0}")]
    Other(Cow<'static, str>),
}

impl Failure {
    /// Returns true if the failure ends the evaluation at once; others can be overridden, as in `false && failure`.
    pub(super) fn is_final(&self) -> bool {
        matches!(
            self,
            Self::TooLarge | Self::CallLimit | Self::OutOfBudget | Self::NoHash(_)
        )
    }
}

/// Returns the failure of a member that is not there.
pub(super) fn no_such_key(name: &str) -> Failure {
    Failure::Other(format!("no such key: {name}").into())
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
            // The library's words for an argument of another type.
            ExecutionError::FunctionError { message, .. } if message.starts_with("expected ") => {
                return Self::NoOverload;
            }
            ExecutionError::FunctionError { message, .. } => message.into(),
            _ => return Self::NoOverload,
        };
        Self::Other(why)
    }
}
