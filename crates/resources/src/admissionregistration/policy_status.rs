//! Status of admission policies: what the server itself says of their expressions.

use serde_json::Value;

use super::json_path::wrong_path;
use crate::validation::conditions::conditions;
use crate::validation::field::{Errors, Field};

/// Checks an update of the status of a ValidatingAdmissionPolicy. Follows
/// `ValidateValidatingAdmissionPolicyStatusUpdate`.
pub(crate) fn policy_status(object: &Value, _old: &Value) -> Errors {
    let mut errors = Errors::new();
    let root = Field::root(object);
    for warning in root.items("status.typeChecking.expressionWarnings") {
        warning.at("warning").must_be_set(&mut errors);
        let field = warning.at("fieldRef");
        let path = field.text().trim();
        if path.is_empty() {
            errors.push(field.required(""));
        } else if let Some(why) = wrong_path(path) {
            let why = format!("invalid JSONPath: {why}");
            errors.push(field.invalid_value(path, why));
        }
    }
    conditions(&root.at("status.conditions"), &mut errors);
    errors
}
