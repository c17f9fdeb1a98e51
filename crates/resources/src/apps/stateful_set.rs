//! StatefulSets: a field whose feature gate is off by default, and the warnings about claims.

use ringwatch_apimachinery::path::{get, remove};
use ringwatch_registry::RequestContext;
use serde_json::Value;

use crate::core::pod::warnings;
use crate::strategy::kind_hooks::KindHooks;
use crate::validation::Field;

/// Path of the number of pods that a rolling update may take down at a time. The feature gate is off in Kubernetes
/// 1.36, so the field is dropped from new sets; sets that have it may change it.
const MAX_UNAVAILABLE: &str = "spec.updateStrategy.rollingUpdate.maxUnavailable";

/// The behaviour of StatefulSets: [`MAX_UNAVAILABLE`] is dropped unless the old object has it, and each write is told
/// of claims whose sizes have fractions and of a history without end.
#[derive(Debug)]
pub(super) struct StatefulSets;

impl KindHooks for StatefulSets {
    fn prepare_for_create(&self, _context: &RequestContext, object: &mut Value) {
        drop(remove(object, MAX_UNAVAILABLE));
    }

    fn prepare_for_update(&self, _context: &RequestContext, object: &mut Value, old: &Value) {
        if get(old, MAX_UNAVAILABLE).is_none() {
            drop(remove(object, MAX_UNAVAILABLE));
        }
    }

    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        const NO_END: &str = "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended";
        // Kubernetes leaves the spec of a claim out of the path, or writes it so.
        let name = if old.is_some() { "Spec" } else { "" };
        let mut told = Vec::new();
        let object = Field::root(object);
        for claim in object.items("spec.volumeClaimTemplates") {
            warnings::claim_spec(&claim.at_named("spec", name), &mut told);
        }
        let kept = object.at("spec.revisionHistoryLimit").number();
        if kept.is_some_and(|number| number < 0) {
            told.push(NO_END.to_owned());
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use ringwatch::clock::Clock;
    use ringwatch_apimachinery::User;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_write_is_told_of_fractions_and_of_an_endless_history() {
        let set = json!({"spec": {"revisionHistoryLimit": -1, "volumeClaimTemplates": [
            {"spec": {"resources": {"requests": {"storage": "1500m"}, "limits": {"storage": "2"}}}}]}});
        let told = |claim: &str| {
            let why = "fractional byte value \"1500m\" is invalid, must be an integer";
            [
                format!("spec.volumeClaimTemplates[0]{claim}.resources.requests[storage]: {why}"),
                "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended".to_owned(),
            ]
        };
        assert_eq!(StatefulSets.warnings(&set, None), told(""));
        assert_eq!(StatefulSets.warnings(&set, Some(&set)), told(".Spec"));
    }

    #[test]
    fn a_feature_that_is_off_is_for_those_who_use_it() {
        let context = RequestContext::new(User::default(), String::new(), Clock::real());
        let with = |count: u32| {
            json!({"spec": {"updateStrategy": {"rollingUpdate":
                {"partition": 0, "maxUnavailable": count}}}})
        };
        let mut new = with(2);
        StatefulSets.prepare_for_create(&context, &mut new);
        let without = json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}});
        assert_eq!(new, without);
        let mut changed = with(2);
        StatefulSets.prepare_for_update(&context, &mut changed, &without);
        assert_eq!(changed, without);
        let mut changed = with(2);
        StatefulSets.prepare_for_update(&context, &mut changed, &with(3));
        assert_eq!(changed, with(2));
    }
}
