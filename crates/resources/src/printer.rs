//! The printer of a resource, and the table of the columns of built-in kinds: `printers.TableGenerator` in Go.

use std::sync::Arc;

use jiff::Timestamp;
use ringwatch_registry::{PrinterColumns, Resource};
use serde_json::Value;

use crate::table::{Row, TableConvertor};

/// The conversion of the objects of a resource to rows.
#[derive(Clone, Debug)]
pub enum Printer {
    /// The columns that kube-apiserver has for a built-in kind.
    BuiltIn(&'static TableConvertor),
    /// The `additionalPrinterColumns` of a CustomResourceDefinition.
    Custom(Arc<PrinterColumns>),
}

impl Printer {
    /// Returns the printer of a resource.
    #[must_use]
    pub fn for_resource(resource: &Resource) -> Self {
        match &resource.printer_columns {
            Some(columns) => Self::Custom(Arc::clone(columns)),
            None => Self::BuiltIn(convertor_of(&resource.group_version.group, &resource.kind)),
        }
    }

    /// Returns the printer of the `scale` subresource.
    #[must_use]
    pub fn for_scale() -> Self {
        Self::BuiltIn(&crate::apps::table::SCALES)
    }

    /// Returns the definitions of the columns as a JSON array.
    ///
    /// # Errors
    /// An error of the JSON serializer.
    pub fn columns(&self) -> Result<String, serde_json::Error> {
        match self {
            Self::BuiltIn(convertor) => serde_json::to_string(convertor.columns()),
            Self::Custom(columns) => serde_json::to_string(columns.columns()),
        }
    }

    /// Converts an object, in its storage version, to a row as of `now`.
    #[must_use]
    pub fn row(&self, object: &Value, now: Timestamp) -> Row {
        match self {
            Self::BuiltIn(convertor) => convertor.row(object, now),
            Self::Custom(columns) => Row {
                cells: columns.cells(object, now),
                conditions: Vec::new(),
            },
        }
    }
}

/// Returns the convertor of a kind, which is the same for all its versions.
pub(crate) fn convertor_of(group: &str, kind: &str) -> &'static TableConvertor {
    let found = match group {
        "" => core(kind),
        "apps" | "batch" | "autoscaling" | "policy" => workload(kind),
        "networking.k8s.io" | "discovery.k8s.io" => networking(kind),
        "events.k8s.io" if kind == "Event" => Some(&crate::events::table::EVENTS),
        "storage.k8s.io" => storage(kind),
        "admissionregistration.k8s.io" => admission(kind),
        "resource.k8s.io" => device(kind),
        _ => administration(kind),
    };
    found.unwrap_or(&crate::core::cluster::table::OTHERS)
}

fn core(kind: &str) -> Option<&'static TableConvertor> {
    Some(match kind {
        "ComponentStatus" => &crate::core::cluster::table::COMPONENT_STATUSES,
        "ConfigMap" => &crate::core::configuration::table::CONFIG_MAPS,
        "Endpoints" => &crate::core::service::table::ENDPOINTS,
        "Event" => &crate::events::table::EVENTS,
        "Namespace" => &crate::core::cluster::table::NAMESPACES,
        "Node" => &crate::core::node::table::NODES,
        "PersistentVolume" => &crate::core::volume::table::PERSISTENT_VOLUMES,
        "PersistentVolumeClaim" => &crate::core::volume::table::CLAIMS,
        "Pod" => &crate::core::pod::table::PODS,
        "PodTemplate" => &crate::apps::table::POD_TEMPLATES,
        "ReplicationController" => &crate::apps::table::REPLICATION_CONTROLLERS,
        "ResourceQuota" => &crate::core::configuration::table::RESOURCE_QUOTAS,
        "Secret" => &crate::core::configuration::table::SECRETS,
        "Service" => &crate::core::service::table::SERVICES,
        "ServiceAccount" => &crate::core::configuration::table::SERVICE_ACCOUNTS,
        _ => return None,
    })
}

