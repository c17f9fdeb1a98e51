//! Stateful sets: what is not on by default in this release.

use serde_json::Value;

use super::path::{get, remove};
use super::peculiar::Peculiar;
use crate::registry::RequestContext;

/// How many pods a rolling update may take away at a time. The feature is off in Kubernetes 1.36, so that new
/// sets do not get it; those that have it may change it.
const MAX_UNAVAILABLE: &str = "spec.updateStrategy.rollingUpdate.maxUnavailable";

/// What is peculiar about stateful sets.
#[derive(Debug)]
pub(super) struct StatefulSets;

impl Peculiar for StatefulSets {
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
    use serde_json::json;

    use super::*;
    use crate::clock::Clock;
    use crate::registry::User;

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
