//! Resize of a running pod: changes of the CPU and memory of its containers, or of the pod as a whole.

use ringwatch_apimachinery::FieldError;
use ringwatch_apimachinery::path::{get, keep, list, remove, set, text};
use serde_json::{Value, json};

use super::annotations::{NO_PATH, is_mirror};
use super::quality;
use super::validation;
use crate::validation::found_in_update;

/// Lists of a pod's containers that can be resized.
const LISTS: [&str; 2] = ["containers", "initContainers"];
/// The resources of a pod as a whole.
const POD_RESOURCES: &str = "spec.resources";
/// Resources that a resize may change.
const MUTABLE: [&str; 2] = ["cpu", "memory"];

/// Restores all of the spec but the resources of the pod and its containers, and their resize policies. Lists with
/// other containers than before stay, so that validation refuses them.
pub(super) fn keep_all_but_resources(object: &mut Value, old: &Value) {
    let requested = std::mem::take(object);
    object.clone_from(&requested);
    keep(object, old, "spec");
    for path in LISTS.map(|containers| format!("spec.{containers}")) {
        let containers = resized(list(&requested, &path), list(old, &path));
        if !containers.is_empty() || get(old, &path).is_some() {
            set(object, &path, Value::Array(containers));
        }
    }
    keep(object, &requested, "spec.resources");
}

fn resized(requested: &[Value], old: &[Value]) -> Vec<Value> {
    let pairs = || requested.iter().zip(old);
    let same = |(one, other): (&Value, &Value)| text(one, "name") == text(other, "name");
    if requested.len() != old.len() || !pairs().all(same) {
        return requested.to_vec();
    }
    let resized = pairs().map(|(requested, old)| {
        let mut container = old.clone();
        for member in ["resources", "resizePolicy"] {
            keep(&mut container, requested, member);
        }
        container
    });
    resized.collect()
}

/// Validates a resize and returns the errors of changes that are not allowed.
pub(super) fn forbidden(object: &Value, old: &Value) -> Vec<FieldError> {
    let forbidden_at_all = |why| vec![FieldError::forbidden(NO_PATH, why)];
    if is_mirror(old) {
        return forbidden_at_all("static pods cannot be resized");
    }
    if text(old, "spec.os.name") == "windows" {
        return forbidden_at_all("windows pods cannot be resized");
    }
    let mut errors = found_in_update(validation::pod, object, old);
    let before = match text(old, "status.qosClass") {
        "" => quality::class(old),
        class => class,
    };
    if before != quality::class(object) {
        let why = "Pod QOS Class may not change as a result of resizing";
        let shown = json!(text(object, "status.qosClass"));
        errors.push(FieldError::invalid("spec", &shown, why));
    }
    if !is_supported(old) {
        let why = "Pod running on node without support for resize";
        errors.push(FieldError::forbidden("spec", why));
    }
    errors.extend(forbidden_to_pod(object, old));
    if !list(old, "status.nodeAllocatableResourceClaimStatuses").is_empty() {
        let why = "pods with node allocatable resource claims cannot be resized";
        errors.push(FieldError::forbidden("spec", why));
    }
    let others = LISTS
        .iter()
        .flat_map(|list| other_containers(object, old, list));
    let others: Vec<_> = others.collect();
    if !others.is_empty() {
        errors.extend(others);
        return errors;
    }
    for containers in ["initContainers", "containers"] {
        errors.extend(removed_from_containers(object, old, containers));
    }
    errors.extend(forbidden_to_containers(object, old));
    errors.extend(forbidden_to_init_containers(object, old));
    let has = |pod: &Value| get(pod, POD_RESOURCES).is_some();
    if errors.is_empty() && has(object) != has(old) && !names_any(object) && !names_any(old) {
        let why = "only cpu and memory resources are mutable";
        errors.push(FieldError::forbidden("spec", why));
    }
    errors
}

