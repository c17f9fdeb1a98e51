//! Pods: fields that the server sets, rules of updates, binding, resize, eviction and graceful deletion.

pub(crate) mod annotations;
mod binding;
mod condition;
mod container_transitions;
pub(crate) mod defaults;
mod eviction;
mod gated_update;
mod label_keys;
pub(crate) mod off_features;
mod profile_annotations;
mod quality;
mod resize;
mod status;
mod status_resources;
pub(crate) mod table;
mod update;
pub(crate) mod usage;
pub(crate) mod validation;
pub(crate) mod warnings;

use serde_json::{Value, json};

pub(super) use self::binding::PodBinding;
pub use self::binding::bind;
pub use self::eviction::{can_ignore_budgets, mark_evicted};
pub use self::quality::class as quality_class;
use ringwatch_apimachinery::path::{get, keep, remove, set, text};
use ringwatch_apimachinery::{FieldError, NameRule};
use ringwatch_registry::subresource::SubresourceMetadata;
use ringwatch_registry::{DeleteOptions, Graceful, RequestContext};

use crate::strategy::kind_hooks::KindHooks;
use crate::validation::{Field, found};
use ringwatch_registry::subresource::SubresourceStrategy;

/// The behaviour of pods: initial status and priority, rules of updates, and graceful deletion.
#[derive(Debug)]
pub(super) struct Pods;

impl KindHooks for Pods {
    fn prepare_for_create(&self, context: &RequestContext, object: &mut Value) {
        let class = quality_class(object);
        set(
            object,
            "status",
            json!({"phase": "Pending", "qosClass": class}),
        );
        condition::note_gates(object, context.clock.wall());
        label_keys::merge(object);
        profile_annotations::copy_app_armor(context, object);
        prioritize(object);
    }

    fn prepare_for_update(&self, _context: &RequestContext, object: &mut Value, old: &Value) {
        // Fields that the server has set stay if a client leaves them out.
        for path in ["spec.priority", "spec.preemptionPolicy"] {
            if get(object, path).is_none() {
                keep(object, old, path);
            }
        }
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        update::forbidden_changes(object, old)
    }

    /// Makes deletion wait for the grace period of the options or the pod; the node ends the wait. The period is 0 for
    /// a pod that has ended or is not bound to a node.
    fn check_graceful_delete(&self, object: &Value, options: &mut DeleteOptions) -> Graceful {
        let own = get(object, "spec.terminationGracePeriodSeconds").and_then(Value::as_i64);
        let mut seconds = options.grace_period_seconds.or(own).unwrap_or(0);
        let over = matches!(text(object, "status.phase"), "Failed" | "Succeeded");
        if over || text(object, "spec.nodeName").is_empty() {
            seconds = 0;
        }
        if seconds < 0 {
            seconds = 1;
        }
        options.grace_period_seconds = Some(seconds);
        Graceful::Yes
    }
}

/// Returns the strategy of the status subresource, which nodes write.
pub(super) fn status() -> SubresourceStrategy {
    SubresourceStrategy::new("status", SubresourceMetadata::KeepsOwners)
        .finish(|_, object, old| {
            // The store puts back that of a pod that is being deleted.
            remove(object, "metadata.deletionTimestamp");
            status::keep_what_is_left_out(object, old);
            off_features::of_status(object, old);
        })
        .validate_update(|object, old| {
            let mut errors = update::annotations_and_changes(object, old);
            errors.extend(status::forbidden(object, old));
            errors
        })
        .warn(|object| {
            let mut warnings = Vec::new();
            warnings::addresses_of_status(&Field::root(object), &mut warnings);
            warnings
        })
}

/// Returns the strategy of the subresource `ephemeralcontainers`, which adds containers to a running pod for debugging.
pub(super) fn ephemeral_containers(allow_privileged: bool) -> SubresourceStrategy {
    let strategy =
        SubresourceStrategy::new("spec.ephemeralContainers", SubresourceMetadata::KeepsAll)
            .name_rule(NameRule::DnsSubdomain)
            .finish(|_, object, old| {
                off_features::of_pod(object, old);
                crate::strategy::generic::count_generation(object, old, &["spec"]);
            })
            .validate_update(update::forbidden_ephemeral_changes);
    if allow_privileged {
        return strategy;
    }
    strategy.validate_update(|object, _| found(validation::security::unprivileged_pod, object))
}

/// Returns the strategy of the subresource `resize`, which changes the resources of a running pod's containers.
pub(super) fn resize() -> SubresourceStrategy {
    SubresourceStrategy::new("spec", SubresourceMetadata::KeepsAll)
        .name_rule(NameRule::DnsSubdomain)
        .finish(|_, object, old| {
            resize::keep_all_but_resources(object, old);
            off_features::of_pod(object, old);
            crate::strategy::generic::count_generation(object, old, &["spec"]);
        })
        .validate_update(resize::forbidden)
}

/// Sets priority 0 and the default preemption policy of a pod for which admission found no PriorityClass.
fn prioritize(pod: &mut Value) {
    if get(pod, "spec.priority").is_none() {
        set(pod, "spec.priority", json!(0));
    }
    if get(pod, "spec.preemptionPolicy").is_none() {
        set(pod, "spec.preemptionPolicy", "PreemptLowerPriority".into());
    }
}

