//! The group `apps`: controllers of pods.

pub(crate) mod daemon_set;
mod defaults;
pub(crate) mod replication_controller;
mod stateful_set;
pub(crate) mod stateful_set_validation;
pub(crate) mod status;
pub(crate) mod table;
pub(crate) mod validation;

use ringwatch_apimachinery::NameRule;
use ringwatch_registry::SelectorForm;
use ringwatch_registry::subresource::SubresourceMetadata;
use serde_json::json;

use self::daemon_set::DaemonSets;
use self::stateful_set::StatefulSets;
use super::cluster_options::ClusterOptions;
use super::core::pod::{off_features, validation::security, warnings};
use super::strategy::generic::Generic;
use super::strategy::row::{RowBuilder, RowGroup};
use super::strategy::stored;

const V1: RowGroup = RowGroup::new("apps", "v1");

pub(super) fn rows(options: &ClusterOptions) -> Vec<RowBuilder> {
    vec![
        V1.namespaced("controllerrevisions", "ControllerRevision")
            .strategy(revision().names_on_update()),
        V1.namespaced("daemonsets", "DaemonSet")
            .short(&["ds"])
            .category("all")
            .status()
            .strategy(daemon_set(options)),
        V1.namespaced("deployments", "Deployment")
            .short(&["deploy"])
            .category("all")
            .scale(SelectorForm::LabelSelector, &["v1beta1", "v1beta2", "v1"])
            .status()
            .strategy(
                Generic::with_status()
                    .status_update(SubresourceMetadata::KeepsLabels, status::deployment)
                    .defaults(defaults::DEPLOYMENT)
                    .defaults_on_read(stored::spec_template)
                    .check(validation::deployment)
                    .off_fields(off_features::of_template)
                    .check_if(!options.allow_privileged, security::unprivileged_template)
                    .warn_of_new(warnings::name_of_pods)
                    .warn_always(warnings::template)
                    .check_on_update(validation::selector_stays)
                    .generation(&["spec", "metadata.annotations"]),
            ),
        V1.namespaced("replicasets", "ReplicaSet")
            .short(&["rs"])
            .category("all")
            .scale(SelectorForm::LabelSelector, &["v1beta2", "v1"])
            .status()
            .strategy(
                Generic::with_status()
                    .initial_status(json!({"replicas": 0}))
                    .status_update(SubresourceMetadata::Free, status::replica_set)
                    .defaults(defaults::REPLICA_SET)
                    .defaults_on_read(stored::spec_template)
                    .check(validation::replica_set)
                    .off_fields(off_features::of_template)
                    .check_if(!options.allow_privileged, security::unprivileged_template)
                    .warn_of_new(warnings::name_of_pods)
                    .warn_always(warnings::template)
                    .check_on_update(validation::selector_stays)
                    .generation(&["spec"]),
            ),
        V1.namespaced("statefulsets", "StatefulSet")
            .short(&["sts"])
            .category("all")
            .scale(SelectorForm::LabelSelector, &["v1beta1", "v1beta2", "v1"])
            .status()
            .strategy(stateful_set(options)),
    ]
}

fn stateful_set(options: &ClusterOptions) -> Generic {
    Generic::with_status()
        .initial_status(json!({"replicas": 0, "availableReplicas": 0}))
        .status_update(SubresourceMetadata::Free, status::stateful_set)
        .name_rule(NameRule::DnsLabel)
        .defaults(defaults::STATEFUL_SET)
        .defaults_on_read(stored::spec_template)
        .hooks(StatefulSets)
        .check_on_create(stateful_set_validation::stateful_set)
        .off_fields(off_features::of_template)
        .check_if(!options.allow_privileged, security::unprivileged_template)
        .warn_always(warnings::template)
        .check_on_update(stateful_set_validation::stateful_set_update)
        .generation(&["spec"])
}

fn daemon_set(options: &ClusterOptions) -> Generic {
    Generic::with_status()
        .initial_status(daemon_set::initial_status())
        .part("status", daemon_set::status_part())
        .defaults(defaults::DAEMON_SET)
        .defaults_on_read(stored::daemon_set)
        .hooks(DaemonSets)
        .check(validation::daemon_set)
        .check_on_update(validation::selector_stays)
        .changes_first()
        .off_fields(off_features::of_template)
        .check_if(!options.allow_privileged, security::unprivileged_template)
        .generation(&["spec"])
}

/// Returns the strategy of ControllerRevisions, whose data is immutable and kept verbatim.
fn revision() -> Generic {
    Generic::new()
        .verbatim()
        .check(validation::revision)
        .check_on_create(validation::revision_data)
        .check_on_update(validation::revision_stays)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_their_replicas_in_all_versions_that_kubernetes_has_had() {
        let rows = rows(&ClusterOptions::default()).into_iter();
        let controller = replication_controller::row(&ClusterOptions::default());
        let found: Vec<_> = rows
            .chain([controller])
            .filter_map(|row| {
                let resource = row.done();
                let versions: Vec<_> = resource.scale?.versions.into_keys().collect();
                Some(format!("{} {}", resource.plural, versions.join(" ")))
            })
            .collect();
        let expected = [
            "deployments apps/v1 apps/v1beta1 apps/v1beta2",
            "replicasets apps/v1 apps/v1beta2",
            "statefulsets apps/v1 apps/v1beta1 apps/v1beta2",
            "replicationcontrollers v1",
        ];
        assert_eq!(found, expected);
    }
}
