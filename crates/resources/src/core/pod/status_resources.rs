//! Checks of what the status of a pod says of claims, devices and allocated resources.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use std::collections::HashSet;
use std::collections::hash_map::{Entry, HashMap};

use ringwatch_apimachinery::validation::formats;
use serde_json::Value;

use crate::validation::field::{Errors, Field};

/// Maximum length of a message about the health of a device, in bytes.
const MESSAGE_BYTES_MAX: usize = 128;
/// The prefix of an allocated resource that is a claim.
const CLAIM: &str = "claim:";

/// Checks the generated ResourceClaims of a pod. Follows `validatePodResourceClaimStatuses` and
/// `validatePodExtendedResourceClaimStatus`.
pub(super) fn claims(pod: &Value) -> Errors {
    let pod = Field::root(pod);
    let mut errors = Errors::new();
    let own: HashSet<&str> = names(&pod, "spec.resourceClaims");
    let mut seen = HashSet::new();
    for status in pod.items("status.resourceClaimStatuses") {
        let name = status.at("name");
        if !own.contains(name.text()) {
            let why = "must match the name of an entry in `spec.resourceClaims`";
            errors.push(name.invalid(why));
        }
        if !seen.insert(name.text()) {
            errors.push(name.duplicate_of(name.text()));
        }
        let claim = status.at("resourceClaimName");
        if claim.is_set() {
            claim.must_conform(formats::dns_subdomain, &mut errors);
        }
    }
    let extended = pod.at("status.extendedResourceClaimStatus");
    if extended.is_set() {
        extended_claim(&pod, &extended, &mut errors);
    }
    errors
}

fn names<'v>(pod: &Field<'v, '_>, list: &str) -> HashSet<&'v str> {
    pod.items(list).map(|it| it.at("name").text()).collect()
}

/// Checks the claim that stands for extended resources of containers.
fn extended_claim(pod: &Field<'_, '_>, status: &Field<'_, '_>, errors: &mut Errors) {
    let mappings = status.at("requestMappings");
    if mappings.is_empty() {
        errors.push(mappings.required("at least one request mapping is required"));
    }
    // A container comes before an init container of the same name.
    let asked =
        ["spec.containers", "spec.initContainers"].map(|list| RequestedResources::read(pod, list));
    let mut seen = HashSet::new();
    for mapping in mappings.items("") {
        let [container, resource, request] =
            ["containerName", "resourceName", "requestName"].map(|it| mapping.at(it));
        let mut lists = asked.iter();
        match lists.find_map(|it| it.requests.get(container.text())) {
            None => {
                let why = "must match the name of an entry in spec.initContainers.name or spec.containers.name";
                errors.push(container.invalid(why));
            }
            Some(requests) if requests.get(resource.text()).is_none() => {
                let why = "must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests";
                errors.push(resource.invalid(why));
            }
            Some(_) => {}
        }
        let blamed = status.at("requestName");
        let wrong = formats::dns_label(request.text()).into_iter();
        errors.extend(wrong.map(|why| blamed.invalid_value(request.text(), why)));
        if !seen.insert([container.text(), resource.text(), request.text()]) {
            for repeated in [container, resource, request] {
                errors.push(repeated.duplicate_of(repeated.text()));
            }
        }
    }
    let claim = status.at("resourceClaimName");
    claim.must_be_set_and_conform(formats::dns_subdomain, errors);
}

/// Checks the health of the resources that containers have got. Follows
/// `validateContainerStatusAllocatedResourcesStatus` and `validateContainerStatusNoAllocatedResourcesStatus`.
pub(super) fn allocated(pod: &Value) -> Errors {
    let pod = Field::root(pod);
    let mut errors = Errors::new();
    for (statuses, containers) in [
        ("status.containerStatuses", "spec.containers"),
        ("status.initContainerStatuses", "spec.initContainers"),
    ] {
        let asked = RequestedResources::read(&pod, containers);
        for status in pod.items(statuses) {
            let container = status.at("name").text();
            for allocated in status.items("allocatedResourcesStatus") {
                asked.must_hold(container, &allocated.at("name"), &mut errors);
                health(&allocated, &mut errors);
            }
        }
    }
    for status in pod.items("status.ephemeralContainerStatuses") {
        let allocated = status.at("allocatedResourcesStatus");
        if !allocated.is_empty() {
            errors.push(allocated.forbidden("must not be specified in container status"));
        }
    }
    errors
}

/// The resources and claims that containers of a list ask for. Of those of one name the first counts.
#[derive(Default)]
struct RequestedResources<'v> {
    /// The resources by the names of the containers.
    requests: HashMap<&'v str, &'v Value>,
    /// The names of containers, of their claims, and of requests of these; empty for a claim as a whole.
    claims: HashSet<[&'v str; 3]>,
}

impl<'v> RequestedResources<'v> {
    fn read(pod: &Field<'v, '_>, list: &str) -> Self {
        let mut asked = Self::default();
        for container in pod.items(list) {
            let name = container.at("name").text();
            let Entry::Vacant(place) = asked.requests.entry(name) else {
                continue;
            };
            place.insert(container.at("resources.requests").value());
            for claim in container.items("resources.claims") {
                let [claim, request] = ["name", "request"].map(|it| claim.at(it).text());
                asked.claims.insert([name, claim, request]);
            }
        }
        asked
    }

