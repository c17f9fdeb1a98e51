//! Refuses containers, pods and PersistentVolumeClaims that violate a LimitRange of their namespace, and sets the
//! default requests and limits of containers. Kubernetes' LimitRanger plugin.

use std::sync::Arc;

use async_trait::async_trait;
use indexmap::IndexSet;
use ringwatch::codec;
use ringwatch::meta::{Object, ResourceVersion};
use ringwatch::storage::{Interface, ListOptions};
use ringwatch_admission::Plugin;
use ringwatch_apimachinery::path::{get_mut, list, text};
use ringwatch_apimachinery::quantity::Amount;
use ringwatch_apimachinery::{Error, accessor};
use ringwatch_registry::{Operation, Request};
use ringwatch_resources::{
    RequestsOrLimits, ResourceList, container_resources, resources_without_overhead,
};
use serde_json::{Value, json};

use super::empty_namespaces::EmptyNamespaces;

/// Maximum number of reasons of a refusal: a thousand containers may break a thousand limits each.
const REFUSALS_MAX: usize = 10_000;

/// Maximum number of bytes of quantities that a pod's containers get by default: no object with more could be stored.
const DEFAULTED_BYTES_MAX: usize = 3 << 20;

/// The annotation that lists the requests and limits that the plugin has set.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// The plugin, with the storage of LimitRanges.
#[derive(Debug)]
pub struct LimitRanger {
    ranges: Arc<dyn Interface>,
    /// Namespaces that had none a moment ago.
    without: EmptyNamespaces,
}

impl LimitRanger {
    /// Creates the plugin, which looks LimitRanges up in this storage.
    #[must_use]
    pub fn new(ranges: Arc<dyn Interface>) -> Self {
        Self {
            ranges,
            without: EmptyNamespaces::default(),
        }
    }

    /// Returns the limits of the request's namespace, those of one range after those of another.
    async fn limits(&self, request: &Request<'_>) -> Result<Vec<Limit>, Error> {
        let (namespace, now) = (request.namespace, request.context.clock.now());
        let mut ranges = self.list(namespace, Some(ResourceVersion(0))).await?;
        if ranges.is_empty() && !self.without.contains(namespace, now) {
            ranges = self.list(namespace, None).await?;
            if ranges.is_empty() {
                self.without.insert(namespace, now);
            }
        }
        let mut limits = Vec::new();
        for range in ranges {
            limits.extend(limits_of(&range)?);
        }
        Ok(limits)
    }

    /// Returns the ranges of a namespace: of now, or as the cache has them.
    async fn list(
        &self,
        namespace: &str,
        resource_version: Option<ResourceVersion>,
    ) -> Result<Vec<Arc<Object>>, Error> {
        let options = ListOptions {
            resource_version,
            recursive: true,
            ..ListOptions::default()
        };
        let key = format!("/limitranges/{namespace}/");
        let found = self.ranges.get_list(&key, options).await;
        found.map(|it| it.items).map_err(Error::Storage)
    }
}

fn limits_of(range: &Object) -> Result<Vec<Limit>, Error> {
    let range = codec::tree(range)?;
    let limits = list(&range, "spec.limits").iter();
    Ok(limits.map(Limit::read).collect())
}

/// A limit of a range, with its quantities read once for all containers.
#[derive(Debug)]
struct Limit {
    /// The type of object that is limited, such as `Container`.
    kind: String,
    min: ResourceList,
    max: ResourceList,
    ratio: ResourceList,
    requested_by_default: ResourceList,
    limited_by_default: ResourceList,
}

impl Limit {
    fn read(limit: &Value) -> Self {
        let amounts = |member: &str| ResourceList::read(&limit[member]);
        Self {
            kind: text(limit, "type").to_owned(),
            min: amounts("min"),
            max: amounts("max"),
            ratio: amounts("maxLimitRequestRatio"),
            requested_by_default: amounts("defaultRequest"),
            limited_by_default: amounts("default"),
        }
    }
}

/// The reasons why an object is refused, each once and in order.
#[derive(Default)]
struct Refusals {
    reasons: IndexSet<String>,
    /// The number of reasons, repeated ones included.
    made: usize,
}

impl Refusals {
    fn add(&mut self, why: Option<String>) {
        self.made += usize::from(why.is_some());
        self.reasons.extend(why);
    }

    /// Returns true if there are so many reasons that the check ends.
    fn is_full(&self) -> bool {
        self.made >= REFUSALS_MAX
    }
}

/// Returns true if LimitRanges apply to a write. The resources of pods are immutable but for `resize`.
fn concerns(request: &Request<'_>) -> bool {
    let is_pods =
        request.resource.plural == "pods" && request.resource.group_version.group.is_empty();
    let deleted = request.old.is_some_and(accessor::is_terminating);
    let limited = match request.operation {
        Operation::Create => is_pods || request.resource.plural == "persistentvolumeclaims",
        Operation::Update if is_pods => request.subresource() == "resize",
        Operation::Update => request.is_of("", "persistentvolumeclaims"),
        Operation::Delete | Operation::Connect => false,
    };
    let whole = request.subresource().is_empty() || request.subresource() == "resize";
    limited && whole && !deleted && request.resource.group_version.group.is_empty()
}

