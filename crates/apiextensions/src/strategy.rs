//! The strategy of custom resources, which follows their schema.

use std::sync::Arc;

use ringwatch_apimachinery::generation::set_generation;
use ringwatch_apimachinery::numbers::deep_equal;
use ringwatch_apimachinery::path::{keep, remove, set};
use ringwatch_apimachinery::validation::validate_object_meta;
use ringwatch_apimachinery::{FieldError, GroupVersion, NameRule};
use ringwatch_apply::MergeSchema;
use ringwatch_registry::subresource::SubresourceMetadata;
use ringwatch_registry::subresource::SubresourceStrategy;
use ringwatch_registry::{RequestContext, ScalePaths, Strategy};
use serde_json::{Value, json};

use super::finalizer_warnings::warnings_about_finalizers;
use super::scale_validation;
use super::schema::StructuralSchema;

/// The strategy of one served version. Its objects are in that version: they are converted below the store.
#[derive(Debug)]
pub(super) struct CustomResource {
    schema: Arc<StructuralSchema>,
    /// The version in which objects are served.
    served: String,
    /// The strategy of the subresource `status`, if there is one.
    status: Option<StatusPart>,
    /// The paths of the subresource `scale`, if there is one.
    scale: Option<ScalePaths>,
    /// True if versions differ in content, so that a webhook converts.
    by_webhook: bool,
}

impl CustomResource {
    pub(super) fn new(
        schema: Arc<StructuralSchema>,
        served: &GroupVersion,
        has_status: bool,
        scale: Option<ScalePaths>,
        by_webhook: bool,
    ) -> Self {
        Self {
            status: has_status.then(|| StatusPart {
                part: SubresourceStrategy::new("status", SubresourceMetadata::KeepsAll),
                schema: Arc::clone(&schema),
                scale: scale.clone(),
            }),
            schema,
            scale,
            served: served.to_string(),
            by_webhook,
        }
    }
}

/// The strategy of a status that is written by itself.
#[derive(Debug)]
struct StatusPart {
    part: SubresourceStrategy,
    schema: Arc<StructuralSchema>,
    scale: Option<ScalePaths>,
}

impl Strategy for StatusPart {
    fn prepare_for_update(&self, context: &RequestContext, object: &mut Value, old: &Value) {
        for name in ["apiVersion", "kind"] {
            keep(object, old, name);
        }
        self.part.prepare_for_update(context, object, old);
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let scale = self.scale.as_ref();
        let scale = scale.map_or_else(Vec::new, |it| scale_validation::status_errors(object, it));
        self.schema
            .check_status(object, old, scale, metadata_errors)
    }

    fn allow_unconditional_update(&self) -> bool {
        false
    }
}

impl Strategy for CustomResource {
    fn default(&self, object: &mut Value) {
        drop(self.schema.prune(object));
        self.schema.default(object);
    }

    fn default_applied(&self, object: &mut Value) {
        drop(self.schema.prune(object));
        self.schema.default_applied(object);
    }

    /// Leaves members that the schema does not know, as kube-apiserver's defaulter does: a change of them begins a
    /// generation, and webhooks see them.
    fn default_admitted(&self, object: &mut Value) {
        self.schema.default_applied(object);
    }

    fn prepare_to_store(&self, object: &mut Value) {
        drop(self.schema.prune(object));
    }

    fn unknown_fields(&self, object: &Value) -> Result<Vec<String>, String> {
        self.schema.unknown_fields(object)
    }

    fn prepare_for_create(&self, _context: &RequestContext, object: &mut Value) {
        if self.status.is_some() {
            drop(remove(object, "status"));
        }
        set(object, "metadata.generation", json!(1));
    }

    fn is_costly(&self) -> bool {
        self.schema.is_costly()
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        self.errors(object, None)
    }

    fn warnings_on_create(&self, object: &Value) -> Vec<String> {
        warnings_about_finalizers(object, None)
    }

    fn allow_unconditional_update(&self) -> bool {
        false
    }

    fn prepare_for_update(&self, _context: &RequestContext, object: &mut Value, old: &Value) {
        if self.status.is_some() {
            keep(object, old, "status");
        }
        let begins = self.is_changed(object, old);
        set_generation(object, old, begins);
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        self.errors(object, Some(old))
    }

    fn warnings_on_update(&self, object: &Value, old: &Value) -> Vec<String> {
        warnings_about_finalizers(object, Some(old))
    }

    /// Names this version in an object of another, as admission sees it. Not for what a webhook has to convert.
    fn to_served(&self, mut object: Value) -> Value {
        set(&mut object, "apiVersion", self.served.as_str().into());
        object
    }

    fn knows_other_versions(&self) -> bool {
        !self.by_webhook
    }

    fn merge_schema(&self) -> Option<&dyn MergeSchema> {
        Some(&*self.schema)
    }

    fn subresource(&self, name: &str) -> Option<&dyn Strategy> {
        let status = self.status.as_ref().filter(|_| name == "status")?;
        Some(status)
    }
}

impl CustomResource {
    /// Returns the errors of an object by its schema, and of the fields that its Scale is read from.
    fn errors(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut scale = Vec::new();
        if let Some(paths) = &self.scale {
            scale.extend(scale_validation::spec_errors(object, paths));
            scale.extend(scale_validation::status_errors(object, paths));
        }
        self.schema.check(object, old, scale, metadata_errors)
    }

