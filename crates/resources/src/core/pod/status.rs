//! Updates of a pod's status, which nodes write.

use std::collections::{HashMap, HashSet, VecDeque};

use ringwatch_apimachinery::path::{get, get_mut, keep, list, set, text};
use ringwatch_apimachinery::validation::formats;
use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use serde_json::{Value, json};

use super::{container_transitions, status_resources};
use crate::validation::values;
use crate::validation::{Errors, Field};

const CLASS: &str = "status.qosClass";
const GENERATION: &str = "observedGeneration";

/// Keeps fields that a node of an older version leaves out: the quality of service class and the observed generations.
pub(super) fn keep_what_is_left_out(object: &mut Value, old: &Value) {
    if text(object, CLASS).is_empty() {
        keep(object, old, CLASS);
    }
    if is_unset(get(object, "status.observedGeneration")) {
        keep(object, old, "status.observedGeneration");
    }
    let mut seen: HashMap<&str, VecDeque<&Value>> = HashMap::new();
    for condition in list(old, "status.conditions") {
        let generation = condition.get(GENERATION).unwrap_or(&Value::Null);
        let kind = text(condition, "type");
        seen.entry(kind).or_default().push_back(generation);
    }
    let conditions = get_mut(object, "status.conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        let before = seen.get_mut(text(condition, "type"));
        let before = before.and_then(VecDeque::pop_front);
        if let Some(before) = before.filter(|it| !is_unset(Some(it)))
            && is_unset(condition.get(GENERATION))
        {
            set(condition, GENERATION, before.clone());
        }
    }
}

fn is_unset(generation: Option<&Value>) -> bool {
    generation.and_then(Value::as_i64).unwrap_or(0) == 0
}

/// Validates an update of the status and returns the errors of its fields. Follows `ValidatePodStatusUpdate`.
pub(super) fn forbidden(object: &Value, old: &Value) -> Vec<FieldError> {
    const NOMINATED: &str = "status.nominatedNodeName";
    let mut errors = wrong_conditions(object);
    let nominated = text(object, NOMINATED);
    if !nominated.is_empty() && nominated != text(old, NOMINATED) {
        let wrong = formats::dns_subdomain(nominated).into_iter();
        errors.extend(wrong.map(|why| FieldError::invalid(NOMINATED, &json!(nominated), why)));
        if !text(old, "spec.nodeName").is_empty() {
            let why = "may not be set on pods that are already bound to a node";
            errors.push(FieldError::forbidden(NOMINATED, why));
        }
    }
    let observed = Field::root(object);
    let observed = observed.at("status.observedGeneration");
    if observed.number().is_some_and(|number| number < 0) {
        errors.push(observed.invalid("must be a non-negative integer"));
    }
    if get(object, CLASS) != get(old, CLASS) {
        let class = get(object, CLASS).unwrap_or(&Value::Null);
        errors.push(FieldError::invalid(CLASS, class, "field is immutable"));
    }
    errors.extend(container_transitions::forbidden(object, old));
    errors.extend(status_resources::claims(object));
    errors.extend(wrong_addresses(object, old, "podIPs"));
    if let Some(first) = list(object, "status.hostIPs").first() {
        let address = text(first, "ip");
        if address != text(object, "status.hostIP") {
            let why = "must be equal to `hostIP`";
            errors.push(FieldError::invalid(
                "status.hostIPs[0].ip",
                &json!(address),
                why,
            ));
        }
    }
    errors.extend(wrong_addresses(object, old, "hostIPs"));
    errors.extend(wrong_users(object));
    errors.extend(status_resources::allocated(object));
    errors
}

