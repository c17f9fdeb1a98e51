//! StatefulSets: a field whose feature gate is off by default.

use ringwatch_apimachinery::path::{get, remove};
use ringwatch_registry::RequestContext;
use serde_json::Value;

use crate::strategy::kind_hooks::KindHooks;

/// Path of the number of pods that a rolling update may take down at a time. The feature gate is off in Kubernetes
/// 1.36, so the field is dropped from new sets; sets that have it may change it.
const MAX_UNAVAILABLE: &str = "spec.updateStrategy.rollingUpdate.maxUnavailable";

/// The behaviour of StatefulSets: [`MAX_UNAVAILABLE`] is dropped unless the old object has it.
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
}

#[cfg(test)]
mod tests {
    use ringwatch::clock::Clock;
    use ringwatch_apimachinery::User;
    use serde_json::json;

    use super::*;

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