#[async_trait]
impl Plugin for LimitRanger {
    fn name(&self) -> &'static str {
        "LimitRanger"
    }

    async fn admit(&self, request: &Request<'_>, object: &mut Value) -> Result<(), Error> {
        if concerns(request) && request.resource.plural == "pods" {
            let limits = self.limits(request).await?;
            if !default_containers(object, &limits) {
                let why = format!(
                    "the default requests and limits of its containers take more than {DEFAULTED_BYTES_MAX} bytes"
                );
                return Err(request.forbid(object, why));
            }
        }
        Ok(())
    }

    async fn validate(&self, request: &Request<'_>, object: &Value) -> Result<(), Error> {
        if !concerns(request) {
            return Ok(());
        }
        let limits = self.limits(request).await?;
        let mut refusals = Refusals::default();
        for limit in &limits {
            if request.resource.plural == "pods" {
                check_pod(object, limit, &mut refusals);
            } else {
                check_claim(object, limit, &mut refusals);
            }
        }
        let refusals: Vec<String> = refusals.reasons.into_iter().collect();
        match refusals.as_slice() {
            [] => Ok(()),
            [one] => Err(request.forbid(object, one)),
            all => Err(request.forbid(object, format!("[{}]", all.join(", ")))),
        }
    }
}

/// Sets the default requests and limits of containers, and annotates the pod. Returns false if the defaults are too
/// large.
fn default_containers(pod: &mut Value, limits: &[Limit]) -> bool {
    let mut set = Vec::new();
    let mut bytes = 0;
    for limit in limits.iter().filter(|limit| limit.kind == "Container") {
        let defaults = [
            (RequestsOrLimits::Requests, &limit.requested_by_default),
            (RequestsOrLimits::Limits, &limit.limited_by_default),
        ];
        for (path, what) in [
            ("spec.containers", "container"),
            ("spec.initContainers", "init container"),
        ] {
            let containers = get_mut(pod, path).and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten() {
                for (which, defaults) in defaults {
                    let said = default_container(container, which, defaults, what);
                    // The annotation names every quantity that was set.
                    bytes += said.as_ref().map_or(0, String::len);
                    set.extend(said);
                    if bytes > DEFAULTED_BYTES_MAX {
                        return false;
                    }
                }
            }
        }
    }
    if !set.is_empty() {
        let text = format!("LimitRanger plugin set: {}", set.join("; "));
        pod["metadata"]["annotations"][ANNOTATION] = json!(text);
    }
    true
}

/// Describes the defaults that a container got.
fn default_container(
    container: &mut Value,
    which: RequestsOrLimits,
    defaults: &ResourceList,
    what: &str,
) -> Option<String> {
    let known = container_resources(container, which);
    let missing = defaults.only(|name, _| known.get(name).is_none());
    if missing.is_empty() {
        return None;
    }
    let name = text(container, "name").to_owned();
    for (resource, amount) in missing.iter() {
        container["resources"][which.member()][resource] = json!(amount.to_string());
    }
    let names: Vec<&str> = missing.names().collect();
    let kind = which.member().trim_end_matches('s');
    Some(format!("{} {kind} for {what} {name}", names.join(", ")))
}

fn check_pod(pod: &Value, limit: &Limit, refusals: &mut Refusals) {
    match limit.kind.as_str() {
        "Container" => {
            let containers = list(pod, "spec.containers").iter();
            for container in containers.chain(list(pod, "spec.initContainers")) {
                let of = |which| container_resources(container, which);
                check(
                    limit,
                    &of(RequestsOrLimits::Requests),
                    &of(RequestsOrLimits::Limits),
                    refusals,
                );
            }
        }
        "Pod" => {
            let of = |which| resources_without_overhead(pod, which);
            check(
                limit,
                &of(RequestsOrLimits::Requests),
                &of(RequestsOrLimits::Limits),
                refusals,
            );
        }
        _ => {}
    }
}

/// A check of a bound of a quantity, which returns the reason why a request or limit violates it.
type BoundCheck = fn(&str, &str, Amount, Option<Amount>, Option<Amount>) -> Option<String>;

fn check(limit: &Limit, requests: &ResourceList, limits: &ResourceList, refusals: &mut Refusals) {
    let bounds: [(&ResourceList, BoundCheck); 3] = [
        (&limit.min, below),
        (&limit.max, above),
        (&limit.ratio, apart),
    ];
    for (amounts, bound) in bounds {
        for (name, amount) in amounts.iter() {
            if refusals.is_full() {
                return;
            }
            let (request, most) = (requests.get(name), limits.get(name));
            refusals.add(bound(&limit.kind, name, amount, request, most));
        }
    }
}

