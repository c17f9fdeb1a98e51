//! Sets the overhead, node selector and tolerations of pods from their RuntimeClass. Kubernetes' RuntimeClass plugin.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use ringwatch::storage::Interface;
use ringwatch_admission::Plugin;
use ringwatch_admission::lookup::{find_tree, unaskable};
use ringwatch_apimachinery::Error;
use ringwatch_apimachinery::path::{get, list, set, text};
use ringwatch_registry::Request;
use ringwatch_resources::ResourceList;
use serde_json::{Map, Value, json};

const CLASS: &str = "spec.runtimeClassName";
const OVERHEAD: &str = "spec.overhead";
const SELECTOR: &str = "spec.nodeSelector";
const TOLERATIONS: &str = "spec.tolerations";

/// The plugin, with the storage of RuntimeClasses.
#[derive(Debug)]
pub struct RuntimeClass {
    classes: Arc<dyn Interface>,
}

impl RuntimeClass {
    /// Creates the plugin, which looks RuntimeClasses up in this storage.
    #[must_use]
    pub fn new(classes: Arc<dyn Interface>) -> Self {
        Self { classes }
    }

    /// Returns the class that a pod names.
    async fn class(&self, request: &Request<'_>, pod: &Value) -> Result<Option<Value>, Error> {
        let Some(name) = get(pod, CLASS).and_then(Value::as_str) else {
            return Ok(None);
        };
        if let Some(error) = unaskable(name) {
            return Err(Error::Untranslated(error));
        }
        let key = format!("/runtimeclasses/{name}");
        if let Some(class) = find_tree(&*self.classes, &key).await? {
            return Ok(Some(class));
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
        if !request.creates("", "pods") {
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

    /// Checks that the overhead of the pod is that of its class.
    async fn validate(&self, request: &Request<'_>, pod: &Value) -> Result<(), Error> {
        if !request.creates("", "pods") {
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

/// Returns the overhead of a RuntimeClass, if it has one.
fn overhead(class: &Value) -> Option<&Value> {
    let overhead = class.get("overhead")?;
    overhead.get("podFixed")
}

fn costs(pod: &Value, overhead: &Value) -> bool {
    let own = get(pod, OVERHEAD).map(ResourceList::read);
    own.unwrap_or_default() == ResourceList::read(overhead)
}

/// Adds the node selector and the tolerations of its class to a pod.
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

/// Returns the tolerations without the redundant ones: those that another includes. Of equal ones the first stays.
fn without_redundant(all: &[Value]) -> Vec<&Value> {
    let mut later = TolerationIndex::default();
    let mut included_later = vec![false; all.len()];
    for (included, one) in included_later.iter_mut().zip(all).rev() {
        *included = later.includes(one);
        later.add(one);
    }
    let mut before = TolerationIndex::default();
    let mut seen = HashSet::new();
    let mut kept = Vec::new();
    for (included, one) in included_later.into_iter().zip(all) {
        if !included && !before.includes(one) && seen.insert(one) {
            before.add(one);
            kept.push(one);
        }
    }
    kept
}

/// Tolerations, filed so that one that includes another is found at once.
#[derive(Default)]
struct TolerationIndex<'v>(HashMap<Toleration<'v>, Longest<'v>>);

/// The toleration of the longest time among those that differ in their time at most, and the next one that is not
/// equal.
struct Longest<'v> {
    first: (Seconds, &'v Value),
    second: Option<(Seconds, &'v Value)>,
}

impl<'v> Longest<'v> {
    fn add(&mut self, time: Seconds, one: &'v Value) {
        if self.first.1 == one {
            return;
        }
        let mut other = (time, one);
        if self.first.0 < time {
            std::mem::swap(&mut self.first, &mut other);
        }
        if self.second.is_none_or(|(time, _)| time < other.0) {
            self.second = Some(other);
        }
    }

    /// Says whether one that is not equal to this lasts as long.
    fn lasts(&self, time: Seconds, but: &Value) -> bool {
        let all = [Some(self.first), self.second];
        let mut others = all.into_iter().flatten().filter(|it| it.1 != but);
        others.any(|(longest, _)| longest >= time)
    }
}

/// A toleration but for its time: its key, effect, and value; any value if it is none.
type Toleration<'v> = (TolerationKey<'v>, &'v str, Option<&'v str>);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum TolerationKey<'v> {
    Any,
    One(&'v str),
}

/// The time for which something is tolerated.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Seconds {
    Some(i64),
    Forever,
}

impl<'v> TolerationIndex<'v> {
    fn add(&mut self, toleration: &'v Value) {
        let (key, effect) = (text(toleration, "key"), text(toleration, "effect"));
        let value = match text(toleration, "operator") {
            "Exists" => None,
            "Equal" | "" => Some(text(toleration, "value")),
            _ => return,
        };
        let any_key = key.is_empty() && value.is_none();
        let key = if any_key {
            TolerationKey::Any
        } else {
            TolerationKey::One(key)
        };
        let time = match seconds(toleration) {
            Some(seconds) if effect == "NoExecute" => Seconds::Some(seconds),
            _ => Seconds::Forever,
        };
        let first = (time, toleration);
        let new = || Longest {
            first,
            second: None,
        };
        let known = self.0.entry((key, effect, value)).or_insert_with(new);
        known.add(time, toleration);
    }

    /// Says whether one of them that is not equal tolerates all that another toleration does.
    fn includes(&self, other: &'v Value) -> bool {
        let time = seconds(other).map_or(Seconds::Forever, Seconds::Some);
        let value = text(other, "value");
        let value = Some(value).filter(|_| text(other, "operator") == "Equal");
        let keys = [TolerationKey::Any, TolerationKey::One(text(other, "key"))];
        keys.into_iter().any(|key| {
            ["", text(other, "effect")].into_iter().any(|effect| {
                let values = [None, value];
                let mut found = values
                    .iter()
                    .map(|value| self.0.get(&(key, effect, *value)));
                found.any(|found| found.is_some_and(|known| known.lasts(time, other)))
            })
        })
    }
}

fn seconds(toleration: &Value) -> Option<i64> {
    toleration.get("tolerationSeconds").and_then(Value::as_i64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
        let includes = |this: &Value, other: &Value| {
            let mut tolerated = TolerationIndex::default();
            tolerated.add(this);
            tolerated.includes(other)
        };
        let long = json!({"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9});
        let short = json!({"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3});
        let ever = json!({"key": "k", "operator": "Exists", "effect": "NoExecute"});
        let all = json!({"operator": "Exists"});
        assert!(includes(&long, &short) && !includes(&short, &long));
        assert!(includes(&ever, &long) && !includes(&long, &ever));
        assert!(includes(&all, &ever) && !includes(&ever, &all));
    }

    /// kube-apiserver's rule by which one toleration includes another.
    fn model(this: &Value, other: &Value) -> bool {
        let same = |member| text(this, member) == text(other, member);
        let any_key = text(this, "key").is_empty() && text(this, "operator") == "Exists";
        let any_effect = text(this, "effect").is_empty();
        let as_long = text(this, "effect") != "NoExecute"
            || seconds(this).is_none_or(|most| seconds(other).is_some_and(|it| it <= most));
        let as_much = match text(this, "operator") {
            "Exists" => true,
            "Equal" | "" => text(other, "operator") == "Equal" && same("value"),
            _ => false,
        };
        (same("key") || any_key) && (same("effect") || any_effect) && as_long && as_much
    }

    fn tolerations() -> impl Strategy<Value = Value> {
        let seconds = prop::option::of(0..3_i64);
        let text = |of: &'static [&'static str]| prop::sample::select(of);
        let (keys, effects) = (
            text(&["", "a", "b"]),
            text(&["", "NoExecute", "NoSchedule"]),
        );
        let (operators, values) = (text(&["", "Equal", "Exists", "Odd"]), text(&["", "v"]));
        (keys, effects, operators, values, seconds).prop_map(
            |(key, effect, operator, value, seconds)| {
                json!({"key": key, "effect": effect, "operator": operator, "value": value,
                    "tolerationSeconds": seconds})
            },
        )
    }

    proptest! {
        #[test]
        fn those_are_kept_that_a_comparison_of_all_keeps(
            all in prop::collection::vec(tolerations(), 0..8),
        ) {
            let mut kept: Vec<&Value> = Vec::new();
            for (index, one) in all.iter().enumerate() {
                let before = kept.iter().any(|other| *other == one || model(other, one));
                let mut later = all[index + 1..].iter();
                if !before && !later.any(|other| other != one && model(other, one)) {
                    kept.push(one);
                }
            }
            prop_assert_eq!(without_redundant(&all), kept);
        }
    }
}