/// Returns the errors of the conditions. Follows `validatePodConditions`.
fn wrong_conditions(object: &Value) -> Errors {
    let mut errors = Errors::new();
    for condition in Field::root(object).items("status.conditions") {
        let generation = condition.at(GENERATION);
        if generation.number().is_some_and(|number| number < 0) {
            errors.push(generation.invalid("must be a non-negative integer"));
        }
        let kind = condition.at("type").text();
        if !matches!(kind, "PodScheduled" | "Ready" | "Initialized") {
            let wrong = formats::label_key(kind).into_iter();
            // Kubernetes begins the name with a capital letter.
            let blamed = condition.at("Type");
            errors.extend(wrong.map(|why| blamed.invalid_value(kind, why)));
        }
    }
    errors
}

/// Returns the errors of the users as which containers run. Follows `validateContainerStatusUsers`.
fn wrong_users(object: &Value) -> Errors {
    let mut errors = Errors::new();
    let root = Field::root(object);
    let system = root.at("spec.os.name").text();
    for statuses in [
        "status.containerStatuses",
        "status.initContainerStatuses",
        "status.ephemeralContainerStatuses",
    ] {
        for status in root.items(statuses) {
            let user = status.at("user.linux");
            match system {
                "windows" => user.must_be_unset("cannot be set for a windows pod", &mut errors),
                "" | "linux" => {
                    for id in ["uid", "gid"] {
                        user.at(id).may_be_an_id(&mut errors);
                    }
                    for group in user.items("supplementalGroups") {
                        group.may_be_an_id(&mut errors);
                    }
                }
                _ => {}
            }
        }
    }
    errors
}

