//! The part of PodDisruptionBudgets in evictions: which pods they cover, and whether one may be disrupted.

use jiff::Timestamp;
use ringwatch::meta::{LabelSelector, Labels};
use ringwatch_apimachinery::path::{get, list, set, text};
use ringwatch_apimachinery::{Error, selector_text};
use serde_json::{Value, json};

/// Maximum number of evictions that the disruption controller has not confirmed yet, as in kube-apiserver.
const DISRUPTED_PODS_MAX: usize = 2000;
/// Seconds after which a client should retry while a budget's status is of an older generation.
const PROCESSING_RETRY_AFTER_SECONDS: u32 = 10;

/// Returns true if this budget covers pods with these labels. A budget without a selector covers none, and one with an
/// empty selector all. Follows `getPodDisruptionBudgets`.
#[must_use]
pub fn covers(budget: &Value, labels: Labels<'_>) -> bool {
    let selector = get(budget, "spec.selector").filter(|it| !it.is_null());
    selector.is_some_and(|selector| {
        let selector = LabelSelector::parse(&selector_text::label_selector(selector));
        selector.is_ok_and(|selector| selector.matches(labels))
    })
}

/// Returns true if this pod may be evicted without taking a disruption out of the budget: a pod that is not ready is
/// not among the healthy ones. It needs enough healthy pods or the policy `AlwaysAllow`.
#[must_use]
pub fn spares(budget: &Value, pod: &Value) -> bool {
    let ready = condition(pod, "Ready").is_some_and(|it| text(it, "status") == "True");
    if ready {
        return false;
    }
    let (current, desired) = (
        count(budget, "currentHealthy"),
        count(budget, "desiredHealthy"),
    );
    let undisturbed = current >= desired && desired > 0;
    text(budget, "spec.unhealthyPodEvictionPolicy") == "AlwaysAllow" || undisturbed
}

/// Takes one allowed disruption out of a budget's status for this pod.
///
/// # Errors
/// [`Error::TooManyRequests`] if none is allowed or the status is of an older generation; [`Error::Forbidden`] if the
/// status makes no sense or too many evictions are unconfirmed.
pub fn take(budget: &mut Value, pod: &str, now: Timestamp) -> Result<(), Error> {
    let name = text(budget, "metadata.name").to_owned();
    let generation = get(budget, "metadata.generation").and_then(Value::as_i64);
    if count(budget, "observedGeneration") < generation.unwrap_or(0) {
        return Err(still_processed(&name));
    }
    let forbidden = |message: &str| Error::Forbidden {
        resource: "poddisruptionbudget.policy".to_owned(),
        name: name.clone(),
        message: message.to_owned(),
        cause: None,
    };
    let allowed = count(budget, "disruptionsAllowed");
    if allowed < 0 {
        return Err(forbidden("pdb disruptions allowed is negative"));
    }
    let disrupted = get(budget, "status.disruptedPods").and_then(Value::as_object);
    if disrupted.is_some_and(|pods| pods.len() > DISRUPTED_PODS_MAX) {
        return Err(forbidden(
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        ));
    }
    if allowed == 0 {
        return Err(refusal(why_none(budget, &name), None));
    }
    set(budget, "status.disruptionsAllowed", json!(allowed - 1));
    if allowed == 1 {
        note_spent(budget, now);
    }
    let mut disrupted = disrupted_pods(budget);
    disrupted[pod] = json!(time(now));
    set(budget, "status.disruptedPods", disrupted);
    Ok(())
}

/// Returns the error for evictions while the controller has not yet processed the budget's last change.
#[must_use]
pub fn still_processed(budget: &str) -> Error {
    let why = format!("The disruption budget {budget} is still being processed by the server.");
    refusal(why, Some(PROCESSING_RETRY_AFTER_SECONDS))
}

fn refusal(why: String, retry_after_seconds: Option<u32>) -> Error {
    Error::TooManyRequests {
        message: "Cannot evict pod as it would violate the pod's disruption budget.".to_owned(),
        cause: ("DisruptionBudget", why),
        retry_after_seconds,
    }
}

