//! The Services that select a pod: those that did before it changed, and those that do now.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ringwatch::meta::{LabelSelector, OwnedLabels};
use ringwatch_apimachinery::{accessor, path, selector_text};
use ringwatch_registry::informer::InformerChange;
use serde_json::Value;

use super::of_pod;
use crate::controller::object_of;
use crate::owned::NamespacedName;
use crate::pods;

/// The selectors of Services and the labels of pods, as they were when they changed last. There are at most as many as
/// Services and pods.
#[derive(Debug, Default)]
pub(super) struct SelectingServices(Mutex<KnownSelectors>);

#[derive(Debug, Default)]
struct KnownSelectors {
    services: BTreeMap<NamespacedName, LabelSelector>,
    pods: BTreeMap<NamespacedName, (OwnedLabels, PodFacts)>,
}

/// The facts about a pod of which its endpoints are made. A change of anything else concerns no Service.
#[derive(Debug, PartialEq)]
struct PodFacts {
    labels: Value,
    addresses: Option<Vec<String>>,
    node: String,
    host_name: String,
    subdomain: String,
    is_ready: bool,
    is_terminating: bool,
}

impl PodFacts {
    fn new(pod: &Value) -> Self {
        let addresses = of_pod::is_reachable(pod).then(|| of_pod::addresses(pod));
        let addresses = addresses.map(|all| all.into_iter().map(str::to_owned).collect());
        let text = |path| path::text(pod, path).to_owned();
        Self {
            labels: pod["metadata"]["labels"].clone(),
            addresses,
            node: text("spec.nodeName"),
            host_name: text("spec.hostname"),
            subdomain: text("spec.subdomain"),
            is_ready: pods::is_ready(pod),
            is_terminating: accessor::is_terminating(pod),
        }
    }
}

impl SelectingServices {
    /// Forgets all of them.
    pub(super) fn reset(&self) {
        *self.known() = KnownSelectors::default();
    }

    /// Notes a change of a Service, whose content this is, and returns its name.
    pub(super) fn note(&self, change: &InformerChange, service: &Value) -> NamespacedName {
        let object = object_of(change);
        let name = (object.namespace().to_owned(), object.name().to_owned());
        let selector = selector(service).filter(|_| matches!(change, InformerChange::Upserted(_)));
        match selector {
            Some(selector) => drop(self.known().services.insert(name.clone(), selector)),
            None => drop(self.known().services.remove(&name)),
        }
        name
    }

    /// Notes a change of a pod, whose content this is, and returns the Services that selected it or do now.
    pub(super) fn of_pod(&self, change: &InformerChange, pod: &Value) -> Vec<NamespacedName> {
        let object = object_of(change);
        let name = (object.namespace().to_owned(), object.name().to_owned());
        let is_there = matches!(change, InformerChange::Upserted(_));
        let (labels, facts) = (accessor::labels(pod), PodFacts::new(pod));
        let mut known = self.known();
        let before = known.pods.remove(&name);
        if is_there && before.as_ref().is_some_and(|(_, it)| *it == facts) {
            known.pods.insert(name, (labels, facts));
            return Vec::new();
        }
        let from = (object.namespace().to_owned(), String::new());
        let here = known.services.range(from..);
        let here = here.take_while(|((namespace, _), _)| namespace == object.namespace());
        let selecting = here.filter(|(_, selector)| {
            let selected_before = before
                .as_ref()
                .is_some_and(|(labels, _)| selector.matches(labels.as_labels()));
            selected_before || selector.matches(labels.as_labels())
        });
        let selecting = selecting.map(|(name, _)| name.clone()).collect();
        if is_there {
            known.pods.insert(name, (labels, facts));
        }
        selecting
    }

    fn known(&self) -> MutexGuard<'_, KnownSelectors> {
        // Maps are whole after every step.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the selector of a Service whose endpoints are made here. One without a selector selects nothing.
pub(super) fn selector(service: &Value) -> Option<LabelSelector> {
    let spec = &service["spec"];
    let is_made = spec["selector"].is_object() && spec["type"] != "ExternalName";
    let selector = is_made.then(|| selector_text::labels(&spec["selector"]))?;
    LabelSelector::parse(&selector).ok()
}