/// Returns the errors of the addresses of a pod or its host. Follows `validatePodIPs` and `validateHostIPs`.
fn wrong_addresses(object: &Value, old: &Value, member: &str) -> Vec<FieldError> {
    let path = format!("status.{member}");
    let all: Vec<&str> = list(object, &path)
        .iter()
        .map(|it| text(it, "ip"))
        .collect();
    let known: HashSet<&str> = list(old, &path).iter().map(|it| text(it, "ip")).collect();
    let mut errors = Vec::new();
    for (index, address) in all.iter().enumerate() {
        if known.contains(address) {
            continue;
        }
        let wrong = values::ip(address).into_iter();
        let field = format!("{path}[{index}]");
        errors.extend(wrong.map(|why| FieldError::invalid(&field, &json!(address), why)));
    }
    if all.len() < 2 {
        return errors;
    }
    let both = values::has_both_families(&all);
    if let Err(why) = &both {
        let why = format!("failed to check for dual stack with error:{why}");
        errors.push(FieldError::new(FieldErrorKind::Internal, &path, why));
    }
    if all.len() > 2 || both != Ok(true) {
        let shown: Vec<_> = all.iter().map(|it| json!({"IP": it})).collect();
        let why = "may specify no more than one IP for each IP family";
        errors.push(FieldError::invalid(path, &json!(shown), why));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validation::messages;

    #[test]
    fn nodes_that_know_less_take_nothing_away() {
        let old = json!({"status": {"qosClass": "Burstable", "observedGeneration": 3, "conditions": [
            {"type": "Ready", "observedGeneration": 2}, {"type": "Other"}]}});
        let mut new = json!({"status": {"conditions": [{"type": "Ready"}, {"type": "Other"},
            {"type": "New"}]}});
        keep_what_is_left_out(&mut new, &old);
        assert_eq!(
            new,
            json!({"status": {"qosClass": "Burstable", "observedGeneration": 3, "conditions": [
                {"type": "Ready", "observedGeneration": 2}, {"type": "Other"}, {"type": "New"}]}})
        );
        let mut newer = json!({"status": {"observedGeneration": 4,
            "conditions": [{"type": "Ready", "observedGeneration": 4}]}});
        let said = newer["status"]["conditions"].clone();
        keep_what_is_left_out(&mut newer, &old);
        assert_eq!(newer["status"]["observedGeneration"], 4);
        assert_eq!(newer["status"]["conditions"], said);
    }

    #[test]
    fn a_bound_pod_is_nominated_for_no_other_node() {
        let pod = |bound: &str, nominated: &str| json!({"spec": {"nodeName": bound}, "status": {"nominatedNodeName": nominated}});
        let refused = "status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node";
        for (bound, before, nominated, wrong) in [
            ("", "", "n", &[][..]),
            ("m", "", "n", &[refused]),
            ("m", "m", "n", &[refused]),
            ("m", "n", "n", &[]),
            ("m", "n", "", &[]),
        ] {
            let errors = forbidden(&pod(bound, nominated), &pod(bound, before));
            assert_eq!(messages(&errors), wrong, "{bound} {before} {nominated}");
        }
    }

    #[test]
    fn wrong_words_of_nodes_are_refused() {
        let old = json!({"status": {"qosClass": "Burstable", "podIPs": [{"ip": "old"}]}});
        for (status, wrong) in [
            (
                json!({"qosClass": "Burstable", "podIPs": [{"ip": "old"}]}),
                &[][..],
            ),
            (
                json!({"qosClass": "Guaranteed", "nominatedNodeName": "A"}),
                &[
                    "status.nominatedNodeName: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
                    "status.qosClass: Invalid value: \"Guaranteed\": field is immutable",
                ],
            ),
            (
                json!({"qosClass": "Burstable", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}],
                    "hostIP": "x", "hostIPs": [{"ip": "x"}]}),
                &[
                    "status.podIPs: Invalid value: [{\"IP\":\"10.0.0.1\"},{\"IP\":\"10.0.0.2\"}]: may specify no more than one IP for each IP family",
                    "status.hostIPs[0]: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
                ],
            ),
            (
                json!({"qosClass": "Burstable", "hostIP": "10.0.0.1", "hostIPs": [{"ip": "10.0.0.2"}]}),
                &["status.hostIPs[0].ip: Invalid value: \"10.0.0.2\": must be equal to `hostIP`"],
            ),
            (
                json!({"qosClass": "Burstable", "hostIP": "y", "hostIPs": [{"ip": "x"}, {"ip": "::1"}]}),
                &[
                    "status.hostIPs[0].ip: Invalid value: \"x\": must be equal to `hostIP`",
                    "status.hostIPs[0]: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
                    "status.hostIPs: Internal error: failed to check for dual stack with error:invalid IP[0]: x",
                    "status.hostIPs: Invalid value: [{\"IP\":\"x\"},{\"IP\":\"::1\"}]: may specify no more than one IP for each IP family",
                ],
            ),
            (
                json!({"qosClass": "Burstable", "conditions": [{"type": "Ready", "observedGeneration": -1},
                    {"type": "example.com/a"}, {"type": "-"}]}),
                &[
                    "status.conditions[0].observedGeneration: Invalid value: -1: must be a non-negative integer",
                    "status.conditions[2].Type: Invalid value: \"-\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                ],
            ),
            (
                json!({"qosClass": "Burstable", "initContainerStatuses": [
                    {"user": {"linux": {"uid": 1, "gid": -1, "supplementalGroups": [2, 2_147_483_648_u32]}}}]}),
                &[
                    "status.initContainerStatuses[0].user.linux.gid: Invalid value: -1: must be between 0 and 2147483647, inclusive",
                    "status.initContainerStatuses[0].user.linux.supplementalGroups[1]: Invalid value: 2147483648: must be between 0 and 2147483647, inclusive",
                ],
            ),
        ] {
            let errors = forbidden(&json!({"status": status}), &old);
            assert_eq!(messages(&errors), wrong, "{status}");
        }
        let windows = json!({"spec": {"os": {"name": "windows"}}, "status": {"qosClass": "Burstable",
            "containerStatuses": [{"user": {"linux": {"uid": -1}}}]}});
        let refused =
            "status.containerStatuses[0].user.linux: Forbidden: cannot be set for a windows pod";
        assert_eq!(messages(&forbidden(&windows, &old)), [refused]);
    }
}
