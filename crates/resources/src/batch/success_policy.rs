//! The success policy of a Job, which lets it succeed before all of its indexes have.
//!
//! Follows pkg/apis/batch/validation/validation.go of Kubernetes 1.36.

use ringwatch_apimachinery::{FieldError, FieldErrorKind};

use crate::validation::field::{Errors, Field};

/// Maximum number of rules of a success policy.
const RULES_MAX: usize = 20;
/// Maximum length of a list of indexes, in bytes.
const INDEXES_BYTES_MAX: usize = 64 * 1024;

/// Checks the success policy of an indexed Job. Follows `validateSuccessPolicy`.
pub(super) fn success_policy(spec: &Field<'_, '_>, errors: &mut Errors) {
    let policy = spec.at("successPolicy");
    let Some(completions) = spec.at("completions").number().filter(|_| policy.is_set()) else {
        return;
    };
    let rules = policy.at("rules");
    if rules.is_empty() {
        let why = "at least one rules must be specified when the successPolicy is specified";
        errors.push(rules.required(why));
    }
    must_have_at_most(RULES_MAX, &rules, errors);
    for rule in rules.items("") {
        self::rule(&rule, completions, errors);
    }
}

/// Adds an error if a list is longer.
pub(super) fn must_have_at_most(most: usize, list: &Field<'_, '_>, errors: &mut Errors) {
    if list.len() > most {
        let why = format!("{}: must have at most {most} items", list.len());
        errors.push(FieldError::new(FieldErrorKind::TooMany, list.field(), why));
    }
}

fn rule(rule: &Field<'_, '_>, completions: i64, errors: &mut Errors) {
    let [indexes, count] = ["succeededIndexes", "succeededCount"].map(|it| rule.at(it));
    if !indexes.is_set() && !count.is_set() {
        let why = "at least one of succeededCount or succeededIndexes must be specified";
        errors.push(rule.required(why));
    }
    let mut named = 0;
    if indexes.is_set() {
        indexes.must_have_at_most(INDEXES_BYTES_MAX, errors);
        match count_of_indexes(indexes.text(), completions) {
            Ok(count) => named = count,
            Err(why) => {
                errors.push(indexes.invalid(format!("error parsing succeededIndexes: {why}")));
            }
        }
    }
    let Some(number) = count.number() else {
        return;
    };
    count.must_not_be_negative(errors);
    if number > completions {
        let why = format!(
            "must be less than or equal to {completions} (the number of specified completions)"
        );
        errors.push(count.invalid(why));
    }
    if indexes.is_set() && number > named {
        let why = format!(
            "must be less than or equal to {named} (the number of indexes in the specified succeededIndexes field)"
        );
        errors.push(count.invalid(why));
    }
}

/// Returns an interval of indexes, such as `3-5` or `4`, below the number of all.
fn interval(text: &str, all: i64) -> Result<(i64, i64), String> {
    let index = |text: &str| -> Result<i64, String> {
        let index: i64 = text
            .parse()
            .map_err(|_| format!("cannot convert string to integer for index: {text:?}"))?;
        if index >= all {
            return Err(format!("too large index: {text:?}"));
        }
        Ok(index)
    };
    let mut parts = text.split('-');
    let (first, end) = (parts.next().unwrap_or_default(), parts.next());
    if parts.next().is_some() {
        return Err(format!(
            "the fragment {text:?} violates the requirement that an index interval can have at most two parts separated by '-'"
        ));
    }
    let first = index(first)?;
    match end.map(index).transpose()? {
        None => Ok((first, first)),
        Some(end) => rising(first, end).map(|()| (first, end)),
    }
}

fn rising(previous: i64, current: i64) -> Result<(), String> {
    if previous >= current {
        let why = format!("non-increasing order, previous: {previous}, current: {current}");
        return Err(why);
    }
    Ok(())
}

