//! The names under which a quota counts objects of a type, and the amounts that each object adds.

use std::collections::{BTreeMap, BTreeSet};

use ringwatch_apimachinery::path::{get, list, text};
use ringwatch_registry::Operation;
use ringwatch_registry::Resource;
use ringwatch_resources::{RequestsOrLimits, ResourceList, container_resources, pod_resources};
use serde_json::Value;

use super::QuotaScope;
use super::scope::ends;

/// The resources whose requests are counted under their own names as well.
const COMPUTE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// The resources that every container must specify if a quota counts them.
const REQUIRED: [&str; 6] = [
    "cpu",
    "memory",
    "requests.cpu",
    "requests.memory",
    "limits.cpu",
    "limits.memory",
];
/// Core types that are also counted under their plural alone.
const COUNTED_BY_PLURAL: [&str; 4] = [
    "configmaps",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
];

const REQUESTS: &str = "requests.";
const HUGE_PAGES: &str = "hugepages-";
const OF_CLASS: &str = ".storageclass.storage.k8s.io/";
const CLAIMS: &str = "persistentvolumeclaims";
const STORAGE: &str = "requests.storage";
const DEVICES_OF_CLASS: &str = ".deviceclass.resource.k8s.io/devices";
const DEVICE_CLAIMS: &str = "count/resourceclaims.resource.k8s.io";

/// Number of devices that an allocation can have at most, and that a request for all devices counts as.
const DEVICES_MAX: usize = 32;

/// The way in which a quota counts the objects of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CountedType {
    Pods,
    Services,
    Claims,
    /// ResourceClaims, by the devices of each class that they may be given.
    DeviceClaims,
    /// Objects count by their number alone, under these names.
    Objects(Vec<String>),
}

impl CountedType {
    /// Returns how quotas count the objects of a resource.
    pub(crate) fn from_resource(resource: &Resource) -> Self {
        let (group, plural) = (&resource.group_version.group, &resource.plural);
        match (group.as_str(), plural.as_str()) {
            ("", "pods") => Self::Pods,
            ("", "services") => Self::Services,
            ("", CLAIMS) => Self::Claims,
            ("resource.k8s.io", "resourceclaims") => Self::DeviceClaims,
            ("", plural) if COUNTED_BY_PLURAL.contains(&plural) => {
                Self::Objects(vec![format!("count/{plural}"), plural.to_owned()])
            }
            _ => Self::Objects(vec![format!("count/{}", resource.qualified_name())]),
        }
    }

    /// Returns true if a write may change the usage: as `Handles` of Kubernetes' evaluators says.
    pub(crate) fn changes_by(
        &self,
        operation: Operation,
        subresource: &str,
        object: &Value,
        old: Option<&Value>,
    ) -> bool {
        match (self, operation) {
            (_, Operation::Create) => subresource.is_empty(),
            // A deadline moves a pod into another scope.
            (Self::Pods, Operation::Update) if subresource.is_empty() => {
                old.is_some_and(|old| ends(old) != ends(object))
            }
            (Self::Pods, Operation::Update) => subresource == "resize",
            (Self::Services | Self::DeviceClaims, Operation::Update) => subresource.is_empty(),
            // The status has the classes and the size that a claim was given.
            (Self::Claims, Operation::Update) => matches!(subresource, "" | "status"),
            _ => false,
        }
    }

    /// Returns true if objects are counted under a name.
    pub(crate) fn counts(&self, name: &str) -> bool {
        match self {
            Self::Pods => {
                let of = name
                    .strip_prefix(REQUESTS)
                    .or_else(|| name.strip_prefix("limits."));
                matches!(name, "pods" | "count/pods")
                    || COMPUTE.contains(&of.unwrap_or(name))
                    || name.starts_with(HUGE_PAGES)
                    || name
                        .strip_prefix(REQUESTS)
                        .is_some_and(|of| of.starts_with(HUGE_PAGES) || is_extended(of))
            }
            Self::Services => matches!(
                name,
                "services" | "services.nodeports" | "services.loadbalancers" | "count/services"
            ),
            Self::Claims => {
                let of = name.split_once(OF_CLASS).map_or(name, |(_, of)| of);
                matches!(of, CLAIMS | STORAGE) || name == "count/persistentvolumeclaims"
            }
            Self::DeviceClaims => name == DEVICE_CLAIMS || name.ends_with(DEVICES_OF_CLASS),
            Self::Objects(names) => names.iter().any(|known| known == name),
        }
    }

