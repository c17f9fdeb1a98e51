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

/// Drops the fields of the status of a Pod. Follows `dropDisabledPodStatusFields`.
pub(crate) fn of_status(object: &mut Value, old: &Value) {
    const CLAIMS: &str = "status.nodeAllocatableResourceClaimStatuses";
    const VOLUME: &str = "volumeStatus";
    const STATUSES: [&str; 3] = [
        "status.containerStatuses",
        "status.initContainerStatuses",
        "status.ephemeralContainerStatuses",
    ];
    if list(old, CLAIMS).is_empty() {
        drop(remove(object, CLAIMS));
    }
    let old_statuses = STATUSES.iter().flat_map(|it| list(old, it));
    let mut old_mounts = old_statuses.flat_map(|it| list(it, "volumeMounts"));
    if old_mounts.any(|it| get(it, VOLUME).is_some()) {
        return;
    }
    for statuses in STATUSES {
        for status in items_mut(object, statuses) {
            for mount in items_mut(status, "volumeMounts") {
                drop(remove(mount, VOLUME));
            }
        }
    }
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

    #[test]
    fn what_is_off_in_the_status_is_dropped_too() {
        let with = json!({"status": {"nodeAllocatableResourceClaimStatuses": [{}], "containerStatuses": [
            {"volumeMounts": [{"name": "v", "volumeStatus": {"image": {}}}]}]}});
        let mut new = with.clone();
        of_status(&mut new, &Value::Null);
        let without = json!({"status": {"containerStatuses": [{"volumeMounts": [{"name": "v"}]}]}});
        assert_eq!(new, without);
        let mut same = with.clone();
        of_status(&mut same, &with);
        assert_eq!(same, with);
    }
}