/// Explains why a budget allows no disruption. If its sync failed, the counts are not valid and only the failure is
/// shown.
fn why_none(budget: &Value, name: &str) -> String {
    let (current, desired) = (
        count(budget, "currentHealthy"),
        count(budget, "desiredHealthy"),
    );
    let condition = condition(budget, "DisruptionAllowed")
        .filter(|it| text(it, "status") == "False")
        .map(|it| (text(it, "reason"), text(it, "message")))
        .filter(|(_, message)| !message.is_empty());
    match condition {
        Some(("SyncFailed", message)) => format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed \
             sync: {message}"
        ),
        _ if current <= desired => format!(
            "The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        ),
        Some((reason, message)) => format!(
            "The disruption budget {name} does not allow evicting pods currently ({reason}): \
             {message}"
        ),
        None => format!("The disruption budget {name} does not allow evicting pods currently"),
    }
}

/// Sets the condition `DisruptionAllowed` to false, since the last disruption is taken.
fn note_spent(budget: &mut Value, now: Timestamp) {
    const KIND: &str = "DisruptionAllowed";
    let since = condition(budget, KIND)
        .filter(|it| text(it, "status") == "False")
        .map_or_else(|| time(now), |it| text(it, "lastTransitionTime").to_owned());
    let mut spent = json!({"type": KIND, "status": "False", "lastTransitionTime": since,
        "reason": "InsufficientPods", "message": ""});
    if let Some(generation) = get(budget, "status.observedGeneration") {
        spent["observedGeneration"] = generation.clone();
    }
    let mut conditions = list(budget, "status.conditions").to_vec();
    match conditions.iter_mut().find(|it| text(it, "type") == KIND) {
        Some(known) => *known = spent,
        None => conditions.push(spent),
    }
    set(budget, "status.conditions", Value::Array(conditions));
}

fn disrupted_pods(budget: &Value) -> Value {
    let known = get(budget, "status.disruptedPods").filter(|it| it.is_object());
    known.cloned().unwrap_or_else(|| json!({}))
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = list(object, "status.conditions").iter();
    let mut conditions = conditions.filter(|it| text(it, "type") == kind);
    conditions.next()
}

/// Returns an integer of the status; 0 if it is not there.
fn count(budget: &Value, member: &str) -> i64 {
    let number = budget.get("status").and_then(|status| status.get(member));
    number.and_then(Value::as_i64).unwrap_or(0)
}

