//! PersistentVolumes: the time since which each has been in its phase.

use ringwatch_apimachinery::accessor::format_time;
use ringwatch_apimachinery::path::{get, keep, set};
use ringwatch_registry::RequestContext;
use ringwatch_registry::subresource::SubresourceMetadata;
use ringwatch_registry::subresource::SubresourceStrategy;
use serde_json::{Value, json};

use crate::strategy::kind_hooks::KindHooks;

const PHASE: &str = "status.phase";
const SINCE: &str = "status.lastPhaseTransitionTime";

/// The behaviour of PersistentVolumes: a new one gets the time of its first phase.
#[derive(Debug)]
pub(crate) struct PersistentVolumes;

impl KindHooks for PersistentVolumes {
    fn prepare_for_create(&self, context: &RequestContext, object: &mut Value) {
        set(object, SINCE, json!(format_time(context.clock.wall())));
    }
}

/// Returns the strategy of the status subresource. A change of the phase sets `lastPhaseTransitionTime` to now, unless
/// the client sets another time.
pub(crate) fn status() -> SubresourceStrategy {
    SubresourceStrategy::new("status", SubresourceMetadata::Free).finish(|context, object, old| {
        let since = get(object, SINCE).filter(|time| !time.is_null());
        let is_same = get(object, PHASE) == get(old, PHASE);
        if is_same && since.is_none() {
            keep(object, old, SINCE);
        } else if !is_same && since.is_none_or(|time| Some(time) == get(old, SINCE)) {
            set(object, SINCE, json!(format_time(context.clock.wall())));
        }
    })
}

#[cfg(test)]
mod tests {
    use ringwatch_registry::Strategy;
    use ringwatch_registry::testing::{self, NOW};

    use super::*;

    #[test]
    fn a_volume_tells_since_when_it_has_been_in_its_phase() {
        let context = testing::context();
        let mut volume = json!({"status": {"phase": "Pending"}});
        PersistentVolumes.prepare_for_create(&context, &mut volume);
        assert_eq!(volume["status"]["lastPhaseTransitionTime"], NOW);
        let before = "2020-01-02T03:04:05Z";
        let given = "2020-01-02T03:04:06Z";
        let of = |phase: &str, since: &str| json!({"status": {"phase": phase, "lastPhaseTransitionTime": since}});
        let old = of("Available", before);
        for (new, since) in [
            (json!({"status": {"phase": "Bound"}}), NOW),
            (of("Bound", before), NOW),
            (of("Bound", given), given),
            (of("Available", before), before),
            (json!({"status": {"phase": "Available"}}), before),
        ] {
            let mut volume = new.clone();
            status().prepare_for_update(&context, &mut volume, &old);
            assert_eq!(volume["status"]["lastPhaseTransitionTime"], since, "{new}");
        }
    }
}
