//! Jobs whose pods are told apart by indexes, of which the status has to remember those that have failed.
//!
//! Follows `validateJobSpec` in pkg/apis/batch/validation/validation.go of Kubernetes 1.36.

use crate::validation::field::{Errors, Field};

/// Maximum numbers of an indexed job: of its pods at a time, and of its indexes that may fail.
const PARALLELISM_MAX: i64 = 100_000;
const FAILED_MAX: i64 = 100_000;
/// Number of completions above which, with a limit of failures for each index, the others have narrower bounds.
const COMPLETIONS_SOFT_MAX: i64 = 100_000;
const PARALLELISM_OF_MANY_MAX: i64 = 10_000;
const FAILED_OF_MANY_MAX: i64 = 10_000;

/// Checks the mode in which the pods of a job are counted, and the numbers that it allows.
pub(super) fn indexes(spec: &Field<'_, '_>, errors: &mut Errors) {
    let mode = spec.at("completionMode");
    mode.may_be_one_of(&["NonIndexed", "Indexed"], errors);
    match (mode.is_set(), mode.text()) {
        (true, "Indexed") => numbers(spec, errors),
        (false, _) | (true, "NonIndexed") => {
            for limit in ["backoffLimitPerIndex", "maxFailedIndexes"] {
                needs_indexes(&spec.at(limit), errors);
            }
        }
        // To Kubernetes a mode that is not known, such as an empty one, may have limits.
        (true, _) => {}
    }
}

/// Adds an error if a field is set that jobs without indexes cannot have.
pub(super) fn needs_indexes(at: &Field<'_, '_>, errors: &mut Errors) {
    if at.is_set() {
        errors.push(at.invalid("requires indexed completion mode"));
    }
}

/// Checks the numbers of an indexed job.
fn numbers(spec: &Field<'_, '_>, errors: &mut Errors) {
    let [completions, parallelism, failed] =
        ["completions", "parallelism", "maxFailedIndexes"].map(|it| spec.at(it));
    if !completions.is_set() {
        errors.push(completions.required("when completion mode is Indexed"));
    }
    let when = " when completion mode is Indexed";
    at_most(&parallelism, PARALLELISM_MAX, when, errors);
    if completions.is_set() && failed.number() > completions.number() {
        errors.push(failed.invalid("must be less than or equal to completions"));
    }
    at_most(&failed, FAILED_MAX, "", errors);
    let has_many = completions.number() > Some(COMPLETIONS_SOFT_MAX);
    if has_many && spec.at("backoffLimitPerIndex").is_set() {
        if !failed.is_set() {
            let why = format!("must be specified when completions is above {COMPLETIONS_SOFT_MAX}");
            errors.push(failed.required(&why));
        }
        let when = format!(
            " when completions are above {COMPLETIONS_SOFT_MAX} and used with backoff limit per index"
        );
        at_most(&parallelism, PARALLELISM_OF_MANY_MAX, &when, errors);
        at_most(&failed, FAILED_OF_MANY_MAX, &when, errors);
    }
}

/// Adds an error if a number is greater, with the condition under which it may not be.
fn at_most(count: &Field<'_, '_>, most: i64, when: &str, errors: &mut Errors) {
    if count.number() > Some(most) {
        errors.push(count.invalid(format!("must be less than or equal to {most}{when}")));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::validation::messages;

    fn wrong(spec: Value) -> Vec<String> {
        let job = json!({"spec": spec});
        let mut errors = Errors::new();
        indexes(&Field::root(&job).at("spec"), &mut errors);
        messages(&errors)
    }

    #[test]
    fn limits_for_each_index_need_a_mode_with_indexes_or_an_unknown_one() {
        let with = |mode: Value| {
            let spec = json!({"completionMode": mode, "completions": 3, "backoffLimitPerIndex": 1});
            wrong(spec)
        };
        let limit = "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode";
        for mode in [Value::Null, json!("NonIndexed")] {
            assert_eq!(with(mode), [limit]);
        }
        assert_eq!(with(json!("Indexed")), [""; 0]);
        for mode in ["", "Odd"] {
            let unknown = format!(
                "spec.completionMode: Unsupported value: \"{mode}\": supported values: \"NonIndexed\", \"Indexed\""
            );
            assert_eq!(with(json!(mode)), [unknown]);
        }
    }

    #[test]
    fn numbers_of_many_indexes_are_bounded() {
        let with = |completions: i64, parallelism: i64, failed: Value| {
            wrong(
                json!({"completionMode": "Indexed", "backoffLimitPerIndex": 1,
                "completions": completions, "parallelism": parallelism, "maxFailedIndexes": failed}),
            )
        };
        assert_eq!(with(100_000, 100_000, json!(100_000)), [""; 0]);
        assert_eq!(with(100_001, 10_000, json!(10_000)), [""; 0]);
        let when = "when completions are above 100000 and used with backoff limit per index";
        assert_eq!(
            with(100_001, 10_001, json!(10_001)),
            [
                format!(
                    "spec.parallelism: Invalid value: 10001: must be less than or equal to 10000 {when}"
                ),
                format!(
                    "spec.maxFailedIndexes: Invalid value: 10001: must be less than or equal to 10000 {when}"
                ),
            ]
        );
        assert_eq!(
            with(100_001, 1, Value::Null),
            [
                "spec.maxFailedIndexes: Required value: must be specified when completions is above 100000"
            ]
        );
        assert_eq!(
            wrong(json!({"completionMode": "Indexed", "completions": 200_000,
                "parallelism": 100_001, "maxFailedIndexes": 100_001})),
            [
                "spec.parallelism: Invalid value: 100001: must be less than or equal to 100000 when completion mode is Indexed",
                "spec.maxFailedIndexes: Invalid value: 100001: must be less than or equal to 100000",
            ]
        );
    }
}
