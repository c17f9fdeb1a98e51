//! Conditions of the type that all kinds share, `metav1.Condition`.
//!
//! Follows staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go of Kubernetes 1.36.

use std::collections::BTreeSet;

use ringwatch_apimachinery::validation::formats::{label_key, mismatch};

use super::field::{Errors, Field};

/// Maximum length of a reason, in bytes.
const REASON_BYTES_MAX: usize = 1024;
/// Maximum length of a message, in bytes.
const MESSAGE_BYTES_MAX: usize = 32 * 1024;

/// Checks a list of conditions, of which each type occurs once. Follows `ValidateConditions`.
pub(crate) fn conditions(list: &Field<'_, '_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for condition in list.items("") {
        let kind = condition.at("type");
        if !seen.insert(kind.text()) {
            errors.push(kind.duplicate_of(kind.text()));
        }
        self::condition(&condition, errors);
    }
}

/// Checks one condition. Follows `ValidateCondition`.
fn condition(at: &Field<'_, '_>, errors: &mut Errors) {
    at.at("type").must_conform(label_key, errors);
    let status = at.at("status");
    if !matches!(status.text(), "False" | "True" | "Unknown") {
        errors.push(status.unsupported(&["False", "True", "Unknown"]));
    }
    let generation = at.at("observedGeneration");
    if generation.number().is_some_and(|number| number < 0) {
        errors.push(generation.invalid("must be greater than or equal to zero"));
    }
    at.at("lastTransitionTime").must_be_set(errors);
    let reason = at.at("reason");
    reason.must_be_set_and_conform(format_of_reason, errors);
    reason.must_have_at_most(REASON_BYTES_MAX, errors);
    at.at("message")
        .must_have_at_most(MESSAGE_BYTES_MAX, errors);
}

/// Returns the error in the reason of a condition.
fn format_of_reason(reason: &str) -> Vec<String> {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let bytes = reason.as_bytes();
    let begins = bytes.first().is_some_and(u8::is_ascii_alphabetic);
    let ends = bytes.last().copied().is_some_and(word);
    if begins && ends && bytes.iter().all(|byte| word(*byte) || b",:".contains(byte)) {
        return Vec::new();
    }
    vec![mismatch(
        "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'",
        "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?",
        &[
            "my_name",
            "MY_NAME",
            "MyName",
            "ReasonA,ReasonB",
            "ReasonA:ReasonB",
        ],
    )]
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::validation::{found, messages};

    #[test]
    fn a_condition_has_a_type_a_status_a_time_and_a_reason() {
        let good = json!({"type": "Ready", "status": "True", "reason": "All:Well_1",
            "lastTransitionTime": "2026-01-02T03:04:05Z"});
        let check: crate::validation::ObjectCheck = |list, errors| conditions(list, errors);
        let with = |member: &str, value: Value| {
            let mut other = good.clone();
            other[member] = value;
            other
        };
        let long = "x".repeat(REASON_BYTES_MAX + 1);
        for (list, wrong) in [
            (json!([good, with("type", json!("Other"))]), vec![]),
            (
                json!([good, good]),
                vec!["[1].type: Duplicate value: \"Ready\""],
            ),
            (
                json!([with("status", json!("Odd"))]),
                vec![
                    "[0].status: Unsupported value: \"Odd\": supported values: \"False\", \"True\", \"Unknown\"",
                ],
            ),
            (
                json!([with("observedGeneration", json!(-1))]),
                vec![
                    "[0].observedGeneration: Invalid value: -1: must be greater than or equal to zero",
                ],
            ),
            (
                json!([with("lastTransitionTime", json!(null))]),
                vec!["[0].lastTransitionTime: Required value"],
            ),
            (
                json!([with("reason", json!(""))]),
                vec!["[0].reason: Required value"],
            ),
            (
                json!([with("reason", json!(long))]),
                vec!["[0].reason: Too long: may not be more than 1024 bytes"],
            ),
        ] {
            assert_eq!(messages(&found(check, &list)), wrong, "{list}");
        }
        for reason in ["1a", "a:", "a b", "é"] {
            assert_eq!(format_of_reason(reason).len(), 1, "{reason}");
        }
    }
}
