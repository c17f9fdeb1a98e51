//! The fields of pods and pod templates whose features are off in Kubernetes 1.36: they are dropped from what is
//! written, unless the object has them already.
//!
//! Follows `dropDisabledFields` in pkg/api/pod/util.go of Kubernetes 1.36.

use ringwatch_apimachinery::path::{get, get_mut, list, remove};
use serde_json::Value;

const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];
const STOP_SIGNAL: &str = "lifecycle.stopSignal";
/// The sources of projected volumes.
const SOURCES: [&str; 2] = ["clusterTrustBundle", "podCertificate"];

/// Drops the fields of a Pod.
pub(crate) fn of_pod(object: &mut Value, old: &Value) {
    drop_off_fields(object, old, "spec");
}

/// Drops the fields of an object with a template of pods.
pub(crate) fn of_template(object: &mut Value, old: &Value) {
    drop_off_fields(object, old, "spec.template.spec");
}

/// Drops the fields of a CronJob.
pub(crate) fn of_cron_job(object: &mut Value, old: &Value) {
    drop_off_fields(object, old, "spec.jobTemplate.spec.template.spec");
}

/// Drops the fields of a PodTemplate.
pub(crate) fn of_pod_template(object: &mut Value, old: &Value) {
    drop_off_fields(object, old, "template.spec");
}

/// Drops the fields from the spec of a pod at a dotted path.
fn drop_off_fields(object: &mut Value, old: &Value, path: &str) {
    let Some(spec) = get_mut(object, path) else {
        return;
    };
    let old = get(old, path).unwrap_or(&Value::Null);
    if get(old, "schedulingGroup").is_none_or(Value::is_null) {
        drop(remove(spec, "schedulingGroup"));
    }
    let mut old_containers = CONTAINERS.iter().flat_map(|it| list(old, it));
    if !old_containers.any(|it| get(it, STOP_SIGNAL).is_some()) {
        for containers in CONTAINERS {
            for container in items_mut(spec, containers) {
                let is_dropped = remove(container, STOP_SIGNAL).is_some();
                let rest = get(container, "lifecycle").and_then(Value::as_object);
                if is_dropped && rest.is_some_and(serde_json::Map::is_empty) {
                    drop(remove(container, "lifecycle"));
                }
            }
        }
    }
    for kind in SOURCES {
        let volumes = list(old, "volumes").iter();
        let mut old_sources = volumes.flat_map(|it| list(it, "projected.sources"));
        if !old_sources.any(|it| get(it, kind).is_some()) {
            for volume in items_mut(spec, "volumes") {
                for source in items_mut(volume, "projected.sources") {
                    drop(remove(source, kind));
                }
            }
        }
    }
}

fn items_mut<'v>(object: &'v mut Value, path: &str) -> impl Iterator<Item = &'v mut Value> {
    let items = get_mut(object, path).and_then(Value::as_array_mut);
    items.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_off_is_dropped_unless_it_is_there() {
        let with = json!({"spec": {"schedulingGroup": {}, "containers": [{"lifecycle": {"stopSignal": "SIGHUP"}}],
            "initContainers": [{"lifecycle": {"stopSignal": "SIGHUP", "preStop": {}}}],
            "volumes": [{"projected": {"sources": [
                {"podCertificate": {}}, {"clusterTrustBundle": {}, "secret": {}}]}}]}});
        let mut new = with.clone();
        drop_off_fields(&mut new, &Value::Null, "spec");
        let without = json!({"spec": {"containers": [{}], "initContainers": [{"lifecycle": {"preStop": {}}}],
            "volumes": [{"projected": {"sources": [{}, {"secret": {}}]}}]}});
        assert_eq!(new, without);
        let mut same = with.clone();
        drop_off_fields(&mut same, &with, "spec");
        assert_eq!(same, with);
    }
}
