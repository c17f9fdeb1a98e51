//! Containers, pods and claims ask for no less and no more than their namespace's ranges say, and containers that do
//! not say what they want get what the ranges say. Kubernetes' LimitRanger plugin.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{Operation, Plugin, Request};
use crate::codec;
use crate::meta::{Object, ResourceVersion};
use crate::registry::quota::{Amounts, Which, container_amounts, pod_amounts};
use crate::registry::resources::path::{get_mut, list, text};
use crate::registry::resources::quantity::Amount;
use crate::registry::{Error, accessor};
use crate::storage::{Interface, ListOptions};

/// Tells what a pod did not ask for itself.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// The ranges of limits, as they are stored.
#[derive(Debug)]
pub struct LimitRanger {
    ranges: Arc<dyn Interface>,
}

impl LimitRanger {
    /// The ranges in this storage.
    #[must_use]
    pub fn new(ranges: Arc<dyn Interface>) -> Self {
        Self { ranges }
    }

    /// The limits of a namespace, those of one range after those of another.
    async fn limits(&self, namespace: &str) -> Result<Vec<Value>, Error> {
        let cached = ListOptions {
            resource_version: Some(ResourceVersion(0)),
            recursive: true,
            ..ListOptions::default()
        };
        let key = format!("/limitranges/{namespace}/");
        let found = self.ranges.get_list(&key, cached).await;
        let mut limits = Vec::new();
        for object in found.map_err(Error::Storage)?.items {
            limits.extend(limits_of(&object)?);
        }
        Ok(limits)
    }
}

fn limits_of(range: &Object) -> Result<Vec<Value>, Error> {
    let range = codec::tree(range).map_err(|error| Error::Internal(error.to_string()))?;
    Ok(list(&range, "spec.limits").to_vec())
}

/// Whether ranges have a say in a write. What pods ask for is fixed but for their resizing.
fn concerns(request: &Request<'_>) -> bool {
    let is_pods =
        request.resource.plural == "pods" && request.resource.group_version.group.is_empty();
    let deleted = request.old.is_some_and(accessor::is_terminating);
    let asked = match request.operation {
        Operation::Create => is_pods || request.resource.plural == "persistentvolumeclaims",
        Operation::Update if is_pods => request.subresource() == "resize",
        Operation::Update => request.is_of("", "persistentvolumeclaims"),
        Operation::Delete | Operation::Connect => false,
    };
    let whole = request.subresource().is_empty() || request.subresource() == "resize";
    asked && whole && !deleted && request.resource.group_version.group.is_empty()
}

#[async_trait]
impl Plugin for LimitRanger {
    fn name(&self) -> &'static str {
        "LimitRanger"
    }

    async fn admit(&self, request: &Request<'_>, object: &mut Value) -> Result<(), Error> {
        if concerns(request) && request.resource.plural == "pods" {
            let limits = self.limits(request.namespace).await?;
            default_containers(object, &limits);
        }
        Ok(())
    }

    async fn validate(&self, request: &Request<'_>, object: &Value) -> Result<(), Error> {
        if !concerns(request) {
            return Ok(());
        }
        let limits = self.limits(request.namespace).await?;
        let mut errors = Vec::new();
        for limit in &limits {
            if request.resource.plural == "pods" {
                check_pod(object, limit, &mut errors);
            } else {
                check_claim(object, limit, &mut errors);
            }
        }
        let mut told = HashSet::new();
        errors.retain(|error| told.insert(error.clone()));
        match errors.as_slice() {
            [] => Ok(()),
            [one] => Err(request.forbid(object, one)),
            all => Err(request.forbid(object, format!("[{}]", all.join(", ")))),
        }
    }
}

/// Gives containers what they do not ask for themselves, and notes it at the pod.
fn default_containers(pod: &mut Value, limits: &[Value]) {
    let mut set = Vec::new();
    for limit in limits.iter().filter(|limit| limit["type"] == "Container") {
        let defaults = [
            (Which::Requests, Amounts::read(&limit["defaultRequest"])),
            (Which::Limits, Amounts::read(&limit["default"])),
        ];
        for (path, what) in [
            ("spec.containers", "container"),
            ("spec.initContainers", "init container"),
        ] {
            let containers = get_mut(pod, path).and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten() {
                for (which, defaults) in &defaults {
                    set.extend(default_container(container, *which, defaults, what));
                }
            }
        }
    }
    if !set.is_empty() {
        let text = format!("LimitRanger plugin set: {}", set.join("; "));
        pod["metadata"]["annotations"][ANNOTATION] = json!(text);
    }
}

/// Says what a container got.
fn default_container(
    container: &mut Value,
    which: Which,
    defaults: &Amounts,
    what: &str,
) -> Option<String> {
    let known = container_amounts(container, which);
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

fn check_pod(pod: &Value, limit: &Value, errors: &mut Vec<String>) {
    match text(limit, "type") {
        kind @ "Container" => {
            let containers = list(pod, "spec.containers").iter();
            for container in containers.chain(list(pod, "spec.initContainers")) {
                let of = |which| container_amounts(container, which);
                check(
                    kind,
                    limit,
                    &of(Which::Requests),
                    &of(Which::Limits),
                    errors,
                );
            }
        }
        kind @ "Pod" => {
            let of = |which| pod_amounts(pod, which);
            check(
                kind,
                limit,
                &of(Which::Requests),
                &of(Which::Limits),
                errors,
            );
        }
        _ => {}
    }
}

fn check(
    kind: &str,
    limit: &Value,
    requests: &Amounts,
    limits: &Amounts,
    errors: &mut Vec<String>,
) {
    for (name, least) in Amounts::read(&limit["min"]).iter() {
        let (request, limit) = (requests.get(name), limits.get(name));
        errors.extend(below(kind, name, least, request, limit));
    }
    for (name, most) in Amounts::read(&limit["max"]).iter() {
        let (request, limit) = (requests.get(name), limits.get(name));
        errors.extend(above(kind, name, most, request, limit));
    }
    for (name, ratio) in Amounts::read(&limit["maxLimitRequestRatio"]).iter() {
        let (request, limit) = (requests.get(name), limits.get(name));
        errors.extend(apart(kind, name, ratio, request, limit));
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

fn check_claim(claim: &Value, limit: &Value, errors: &mut Vec<String>) {
    let kind = text(limit, "type");
    if kind != "PersistentVolumeClaim" {
        return;
    }
    let requests = Amounts::read(&claim["spec"]["resources"]["requests"]);
    for (name, least) in Amounts::read(&limit["min"]).iter() {
        errors.extend(below(kind, name, least, requests.get(name), None));
    }
    for (name, most) in Amounts::read(&limit["max"]).iter() {
        let begin = format!("maximum {name} usage per {kind} is {most}");
        match requests.get(name) {
            None => errors.push(format!("{begin}.  No request is specified")),
            Some(request) if request.quantity > most.quantity => {
                errors.push(format!("{begin}, but request is {request}"));
            }
            Some(_) => {}
        }
    }
}
