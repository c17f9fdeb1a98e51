//! The pod failure policy of a Job, which says what the failure of a pod means for it.
//!
//! Follows pkg/apis/batch/validation/validation.go of Kubernetes 1.36.

use std::collections::{BTreeSet, HashSet};

use ringwatch_apimachinery::validation::formats;

use super::success_policy::must_have_at_most;
use crate::validation::field::{Errors, Field};

/// Maximum number of rules of a failure policy.
const RULES_MAX: usize = 20;
/// Maximum number of exit codes of a rule.
const EXIT_CODES_MAX: usize = 255;
/// Maximum number of patterns of conditions of a rule.
const CONDITIONS_MAX: usize = 20;
const ACTIONS: &[&str] = &["Count", "FailIndex", "FailJob", "Ignore"];
const OPERATORS: &[&str] = &["In", "NotIn"];
const STATUSES: &[&str] = &["False", "True", "Unknown"];

/// Checks the failure policy of a Job. Follows `validatePodFailurePolicy`.
pub(super) fn failure_policy(spec: &Field<'_, '_>, errors: &mut Errors) {
    let rules = spec.at("podFailurePolicy.rules");
    must_have_at_most(RULES_MAX, &rules, errors);
    let pod = spec.at("template.spec");
    let containers = pod.items("containers").chain(pod.items("initContainers"));
    let names: HashSet<&str> = containers.map(|it| it.at("name").text()).collect();
    for rule in rules.items("") {
        self::rule(spec, &rule, &names, errors);
    }
}

/// Checks a rule about pods with these containers. Follows `validatePodFailurePolicyRule`.
fn rule(
    spec: &Field<'_, '_>,
    rule: &Field<'_, '_>,
    containers: &HashSet<&str>,
    errors: &mut Errors,
) {
    let action = rule.at("action");
    if action.is_empty() {
        errors.push(action.required(&valid(ACTIONS)));
    } else if action.text() == "FailIndex" && !spec.at("backoffLimitPerIndex").is_set() {
        errors.push(action.invalid("requires the backoffLimitPerIndex to be set"));
    } else {
        action.may_be_one_of(ACTIONS, errors);
    }
    let codes = rule.at("onExitCodes");
    if codes.is_set() {
        let operator = codes.at("operator");
        if operator.is_empty() {
            errors.push(operator.required(&valid(OPERATORS)));
        } else {
            operator.may_be_one_of(OPERATORS, errors);
        }
        let name = codes.at("containerName");
        if name.is_set() && !containers.contains(name.text()) {
            let why = "must be one of the container or initContainer names in the pod template";
            errors.push(name.invalid(why));
        }
        exit_codes(&codes, errors);
    }
    let conditions = rule.at("onPodConditions");
    must_have_at_most(CONDITIONS_MAX, &conditions, errors);
    for condition in conditions.items("") {
        condition
            .at("type")
            .must_conform(formats::label_key, errors);
        let status = condition.at("status");
        if status.is_empty() {
            errors.push(status.required(&valid(STATUSES)));
        } else {
            status.may_be_one_of(STATUSES, errors);
        }
    }
    let why = match (codes.is_set(), !conditions.is_empty()) {
        (true, true) => "specifying both OnExitCodes and OnPodConditions is not supported",
        (false, false) => "specifying one of OnExitCodes and OnPodConditions is required",
        _ => return,
    };
    let mut error = rule.invalid(why);
    error.detail = why.to_owned();
    errors.push(error);
}

/// Returns the explanation of a required value, which is one of these words.
fn valid(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|it| format!("{it:?}")).collect();
    format!("valid values: [{}]", words.join(" "))
}