/// Returns true if the pod's node supports resize: it reports the resources of running containers then.
fn is_supported(pod: &Value) -> bool {
    let statuses = list(pod, "status.containerStatuses").iter();
    let mut running = statuses.filter(|it| get(it, "state.running").is_some());
    running
        .next()
        .is_none_or(|it| get(it, "resources").is_some())
}

/// Returns true if a pod as a whole has limits or requests.
fn names_any(pod: &Value) -> bool {
    ["limits", "requests"].iter().any(|list| {
        let listed = get(pod, &format!("{POD_RESOURCES}.{list}")).and_then(Value::as_object);
        listed.is_some_and(|it| !it.is_empty())
    })
}

/// Validates a change of pod-level resources.
fn forbidden_to_pod(object: &Value, old: &Value) -> Vec<FieldError> {
    if !names_any(object) && !names_any(old) {
        return Vec::new();
    }
    let (after, before) = match (get(object, POD_RESOURCES), get(old, POD_RESOURCES)) {
        (None, _) => {
            let why = "pod-level resources cannot be removed";
            return vec![FieldError::forbidden(POD_RESOURCES, why)];
        }
        (Some(after), before) => (after, before.unwrap_or(&Value::Null)),
    };
    let mut errors = removed(after, before, POD_RESOURCES, "pod-level resource");
    if immutable_resources(after) != immutable_resources(before) {
        let why = "only cpu and memory resources are mutable at pod-level";
        errors.push(FieldError::forbidden("spec", why));
    }
    errors
}

/// Returns an error if containers were added or removed, and one for each that was renamed or moved.
fn other_containers(object: &Value, old: &Value, containers: &str) -> Vec<FieldError> {
    let path = format!("spec.{containers}");
    let (after, before) = (list(object, &path), list(old, &path));
    if after.len() != before.len() {
        let why = format!("{containers} may not be added or removed on resize");
        return vec![FieldError::forbidden(path, why)];
    }
    let pairs = after.iter().zip(before).enumerate();
    let other = pairs.filter(|(_, (one, other))| text(one, "name") != text(other, "name"));
    let why = format!("{containers} may not be renamed or reordered on resize");
    other
        .map(|(index, _)| FieldError::forbidden(format!("{path}[{index}].name"), why.as_str()))
        .collect()
}

/// Returns the containers of a list after and before, in order.
fn pairs<'v>(
    object: &'v Value,
    old: &'v Value,
    path: &str,
) -> impl Iterator<Item = (usize, (&'v Value, &'v Value))> {
    list(object, path).iter().zip(list(old, path)).enumerate()
}

/// Returns the errors of requests and limits that are gone. Follows `validateContainerResize`.
fn removed_from_containers(object: &Value, old: &Value, containers: &str) -> Vec<FieldError> {
    let path = format!("spec.{containers}");
    let resources = |it| get(it, "resources").unwrap_or(&Value::Null);
    let gone = pairs(object, old, &path).flat_map(|(index, (after, before))| {
        let field = format!("{path}[{index}].resources");
        removed(resources(after), resources(before), &field, "resource")
    });
    gone.collect()
}

fn forbidden_to_containers(object: &Value, old: &Value) -> Vec<FieldError> {
    let others = pairs(object, old, "spec.containers");
    let others = others.filter(|(_, (after, before))| !differs_as_it_may(after, before));
    let why = "only cpu and memory resources are mutable";
    others.map(|_| FieldError::forbidden("spec", why)).collect()
}

fn forbidden_to_init_containers(object: &Value, old: &Value) -> Vec<FieldError> {
    const PATH: &str = "spec.initContainers";
    let mut errors = Vec::new();
    for (index, (after, before)) in pairs(object, old, PATH) {
        let at = format!("{PATH}[{index}]");
        if !differs_as_it_may(after, before) {
            let why = "only cpu and memory resources for init or sidecar containers are mutable";
            errors.push(FieldError::forbidden(at.as_str(), why));
        }
        if after == before || text(after, "restartPolicy") == "Always" {
            continue;
        }
        let policies = list(after, "resizePolicy").iter();
        let restarts = policies.filter(|it| text(it, "restartPolicy") == "RestartContainer");
        let why = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized";
        errors.extend(restarts.map(|_| FieldError::forbidden(at.as_str(), why)));
    }
    errors
}