/// Returns an index that both texts name, if there is one. An invalid interval has none. Follows
/// `validateFailedIndexesNotOverlapCompleted`.
pub(super) fn common_index(one: &str, other: &str, all: i64) -> Option<i64> {
    let intervals = |text: &str| -> Vec<(i64, i64)> {
        let each = text.split(',').map(|it| interval(it, all));
        each.filter_map(Result::ok).collect()
    };
    let (one, other) = (intervals(one), intervals(other));
    let (mut left, mut right) = (one.iter().peekable(), other.iter().peekable());
    while let (Some((a, b)), Some((c, d))) = (left.peek(), right.peek()) {
        if a <= d && c <= b {
            return Some(*a.max(c));
        }
        if a <= c {
            left.next()
        } else {
            right.next()
        };
    }
    None
}

/// Returns the number of indexes in a text such as `1,3-5`: rising ones, below the number of all. Follows
/// `validateIndexesFormat`.
pub(super) fn count_of_indexes(text: &str, all: i64) -> Result<i64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    let (mut last, mut count) = (None, 0);
    for part in text.split(',') {
        let (first, end) = interval(part, all)?;
        if let Some(last) = last {
            rising(last, first)?;
        }
        count += end - first + 1;
        last = Some(end);
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::validation::messages;

    fn wrong(rules: Value) -> Vec<String> {
        let job = json!({"spec": {"completions": 5, "successPolicy": {"rules": rules}}});
        let mut errors = Errors::new();
        success_policy(&Field::root(&job).at("spec"), &mut errors);
        messages(&errors)
    }

    #[test]
    fn indexes_are_counted() {
        for (text, count) in [
            ("", Ok(0)),
            ("0", Ok(1)),
            ("0,2-4", Ok(4)),
            ("5", Err("too large index: \"5\"")),
            (
                "1,x",
                Err("cannot convert string to integer for index: \"x\""),
            ),
            (
                "1,",
                Err("cannot convert string to integer for index: \"\""),
            ),
            ("2,1", Err("non-increasing order, previous: 2, current: 1")),
            ("3-2", Err("non-increasing order, previous: 3, current: 2")),
        ] {
            assert_eq!(
                count_of_indexes(text, 5),
                count.map_err(str::to_owned),
                "{text}"
            );
        }
        assert!(count_of_indexes("0-1-2", 5).is_err());
    }

    #[test]
    fn common_indexes_are_found() {
        for (one, other, common) in [
            ("0,2-4", "1,5", None),
            ("0,2-4", "1,3", Some(3)),
            ("x,7", "7", Some(7)),
            ("0-3", "x", None),
            ("", "1", None),
            ("5-9", "1-6", Some(5)),
        ] {
            assert_eq!(common_index(one, other, 10), common, "{one} {other}");
        }
    }

    #[test]
    fn policies_that_cannot_be_met_are_refused() {
        assert_eq!(
            wrong(json!([{"succeededIndexes": "0-2", "succeededCount": 2}])),
            [""; 0]
        );
        assert_eq!(
            wrong(json!([])),
            [
                "spec.successPolicy.rules: Required value: at least one rules must be specified when the successPolicy is specified"
            ]
        );
        assert_eq!(
            wrong(
                json!([{}, {"succeededCount": 6}, {"succeededIndexes": "0-1", "succeededCount": 3},
                {"succeededIndexes": "x", "succeededCount": -1}])
            ),
            [
                "spec.successPolicy.rules[0]: Required value: at least one of succeededCount or succeededIndexes must be specified",
                "spec.successPolicy.rules[1].succeededCount: Invalid value: 6: must be less than or equal to 5 (the number of specified completions)",
                "spec.successPolicy.rules[2].succeededCount: Invalid value: 3: must be less than or equal to 2 (the number of indexes in the specified succeededIndexes field)",
                "spec.successPolicy.rules[3].succeededIndexes: Invalid value: \"x\": error parsing succeededIndexes: cannot convert string to integer for index: \"x\"",
                "spec.successPolicy.rules[3].succeededCount: Invalid value: -1: must be greater than or equal to 0",
            ]
        );
        let many: Vec<_> = (0..21).map(|_| json!({"succeededCount": 1})).collect();
        assert_eq!(
            wrong(json!(many)),
            ["spec.successPolicy.rules: Too many: 21: must have at most 20 items"]
        );
    }
}