fn below(
    kind: &str,
    name: &str,
    least: Amount,
    request: Option<Amount>,
    limit: Option<Amount>,
) -> Option<String> {
    let begin = format!("minimum {name} usage per {kind} is {least}");
    let less = |amount: &Amount| amount.quantity < least.quantity;
    match request {
        None => Some(format!("{begin}.  No request is specified")),
        Some(request) if less(&request) => Some(format!("{begin}, but request is {request}")),
        Some(_) => {
            let limit = limit.filter(less)?;
            Some(format!("{begin}, but limit is {limit}"))
        }
    }
}

fn above(
    kind: &str,
    name: &str,
    most: Amount,
    request: Option<Amount>,
    limit: Option<Amount>,
) -> Option<String> {
    let begin = format!("maximum {name} usage per {kind} is {most}");
    let more = |amount: &Amount| amount.quantity > most.quantity;
    match limit {
        None => Some(format!("{begin}.  No limit is specified")),
        Some(limit) if more(&limit) => Some(format!("{begin}, but limit is {limit}")),
        Some(_) => {
            let request = request.filter(more)?;
            Some(format!("{begin}, but request is {request}"))
        }
    }
}

fn apart(
    kind: &str,
    name: &str,
    ratio: Amount,
    request: Option<Amount>,
    limit: Option<Amount>,
) -> Option<String> {
    let begin = format!("{name} max limit to request ratio per {kind} is {ratio}");
    let some = |amount: &Amount| !amount.is_zero();
    let Some(request) = request.filter(some) else {
        return Some(format!(
            "{begin}, but no request is specified or request is 0"
        ));
    };
    let Some(limit) = limit.filter(some) else {
        return Some(format!("{begin}, but no limit is specified or limit is 0"));
    };
    let found = limit.quantity.ratio(request.quantity);
    let exceeds = found > ratio.quantity.ratio(Amount::whole(1).quantity);
    exceeds.then(|| format!("{begin}, but provided ratio is {found:.6}"))
}

fn check_claim(claim: &Value, limit: &Limit, refusals: &mut Refusals) {
    let kind = &limit.kind;
    if kind != "PersistentVolumeClaim" {
        return;
    }
    let requests = ResourceList::read(&claim["spec"]["resources"]["requests"]);
    for (name, least) in limit.min.iter() {
        refusals.add(below(kind, name, least, requests.get(name), None));
    }
    for (name, most) in limit.max.iter() {
        let begin = format!("maximum {name} usage per {kind} is {most}");
        refusals.add(match requests.get(name) {
            None => Some(format!("{begin}.  No request is specified")),
            Some(request) if request.quantity > most.quantity => {
                Some(format!("{begin}, but request is {request}"))
            }
            Some(_) => None,
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    fn amounts(count: usize) -> Value {
        let amounts = (0..count).map(|it| (format!("example.com/r{it:04}"), json!("1")));
        Value::Object(amounts.collect::<Map<_, _>>())
    }

    fn pod(containers: usize) -> Value {
        let containers: Vec<Value> = (0..containers)
            .map(|it| json!({"name": format!("c{it}")}))
            .collect();
        json!({"metadata": {}, "spec": {"containers": containers}})
    }

    #[test]
    fn defaults_have_a_size() {
        let limit = json!({"type": "Container", "default": amounts(1_000)});
        let limits = [Limit::read(&limit)];
        let mut few = pod(2);
        assert!(default_containers(&mut few, &limits));
        let given = few["spec"]["containers"][1]["resources"]["limits"].as_object();
        assert_eq!(given.map(Map::len), Some(1_000));
        assert!(!default_containers(&mut pod(1_000), &limits));
    }

    #[test]
    fn the_overhead_of_a_pod_is_none_of_its_requests() {
        let limit = json!({"type": "Pod", "min": {"cpu": "500m"}});
        let mut pod = pod(1);
        pod["spec"]["overhead"] = json!({"cpu": "1"});
        let mut refusals = Refusals::default();
        check_pod(&pod, &Limit::read(&limit), &mut refusals);
        let reasons: Vec<_> = refusals.reasons.iter().collect();
        assert_eq!(
            reasons,
            ["minimum cpu usage per Pod is 500m.  No request is specified"]
        );
    }

    #[test]
    fn refusals_have_a_number() {
        let limit = json!({"type": "Container", "min": amounts(1_000), "max": amounts(1_000)});
        let mut refusals = Refusals::default();
        check_pod(&pod(1_000), &Limit::read(&limit), &mut refusals);
        assert_eq!(refusals.made, REFUSALS_MAX);
        // Each of them does not name the container, and so is shown once.
        assert_eq!(refusals.reasons.len(), 2_000);
    }
}
