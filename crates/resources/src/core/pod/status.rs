//! Updates of a pod's status, which nodes write.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::IpAddr;

use ringwatch_apimachinery::FieldError;
use ringwatch_apimachinery::path::{get, get_mut, keep, list, set, text};
use ringwatch_apimachinery::validation::formats;
use serde_json::{Value, json};

use super::status_resources;
use crate::validation::Field;
use crate::validation::values;

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

/// Validates an update of the status and returns the errors of its fields.
pub(super) fn forbidden(object: &Value, old: &Value) -> Vec<FieldError> {
    const NOMINATED: &str = "status.nominatedNodeName";
    let mut errors = Vec::new();
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
    for (statuses, containers) in [
        ("containerStatuses", "containers"),
        ("initContainerStatuses", "initContainers"),
    ] {
        errors.extend(restarted(object, old, statuses, containers));
    }
    errors.extend(status_resources::claims(object));
    for addresses in ["podIPs", "hostIPs"] {
        errors.extend(wrong_addresses(object, old, addresses));
    }
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
    errors.extend(status_resources::allocated(object));
    errors
}

/// Returns an error for each terminated container that is not terminated now, though its restart policy forbids a
/// restart.
fn restarted(object: &Value, old: &Value, statuses: &str, containers: &str) -> Vec<FieldError> {
    let path = format!("status.{statuses}");
    if text(old, "spec.restartPolicy") == "Always" {
        return Vec::new();
    }
    let running = list(object, &path)
        .iter()
        .filter(|it| get(it, "state.terminated").is_none());
    let running: HashSet<&str> = running.map(|it| text(it, "name")).collect();
    let mut specs = HashMap::new();
    for container in list(old, &format!("spec.{containers}")) {
        specs.entry(text(container, "name")).or_insert(container);
    }
    let mut errors = Vec::new();
    for (index, before) in list(old, &path).iter().enumerate() {
        let name = text(before, "name");
        let Some(end) = get(before, "state.terminated") else {
            continue;
        };
        let failed = get(end, "exitCode").and_then(Value::as_i64) != Some(0);
        let spec = specs.get(name).copied();
        if running.contains(name) && !may_begin_again(old, spec, failed) {
            let why = "may not be transitioned to non-terminated state";
            errors.push(FieldError::forbidden(format!("{path}[{index}].state"), why));
        }
    }
    errors
}

fn may_begin_again(pod: &Value, container: Option<&Value>, failed: bool) -> bool {
    let own = container.map_or("", |it| text(it, "restartPolicy"));
    let rules = container.is_some_and(|it| !list(it, "restartPolicyRules").is_empty());
    let policy = if own.is_empty() {
        text(pod, "spec.restartPolicy")
    } else {
        own
    };
    // Restart rules depend on exit codes, which the node has evaluated.
    rules || policy == "Always" || policy == "OnFailure" && failed
}

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
    let families: Vec<bool> = all
        .iter()
        .filter_map(|it| it.parse().ok().map(|it: IpAddr| it.is_ipv6()))
        .collect();
    let both = families.contains(&true) && families.contains(&false);
    if all.len() > 1 && !(both && all.len() == 2) {
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
    fn what_has_ended_stays_so() {
        let ended = |code: u32| json!({"state": {"terminated": {"exitCode": code}}, "name": "c"});
        let pod = |policy: &str, own: &str, status: Value| {
            json!({"spec": {"restartPolicy": policy, "containers": [
                {"name": "c", "restartPolicy": own}]}, "status": {"containerStatuses": [status]}})
        };
        let refused = [
            "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state",
        ];
        for (policy, own, code, allowed) in [
            ("Always", "", 0, true),
            ("Never", "", 1, false),
            ("Never", "Always", 1, true),
            ("OnFailure", "", 1, true),
            ("OnFailure", "", 0, false),
            ("OnFailure", "Never", 1, false),
        ] {
            let old = pod(policy, own, ended(code));
            let running = json!({"name": "c", "state": {"running": {}}});
            let errors = forbidden(&pod(policy, own, running), &old);
            let expected: &[&str] = if allowed { &[] } else { &refused };
            assert_eq!(messages(&errors), expected, "{policy} {own} {code}");
            assert_eq!(forbidden(&old, &old), []);
        }
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
        ] {
            let errors = forbidden(&json!({"status": status}), &old);
            assert_eq!(messages(&errors), wrong, "{status}");
        }
    }
}