fn time(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use ringwatch::meta::OwnedLabels;

    use super::*;

    fn budget(status: Value) -> Value {
        json!({"metadata": {"name": "b", "generation": 2},
            "spec": {"selector": {"matchLabels": {"app": "a"}}}, "status": status})
    }

    fn taken(mut budget: Value) -> Result<Value, String> {
        let now = "2026-01-02T03:04:05.6Z".parse().expect("a time");
        match take(&mut budget, "p", now) {
            Ok(()) => Ok(budget["status"].take()),
            Err(Error::TooManyRequests { cause, .. }) => Err(cause.1),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn an_empty_selector_covers_all_and_none_covers_none() {
        let labels: OwnedLabels = [("app", "a")].into_iter().collect();
        let labels = labels.as_labels();
        for (selector, covered) in [
            (json!({}), true),
            (json!({"matchLabels": {}}), true),
            (json!({"matchExpressions": []}), true),
            (json!({"matchLabels": {"app": "a"}}), true),
            (json!({"matchLabels": {"app": "b"}}), false),
            (
                json!({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}),
                false,
            ),
            (Value::Null, false),
        ] {
            let budget = json!({"spec": {"selector": selector}});
            assert_eq!(covers(&budget, labels), covered, "{budget}");
        }
        assert!(!covers(&json!({"spec": {}}), labels));
    }

    #[test]
    fn a_disruption_is_taken_and_the_last_is_told() {
        let status = taken(budget(
            json!({"observedGeneration": 2, "disruptionsAllowed": 2}),
        ));
        assert_eq!(
            status,
            Ok(json!({"observedGeneration": 2, "disruptionsAllowed": 1,
                "disruptedPods": {"p": "2026-01-02T03:04:05Z"}}))
        );
        let earlier = json!([{"type": "DisruptionAllowed", "status": "True", "reason": "SufficientPods",
            "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1}]);
        let status = taken(budget(
            json!({"observedGeneration": 2, "disruptionsAllowed": 1,
            "conditions": earlier, "disruptedPods": {"o": "2026-01-01T00:00:00Z"}}),
        ));
        assert_eq!(
            status,
            Ok(json!({"observedGeneration": 2, "disruptionsAllowed": 0,
                "conditions": [{"type": "DisruptionAllowed", "status": "False",
                    "reason": "InsufficientPods", "message": "", "observedGeneration": 2,
                    "lastTransitionTime": "2026-01-02T03:04:05Z"}],
                "disruptedPods": {"o": "2026-01-01T00:00:00Z", "p": "2026-01-02T03:04:05Z"}}))
        );
    }

    #[test]
    fn a_budget_without_disruptions_says_why() {
        let seen = |more: Value| {
            let mut status = json!({"observedGeneration": 2, "disruptionsAllowed": 0});
            let members = status.as_object_mut().expect("members");
            members.extend(more.as_object().expect("members").clone());
            budget(status)
        };
        let failed = |reason: &str| {
            json!([{"type": "DisruptionAllowed", "status": "False",
            "reason": reason, "message": "no scale"}])
        };
        let many: Value = (0..2001).map(|it| (it.to_string(), json!("t"))).collect();
        for (budget, words) in [
            (
                budget(json!({"observedGeneration": 1, "disruptionsAllowed": 1})),
                "The disruption budget b is still being processed by the server.",
            ),
            (
                seen(json!({"disruptionsAllowed": -1})),
                "poddisruptionbudget.policy \"b\" is forbidden: pdb disruptions allowed is negative",
            ),
            (
                seen(json!({"disruptionsAllowed": 1, "disruptedPods": many})),
                "poddisruptionbudget.policy \"b\" is forbidden: DisruptedPods map too big - too many evictions not confirmed by PDB controller",
            ),
            (
                seen(json!({"desiredHealthy": 3, "currentHealthy": 2})),
                "The disruption budget b needs 3 healthy pods and has 2 currently",
            ),
            (
                seen(json!({"desiredHealthy": 3, "conditions": failed("SyncFailed")})),
                "The disruption budget b does not allow evicting pods currently because it failed sync: no scale",
            ),
            (
                seen(json!({"currentHealthy": 1, "conditions": failed("Other")})),
                "The disruption budget b does not allow evicting pods currently (Other): no scale",
            ),
            (
                seen(json!({"currentHealthy": 1})),
                "The disruption budget b does not allow evicting pods currently",
            ),
        ] {
            assert_eq!(taken(budget), Err(words.to_owned()));
        }
    }

    #[test]
    fn pods_that_are_not_ready_may_go_uncounted() {
        let ready = |status: &str| {
            json!({"status": {"phase": "Running",
            "conditions": [{"type": "Ready", "status": status}]}})
        };
        let with = |policy: &str, current: i64, desired: i64| {
            let mut budget = budget(json!({"currentHealthy": current, "desiredHealthy": desired}));
            budget["spec"]["unhealthyPodEvictionPolicy"] = json!(policy);
            budget
        };
        for (budget, pod, spared) in [
            (with("IfHealthyBudget", 2, 2), "False", true),
            (with("IfHealthyBudget", 1, 2), "False", false),
            (with("IfHealthyBudget", 0, 0), "False", false),
            (with("AlwaysAllow", 1, 2), "False", true),
            (with("AlwaysAllow", 2, 2), "True", false),
        ] {
            assert_eq!(spares(&budget, &ready(pod)), spared, "{budget} {pod}");
        }
    }
}