#[cfg(test)]
mod tests {
    use ringwatch::clock::Clock;
    use ringwatch_apimachinery::User;
    use ringwatch_apimachinery::accessor::ZERO_TIME;

    use super::*;

    fn context() -> RequestContext {
        RequestContext::new(User::default(), String::new(), Clock::real())
    }

    #[test]
    fn the_server_has_its_say_in_a_new_pod() {
        let mut pod = json!({"spec": {"containers": [{"name": "c", "resources": {}}]},
            "status": {"phase": "Running"}});
        Pods.prepare_for_create(&context(), &mut pod);
        assert_eq!(
            pod["status"],
            json!({"phase": "Pending", "qosClass": "BestEffort"})
        );
        assert_eq!(pod["spec"]["priority"], 0);
        assert_eq!(pod["spec"]["preemptionPolicy"], "PreemptLowerPriority");
    }

    #[test]
    fn a_new_pod_with_gates_says_that_it_waits_for_them() {
        let mut pod = json!({"spec": {"schedulingGates": [{"name": "g"}]},
            "status": {"conditions": [{"type": "PodScheduled", "status": "True"}]}});
        Pods.prepare_for_create(&context(), &mut pod);
        let condition = &pod["status"]["conditions"][0];
        assert_eq!(
            pod["status"]["conditions"].as_array().map(Vec::len),
            Some(1)
        );
        assert_eq!(
            (
                &condition["type"],
                &condition["status"],
                &condition["reason"]
            ),
            (
                &json!("PodScheduled"),
                &json!("False"),
                &json!("SchedulingGated")
            )
        );
        assert_eq!(
            condition["message"],
            "Scheduling is blocked due to non-empty scheduling gates"
        );
        assert!(condition["lastTransitionTime"].is_string());
    }

    #[test]
    fn only_a_running_pod_takes_its_time() {
        let seconds = |pod: Value, requested: Option<i64>| {
            let mut options = DeleteOptions {
                grace_period_seconds: requested,
                ..DeleteOptions::default()
            };
            assert_eq!(
                Pods.check_graceful_delete(&pod, &mut options),
                Graceful::Yes
            );
            options.grace_period_seconds
        };
        let spec = json!({"nodeName": "n1", "terminationGracePeriodSeconds": 30});
        let bound = json!({"spec": spec, "status": {"phase": "Running"}});
        assert_eq!(seconds(bound.clone(), None), Some(30));
        assert_eq!(seconds(bound.clone(), Some(5)), Some(5));
        assert_eq!(seconds(bound.clone(), Some(-1)), Some(1));
        assert_eq!(seconds(bound, Some(0)), Some(0));
        let over = json!({"spec": spec, "status": {"phase": "Failed"}});
        assert_eq!(seconds(over, None), Some(0));
        let waiting = json!({"spec": {"terminationGracePeriodSeconds": 30}});
        assert_eq!(seconds(waiting, Some(5)), Some(0));
    }

    #[test]
    fn parts_of_a_pod_change_alone() {
        use ringwatch_registry::Strategy;
        let old = json!({"metadata": {"name": "p", "generation": 1}, "spec": {"containers": [
            {"name": "c", "image": "i", "resources": {}}]}, "status": {"qosClass": "BestEffort"}});
        let mut debugged = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n",
            "ephemeralContainers": [{"name": "dbg"}]}, "status": {}});
        ephemeral_containers(true).prepare_for_update(&context(), &mut debugged, &old);
        assert_eq!(
            debugged["spec"]["ephemeralContainers"],
            json!([{"name": "dbg"}])
        );
        assert_eq!(debugged["spec"].get("nodeName"), None);
        assert_eq!(debugged["metadata"]["generation"], 2);

        let mut resized = old.clone();
        set(
            &mut resized,
            "spec.containers",
            json!([
            {"name": "c", "image": "other", "resources": {"limits": {"cpu": "1"}}}]),
        );
        resize().prepare_for_update(&context(), &mut resized, &old);
        assert_eq!(
            resized["spec"]["containers"],
            json!([{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}}])
        );
        assert_eq!(resized["metadata"]["generation"], 2);

        let mut reported = json!({"metadata": {"name": "p"}, "status": {"phase": "Running"}});
        status().prepare_for_update(&context(), &mut reported, &old);
        assert_eq!(
            reported["status"],
            json!({"phase": "Running", "qosClass": "BestEffort"})
        );
        assert_eq!(reported["metadata"]["generation"], 1);
    }

    #[test]
    fn a_status_says_nothing_about_deletion() {
        use ringwatch_registry::Strategy;
        let old = json!({"metadata": {"name": "p"}, "spec": {}, "status": {}});
        for time in [ZERO_TIME, "2026-01-02T00:00:00Z"] {
            let mut reported = old.clone();
            set(&mut reported, "metadata.deletionTimestamp", json!(time));
            status().prepare_for_update(&context(), &mut reported, &old);
            assert_eq!(
                reported["metadata"].get("deletionTimestamp"),
                None,
                "{time}"
            );
        }
    }
}
