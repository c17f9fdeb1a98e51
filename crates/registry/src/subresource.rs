//! The strategy of subresources that own a part of the object: a write to one changes that part alone.

use ringwatch_apimachinery::path::{get, keep, set};
use ringwatch_apimachinery::{FieldError, NameRule};
use serde_json::Value;

use crate::{RequestContext, Strategy};

/// The metadata that a write to a subresource may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubresourceMetadata {
    /// A write may change all metadata that clients may write, such as labels and annotations.
    Free,
    /// A write may change all metadata but the labels.
    KeepsLabels,
    /// A write may change all metadata but the owner references.
    KeepsOwners,
    /// Nothing may change that kube-apiserver restores (`ResetObjectMetaForStatus`).
    KeepsAll,
}

/// An additional step of a write to a subresource, which changes the new object by comparison with the old one.
pub(crate) type Finish = fn(&RequestContext, &mut Value, &Value);

/// A validation of the new object against the old one.
pub(crate) type ValidateUpdate = fn(&Value, &Value) -> Vec<FieldError>;

/// The strategy of a subresource that owns the value at one dotted path.
#[derive(Clone, Debug)]
pub struct SubresourceStrategy {
    path: &'static str,
    metadata: SubresourceMetadata,
    /// The syntax of names; a write may change `generateName`.
    name_rule: NameRule,
    /// The step that runs last.
    finish: Finish,
    /// The validations of the new object against the old one.
    validations: Vec<ValidateUpdate>,
    /// The warnings about the new object.
    warn: fn(&Value) -> Vec<String>,
}

impl SubresourceStrategy {
    /// Creates the strategy of a subresource that owns the part of the object at `path`.
    pub fn new(path: &'static str, metadata: SubresourceMetadata) -> Self {
        Self {
            path,
            metadata,
            name_rule: NameRule::PathSegment,
            finish: |_, _, _| {},
            validations: Vec::new(),
            warn: |_| Vec::new(),
        }
    }

    /// Sets the syntax of names; without one it is that of a segment of a URL path.
    pub fn name_rule(mut self, rule: NameRule) -> Self {
        self.name_rule = rule;
        self
    }

    /// Adds a last step, which may change the object.
    pub fn finish(mut self, finish: Finish) -> Self {
        self.finish = finish;
        self
    }

    /// Adds a validation of the new object against the old one.
    pub fn validate_update(mut self, validate: ValidateUpdate) -> Self {
        self.validations.push(validate);
        self
    }

    /// Sets the warnings about the new object.
    pub fn warn(mut self, warn: fn(&Value) -> Vec<String>) -> Self {
        self.warn = warn;
        self
    }
}

impl Strategy for SubresourceStrategy {
    fn name_rule_on_update(&self) -> NameRule {
        self.name_rule
    }

    fn prepare_for_update(&self, context: &RequestContext, object: &mut Value, old: &Value) {
        keep_all_but(object, old, self.path);
        for path in self.metadata.kept() {
            keep(object, old, path);
        }
        (self.finish)(context, object, old);
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let all = self.validations.iter();
        all.flat_map(|validate| validate(object, old)).collect()
    }

    fn warnings_on_update(&self, object: &Value, _old: &Value) -> Vec<String> {
        (self.warn)(object)
    }
}

impl SubresourceMetadata {
    /// Returns the paths of metadata that a write must not change. The store restores versions, times and managed
    /// fields itself.
    fn kept(self) -> &'static [&'static str] {
        match self {
            Self::Free => &["metadata.generation"],
            Self::KeepsLabels => &["metadata.generation", "metadata.labels"],
            Self::KeepsOwners => &["metadata.generation", "metadata.ownerReferences"],
            Self::KeepsAll => &[
                "metadata.deletionTimestamp",
                "metadata.generation",
                "metadata.selfLink",
                "metadata.labels",
                "metadata.annotations",
                "metadata.finalizers",
                "metadata.ownerReferences",
            ],
        }
    }
}

/// Restores the old object besides the value at a path, the metadata and the type.
fn keep_all_but(object: &mut Value, old: &Value, path: &str) {
    let part = get(object, path).cloned();
    let free = |name: &str| matches!(name, "metadata" | "kind" | "apiVersion");
    if let (Some(members), Some(old)) = (object.as_object_mut(), old.as_object()) {
        members.retain(|name, _| free(name));
        for (name, value) in old {
            if !free(name) {
                members.insert(name.clone(), value.clone());
            }
        }
    }
    match part {
        Some(part) => set(object, path, part),
        None => drop(ringwatch_apimachinery::path::remove(object, path)),
    }
}

#[cfg(test)]
mod tests {
    use ringwatch::clock::Clock;
    use ringwatch_apimachinery::User;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_part_changes_itself_and_what_it_may_of_the_metadata() {
        let old = json!({"kind": "K", "metadata": {"labels": {"a": "1"}, "generation": 3},
            "spec": {"x": 1, "list": [1]}, "status": {"y": 1}});
        let new = json!({"kind": "K", "metadata": {"annotations": {"n": "1"}, "generation": 7},
            "spec": {"x": 2}, "status": {"y": 2}, "more": 1});
        let context = RequestContext::new(User::default(), String::new(), Clock::real());
        let mut object = new.clone();
        SubresourceStrategy::new("status", SubresourceMetadata::KeepsLabels).prepare_for_update(
            &context,
            &mut object,
            &old,
        );
        assert_eq!(
            object,
            json!({"kind": "K", "metadata": {"annotations": {"n": "1"}, "labels": {"a": "1"},
                "generation": 3}, "spec": {"x": 1, "list": [1]}, "status": {"y": 2}})
        );
        let mut object = new;
        SubresourceStrategy::new("spec.list", SubresourceMetadata::Free).prepare_for_update(
            &context,
            &mut object,
            &old,
        );
        assert_eq!(object["spec"], json!({"x": 1}));
        assert_eq!(object["status"], json!({"y": 1}));
    }
}