    /// Checks that a container, if there is one of this name, asks for a resource or for the claim that a text means.
    fn must_hold(&self, container: &str, text: &Field<'_, '_>, errors: &mut Errors) {
        let Some(requests) = self.requests.get(container) else {
            return;
        };
        let Some(wanted) = text.text().strip_prefix(CLAIM) else {
            if requests.get(text.text()).is_none() {
                errors.push(text.invalid("must match one of the container's resource requests"));
            }
            return;
        };
        let part = wanted.split_once('/').filter(|(_, it)| !it.is_empty());
        let is_part = part.is_some_and(|(claim, request)| {
            let part = [container, claim, request];
            self.claims.contains(&part)
        });
        if !is_part && !self.claims.contains(&[container, wanted, ""]) {
            let why = "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty";
            errors.push(text.invalid(why));
        }
    }
}

fn health(allocated: &Field<'_, '_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for resource in allocated.items("resources") {
        let health = resource.at("health");
        let values = &["Healthy", "Unhealthy", "Unknown"];
        if !values.contains(&health.text()) {
            errors.push(health.unsupported(values));
        }
        let message = resource.at("message");
        if message.is_set() && message.is_empty() {
            errors.push(message.required("must be non-empty if specified"));
        }
        message.must_have_at_most(MESSAGE_BYTES_MAX, errors);
        let id = resource.at("resourceID");
        if !seen.insert(id.text()) {
            errors.push(id.duplicate_of(id.text()));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::validation::messages;

    fn pod(status: Value) -> Value {
        json!({"spec": {"resourceClaims": [{"name": "c"}], "containers": [{"name": "a", "resources": {
            "requests": {"example.com/gpu": "1"}, "claims": [{"name": "c", "request": "r"}, {"name": "d"}]}}]}, "status": status})
    }

    #[test]
    fn claims_are_those_of_the_pod() {
        let good = json!({"resourceClaimStatuses": [{"name": "c", "resourceClaimName": "p-c"}],
            "extendedResourceClaimStatus": {"resourceClaimName": "e", "requestMappings": [
                {"containerName": "a", "resourceName": "example.com/gpu", "requestName": "r"}]}});
        assert_eq!(claims(&pod(good.clone())), []);
        for (at, value, wrong) in [
            (
                "/resourceClaimStatuses/0/name",
                json!("x"),
                "status.resourceClaimStatuses[0].name: Invalid value: \"x\": must match the name of an entry in `spec.resourceClaims`",
            ),
            (
                "/extendedResourceClaimStatus/requestMappings",
                json!([]),
                "status.extendedResourceClaimStatus.requestMappings: Required value: at least one request mapping is required",
            ),
            (
                "/extendedResourceClaimStatus/requestMappings/0/containerName",
                json!("x"),
                "status.extendedResourceClaimStatus.requestMappings[0].containerName: Invalid value: \"x\": must match the name of an entry in spec.initContainers.name or spec.containers.name",
            ),
            (
                "/extendedResourceClaimStatus/requestMappings/0/resourceName",
                json!("x"),
                "status.extendedResourceClaimStatus.requestMappings[0].resourceName: Invalid value: \"x\": must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests",
            ),
            (
                "/extendedResourceClaimStatus/resourceClaimName",
                json!(""),
                "status.extendedResourceClaimStatus.resourceClaimName: Required value",
            ),
        ] {
            let mut status = good.clone();
            *status.pointer_mut(at).expect("a field") = value;
            assert_eq!(messages(&claims(&pod(status))), [wrong]);
        }
    }

    #[test]
    fn of_containers_of_one_name_the_first_counts() {
        let container = |resource: &str| json!({"name": "a", "resources": {"requests": {resource: "1"}, "claims": [{"name": resource}]}});
        let pod = json!({"spec": {"containers": [container("x"), container("y")],
            "initContainers": [container("z")]}, "status": {
            "extendedResourceClaimStatus": {"resourceClaimName": "e", "requestMappings": [
                {"containerName": "a", "resourceName": "x", "requestName": "r"},
                {"containerName": "a", "resourceName": "z", "requestName": "r"}]},
            "containerStatuses": [{"name": "a", "allocatedResourcesStatus": [
                {"name": "x"}, {"name": "y"}, {"name": "claim:x"}, {"name": "claim:y"}]}]}});
        let fields =
            |errors: Errors| -> Vec<String> { errors.into_iter().map(|it| it.field).collect() };
        assert_eq!(
            fields(claims(&pod)),
            ["status.extendedResourceClaimStatus.requestMappings[1].resourceName"]
        );
        let at = "status.containerStatuses[0].allocatedResourcesStatus";
        assert_eq!(
            fields(allocated(&pod)),
            [1, 3].map(|it| format!("{at}[{it}].name"))
        );
    }

    #[test]
    fn a_container_has_what_it_asks_for() {
        let of = |name: &str, health: &str| {
            json!({"containerStatuses": [{"name": "a", "allocatedResourcesStatus": [
                {"name": name, "resources": [{"resourceID": "i", "health": health}]}]}]})
        };
        for name in ["example.com/gpu", "claim:c/r", "claim:d"] {
            assert_eq!(allocated(&pod(of(name, "Healthy"))), [], "{name}");
        }
        for name in ["cpu", "claim:c", "claim:d/r", "claim:x"] {
            assert_eq!(allocated(&pod(of(name, "Healthy"))).len(), 1, "{name}");
        }
        assert_eq!(
            messages(&allocated(&pod(of("claim:d", "x")))),
            [
                "status.containerStatuses[0].allocatedResourcesStatus[0].resources[0].health: Unsupported value: \"x\": supported values: \"Healthy\", \"Unhealthy\", \"Unknown\""
            ]
        );
        let ephemeral = json!({"ephemeralContainerStatuses": [{"name": "e", "allocatedResourcesStatus": [{"name": "x"}]}]});
        assert_eq!(
            messages(&allocated(&pod(ephemeral))),
            [
                "status.ephemeralContainerStatuses[0].allocatedResourcesStatus: Forbidden: must not be specified in container status"
            ]
        );
    }
}
