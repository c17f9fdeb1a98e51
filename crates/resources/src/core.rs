//! The core group: pods, services, nodes, volumes, configuration and events.

pub(crate) mod cluster;
pub(crate) mod configuration;
mod defaults;
pub(crate) mod endpoints;
mod field_reference;
mod image;
pub(crate) mod namespace;
pub(crate) mod node;
pub(crate) mod pod;
pub(crate) mod quota;
pub(crate) mod service;
pub(crate) mod volume;

use ringwatch::meta::FieldPath;
use ringwatch_apimachinery::NameRule;
use ringwatch_registry::ServedBy::Handler;
use ringwatch_registry::subresource::SubresourceMetadata;
use ringwatch_registry::{ServedBy, Verb};
use serde_json::json;

use self::configuration::{ConfigMaps, Secrets, ServiceAccounts};
use self::namespace::Namespaces;
use self::node::Nodes;
use self::pod::Pods;
use self::service::Services;
use self::volume::persistent_volume::{self, PersistentVolumes};
use super::cluster_options::ClusterOptions;
use super::core::{
    pod::{off_features, validation as pod_checks, validation::security, warnings},
    service::validation as service_checks,
    volume::{claim_validation, persistent_volume_validation},
};
use super::events::{self, Events};
use super::strategy::generic::Generic;
use super::strategy::row::{
    PROXY, READ_WRITE, RowBuilder, RowGroup, field, field_or, indexed_field,
};
use super::strategy::stored;
use super::validation::ingress_points;

/// The core group in its only version.
const V1: RowGroup = RowGroup::CORE_V1;

/// Verbs of subresources that open a stream into a pod.
const STREAM: &[Verb] = &[Verb::Create, Verb::Get];

