//! The policy by which claims take parts of a capacity that several of them share.
//!
//! Follows pkg/apis/resource/validation/validation.go of Kubernetes 1.36.

use std::collections::BTreeSet;

use ringwatch_apimachinery::quantity::Amount;

use super::limits::has_too_many;
use crate::validation::field::{Errors, Field};

/// Maximum number of amounts of which claims choose one.
const VALUES_MAX: usize = 10;

/// Checks the policy of a capacity. Follows `validateRequestPolicy`.
pub(super) fn request_policy(capacity: &Field<'_, '_>, errors: &mut Errors) {
    let policy = capacity.at("requestPolicy");
    if !policy.is_set() {
        return;
    }
    let (values, range) = (policy.at("validValues"), policy.at("validRange"));
    let most = amount(&capacity.at("value")).unwrap_or_else(zero);
    let has = |what: &str, errors: &mut Errors| {
        let default = policy.at("default");
        if !default.is_set() {
            errors.push(default.required(&format!("required when {what} is defined")));
        }
        amount(&default)
    };
    match (!values.is_empty(), range.is_set()) {
        (true, true) => {
            let why = "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the same time";
            errors.push(policy.forbidden(why));
        }
        (true, false) => {
            if let Some(default) = has("validValues", errors) {
                valid_values(&values, default, most, errors);
            }
        }
        (false, true) => {
            if let Some(default) = has("validRange", errors) {
                valid_range(&range, default, most, errors);
            }
        }
        (false, false) => {}
    }
}

/// Follows `validateRequestPolicyValidValues`.
fn valid_values(values: &Field<'_, '_>, default: Amount, most: Amount, errors: &mut Errors) {
    let mut last: Option<Amount> = None;
    for value in values.items("") {
        let now = amount(&value).unwrap_or_else(zero);
        if last.is_some_and(|last| last.quantity > now.quantity) {
            errors.push(
                value.invalid_value(now.to_string(), "values must be sorted in ascending order"),
            );
        }
        last = Some(now);
    }
    let mut has_default = false;
    if !has_too_many(values, VALUES_MAX, errors) {
        for value in values.items("") {
            let now = amount(&value).unwrap_or_else(zero);
            if now.quantity > most.quantity {
                let why = format!("option is larger than capacity value: {most}");
                errors.push(value.invalid_value(now.to_string(), why));
            }
            has_default |= now.quantity == default.quantity;
        }
        let mut seen = BTreeSet::new();
        for value in values.items("") {
            let whole = amount(&value).unwrap_or_else(zero).quantity.rounded_up();
            if !seen.insert(whole) {
                errors.push(value.duplicate_of(&whole.to_string()));
            }
        }
    }
    if !has_default {
        let why = "default value is not valid according to the requestPolicy";
        errors.push(values.invalid_value(default.to_string(), why));
    }
}

/// Follows `validateRequestPolicyRange`.
fn valid_range(range: &Field<'_, '_>, default: Amount, most: Amount, errors: &mut Errors) {
    let [lower, upper, step] = ["min", "max", "step"].map(|it| range.at(it));
    let Some(min) = amount(&lower) else {
        errors.push(lower.required("required when validRange is defined"));
        return;
    };
    let max = amount(&upper);
    let mut wrong = |is_wrong: bool, at: &Field<'_, '_>, shown: Amount, why: String| {
        if is_wrong {
            errors.push(at.invalid_value(shown.to_string(), why));
        }
    };
    let is_more = |one: Amount, other: Amount| one.quantity > other.quantity;
    let why = format!("min is larger than capacity value: {most}");
    wrong(is_more(min, most), &lower, min, why);
    let why = format!("default is less than min: {min}");
    wrong(is_more(min, default), &lower, default, why);
    if let Some(max) = max {
        let why = format!("min is larger than max: {max}");
        wrong(is_more(min, max), &upper, min, why);
        let why = format!("max is larger than capacity value: {most}");
        wrong(is_more(max, most), &upper, max, why);
        let why = format!("default is more than max: {max}");
        wrong(is_more(default, max), &upper, default, why);
    }
    let Some(by) = amount(&step) else { return };
    let first = min.plus(by);
    let why = format!("one step {first} is larger than capacity value: {most}");
    wrong(is_more(first, most), &step, by, why);
    for value in [Some(default), max].into_iter().flatten() {
        let why = format!("value is not a multiple of a given step ({by}) from ({min})");
        wrong(!is_stepped(value, min, by), &step, value, why);
    }
}

