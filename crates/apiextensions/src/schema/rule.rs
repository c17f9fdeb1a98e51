//! A rule of a schema in CEL (`x-kubernetes-validations`), compiled as far as it can be.

use ringwatch_apimachinery::FieldErrorKind;
use ringwatch_cel::Program;

/// One rule of `x-kubernetes-validations`.
#[derive(Debug)]
pub(super) struct Rule {
    /// The source of the rule, for messages.
    pub(super) text: String,
    /// The compiled `rule`, or why there is none, as errors tell it.
    pub(super) program: Result<Program, String>,
    /// The message for objects that violate the rule, as it was given.
    pub(super) message: Option<String>,
    /// The compiled `messageExpression`, whose result is preferred to the message.
    pub(super) message_program: Option<Result<Program, String>>,
    /// The source of the `messageExpression`.
    pub(super) message_text: Option<String>,
    /// The kind of the error, `reason`.
    pub(super) reason: FieldErrorKind,
    /// The path of the member that the error names, `fieldPath`; empty for the value itself.
    pub(super) field: String,
    /// True if the rule uses `oldSelf`: a transition rule.
    pub(super) uses_old: bool,
    /// True if a transition rule runs without an older value too: `optionalOldSelf`; `None` if that is not said.
    pub(super) optional_old: Option<bool>,
}
