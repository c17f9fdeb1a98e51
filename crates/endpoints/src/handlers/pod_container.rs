//! Chooses the container of a pod that a request is about.

use serde_json::Value;

use crate::errors::Failure;

/// The members of a pod's spec that list containers, in the order in which messages name them.
const CONTAINER_LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Returns the requested container, or the only one if none is requested.
///
/// # Errors
/// 400 for a container that the pod does not have, and when one of several must be named.
pub(super) fn container<'a>(
    pod: &'a Value,
    pod_name: &str,
    wanted: &'a str,
) -> Result<&'a str, Failure> {
    let mut all = CONTAINER_LISTS.iter().flat_map(|list| names(pod, list));
    if !wanted.is_empty() {
        let found = all.any(|name| name == wanted);
        let refused = || format!("container {wanted} is not valid for pod {pod_name}");
        return found
            .then_some(wanted)
            .ok_or_else(|| Failure::bad_request(refused()));
    }
    let mut own = names(pod, "containers");
    if let (Some(only), None) = (own.next(), own.next()) {
        return Ok(only);
    }
    let all = all.collect::<Vec<_>>().join(" ");
    Err(Failure::bad_request(format!(
        "a container name must be specified for pod {pod_name}, choose one of: [{all}]"
    )))
}

fn names<'a>(pod: &'a Value, list: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    let containers = pod.pointer(&format!("/spec/{list}"));
    let containers = containers.and_then(Value::as_array).into_iter().flatten();
    containers.filter_map(|container| container.get("name").and_then(Value::as_str))
}
