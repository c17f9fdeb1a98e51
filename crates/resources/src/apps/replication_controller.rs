//! ReplicationControllers. They belong to the core group, but are checked as the workloads of `apps` are: a ReplicaSet
//! whose selector is a map.

use ringwatch_apimachinery::path::{get, set};
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
use crate::strategy::row::{RowBuilder, RowGroup, field_or};
use crate::strategy::stored;

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
        .scale(SelectorForm::Map)
        .status()
        .strategy(
            Generic::with_status()
                .initial_status(json!({"replicas": 0}))
                .status_update(SubresourceMetadata::Free, status::replica_set)
                .defaults(DEFAULTS)
                .defaults_on_read(stored::spec_template)
                .check(validation::replication_controller)
                .off_fields(off_features::of_template)
                .check_if(!options.allow_privileged, security::unprivileged_template)
                .warn_always(warnings::named_template)
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