fn workload(kind: &str) -> Option<&'static TableConvertor> {
    Some(match kind {
        "ControllerRevision" => &crate::apps::table::CONTROLLER_REVISIONS,
        "CronJob" => &crate::batch::table::CRON_JOBS,
        "DaemonSet" => &crate::apps::table::DAEMON_SETS,
        "Deployment" => &crate::apps::table::DEPLOYMENTS,
        "HorizontalPodAutoscaler" => &crate::autoscaling::table::AUTOSCALERS,
        "Job" => &crate::batch::table::JOBS,
        "PodDisruptionBudget" => &crate::apps::table::DISRUPTION_BUDGETS,
        "ReplicaSet" => &crate::apps::table::REPLICA_SETS,
        "StatefulSet" => &crate::apps::table::STATEFUL_SETS,
        _ => return None,
    })
}

fn networking(kind: &str) -> Option<&'static TableConvertor> {
    Some(match kind {
        "EndpointSlice" => &crate::core::service::table::ENDPOINT_SLICES,
        "Ingress" => &crate::networking::table::INGRESSES,
        "IngressClass" => &crate::networking::table::INGRESS_CLASSES,
        "IPAddress" => &crate::core::service::table::IP_ADDRESSES,
        "NetworkPolicy" => &crate::core::service::table::NETWORK_POLICIES,
        "ServiceCIDR" => &crate::core::service::table::SERVICE_CIDRS,
        _ => return None,
    })
}

fn storage(kind: &str) -> Option<&'static TableConvertor> {
    Some(match kind {
        "CSIDriver" => &crate::core::volume::table::CSI_DRIVERS,
        "CSINode" => &crate::core::volume::table::CSI_NODES,
        "StorageClass" => &crate::core::volume::table::STORAGE_CLASSES,
        "VolumeAttachment" => &crate::core::volume::table::VOLUME_ATTACHMENTS,
        "VolumeAttributesClass" => &crate::core::volume::table::VOLUME_ATTRIBUTES_CLASSES,
        _ => return None,
    })
}

fn admission(kind: &str) -> Option<&'static TableConvertor> {
    Some(match kind {
        "MutatingAdmissionPolicy" => &crate::admissionregistration::table::MUTATING_POLICIES,
        "MutatingAdmissionPolicyBinding" | "ValidatingAdmissionPolicyBinding" => {
            &crate::admissionregistration::table::POLICY_BINDINGS
        }
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            &crate::admissionregistration::table::WEBHOOKS
        }
        "ValidatingAdmissionPolicy" => &crate::admissionregistration::table::VALIDATING_POLICIES,
        _ => return None,
    })
}

fn device(kind: &str) -> Option<&'static TableConvertor> {
    Some(match kind {
        "DeviceClass" | "ResourceClaimTemplate" => &crate::core::cluster::table::NAME_AND_AGE,
        "ResourceClaim" => &crate::resource::table::RESOURCE_CLAIMS,
        "ResourceSlice" => &crate::resource::table::RESOURCE_SLICES,
        _ => return None,
    })
}

fn administration(kind: &str) -> Option<&'static TableConvertor> {
    Some(match kind {
        "APIService" => &crate::core::cluster::table::API_SERVICES,
        "CertificateSigningRequest" => &crate::certificates::table::SIGNING_REQUESTS,
        "ClusterRoleBinding" => &crate::rbac::table::CLUSTER_ROLE_BINDINGS,
        "FlowSchema" => &crate::flowcontrol::table::FLOW_SCHEMAS,
        "Lease" => &crate::core::cluster::table::LEASES,
        "PriorityClass" => &crate::core::cluster::table::PRIORITY_CLASSES,
        "PriorityLevelConfiguration" => &crate::flowcontrol::table::PRIORITY_LEVELS,
        "RoleBinding" => &crate::rbac::table::ROLE_BINDINGS,
        "RuntimeClass" => &crate::core::cluster::table::RUNTIME_CLASSES,
        _ => return None,
    })
}
