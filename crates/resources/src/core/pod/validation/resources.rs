//! The resources of a pod as a whole, which its containers share.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use ringwatch_apimachinery::{FieldError, FieldErrorKind};

use super::claims::{self, OwnClaims};
use crate::validation::field::{Errors, Field};
use crate::validation::quantities::{is_pages, requirements};
use crate::{RequestsOrLimits, ResourceList, resources_of_containers};

/// The resources that pods as a whole may have, as kube-apiserver lists them.
const OF_PODS: [&str; 3] = ["cpu", "hugepages-", "memory"];

/// Checks the resources in the spec of a pod. Follows `validatePodResources`.
pub(super) fn pod_resources(spec: &Field<'_, '_>, own_claims: &OwnClaims<'_>, errors: &mut Errors) {
    let whole = spec.at("resources");
    if !whole.is_set() {
        return;
    }
    if spec.at("os.name").text() == "windows" {
        errors.push(whole.forbidden("may not be set for a windows pod"));
        return;
    }
    if whole.at("claims").is_set() {
        let why = "claims may not be set for Resources at pod-level";
        errors.push(whole.at("claims").forbidden(why));
    }
    requirements(&whole, of_pods, errors);
    claims::used(own_claims, &whole, errors);
    covers_the_containers(spec, errors);
    let limits = whole.at("limits");
    for (index, container) in spec.items("containers").enumerate() {
        for (name, limit) in container.members("resources.limits") {
            let Some(most) = limits.value().get(name).map(Field::root) else {
                continue;
            };
            if limit.quantity() <= most.quantity() {
                continue;
            }
            let most = most.quantity_text();
            let why = format!("must be less than or equal to pod limits of {most}");
            let mut error = limit.invalid_value(limit.quantity_text(), why);
            error.field = format!("{}.containers[{index}][{name}].limits", whole.field());
            errors.push(error);
        }
    }
}

/// Checks the name of a resource that pods may request as a whole.
fn of_pods(name: &str, at: &Field<'_, '_>, errors: &mut Errors) {
    let before = errors.len();
    crate::validation::quantities::name(name, at, errors);
    let known = matches!(name, "cpu" | "memory") || is_pages(name);
    if errors.len() == before && !known {
        let words = OF_PODS.map(|it| format!("{it:?}")).join(", ");
        let detail = format!("{name:?}: supported values: {words}");
        let kind = FieldErrorKind::NotSupported;
        errors.push(FieldError::new(kind, at.field(), detail));
    }
}

/// Checks that the resources of the pod are not less than those of all containers.
fn covers_the_containers(spec: &Field<'_, '_>, errors: &mut Errors) {
    for which in [RequestsOrLimits::Requests, RequestsOrLimits::Limits] {
        let member = which.member();
        let of_containers = resources_of_containers(spec.value(), which);
        let whole = spec.at("resources");
        let known = ResourceList::read(whole.at(member).value());
        for (name, amount) in whole.members(member) {
            let sum = of_containers.get(name).zip(known.get(name));
            let more = sum.filter(|(sum, whole)| sum.quantity > whole.quantity);
            let Some((sum, _)) =
                more.filter(|_| which == RequestsOrLimits::Requests || is_pages(name))
            else {
                continue;
            };
            let why =
                format!("must be greater than or equal to aggregate container {member} of {sum}");
            errors.push(amount.invalid_value(amount.quantity_text(), why));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::validation::messages;

    fn wrong(spec: &Value) -> Vec<String> {
        let mut errors = Errors::new();
        let pod = json!({"spec": spec});
        let root = Field::root(&pod);
        let spec = root.at("spec");
        let own_claims = claims::of_pod(&spec, false, &mut Errors::new());
        pod_resources(&spec, &own_claims, &mut errors);
        messages(&errors)
    }

    #[test]
    fn a_pod_has_enough_for_its_containers() {
        let container = json!({"resources": {"requests": {"cpu": "1", "example.com/gpu": "1"},
            "limits": {"cpu": "2", "hugepages-2Mi": "4Mi", "example.com/gpu": "1"}}});
        let spec = |resources: Value| json!({"resources": resources, "containers": [container, container]});
        let enough =
            json!({"requests": {"cpu": "2"}, "limits": {"cpu": "2", "hugepages-2Mi": "8Mi"}});
        assert_eq!(wrong(&spec(enough)), [""; 0]);
        assert_eq!(wrong(&json!({"containers": [container]})), [""; 0]);
        let little = json!({"requests": {"cpu": "1500m"},
            "limits": {"cpu": "1900m", "hugepages-2Mi": "4Mi"}});
        assert_eq!(
            wrong(&spec(little)),
            [
                "spec.resources.requests[cpu]: Invalid value: \"1500m\": must be greater than or equal to aggregate container requests of 2",
                "spec.resources.limits[hugepages-2Mi]: Invalid value: \"4Mi\": must be greater than or equal to aggregate container limits of 8Mi",
                "spec.resources.containers[0][cpu].limits: Invalid value: \"2\": must be less than or equal to pod limits of 1900m",
                "spec.resources.containers[1][cpu].limits: Invalid value: \"2\": must be less than or equal to pod limits of 1900m",
            ]
        );
    }

    #[test]
    fn a_pod_has_some_resources_as_a_whole() {
        let disk = json!({"resources": {"limits": {"ephemeral-storage": "1Gi", "odd": "1"}}});
        assert_eq!(
            wrong(&disk),
            [
                "spec.resources.limits[ephemeral-storage]: Unsupported value: \"ephemeral-storage\": supported values: \"cpu\", \"hugepages-\", \"memory\"",
                "spec.resources.limits[odd]: Invalid value: \"odd\": must be a standard resource type or fully qualified",
            ]
        );
        let windows = json!({"os": {"name": "windows"}, "resources": {}});
        assert_eq!(
            wrong(&windows),
            ["spec.resources: Forbidden: may not be set for a windows pod"]
        );
    }
}
