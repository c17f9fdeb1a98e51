//! Status of admission policies: what the server itself says of their expressions.

use serde_json::Value;

use crate::validation::conditions::conditions;
use crate::validation::field::{Errors, Field};

/// Checks an update of the status of a ValidatingAdmissionPolicy. Follows
/// `ValidateValidatingAdmissionPolicyStatusUpdate`; the syntax of the path of a field is not looked at.
pub(crate) fn policy_status(object: &Value, _old: &Value) -> Errors {
    let mut errors = Errors::new();
    let root = Field::root(object);
    for warning in root.items("status.typeChecking.expressionWarnings") {
        warning.at("warning").must_be_set(&mut errors);
        let field = warning.at("fieldRef");
        if field.text().trim().is_empty() {
            errors.push(field.required(""));
        }
    }
    conditions(&root.at("status.conditions"), &mut errors);
    errors
}