    /// Returns true if an object is in all scopes of a quota.
    pub(crate) fn is_in_scope(&self, scopes: &[QuotaScope<'_>], object: &Value) -> bool {
        match self {
            Self::Pods => scopes.iter().all(|scope| scope.has_pod(object)),
            Self::Claims => scopes.iter().all(|scope| scope.has_claim(object)),
            _ => scopes.is_empty(),
        }
    }

    /// Returns the error that an object does not specify resources that a quota counts under these names.
    pub(crate) fn unsaid(&self, names: &[&str], object: &Value) -> Option<String> {
        let in_pod = get(object, "spec.resources")
            .is_some_and(|it| !it["requests"].is_null() || !it["limits"].is_null());
        if *self != Self::Pods || in_pod {
            return None;
        }
        let required: Vec<_> = names
            .iter()
            .filter(|name| REQUIRED.contains(name))
            .collect();
        let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let containers = list(object, "spec.containers").iter();
        for container in containers.chain(list(object, "spec.initContainers")) {
            let said = |which| container_resources(container, which);
            let said = compute(
                &said(RequestsOrLimits::Requests),
                &said(RequestsOrLimits::Limits),
            );
            for name in required.iter().filter(|name| said.get(name).is_none()) {
                missing
                    .entry(name)
                    .or_default()
                    .insert(text(container, "name"));
            }
        }
        let lines: Vec<String> = missing
            .into_iter()
            .map(|(name, containers)| {
                let containers: Vec<_> = containers.into_iter().collect();
                format!("{name} for: {}", containers.join(","))
            })
            .collect();
        (!lines.is_empty()).then(|| format!("must specify {}", lines.join("; ")))
    }

    /// Returns how much an object uses.
    pub(crate) fn usage(&self, object: &Value) -> ResourceList {
        match self {
            Self::Pods => {
                let of = |which| pod_resources(object, which);
                let mut usage = compute(
                    &of(RequestsOrLimits::Requests),
                    &of(RequestsOrLimits::Limits),
                );
                usage.count("pods", 1);
                usage.count("count/pods", 1);
                usage
            }
            Self::Services => service(object),
            Self::Claims => claim(object),
            Self::DeviceClaims => device_claim(object),
            Self::Objects(names) => {
                let mut usage = ResourceList::default();
                for name in names {
                    usage.count(name, 1);
                }
                usage
            }
        }
    }
}

/// Returns the requests and limits of a pod by the names that quotas have for them.
fn compute(requests: &ResourceList, limits: &ResourceList) -> ResourceList {
    let mut usage = ResourceList::default();
    for (name, amount) in requests.iter() {
        if COMPUTE.contains(&name) || name.starts_with(HUGE_PAGES) {
            usage.set(name, amount);
        }
        if COMPUTE.contains(&name) || name.starts_with(HUGE_PAGES) || is_extended(name) {
            usage.set(format!("{REQUESTS}{name}"), amount);
        }
    }
    for (name, amount) in limits.iter().filter(|(name, _)| COMPUTE.contains(name)) {
        usage.set(format!("limits.{name}"), amount);
    }
    usage
}

/// Returns true if a resource is an extended resource.
fn is_extended(name: &str) -> bool {
    let native = name
        .split_once('/')
        .is_none_or(|(domain, _)| domain.ends_with("kubernetes.io"));
    !native && !name.starts_with(REQUESTS)
}

fn service(service: &Value) -> ResourceList {
    let ports = list(service, "spec.ports");
    let allocated = get(service, "spec.allocateLoadBalancerNodePorts") != Some(&Value::Bool(false));
    let explicit = || {
        ports
            .iter()
            .filter(|port| port["nodePort"].as_i64().unwrap_or(0) != 0)
            .count()
    };
    let (node_ports, load_balancers) = match text(service, "spec.type") {
        "NodePort" => (ports.len(), 0),
        "LoadBalancer" if allocated => (ports.len(), 1),
        "LoadBalancer" => (explicit(), 1),
        _ => (0, 0),
    };
    let mut usage = ResourceList::default();
    usage.count("count/services", 1);
    usage.count("services", 1);
    usage.count("services.nodeports", node_ports);
    usage.count("services.loadbalancers", load_balancers);
    usage
}

fn claim(claim: &Value) -> ResourceList {
    let mut usage = ResourceList::default();
    usage.count("count/persistentvolumeclaims", 1);
    usage.count(CLAIMS, 1);
    let beta = claim["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"].as_str();
    let class = beta.unwrap_or_else(|| text(claim, "spec.storageClassName"));
    if !class.is_empty() {
        usage.count(format!("{class}{OF_CLASS}{CLAIMS}"), 1);
    }
    let mut requested = get(claim, "spec.resources.requests")
        .map(ResourceList::read)
        .unwrap_or_default();
    let allocated = get(claim, "status.allocatedResources").map(ResourceList::read);
    if let Some(allocated) = allocated.filter(|_| requested.get("storage").is_some()) {
        requested.raise(&allocated);
    }
    if let Some(storage) = requested.get("storage") {
        usage.set(STORAGE, storage);
        if !class.is_empty() {
            usage.set(format!("{class}{OF_CLASS}{STORAGE}"), storage);
        }
    }
    usage
}

/// Returns the usage of a ResourceClaim. Of alternatives the largest counts, for each class.
fn device_claim(claim: &Value) -> ResourceList {
    let mut devices: BTreeMap<&str, usize> = BTreeMap::new();
    for request in list(claim, "spec.devices.requests") {
        let alternatives = list(request, "firstAvailable");
        let mut largest: BTreeMap<&str, usize> = BTreeMap::new();
        let exactly = alternatives.is_empty().then(|| get(request, "exactly"));
        for wanted in alternatives.iter().chain(exactly.flatten()) {
            let number = match text(wanted, "allocationMode") {
                "ExactCount" => usize::try_from(wanted["count"].as_i64().unwrap_or(0)).unwrap_or(0),
                "All" => DEVICES_MAX,
                _ => 0,
            };
            let most = largest.entry(text(wanted, "deviceClassName")).or_default();
            *most = number.max(*most);
        }
        for (class, number) in largest {
            let sum = devices.entry(class).or_default();
            *sum = sum.saturating_add(number);
        }
    }
    let mut usage = ResourceList::default();
    usage.count(DEVICE_CLAIMS, 1);
    for (class, number) in devices {
        usage.count(format!("{class}{DEVICES_OF_CLASS}"), number);
    }
    usage
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_counts_anew_when_a_deadline_moves_it_into_another_scope() {
        let (open, bounded) = (
            json!({"spec": {}}),
            json!({"spec": {"activeDeadlineSeconds": 5}}),
        );
        let counts = |subresource: &str, old: &Value, new: &Value| {
            CountedType::Pods.changes_by(Operation::Update, subresource, new, Some(old))
        };
        assert!(counts("", &open, &bounded));
        assert!(!counts("", &bounded, &bounded));
        assert!(!counts("", &open, &open));
        assert!(!counts("status", &open, &bounded));
        assert!(counts("resize", &open, &open));
    }

    #[test]
    fn objects_count_under_the_names_of_quotas() {
        let pod = json!({"spec": {"containers": [{"name": "c", "resources": {
            "requests": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "2", "hugepages-2Mi": "4Mi"},
            "limits": {"cpu": "2"}}}]}});
        assert_eq!(
            CountedType::Pods.usage(&pod).to_string(),
            "count/pods=1,cpu=1,hugepages-2Mi=4Mi,limits.cpu=2,memory=1Gi,pods=1,requests.cpu=1,\
             requests.hugepages-2Mi=4Mi,requests.memory=1Gi,requests.nvidia.com/gpu=2"
        );
        let service = json!({"spec": {"type": "LoadBalancer", "ports": [{"port": 1}, {"port": 2, "nodePort": 30000}]}});
        assert_eq!(
            CountedType::Services.usage(&service).to_string(),
            "count/services=1,services=1,services.loadbalancers=1,services.nodeports=2"
        );
        let claim = json!({"spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "5Gi"}}},
            "status": {"allocatedResources": {"storage": "6Gi"}}});
        assert_eq!(
            CountedType::Claims.usage(&claim).to_string(),
            "count/persistentvolumeclaims=1,fast.storageclass.storage.k8s.io/persistentvolumeclaims=1,\
             fast.storageclass.storage.k8s.io/requests.storage=6Gi,persistentvolumeclaims=1,requests.storage=6Gi"
        );
        let exact = |class: &str, count: usize| json!({"deviceClassName": class, "allocationMode": "ExactCount", "count": count});
        let devices = json!({"spec": {"devices": {"requests": [
            {"exactly": exact("a", 2)}, {"exactly": {"deviceClassName": "b", "allocationMode": "All"}},
            {"firstAvailable": [exact("a", 1), exact("a", 4), exact("c", 3)]}]}}});
        assert_eq!(
            CountedType::DeviceClaims.usage(&devices).to_string(),
            "a.deviceclass.resource.k8s.io/devices=6,b.deviceclass.resource.k8s.io/devices=32,\
             c.deviceclass.resource.k8s.io/devices=3,count/resourceclaims.resource.k8s.io=1"
        );
        for (counted, usage) in [
            (CountedType::DeviceClaims, &devices),
            (CountedType::Pods, &pod),
            (CountedType::Services, &service),
            (CountedType::Claims, &claim),
        ] {
            assert!(
                counted
                    .usage(usage)
                    .names()
                    .all(|name| counted.counts(name))
            );
        }
        assert!(!CountedType::Pods.counts("services") && !CountedType::Claims.counts("pods"));
    }

    #[test]
    fn containers_say_what_quotas_count() {
        let pod = json!({"spec": {"containers": [
            {"name": "b", "resources": {"requests": {"cpu": "1"}}}, {"name": "a"}]}});
        let unsaid = |names: &[&str]| CountedType::Pods.unsaid(names, &pod);
        assert_eq!(
            unsaid(&["requests.cpu", "memory", "pods"]).as_deref(),
            Some("must specify memory for: a,b; requests.cpu for: a")
        );
        assert_eq!(unsaid(&["pods", "requests.ephemeral-storage"]), None);
    }
}
