//! A pod that names a class of runtimes costs what the class says, and runs where the class can. Kubernetes'
//! RuntimeClass plugin.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::lookup::find;
use super::{Operation, Plugin, Request};
use crate::codec;
use crate::registry::Error;
use crate::registry::quota::Amounts;
use crate::registry::resources::path::{get, list, set, text};
use crate::storage::Interface;

const CLASS: &str = "spec.runtimeClassName";
const OVERHEAD: &str = "spec.overhead";
const SELECTOR: &str = "spec.nodeSelector";
const TOLERATIONS: &str = "spec.tolerations";

/// The classes, as they are stored.
#[derive(Debug)]
pub struct RuntimeClass {
    classes: Arc<dyn Interface>,
}

impl RuntimeClass {
    /// The classes in this storage.
    #[must_use]
    pub fn new(classes: Arc<dyn Interface>) -> Self {
        Self { classes }
    }

    /// The class that a pod names.
    async fn class(&self, request: &Request<'_>, pod: &Value) -> Result<Option<Value>, Error> {
        let Some(name) = get(pod, CLASS).and_then(Value::as_str) else {
            return Ok(None);
        };
        let key = format!("/runtimeclasses/{name}");
        if let Some(class) = find(&*self.classes, &key).await? {
            let tree = codec::tree(&class);
            return tree
                .map(Some)
                .map_err(|error| Error::Internal(error.to_string()));
        }
        let message = format!("pod rejected: RuntimeClass {name:?} not found");
        Err(request.forbid(pod, message))
    }
}

#[async_trait]
impl Plugin for RuntimeClass {
    fn name(&self) -> &'static str {
        "RuntimeClass"
    }

    async fn admit(&self, request: &Request<'_>, pod: &mut Value) -> Result<(), Error> {
        if !is_new_pod(request) {
            return Ok(());
        }
        let Some(class) = self.class(request, pod).await? else {
            return Ok(());
        };
        if let Some(overhead) = overhead(&class) {
            if get(pod, OVERHEAD).is_some() && !costs(pod, overhead) {
                return Err(request.forbid(pod, MISMATCH));
            }
            set(pod, OVERHEAD, overhead.clone());
        }
        if let Some(scheduling) = class.get("scheduling") {
            place(pod, scheduling).map_err(|conflict| request.forbid(pod, conflict))?;
        }
        Ok(())
    }

    /// Nobody has changed what the pod costs.
    async fn validate(&self, request: &Request<'_>, pod: &Value) -> Result<(), Error> {
        if !is_new_pod(request) {
            return Ok(());
        }
        let class = self.class(request, pod).await?;
        match class.as_ref().and_then(overhead) {
            Some(overhead) if !costs(pod, overhead) => Err(request.forbid(pod, MISMATCH)),
            None if get(pod, OVERHEAD).is_some() => {
                let message = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
                Err(request.forbid(pod, message))
            }
            _ => Ok(()),
        }
    }
}

const MISMATCH: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

fn is_new_pod(request: &Request<'_>) -> bool {
    request.operation == Operation::Create && request.is_of("", "pods")
}

/// What a class costs, if it says so.
fn overhead(class: &Value) -> Option<&Value> {
    let overhead = class.get("overhead")?;
    overhead.get("podFixed")
}

fn costs(pod: &Value, overhead: &Value) -> bool {
    let own = get(pod, OVERHEAD).map(Amounts::read);
    own.unwrap_or_default() == Amounts::read(overhead)
}

/// Sends a pod where its class can run, and lets it tolerate what is there.
fn place(pod: &mut Value, scheduling: &Value) -> Result<(), String> {
    let wanted = scheduling.get("nodeSelector").and_then(Value::as_object);
    let mut selector = get(pod, SELECTOR).and_then(Value::as_object).cloned();
    for (key, value) in wanted.into_iter().flatten() {
        let selector = selector.get_or_insert_default();
        match selector.get(key) {
            Some(own) if own != value => {
                let [value, own] = [value, own].map(|it| it.as_str().unwrap_or_default());
                return Err(format!(
                    "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {own}"
                ));
            }
            _ => drop(selector.insert(key.clone(), value.clone())),
        }
    }
    if let Some(selector) = selector.filter(|it| !Map::is_empty(it)) {
        set(pod, SELECTOR, Value::Object(selector));
    }
    let mut tolerations = list(pod, TOLERATIONS).to_vec();
    tolerations.extend_from_slice(list(scheduling, "tolerations"));
    if !tolerations.is_empty() {
        set(pod, TOLERATIONS, json!(without_redundant(&tolerations)));
    }
    Ok(())
}

/// Those that no other of them includes; of equal ones the first.
fn without_redundant(all: &[Value]) -> Vec<&Value> {
    let mut kept: Vec<&Value> = Vec::new();
    for (index, one) in all.iter().enumerate() {
        let before = kept.iter().any(|other| includes(other, one));
        let mut later = all[index + 1..].iter();
        if !before && !later.any(|other| other != one && includes(other, one)) {
            kept.push(one);
        }
    }
    kept
}

/// Whether whoever tolerates this tolerates the other as well.
fn includes(this: &Value, other: &Value) -> bool {
    let same = |member| text(this, member) == text(other, member);
    let seconds = |it: &Value| it.get("tolerationSeconds").and_then(Value::as_i64);
    let any_key = text(this, "key").is_empty() && text(this, "operator") == "Exists";
    let any_effect = text(this, "effect").is_empty();
    let as_long = text(this, "effect") != "NoExecute"
        || seconds(this).is_none_or(|most| seconds(other).is_some_and(|it| it <= most));
    let as_much = match text(this, "operator") {
        "Exists" => true,
        "Equal" | "" => text(other, "operator") == "Equal" && same("value"),
        _ => false,
    };
    this == other
        || ((same("key") || any_key) && (same("effect") || any_effect) && as_long && as_much)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_places_its_pods() {
        let scheduling = json!({"nodeSelector": {"a": "1"}, "tolerations": [
            {"key": "k", "operator": "Exists"}, {"key": "x", "operator": "Equal", "value": "v"}]});
        let mut pod = json!({"spec": {"nodeSelector": {"b": "2"}, "tolerations": [
            {"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"},
            {"key": "x", "operator": "Equal", "value": "v"}]}});
        assert_eq!(place(&mut pod, &scheduling), Ok(()));
        assert_eq!(
            pod["spec"],
            json!({"nodeSelector": {"a": "1", "b": "2"}, "tolerations": [
                {"key": "x", "operator": "Equal", "value": "v"}, {"key": "k", "operator": "Exists"}]})
        );
        let mut elsewhere = json!({"spec": {"nodeSelector": {"a": "2"}}});
        assert_eq!(
            place(&mut elsewhere, &scheduling),
            Err("conflict: runtimeClass.scheduling.nodeSelector[a] = 1; pod.spec.nodeSelector[a] = 2".to_owned())
        );
    }

    #[test]
    fn who_tolerates_more_tolerates_less() {
        let long = json!({"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9});
        let short = json!({"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3});
        let ever = json!({"key": "k", "operator": "Exists", "effect": "NoExecute"});
        let all = json!({"operator": "Exists"});
        assert!(includes(&long, &short) && !includes(&short, &long));
        assert!(includes(&ever, &long) && !includes(&long, &ever));
        assert!(includes(&all, &ever) && !includes(&ever, &all));
    }
}
