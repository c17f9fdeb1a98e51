//! Changes of the state of a pod's containers: those that have ended begin again only if they may.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use std::collections::{HashMap, HashSet};

use ringwatch_apimachinery::FieldError;
use ringwatch_apimachinery::path::{get, list, text};
use serde_json::Value;

/// Returns an error for each container that had ended and has not now, though it may not begin again. Follows
/// `ValidateContainerStateTransition`, `ValidateInitContainerStateTransition` and
/// `ValidateEphemeralContainerStateTransition`.
pub(super) fn forbidden(object: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let all_may = ["spec.initContainers", "spec.containers"]
        .iter()
        .any(|containers| list(old, containers).iter().any(restarts_all));
    if !all_may {
        for (statuses, containers) in [
            ("containerStatuses", "containers"),
            ("initContainerStatuses", "initContainers"),
        ] {
            let mut specs = HashMap::new();
            for container in list(old, &format!("spec.{containers}")) {
                specs.entry(text(container, "name")).or_insert(container);
            }
            errors.extend(begun_again(object, old, statuses, |name, code| {
                let container = specs.get(name);
                container.is_some_and(|it| may_begin_again(old, it, code))
            }));
        }
    }
    let never = |_: &str, _: i64| false;
    errors.extend(begun_again(
        object,
        old,
        "ephemeralContainerStatuses",
        never,
    ));
    errors
}

/// Returns true if the end of a container can begin all of its pod's containers again.
fn restarts_all(container: &Value) -> bool {
    let mut rules = list(container, "restartPolicyRules").iter();
    rules.any(|rule| text(rule, "action") == "RestartAllContainers")
}

/// Returns an error for each status of a container that begins again though, by its name and exit code, it may not.
fn begun_again(
    object: &Value,
    old: &Value,
    statuses: &str,
    may: impl Fn(&str, i64) -> bool,
) -> Vec<FieldError> {
    let path = format!("status.{statuses}");
    let running = list(object, &path).iter();
    let running = running.filter(|it| get(it, "state.terminated").is_none());
    let running: HashSet<&str> = running.map(|it| text(it, "name")).collect();
    let mut errors = Vec::new();
    for (index, before) in list(old, &path).iter().enumerate() {
        let name = text(before, "name");
        let Some(end) = get(before, "state.terminated") else {
            continue;
        };
        let code = get(end, "exitCode").and_then(Value::as_i64).unwrap_or(0);
        if running.contains(name) && !may(name, code) {
            let why = "may not be transitioned to non-terminated state";
            errors.push(FieldError::forbidden(format!("{path}[{index}].state"), why));
        }
    }
    errors
}

/// Returns true if a container may begin again after it has ended with a code: by its first rule for the code, else by
/// its own policy, else by that of its pod. Follows `ContainerShouldRestart` in pkg/api/v1/pod/util.go.
fn may_begin_again(pod: &Value, container: &Value, code: i64) -> bool {
    let own = text(container, "restartPolicy");
    if own.is_empty() {
        return match text(pod, "spec.restartPolicy") {
            "OnFailure" => code != 0,
            "Never" => false,
            _ => true,
        };
    }
    let mut rules = list(container, "restartPolicyRules").iter();
    let rule = rules.find(|rule| {
        let has = list(rule, "exitCodes.values")
            .iter()
            .any(|it| it.as_i64() == Some(code));
        match text(rule, "exitCodes.operator") {
            "In" => has,
            "NotIn" => !has,
            _ => false,
        }
    });
    if rule.is_some_and(|rule| text(rule, "action") == "Restart") {
        return true;
    }
    match own {
        "OnFailure" => code != 0,
        "Never" => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::validation::messages;

    const REFUSED: &str = "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state";

    fn pod(spec: &Value, status: Value) -> Value {
        json!({"spec": spec, "status": {"containerStatuses": [status]}})
    }

    fn restart(spec: &Value, code: u32) -> Vec<String> {
        let ended = json!({"state": {"terminated": {"exitCode": code}}, "name": "c"});
        let old = pod(spec, ended);
        assert_eq!(forbidden(&old, &old), []);
        let running = json!({"name": "c", "state": {"running": {}}});
        messages(&forbidden(&pod(spec, running), &old))
    }

    #[test]
    fn what_has_ended_stays_so() {
        for (policy, own, code, allowed) in [
            ("Always", "", 0, true),
            ("Never", "", 1, false),
            ("Never", "Always", 1, true),
            ("OnFailure", "", 1, true),
            ("OnFailure", "", 0, false),
            ("OnFailure", "Never", 1, false),
        ] {
            let spec = json!({"restartPolicy": policy, "containers": [{"name": "c", "restartPolicy": own}]});
            let expected: &[&str] = if allowed { &[] } else { &[REFUSED] };
            assert_eq!(restart(&spec, code), expected, "{policy} {own} {code}");
        }
        let unknown = json!({"restartPolicy": "Always", "containers": []});
        assert_eq!(restart(&unknown, 1), [REFUSED]);
    }

    #[test]
    fn rules_begin_some_again() {
        let spec = |action: &str, operator: &str, own: &str| {
            let codes = json!({"operator": operator, "values": [3]});
            let rule = json!({"action": action, "exitCodes": codes});
            json!({"containers": [{"name": "c", "restartPolicy": own, "restartPolicyRules": [rule]}]})
        };
        for (action, operator, own, code, allowed) in [
            ("Restart", "In", "Never", 3, true),
            ("Restart", "In", "Never", 4, false),
            ("Restart", "NotIn", "Never", 4, true),
            ("Restart", "NotIn", "OnFailure", 3, true),
            ("RestartAllContainers", "In", "Never", 4, true),
        ] {
            let expected: &[&str] = if allowed { &[] } else { &[REFUSED] };
            let spec = spec(action, operator, own);
            assert_eq!(restart(&spec, code), expected, "{spec} {code}");
        }
    }

    #[test]
    fn ephemeral_containers_do_not_begin_again() {
        let pod = |state: Value| {
            json!({"spec": {"restartPolicy": "Always"}, "status": {
                "ephemeralContainerStatuses": [{"name": "e", "state": state}]}})
        };
        let old = pod(json!({"terminated": {"exitCode": 1}}));
        let wrong = forbidden(&pod(json!({"running": {}})), &old);
        let fields: Vec<_> = wrong.iter().map(|it| it.field.as_str()).collect();
        assert_eq!(fields, ["status.ephemeralContainerStatuses[0].state"]);
    }
}