    /// Returns true if the generation changes: anything but metadata has changed, and but status if that is a
    /// subresource.
    fn is_changed(&self, object: &Value, old: &Value) -> bool {
        let counts = |(name, _): &(&String, &Value)| {
            *name != "metadata" && (*name != "status" || self.status.is_none())
        };
        let mut old = old.as_object().into_iter().flatten().filter(counts);
        let mut new = object.as_object().into_iter().flatten().filter(counts);
        let is_same = new.by_ref().all(|(name, value)| {
            let same = old.next().filter(|(was, _)| *was == name);
            same.is_some_and(|(_, old)| deep_equal(value, old))
        });
        !is_same || old.next().is_some()
    }
}

/// Returns the errors of an object's metadata, in which the namespace does not matter.
fn metadata_errors(object: &Value) -> Vec<FieldError> {
    validate_object_meta(object, false, NameRule::DnsSubdomain)
}

#[cfg(test)]
mod tests {
    use ringwatch::clock::Clock;
    use ringwatch_apimachinery::User;

    use super::super::Definition;
    use super::*;

    #[test]
    fn what_admission_adds_begins_a_generation_though_it_is_not_stored() {
        let definition = Definition::new(json!({
            "spec": {"group": "example.com", "scope": "Namespaced", "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {
                        "size": {"type": "integer"}, "color": {"type": "string", "default": "red"}}}}}},
            }]},
            "status": {"acceptedNames": {"plural": "widgets", "kind": "Widget"}},
        }));
        let resources = definition.resources().expect("resources");
        let strategy = &resources[0].strategy;
        let context = RequestContext::new(User::default(), String::new(), Clock::real());
        let old = json!({"metadata": {"generation": 1}, "spec": {"size": 1, "color": "red"}});
        let mut object =
            json!({"metadata": {"generation": 1}, "spec": {"size": 1}, "data": {"k": 1}});
        strategy.default_admitted(&mut object);
        strategy.prepare_for_update(&context, &mut object, &old);
        assert_eq!(strategy.validate_update(&object, &old), []);
        let changed = json!({"metadata": {"generation": 2}, "spec": {"size": 1, "color": "red"}, "data": {"k": 1}});
        assert_eq!(object, changed);
        strategy.prepare_to_store(&mut object);
        let stored = json!({"metadata": {"generation": 2}, "spec": {"size": 1, "color": "red"}});
        assert_eq!(object, stored);
        // A null is refused, as one of an apply is.
        let mut object = json!({"metadata": {}, "spec": {"size": null}});
        strategy.default_admitted(&mut object);
        let errors = strategy.validate_update(&object, &old);
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!(errors[0].field, "spec.size");
    }

    #[test]
    fn a_float_over_an_integer_begins_a_generation() {
        let definition = Definition::new(json!({
            "spec": {"group": "example.com", "scope": "Namespaced", "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }]},
            "status": {"acceptedNames": {"plural": "widgets", "kind": "Widget"}},
        }));
        let resources = definition.resources().expect("resources");
        let strategy = &resources[0].strategy;
        let context = RequestContext::new(User::default(), String::new(), Clock::real());
        let old = json!({"metadata": {"generation": 1}, "spec": {"size": 1, "of": [0.5]}, "status": {"size": 1}});
        for (spec, generation) in [
            (json!({"size": 1, "of": [0.5]}), 1),
            (json!({"size": 1.0, "of": [0.5]}), 2),
            (json!({"size": 1}), 2),
        ] {
            let mut object = json!({"metadata": {}, "spec": spec, "status": {"size": 1.0}});
            strategy.default(&mut object);
            assert_eq!(object["spec"].to_string(), spec.to_string());
            strategy.prepare_for_update(&context, &mut object, &old);
            assert_eq!(object["metadata"]["generation"], generation, "{spec}");
        }
        let mut longer = old.clone();
        longer["data"] = json!(1);
        strategy.prepare_for_update(&context, &mut longer, &old);
        assert_eq!(longer["metadata"]["generation"], 2);
    }

    #[test]
    fn writes_are_checked_by_what_the_definition_says_of_subresources() {
        let definition = Definition::new(json!({
            "spec": {"group": "example.com", "scope": "Namespaced", "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
            }]},
            "status": {"acceptedNames": {"plural": "widgets", "kind": "Widget"}},
        }));
        let resources = definition.resources().expect("resources");
        let strategy = &resources[0].strategy;
        let fields = |errors: Vec<FieldError>| -> Vec<String> {
            errors.into_iter().map(|it| it.field).collect()
        };
        let right = json!({"metadata": {}, "spec": {"size": 1}, "status": {"size": 1}});
        let wrong = json!({"metadata": {"finalizers": ["short"]},
            "spec": {"size": -1}, "status": {"size": "1"}});
        assert_eq!(fields(strategy.validate(&right)), [""; 0]);
        assert_eq!(
            fields(strategy.validate(&wrong)),
            [".spec.size", ".status.size"]
        );
        let update = strategy.validate_update(&wrong, &right);
        assert_eq!(fields(update), [".spec.size", ".status.size"]);
        let status = strategy.subresource("status").expect("a status");
        assert_eq!(
            fields(status.validate_update(&wrong, &right)),
            [".status.size"]
        );
        let other = json!({"apiVersion": "other/v1", "kind": "Other", "metadata": {}});
        let mut written = other.clone();
        let context = RequestContext::new(User::default(), String::new(), Clock::real());
        status.prepare_for_update(&context, &mut written, &json!({"kind": "Widget"}));
        assert_eq!(written, json!({"kind": "Widget", "metadata": {}}));
        assert_eq!(strategy.warnings_on_create(&wrong).len(), 1);
        assert_eq!(strategy.warnings_on_update(&wrong, &right).len(), 1);
        assert!(strategy.warnings_on_update(&wrong, &wrong).is_empty());
    }
}
