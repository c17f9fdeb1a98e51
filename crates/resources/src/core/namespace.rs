//! Namespaces: one is deleted only after `spec.finalizers` is empty, so that the objects in it are deleted first.

use ringwatch_apimachinery::path::{get_mut, keep, list, set, text};
use ringwatch_registry::RequestContext;
use ringwatch_registry::subresource::SubresourceMetadata;
use ringwatch_registry::subresource::SubresourceStrategy;
use serde_json::{Value, json};

use super::cluster::{namespace_finalize, namespace_status};
use crate::strategy::kind_hooks::KindHooks;
use crate::strategy::stored::NAME_LABEL;
use crate::validation::found;

/// Finalizer of the namespace controller, which deletes the objects in the namespace.
const FINALIZER: &str = "kubernetes";

/// The behaviour of namespaces: `spec.finalizers` holds their deletion, and only `finalize` changes it.
#[derive(Debug)]
pub(super) struct Namespaces;

impl KindHooks for Namespaces {
    fn prepare_for_create(&self, _context: &RequestContext, object: &mut Value) {
        let mut finalizers = list(object, "spec.finalizers").to_vec();
        if !finalizers.iter().any(|it| it == FINALIZER) {
            finalizers.push(FINALIZER.into());
        }
        set(object, "spec.finalizers", json!(finalizers));
        // Defaults came before a generated name.
        let name = text(object, "metadata.name").to_owned();
        let labels = get_mut(object, "metadata.labels");
        match labels.and_then(Value::as_object_mut) {
            Some(labels) => drop(labels.insert(NAME_LABEL.to_owned(), name.into())),
            None => set(object, "metadata.labels", json!({ NAME_LABEL: name })),
        }
    }

    /// Keeps the finalizers, which only the subresource `finalize` changes.
    fn prepare_for_update(&self, _context: &RequestContext, object: &mut Value, old: &Value) {
        keep(object, old, "spec.finalizers");
    }

    fn holds_deletion(&self, object: &Value) -> bool {
        !list(object, "spec.finalizers").is_empty()
    }

    /// Sets the phase to `Terminating`. There is no grace period; deletion waits for the finalizers.
    fn prepare_for_deletion(&self, object: &mut Value) {
        set(object, "status.phase", "Terminating".into());
    }
}

/// Returns the strategy of the subresource `finalize`, which writes `spec.finalizers`.
pub(super) fn finalize() -> SubresourceStrategy {
    SubresourceStrategy::new("spec.finalizers", SubresourceMetadata::Free)
        .validate_update(|object, _| found(namespace_finalize, object))
}

/// Returns the strategy of the status subresource, which writes phase and conditions.
pub(super) fn status() -> SubresourceStrategy {
    SubresourceStrategy::new("status", SubresourceMetadata::Free).validate_update(namespace_status)
}

#[cfg(test)]
mod tests {
    use ringwatch::clock::Clock;
    use ringwatch_apimachinery::User;
    use ringwatch_registry::Strategy;

    use super::*;

    fn strategy() -> std::sync::Arc<dyn Strategy> {
        let rows = crate::built_in();
        let row = rows.iter().find(|row| row.plural == "namespaces");
        std::sync::Arc::clone(&row.expect("namespaces").strategy)
    }

    #[test]
    fn a_namespace_lives_and_dies() {
        let context = RequestContext::new(User::default(), String::new(), Clock::real());
        let strategy = strategy();
        let mut object = json!({"metadata": {"name": "golden"}});
        strategy.default(&mut object);
        strategy.prepare_for_create(&context, &mut object);
        assert_eq!(
            object,
            json!({
                "metadata": {"name": "golden", "labels": {"kubernetes.io/metadata.name": "golden"}},
                "spec": {"finalizers": ["kubernetes"]},
                "status": {"phase": "Active"},
            })
        );

        let mut update = json!({"metadata": {"name": "golden"}, "spec": {}});
        strategy.prepare_for_update(&context, &mut update, &object);
        assert!(strategy.holds_deletion(&update), "{update}");
        assert_eq!(update["status"]["phase"], "Active");

        strategy.prepare_for_deletion(&mut object);
        assert_eq!(object["status"]["phase"], "Terminating");

        let mut last = json!({"metadata": {"name": "golden"}, "spec": {"finalizers": []}});
        strategy.default(&mut last);
        let finalize = strategy.subresource("finalize").expect("finalize");
        finalize.prepare_for_update(&context, &mut last, &object);
        assert_eq!(last["spec"], json!({}));
        assert_eq!(last["status"]["phase"], "Terminating");
        assert!(!strategy.holds_deletion(&last));
    }
}