/// Returns an error if requests or limits lack a resource that they had before.
fn removed(after: &Value, before: &Value, field: &str, what: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for which in ["requests", "limits"] {
        let had = get(before, which).and_then(Value::as_object);
        let has =
            |resource: &String| get(after, which).is_some_and(|it| it.get(resource).is_some());
        if had.is_some_and(|had| !had.keys().all(has)) {
            let why = format!("{what} {which} cannot be removed");
            errors.push(FieldError::forbidden(format!("{field}.{which}"), why));
        }
    }
    errors
}

/// Returns true if two containers differ in nothing but requests and limits of [`MUTABLE`] resources, and use no
/// claims, which kube-apiserver takes away from the new one before it compares them.
fn differs_as_it_may(after: &Value, before: &Value) -> bool {
    let rest = |container: &Value| {
        let mut rest = container.clone();
        let resources = immutable_resources(&rest["resources"]);
        set(&mut rest, "resources", resources);
        rest
    };
    let mut after = rest(after);
    drop(remove(&mut after, "resources.claims"));
    after == rest(before)
}

/// Returns what there is of resources but requests and limits of [`MUTABLE`] ones.
fn immutable_resources(resources: &Value) -> Value {
    let mut rest = match resources {
        Value::Null => json!({}),
        resources => resources.clone(),
    };
    for which in ["requests", "limits"] {
        for resource in MUTABLE {
            drop(remove(&mut rest, &format!("{which}.{resource}")));
        }
        if get(&rest, which) == Some(&json!({})) {
            drop(remove(&mut rest, which));
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validation::messages;

    fn old() -> Value {
        let container = |name: &str| {
            json!({"name": name, "image": "i", "terminationMessagePolicy": "File",
                "imagePullPolicy": "Always",
                "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}})
        };
        let mut first = container("i");
        first["resizePolicy"] =
            json!([{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]);
        json!({"metadata": {"name": "p"}, "status": {"qosClass": "Burstable"}, "spec": {
            "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "serviceAccountName": "default",
            "containers": [container("a"), container("b")], "initContainers": [first]}})
    }

    fn resize(change: impl FnOnce(&mut Value)) -> (Value, Vec<String>) {
        let old = old();
        let mut object = old.clone();
        change(&mut object);
        keep_all_but_resources(&mut object, &old);
        let wrong = messages(&forbidden(&object, &old));
        (object, wrong)
    }

    #[test]
    fn resources_alone_change() {
        let (object, wrong) = resize(|pod| {
            pod["spec"]["containers"][1]["resources"]["limits"]["cpu"] = json!("3");
            pod["spec"]["containers"][1]["image"] = json!("other");
            pod["spec"]["nodeName"] = json!("n");
            pod["spec"]["resources"] = json!({"limits": {"cpu": "9"}, "requests": {"cpu": "8"}});
        });
        assert_eq!(wrong, [""; 0]);
        let mut expected = old();
        expected["spec"]["containers"][1]["resources"]["limits"]["cpu"] = json!("3");
        expected["spec"]["resources"] = json!({"limits": {"cpu": "9"}, "requests": {"cpu": "8"}});
        assert_eq!(object, expected);
    }

    type Change = fn(&mut Value);

    #[test]
    fn what_may_not_change_is_told() {
        let cases: [(Change, &[&str]); 6] = [
            (
                |pod| pod["spec"]["containers"][0]["resources"] = json!({"limits": {"cpu": "2"}}),
                &[
                    "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed",
                ],
            ),
            (
                |pod| {
                    let swapped = pod["spec"]["containers"][1].clone();
                    let first = std::mem::replace(&mut pod["spec"]["containers"][0], swapped);
                    pod["spec"]["containers"][1] = first;
                },
                &[
                    "spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize",
                    "spec.containers[1].name: Forbidden: containers may not be renamed or reordered on resize",
                ],
            ),
            (
                |pod| drop(remove(pod, "spec.initContainers")),
                &[
                    "spec.initContainers: Forbidden: initContainers may not be added or removed on resize",
                ],
            ),
            (
                |pod| {
                    pod["spec"]["containers"][0]["resources"]["limits"]["ephemeral-storage"] =
                        json!("1Gi");
                },
                &["spec: Forbidden: only cpu and memory resources are mutable"],
            ),
            (
                |pod| {
                    pod["spec"]["initContainers"][0]["resources"]["limits"]["cpu"] = json!("3");
                },
                &[
                    "spec.initContainers[0]: Forbidden: non-sidecar init containers with a resize policy of RestartContainer cannot be resized",
                ],
            ),
            (|_| {}, &[]),
        ];
        for (change, expected) in cases {
            assert_eq!(resize(change).1, expected);
        }
    }

    #[test]
    fn what_a_pod_has_as_a_whole_changes_little() {
        let cases: [(Change, &[&str]); 3] = [
            (
                |pod| pod["spec"]["resources"] = json!({"claims": [{"name": "c"}]}),
                &[
                    "spec.resources.claims: Forbidden: claims may not be set for Resources at pod-level",
                    "spec.resources.claims[0]: Not found: \"c\": must be one of the names in pod.spec.resourceClaims which is empty",
                    "spec: Invalid value: \"Burstable\": Pod QOS Class may not change as a result of resizing",
                ],
            ),
            (
                |pod| {
                    let same = json!({"cpu": "4", "memory": "1Gi"});
                    let same = json!({"requests": same, "limits": same});
                    pod["spec"]["resources"] = same;
                },
                &[
                    "spec: Invalid value: \"Burstable\": Pod QOS Class may not change as a result of resizing",
                ],
            ),
            (
                |pod| {
                    let odd = json!({"cpu": "1", "hugepages-2Mi": "4Mi"});
                    pod["spec"]["resources"] = json!({"limits": odd, "requests": odd});
                },
                &[
                    "spec.resources.requests[cpu]: Invalid value: \"1\": must be greater than or equal to aggregate container requests of 2",
                    "spec.resources.containers[0][cpu].limits: Invalid value: \"2\": must be less than or equal to pod limits of 1",
                    "spec.resources.containers[1][cpu].limits: Invalid value: \"2\": must be less than or equal to pod limits of 1",
                    "spec: Forbidden: only cpu and memory resources are mutable at pod-level",
                ],
            ),
        ];
        for (change, expected) in cases {
            assert_eq!(resize(change).1, expected);
        }
    }

    #[test]
    fn some_pods_are_not_resized() {
        let mut mirrored = old();
        mirrored["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
        let wrong = messages(&forbidden(&mirrored, &mirrored));
        assert_eq!(wrong, ["[]: Forbidden: static pods cannot be resized"]);
        let mut claiming = old();
        claiming["spec"]["resourceClaims"] = json!([{"name": "c", "resourceClaimName": "c"}]);
        claiming["spec"]["containers"][0]["resources"]["claims"] = json!([{"name": "c"}]);
        let wrong = messages(&forbidden(&claiming, &claiming));
        let mutable = "spec: Forbidden: only cpu and memory resources are mutable";
        assert_eq!(wrong, [mutable]);
        let mut allocated = old();
        allocated["status"]["nodeAllocatableResourceClaimStatuses"] = json!([{}]);
        let wrong = messages(&forbidden(&allocated, &allocated));
        let why = "pods with node allocatable resource claims cannot be resized";
        assert_eq!(wrong, [format!("spec: Forbidden: {why}")]);
        let mut unable = old();
        unable["status"]["containerStatuses"] = json!([{"name": "a", "state": {"running": {}}}]);
        let wrong = messages(&forbidden(&unable, &unable));
        assert_eq!(
            wrong,
            ["spec: Forbidden: Pod running on node without support for resize"]
        );
    }
}
