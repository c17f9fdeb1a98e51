//! ReplicationControllers. They belong to the core group, but are checked as the workloads of `apps` are: a ReplicaSet
//! whose selector is a map.

use ringwatch_apimachinery::error::ERROR_BYTES_MAX;
use ringwatch_apimachinery::path::{get, set};
use ringwatch_apimachinery::{FieldError, FieldErrorKind, NameRule};
use ringwatch_registry::subresource::SubresourceMetadata;
use ringwatch_registry::{GarbageCollection, SelectorForm};
use serde_json::{Value, json};

use super::{status, validation};
use crate::cluster_options::ClusterOptions;
use crate::core::pod::defaults::SPEC_TEMPLATE;
use crate::core::pod::{off_features, validation::security, warnings};
use crate::defaults::DefaultRule::{self, Run, Set};
use crate::defaults::Literal::Int;
use crate::strategy::generic::Generic;
use crate::strategy::kind_hooks::KindHooks;
use crate::strategy::row::{RowBuilder, RowGroup, field_or};
use crate::strategy::stored;
use crate::validation::Field;

/// Defaults, as in pkg/apis/core/v1/defaults.go of Kubernetes 1.36.
const DEFAULTS: &[DefaultRule] = &[
    Run(&["spec.selector", "metadata.labels"], follow_the_template),
    Set("spec.replicas", Int(1)),
    SPEC_TEMPLATE,
];

/// Returns the row of ReplicationControllers in the core group.
pub(crate) fn row(options: &ClusterOptions) -> RowBuilder {
    RowGroup::CORE_V1
        .namespaced("replicationcontrollers", "ReplicationController")
        .short(&["rc"])
        .category("all")
        .prefix("controllers")
        .fields([field_or("status.replicas", "0")])
        .scale(SelectorForm::Map, &["v1"])
        .status()
        .strategy(
            Generic::with_status()
                .name_rule(NameRule::GeneratedDnsSubdomain)
                .initial_status(json!({"replicas": 0}))
                .status_update(SubresourceMetadata::Free, status::replica_set)
                .defaults(DEFAULTS)
                .defaults_on_read(stored::spec_template)
                .check(validation::replication_controller)
                .off_fields(off_features::of_template)
                .check_if(!options.allow_privileged, security::unprivileged_template)
                .hooks(ReplicationControllers)
                .generation(&["spec"])
                .garbage_collection(GarbageCollection::OrphanDependents),
        )
}

/// Gives a ReplicationController without a selector or labels those of its pod template.
fn follow_the_template(controller: &mut Value) {
    let Some(labels) = get(controller, "spec.template.metadata.labels").cloned() else {
        return;
    };
    for path in ["spec.selector", "metadata.labels"] {
        let empty = get(controller, path)
            .and_then(Value::as_object)
            .is_none_or(serde_json::Map::is_empty);
        if empty {
            set(controller, path, labels.clone());
        }
    }
}

/// The prefix of annotations about fields that a ReplicationController had as a ReplicaSet of another version, and
/// could not be given.
const NOT_CONVERTIBLE: &str = "non-convertible.kubernetes.io";

/// The behaviour of ReplicationControllers: warnings about the template, and fields that could not be converted.
#[derive(Debug)]
struct ReplicationControllers;

impl KindHooks for ReplicationControllers {
    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        not_converted(object, old)
    }

    /// Warns about the old template when the controller changes, as Kubernetes does.
    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        const GENERATION: &str = "metadata.generation";
        let mut found = Vec::new();
        match old {
            None => {
                warnings::name_of_pods(&Field::root(object), &mut found);
                warnings::template(&Field::root(object), &mut found);
            }
            Some(old) if get(object, GENERATION) == get(old, GENERATION) => {}
            Some(old) => warnings::template(&Field::root(old), &mut found),
        }
        found
    }
}

/// Returns the errors of fields that could not be converted: a selector must not change, and others are not known.
/// Follows `ValidateUpdate` in pkg/registry/core/replicationcontroller/strategy.go.
fn not_converted(object: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut bytes = 0;
    let annotations = get(old, "metadata.annotations").and_then(Value::as_object);
    for (key, value) in annotations.into_iter().flatten() {
        let Some((prefix, field)) = key.split_once('/') else {
            continue;
        };
        if !prefix.starts_with(NOT_CONVERTIBLE) || field.contains('/') {
            continue;
        }
        let error = if !field.contains("selector") {
            let detail = format!("{value}: unknown non-convertible field");
            FieldError::new(FieldErrorKind::NotFound, field, detail)
        } else if get(object, "spec.selector") != get(old, "spec.selector") {
            let selector = get(object, "spec.selector").unwrap_or(&Value::Null);
            let why = "cannot update non-convertible selector";
            FieldError::invalid("spec.selector", selector, why)
        } else {
            continue;
        };
        bytes += error.detail.len();
        errors.push(error);
        // Each shows a text of the client's.
        if bytes > ERROR_BYTES_MAX {
            break;
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validation::messages;

    #[test]
    fn fields_that_could_not_be_converted_stay() {
        let of = |field: &str, selected: &str| {
            json!({"metadata": {"annotations": {format!("{NOT_CONVERTIBLE}/{field}"): "x"}},
                "spec": {"selector": {"a": selected}}})
        };
        let change = |field| messages(&not_converted(&of(field, "c"), &of(field, "b")));
        assert_eq!(
            change("spec.selector"),
            ["spec.selector: Invalid value: {\"a\":\"c\"}: cannot update non-convertible selector"]
        );
        assert_eq!(
            change("spec.other"),
            ["spec.other: Not found: \"x\": unknown non-convertible field"]
        );
        assert_eq!(change("spec/selector"), [""; 0]);
        let same = of("spec.selector", "b");
        assert_eq!(not_converted(&same, &same), []);
    }

    #[test]
    fn a_change_warns_of_the_old_template() {
        let of = |generation: u32, seconds: i64| {
            json!({"metadata": {"name": "A", "generation": generation}, "spec": {"template": {
                "spec": {"terminationGracePeriodSeconds": seconds}}}})
        };
        let warnings = |object: &Value, old: Option<&Value>| {
            ReplicationControllers.warnings(object, old).len()
        };
        assert_eq!(warnings(&of(1, -1), None), 2);
        assert_eq!(warnings(&of(2, 1), Some(&of(1, -1))), 1);
        assert_eq!(warnings(&of(2, -1), Some(&of(1, 1))), 0);
        assert_eq!(warnings(&of(1, -1), Some(&of(1, -1))), 0);
    }
}
