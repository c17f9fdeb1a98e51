//! The pods, or other objects, that an object such as a ReplicaSet controls: those that name it as their controller.
//! It adopts those without one that its selector selects, and releases those that it does not select any more.
//!
//! Source of the semantics: `pkg/controller/controller_ref_manager.go` of kube-controller-manager 1.36.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ringwatch::meta::LabelSelector;
use ringwatch_apimachinery::accessor::{self, is_terminating};
use ringwatch_apimachinery::{Error, selector_text};
use ringwatch_registry::informer::InformerChange;
use serde_json::{Value, json};

use crate::controller::object_of;
use crate::objects::ControllerObjects;

/// The namespace and the name of an object.
pub(crate) type NamespacedName = (String, String);

/// The objects of one kind that control others, and which those are.
#[derive(Debug)]
pub(crate) struct Owners {
    api_version: &'static str,
    kind: &'static str,
    /// The selector of each object, from its last change.
    selectors: Mutex<BTreeMap<NamespacedName, LabelSelector>>,
}

impl Owners {
    /// Makes the owners of this version and kind, of which none is known.
    pub(crate) fn new(api_version: &'static str, kind: &'static str) -> Self {
        Self {
            api_version,
            kind,
            selectors: Mutex::default(),
        }
    }

    /// Forgets all of them.
    pub(crate) fn reset(&self) {
        self.selectors().clear();
    }

    /// Notes a change of one, whose content this is, and returns its name.
    pub(crate) fn note(&self, change: &InformerChange, owner: &Value) -> NamespacedName {
        let object = object_of(change);
        let name = (object.namespace().to_owned(), object.name().to_owned());
        match change {
            InformerChange::Upserted(_) => {
                let selector = self.selector(owner);
                self.selectors().insert(name.clone(), selector);
            }
            InformerChange::Deleted(_) => drop(self.selectors().remove(&name)),
        }
        name
    }

    /// Returns the names of those that a change of an object concerns: its controller, or those that may adopt it.
    pub(crate) fn of(&self, owned: &Value) -> Vec<NamespacedName> {
        let namespace = accessor::text(owned, "namespace");
        if let Some(controller) = controller_of(owned) {
            let name = controller["name"].as_str().unwrap_or_default();
            let is_one = controller["kind"] == self.kind
                && is_same_group(controller["apiVersion"].as_str(), self.api_version);
            let name = (namespace.to_owned(), name.to_owned());
            return is_one.then_some(name).into_iter().collect();
        }
        let labels = accessor::labels(owned);
        let from = (namespace.to_owned(), String::new());
        let selectors = self.selectors();
        let here = selectors.range(from..);
        let here = here.take_while(|((other, _), _)| other == namespace);
        let adopting = here.filter(|(_, selector)| selector.matches(labels.as_labels()));
        adopting.map(|(name, _)| name.clone()).collect()
    }

    /// Returns the reference by which an object names its controller.
    pub(crate) fn reference(&self, owner: &Value) -> Value {
        json!({
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "controller": true,
            "blockOwnerDeletion": true,
        })
    }

    /// Returns true if one controls this object and selects it.
    pub(crate) fn has(&self, owner: &Value, object: &Value) -> bool {
        let is_own = controller_of(object).is_some_and(|it| it["uid"] == owner["metadata"]["uid"]);
        is_own
            && self
                .selector(owner)
                .matches(accessor::labels(object).as_labels())
    }

    /// Returns the objects that one controls, after it has adopted and released what it has to.
    pub(crate) async fn claim(
        &self,
        owner: &Value,
        objects: &ControllerObjects<'_>,
    ) -> Result<Vec<Value>, Error> {
        let all = objects.list(accessor::text(owner, "namespace")).await?;
        self.claim_among(owner, all, objects).await
    }

    /// Returns those of some objects of the namespace that one controls, after it has adopted and released what it has
    /// to of them.
    pub(crate) async fn claim_among(
        &self,
        owner: &Value,
        some: Vec<Value>,
        objects: &ControllerObjects<'_>,
    ) -> Result<Vec<Value>, Error> {
        let selector = self.selector(owner);
        let uid = accessor::text(owner, "uid");
        let mut claimed = Vec::new();
        for object in some {
            let is_selected = selector.matches(accessor::labels(&object).as_labels());
            let controller = controller_of(&object);
            let is_own = controller.is_some_and(|it| it["uid"] == uid);
            if is_own && is_selected {
                claimed.push(object);
            } else if is_own && !is_terminating(owner) {
                objects
                    .update(&object, "", |object| release(object, uid))
                    .await?;
            } else if controller.is_none()
                && is_selected
                && !is_terminating(owner)
                && !is_terminating(&object)
            {
                let reference = self.reference(owner);
                let adopted = objects.update(&object, "", |object| adopt(object, &reference));
                let adopted = adopted.await?;
                // Another controller may have been faster.
                claimed.extend(
                    adopted.filter(|it| controller_of(it).is_some_and(|it| it["uid"] == uid)),
                );
            }
        }
        Ok(claimed)
    }

    /// Returns the selector of one: labels alone for a ReplicationController, which is of the core group.
    fn selector(&self, owner: &Value) -> LabelSelector {
        let selector = &owner["spec"]["selector"];
        let text = match self.api_version {
            "v1" => selector_text::labels(selector),
            _ => selector_text::label_selector(selector),
        };
        // Validation refuses one that cannot be read.
        LabelSelector::parse(&text).unwrap_or_default()
    }

    fn selectors(&self) -> MutexGuard<'_, BTreeMap<NamespacedName, LabelSelector>> {
        // A map is whole after every step.
        self.selectors
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the reference of an object to its controller.
pub(crate) fn controller_of(object: &Value) -> Option<&Value> {
    let mut references = object["metadata"]["ownerReferences"].as_array()?.iter();
    references.find(|it| it["controller"] == true)
}

fn is_same_group(one: Option<&str>, other: &str) -> bool {
    let group = |version: &str| version.split_once('/').map(|(group, _)| group.to_owned());
    one.is_some_and(|one| group(one) == group(other))
}

fn adopt(object: &mut Value, reference: &Value) {
    if controller_of(object).is_some() {
        return;
    }
    let references = &mut object["metadata"]["ownerReferences"];
    match references.as_array_mut() {
        Some(references) => references.push(reference.clone()),
        None => *references = json!([reference]),
    }
}

fn release(object: &mut Value, uid: &str) {
    let references = object["metadata"]["ownerReferences"].as_array_mut();
    if let Some(references) = references {
        references.retain(|it| it["uid"] != uid);
    }
}