/// Checks the exit codes of a rule. Follows `validatePodFailurePolicyRuleOnExitCodes`.
fn exit_codes(codes: &Field<'_, '_>, errors: &mut Errors) {
    let values = codes.at("values");
    if values.is_empty() {
        errors.push(values.invalid_value(values.value().clone(), "at least one value is required"));
    }
    must_have_at_most(EXIT_CODES_MAX, &values, errors);
    let is_in = codes.at("operator").text() == "In";
    let mut seen = BTreeSet::new();
    for code in values.items("") {
        let number = code.number().unwrap_or(0);
        if is_in && number == 0 {
            errors.push(code.invalid("must not be 0 for the In operator"));
        }
        if !seen.insert(number) {
            errors.push(code.duplicate());
        }
    }
    let numbers: Vec<_> = values.items("").map(|code| code.number()).collect();
    if !numbers.is_sorted() {
        errors.push(values.invalid("must be ordered"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::validation::messages;

    fn wrong(rules: &[Value]) -> Vec<String> {
        let job = json!({"spec": {"podFailurePolicy": {"rules": rules}, "template": {"spec": {
            "containers": [{"name": "c"}], "initContainers": [{"name": "i"}]}}}});
        let mut errors = Errors::new();
        failure_policy(&Field::root(&job).at("spec"), &mut errors);
        messages(&errors)
    }

    fn rule(member: &str, value: Value) -> Value {
        json!({"action": "Count", member: value})
    }

    fn codes(values: &[i64], container: &str) -> Value {
        let codes = json!({"operator": "In", "values": values, "containerName": container});
        rule("onExitCodes", codes)
    }

    #[test]
    fn rules_are_about_containers_and_conditions() {
        let condition = json!([{"type": "DisruptionTarget", "status": "True"}]);
        let right = [
            codes(&[1, 2], "c"),
            codes(&[3], "i"),
            rule("onPodConditions", condition),
        ];
        assert_eq!(wrong(&right), [""; 0]);
        let at = "spec.podFailurePolicy.rules[0]";
        assert_eq!(
            wrong(&[codes(&[2, 1, 0], "x")]),
            [
                format!(
                    "{at}.onExitCodes.containerName: Invalid value: \"x\": must be one of the container or initContainer names in the pod template"
                ),
                format!(
                    "{at}.onExitCodes.values[2]: Invalid value: 0: must not be 0 for the In operator"
                ),
                format!("{at}.onExitCodes.values: Invalid value: [2,1,0]: must be ordered"),
            ]
        );
        assert_eq!(
            wrong(&[rule("onPodConditions", json!([{"type": "a"}]))]),
            [format!(
                "{at}.onPodConditions[0].status: Required value: valid values: [\"False\" \"True\" \"Unknown\"]"
            )]
        );
    }

    #[test]
    fn exit_codes_are_in_or_not_in_a_list() {
        assert_eq!(
            wrong(&[rule("onExitCodes", json!({"values": [1]}))]),
            [
                "spec.podFailurePolicy.rules[0].onExitCodes.operator: Required value: valid values: [\"In\" \"NotIn\"]"
            ]
        );
    }

    #[test]
    fn a_policy_is_not_without_end() {
        let at = "spec.podFailurePolicy.rules";
        let many: Vec<i64> = (1..=256).collect();
        let rules = vec![codes(&[1], "c"); 20];
        assert_eq!(wrong(&rules), [""; 0]);
        assert_eq!(
            wrong(&[&rules[..], &[codes(&[1], "c")]].concat()),
            [format!("{at}: Too many: 21: must have at most 20 items")]
        );
        assert_eq!(wrong(&[codes(&many[..255], "c")]), [""; 0]);
        assert_eq!(
            wrong(&[codes(&many, "c")]),
            [format!(
                "{at}[0].onExitCodes.values: Too many: 256: must have at most 255 items"
            )]
        );
        let conditions = vec![json!({"type": "a", "status": "True"}); 21];
        assert_eq!(
            wrong(&[rule("onPodConditions", json!(conditions))]),
            [format!(
                "{at}[0].onPodConditions: Too many: 21: must have at most 20 items"
            )]
        );
    }
}