/// Returns true if a value is some steps from the least one. All are rounded up. Follows
/// `validateRequestPolicyRangeStep`, which fails at a step of zero.
fn is_stepped(value: Amount, min: Amount, step: Amount) -> bool {
    let [value, min, step] = [value, min, step].map(|it| it.quantity.rounded_up());
    value.wrapping_sub(min).checked_rem(step) == Some(0)
}

fn amount(at: &Field<'_, '_>) -> Option<Amount> {
    at.quantity_text().parse().ok()
}

fn zero() -> Amount {
    Amount::whole(0)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::validation::messages;

    fn wrong(policy: Value) -> Vec<String> {
        let capacity = json!({"value": "10Gi", "requestPolicy": policy});
        let mut errors = Errors::new();
        request_policy(&Field::root(&capacity), &mut errors);
        let lines = messages(&errors).into_iter();
        lines
            .map(|it| it.replacen("requestPolicy", "p", 1))
            .collect()
    }

    #[test]
    fn one_of_some_amounts_is_the_default() {
        let values = ["1Gi", "2Gi"];
        assert_eq!(
            wrong(json!({"default": "2Gi", "validValues": values})),
            [""; 0]
        );
        assert_eq!(wrong(json!({})), [""; 0]);
        for (policy, expected) in [
            (
                json!({"default": "1Gi", "validValues": values, "validRange": {"min": "1"}}),
                vec![
                    "p: Forbidden: exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the same time",
                ],
            ),
            (
                json!({"validValues": values}),
                vec!["p.default: Required value: required when validValues is defined"],
            ),
            (
                json!({"default": "3Gi", "validValues": ["2Gi", "1Gi", "1024Mi", "11Gi"]}),
                vec![
                    "p.validValues[1]: Invalid value: \"1Gi\": values must be sorted in ascending order",
                    "p.validValues[3]: Invalid value: \"11Gi\": option is larger than capacity value: 10Gi",
                    "p.validValues[2]: Duplicate value: \"1073741824\"",
                    "p.validValues: Invalid value: \"3Gi\": default value is not valid according to the requestPolicy",
                ],
            ),
            (
                json!({"default": "1", "validValues": (1..12).map(|it| it.to_string()).collect::<Vec<_>>()}),
                vec![
                    "p.validValues: Too many: 11: must have at most 10 items",
                    "p.validValues: Invalid value: \"1\": default value is not valid according to the requestPolicy",
                ],
            ),
        ] {
            assert_eq!(wrong(policy), expected);
        }
    }

    #[test]
    fn amounts_of_a_range_lie_in_it() {
        let range = json!({"min": "1Gi", "max": "4Gi", "step": "1Gi"});
        assert_eq!(
            wrong(json!({"default": "2Gi", "validRange": range})),
            [""; 0]
        );
        for (default, range, expected) in [
            (
                json!(null),
                range,
                vec!["p.default: Required value: required when validRange is defined"],
            ),
            (
                json!("1"),
                json!({"max": "1"}),
                vec!["p.validRange.min: Required value: required when validRange is defined"],
            ),
            (
                json!("1Gi"),
                json!({"min": "11Gi", "max": "12Gi"}),
                vec![
                    "p.validRange.min: Invalid value: \"11Gi\": min is larger than capacity value: 10Gi",
                    "p.validRange.min: Invalid value: \"1Gi\": default is less than min: 11Gi",
                    "p.validRange.max: Invalid value: \"12Gi\": max is larger than capacity value: 10Gi",
                ],
            ),
            (
                json!("5Gi"),
                json!({"min": "3Gi", "max": "2Gi"}),
                vec![
                    "p.validRange.max: Invalid value: \"3Gi\": min is larger than max: 2Gi",
                    "p.validRange.max: Invalid value: \"5Gi\": default is more than max: 2Gi",
                ],
            ),
            (
                json!("2"),
                json!({"min": "1", "max": "5", "step": "3"}),
                vec![
                    "p.validRange.step: Invalid value: \"2\": value is not a multiple of a given step (3) from (1)",
                    "p.validRange.step: Invalid value: \"5\": value is not a multiple of a given step (3) from (1)",
                ],
            ),
            (
                json!("1"),
                json!({"min": "1", "step": "0"}),
                vec![
                    "p.validRange.step: Invalid value: \"1\": value is not a multiple of a given step (0) from (1)",
                ],
            ),
            (
                json!("1Gi"),
                json!({"min": "1Gi", "step": "10Gi"}),
                vec![
                    "p.validRange.step: Invalid value: \"10Gi\": one step 11Gi is larger than capacity value: 10Gi",
                ],
            ),
        ] {
            assert_eq!(
                wrong(json!({"default": default, "validRange": range})),
                expected
            );
        }
    }
}