pub(super) fn rows(options: &ClusterOptions) -> Vec<RowBuilder> {
    [
        configuration(),
        cluster(),
        volumes(),
        workload(options),
        network(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the rows of configuration, quotas and events.
fn configuration() -> Vec<RowBuilder> {
    vec![
        V1.namespaced("configmaps", "ConfigMap")
            .short(&["cm"])
            .strategy(
                Generic::new()
                    .names_on_update()
                    .judged_if_empty(&["binaryData"])
                    .hooks(ConfigMaps),
            ),
        V1.namespaced("events", "Event")
            .short(&["ev"])
            .fields(events::fields())
            .strategy(events::strategy(Events::CORE)),
        V1.namespaced("limitranges", "LimitRange")
            .short(&["limits"])
            .strategy(
                Generic::new()
                    .names_on_update()
                    .defaults(defaults::LIMIT_RANGE)
                    .managed_if_empty(&["spec.limits"])
                    .hooks(quota::LimitRanges)
                    .check(quota::limit_range)
                    .create_on_update(),
            ),
        V1.namespaced("resourcequotas", "ResourceQuota")
            .short(&["quota"])
            .status()
            .strategy(
                Generic::with_status()
                    .defaults(defaults::RESOURCE_QUOTA)
                    .check(quota::quota)
                    .check_on_update(quota::quota_update)
                    .warn(quota::quota_warnings)
                    .status_update(SubresourceMetadata::Free, quota::quota_status)
                    .returns_deleted_object(),
            ),
        V1.namespaced("secrets", "Secret")
            .fields([field("type")])
            .strategy(
                Generic::new()
                    .names_on_update()
                    .defaults(defaults::SECRET)
                    .defaults_on_read(stored::secret)
                    .judged_if_empty(&["data"])
                    .hooks(Secrets),
            ),
        V1.namespaced("serviceaccounts", "ServiceAccount")
            .short(&["sa"])
            .subresource(
                "token",
                Some(RowGroup::new("authentication.k8s.io", "v1")),
                "TokenRequest",
                &[Verb::Create],
                Handler,
            )
            .strategy(
                Generic::new()
                    .names_on_update()
                    .hooks(ServiceAccounts)
                    .returns_deleted_object(),
            ),
    ]
}

/// Returns the rows of components, namespaces and nodes.
fn cluster() -> Vec<RowBuilder> {
    vec![
        V1.cluster("componentstatuses", "ComponentStatus")
            .short(&["cs"])
            .verbs(&[Verb::Get, Verb::List])
            .served(ServedBy::Computed),
        V1.cluster("namespaces", "Namespace")
            .short(&["ns"])
            .without(Verb::DeleteCollection)
            .fields([field("status.phase")])
            .subresource(
                "finalize",
                None,
                "Namespace",
                &[Verb::Update],
                ServedBy::Store,
            )
            .status()
            .strategy(
                Generic::with_status()
                    .initial_status(json!({"phase": "Active"}))
                    .defaults(defaults::NAMESPACE)
                    .defaults_on_read(stored::namespace)
                    .hooks(Namespaces)
                    .check(cluster::namespace)
                    .part("finalize", namespace::finalize())
                    .part("status", namespace::status())
                    .name_rule(NameRule::DnsLabel)
                    .names_on_update(),
            ),
        V1.cluster("nodes", "Node")
            .short(&["no"])
            .prefix("minions")
            .fields([field_or("spec.unschedulable", "false")])
            .subresource("proxy", None, "NodeProxyOptions", PROXY, Handler)
            .status()
            .strategy(
                Generic::new()
                    .names_on_update()
                    .defaults(defaults::NODE)
                    .defaults_on_read(stored::node)
                    .hooks(Nodes)
                    .off(node::DYNAMIC)
                    .check(node::validation::node)
                    .check_on_update(node::validation::node_update)
                    .part("status", node::status()),
            ),
    ]
}

/// Returns the rows of volumes and claims.
fn volumes() -> Vec<RowBuilder> {
    vec![
        V1.namespaced("persistentvolumeclaims", "PersistentVolumeClaim")
            .short(&["pvc"])
            .status()
            .strategy(
                claimed()
                    .names_on_update()
                    .defaults(volume::defaults::CLAIM)
                    .hooks(volume::data_source::ClaimSources)
                    .check(claim_validation::claim)
                    .warn_always(warnings::claim)
                    .check_on_update(claim_validation::claim_update)
                    .status_update(SubresourceMetadata::Free, claim_validation::claim_status),
            ),
        V1.cluster("persistentvolumes", "PersistentVolume")
            .short(&["pv"])
            .status()
            .strategy(
                claimed()
                    .names_on_update()
                    .defaults(volume::defaults::PERSISTENT_VOLUME)
                    .hooks(PersistentVolumes)
                    .part("status", persistent_volume::status())
                    .check(persistent_volume_validation::volume)
                    .check(persistent_volume_validation::mount_options)
                    .warn_always(warnings::volume)
                    .check_on_update(persistent_volume_validation::volume_update),
            ),
    ]
}

/// Returns the common strategy of PersistentVolumes and PersistentVolumeClaims.
fn claimed() -> Generic {
    Generic::with_status()
        .initial_status(json!({"phase": "Pending"}))
        .returns_deleted_object()
}

/// Returns the rows of pods and pod templates.
fn workload(options: &ClusterOptions) -> Vec<RowBuilder> {
    let policy = RowGroup::new("policy", "v1");
    let post = &[Verb::Create];
    vec![
        V1.namespaced("bindings", "Binding").review(Handler),
        V1.namespaced("pods", "Pod")
            .short(&["po"])
            .category("all")
            .fields(pod_fields())
            .subresource("attach", None, "PodAttachOptions", STREAM, Handler)
            .subresource("binding", None, "Binding", post, Handler)
            .part("ephemeralcontainers")
            .subresource("eviction", Some(policy), "Eviction", post, Handler)
            .subresource("exec", None, "PodExecOptions", STREAM, Handler)
            .subresource("log", None, "Pod", &[Verb::Get], Handler)
            .subresource(
                "portforward",
                None,
                "PodPortForwardOptions",
                STREAM,
                Handler,
            )
            .subresource("proxy", None, "PodProxyOptions", PROXY, Handler)
            .subresource("resize", None, "Pod", READ_WRITE, ServedBy::Store)
            .status()
            .strategy(
                Generic::with_status()
                    .names_on_update()
                    .defaults(pod::defaults::POD)
                    .off_fields(off_features::of_pod)
                    .defaults_on_read(stored::pod)
                    .check(pod_checks::pod)
                    .check_if(!options.allow_privileged, security::unprivileged_pod)
                    .warn(warnings::pod)
                    .check_on_create(pod_checks::new_pod)
                    .hooks(Pods)
                    .part("status", pod::status())
                    .part("binding", pod::PodBinding)
                    .part("eviction", pod::PodBinding)
                    .part(
                        "ephemeralcontainers",
                        pod::ephemeral_containers(options.allow_privileged),
                    )
                    .part("resize", pod::resize())
                    .generation(&["spec"])
                    .returns_deleted_object(),
            ),
        V1.namespaced("podtemplates", "PodTemplate").strategy(
            Generic::new()
                .defaults(pod::defaults::POD_TEMPLATE)
                .defaults_on_read(stored::template)
                .check(pod_checks::pod_template)
                .off_fields(off_features::of_pod_template)
                .check_if(
                    !options.allow_privileged,
                    security::unprivileged_pod_template,
                )
                .warn_always(warnings::pod_template)
                .generation(&["template"])
                .returns_deleted_object(),
        ),
    ]
}

/// Returns the rows of endpoints and services.
fn network() -> Vec<RowBuilder> {
    vec![
        V1.namespaced("endpoints", "Endpoints")
            .short(&["ep"])
            .prefix("services/endpoints")
            .strategy(
                Generic::new()
                    .names_on_update()
                    .defaults(defaults::ENDPOINTS)
                    .check_on_create(endpoints::endpoints)
                    .check_on_update(endpoints::endpoints_update)
                    .warn_always(endpoints::warn_of_addresses)
                    .create_on_update(),
            ),
        V1.namespaced("services", "Service")
            .short(&["svc"])
            .category("all")
            .prefix("services/specs")
            .fields([field("spec.clusterIP"), field("spec.type")])
            .subresource("proxy", None, "ServiceProxyOptions", PROXY, Handler)
            .status()
            .strategy(
                Generic::with_status()
                    .initial_status(json!({"loadBalancer": {}}))
                    .part("status", ingress_points::status(ingress_points::of_service))
                    .defaults(defaults::SERVICE)
                    .check_on_create(service_checks::new_service)
                    .warn_always(service::warnings::service)
                    .check_on_update(service_checks::service_update)
                    .hooks(Services)
                    .create_on_update()
                    .name_rule(NameRule::DnsLabel)
                    .returns_deleted_object(),
            ),
    ]
}

fn pod_fields() -> [FieldPath; 9] {
    [
        indexed_field("spec.nodeName"),
        field("spec.restartPolicy"),
        field("spec.schedulerName"),
        field("spec.serviceAccountName"),
        field_or("spec.hostNetwork", "false"),
        field("status.phase"),
        field("status.podIP"),
        field("status.podIPs"),
        field("status.nominatedNodeName"),
    ]
}
