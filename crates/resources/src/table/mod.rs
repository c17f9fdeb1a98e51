//! The server side of `kubectl get`: conversion of objects to rows of a `meta.k8s.io/v1` Table, as Kubernetes' printers do it.
//!
//! A [`TableConvertor`] has the columns of a kind and a function from an object and the time to its cells. The object
//! is the tree that is stored, so that all versions of a kind are shown alike. The cells are for people to read:
//! a missing value is `<none>`, `<unset>` or `<unknown>`, as kube-apiserver puts it for each kind.
//!
//! Rows are not cached, since the ages in them change with time.

mod admission;
mod autoscaling;
mod batch;
mod certificates;
mod cluster;
mod column;
mod configuration;
mod devices;
mod events;
mod field_docs;
mod flowcontrol;
mod ingress;
mod network;
mod nodes;
mod pods;
mod rbac;
mod subject;
#[cfg(test)]
mod tests;
mod volumes;
mod workloads;

use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

pub use self::column::Column;

use ringwatch_registry::{PrinterColumns, Resource};

use self::subject::Subject;

/// The conversion of the objects of one built-in kind to rows.
#[derive(Clone, Copy, Debug)]
pub struct TableConvertor {
    /// The definitions of the columns, in the order of the cells.
    columns: &'static [Column],
    /// The function that makes the cells of an object, one for each column.
    cells: fn(&Subject<'_>) -> Vec<Value>,
    /// The function that makes the condition of an object's row, if it has any.
    condition: fn(&Subject<'_>) -> Option<RowCondition>,
}

/// The conversion of the objects of a resource to rows.
#[derive(Clone, Debug)]
pub enum Printer {
    /// The columns that kube-apiserver has for a built-in kind.
    BuiltIn(&'static TableConvertor),
    /// The `additionalPrinterColumns` of a CustomResourceDefinition.
    Custom(Arc<PrinterColumns>),
}

/// A row of a Table: `metav1.TableRow` without its object.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The cells, one for each column: strings, numbers, booleans and null.
    pub cells: Vec<Value>,
    /// Conditions of the row; only pods that have ended have one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<RowCondition>,
}

/// A condition of a row, which a client understands without knowing the columns: `metav1.TableRowCondition`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RowCondition {
    /// The type of the condition, such as `Completed`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The status of the condition: `True`, `False` or `Unknown`.
    pub status: &'static str,
    /// The reason as one word in camel case.
    pub reason: &'static str,
    /// The explanation for people.
    pub message: &'static str,
}

/// Makes the cells of a row from values of any types that convert to JSON.
macro_rules! cells {
    ($($cell:expr),* $(,)?) => { vec![$(serde_json::Value::from($cell)),*] };
}
use cells;

impl Printer {
    /// Returns the printer of a resource.
    #[must_use]
    pub fn of(resource: &Resource) -> Self {
        match &resource.printer_columns {
            Some(columns) => Self::Custom(Arc::clone(columns)),
            None => Self::BuiltIn(TableConvertor::of_kind(
                &resource.group_version.group,
                &resource.kind,
            )),
        }
    }

    /// Returns the printer of the `scale` subresource.
    #[must_use]
    pub fn of_scales() -> Self {
        Self::BuiltIn(&workloads::SCALES)
    }

    /// Returns the definitions of the columns as a JSON array.
    ///
    /// # Errors
    /// An error of the serializer.
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

impl TableConvertor {
    /// Returns the convertor of a kind, which is the same for all its versions.
    fn of_kind(group: &str, kind: &str) -> &'static Self {
        let found = match group {
            "" => core(kind),
            "apps" | "batch" | "autoscaling" | "policy" => workload(kind),
            "networking.k8s.io" | "discovery.k8s.io" => networking(kind),
            "events.k8s.io" if kind == "Event" => Some(&events::EVENTS),
            "storage.k8s.io" => storage(kind),
            "admissionregistration.k8s.io" => admission(kind),
            "resource.k8s.io" => device(kind),
            _ => administration(kind),
        };
        found.unwrap_or(&cluster::OTHERS)
    }

    const fn new(columns: &'static [Column], cells: fn(&Subject<'_>) -> Vec<Value>) -> Self {
        Self {
            columns,
            cells,
            condition: |_| None,
        }
    }

    /// Returns the definitions of the kind's columns.
    #[must_use]
    pub fn columns(&self) -> &'static [Column] {
        self.columns
    }

    /// Converts an object of the kind, in its storage version, to a row as of `now`.
    #[must_use]
    pub fn row(&self, object: &Value, now: Timestamp) -> Row {
        let subject = Subject::new(object, now);
        Row {
            cells: (self.cells)(&subject),
            conditions: (self.condition)(&subject).into_iter().collect(),
        }
    }
}

fn core(kind: &str) -> Option<&'static TableConvertor> {
    Some(match kind {
        "ComponentStatus" => &cluster::COMPONENT_STATUSES,
        "ConfigMap" => &configuration::CONFIG_MAPS,
        "Endpoints" => &network::ENDPOINTS,
        "Event" => &events::EVENTS,
        "Namespace" => &cluster::NAMESPACES,
        "Node" => &nodes::NODES,
        "PersistentVolume" => &volumes::PERSISTENT_VOLUMES,
        "PersistentVolumeClaim" => &volumes::CLAIMS,
        "Pod" => &pods::PODS,
        "PodTemplate" => &workloads::POD_TEMPLATES,
        "ReplicationController" => &workloads::REPLICATION_CONTROLLERS,
        "ResourceQuota" => &configuration::RESOURCE_QUOTAS,
        "Secret" => &configuration::SECRETS,
        "Service" => &network::SERVICES,
        "ServiceAccount" => &configuration::SERVICE_ACCOUNTS,
        _ => return None,
    })
}

fn workload(kind: &str) -> Option<&'static TableConvertor> {
    Some(match kind {
        "ControllerRevision" => &workloads::CONTROLLER_REVISIONS,
        "CronJob" => &batch::CRON_JOBS,
        "DaemonSet" => &workloads::DAEMON_SETS,
        "Deployment" => &workloads::DEPLOYMENTS,
        "HorizontalPodAutoscaler" => &autoscaling::AUTOSCALERS,
        "Job" => &batch::JOBS,
        "PodDisruptionBudget" => &workloads::DISRUPTION_BUDGETS,
        "ReplicaSet" => &workloads::REPLICA_SETS,
        "StatefulSet" => &workloads::STATEFUL_SETS,
        _ => return None,
    })
}

fn networking(kind: &str) -> Option<&'static TableConvertor> {
    Some(match kind {
        "EndpointSlice" => &network::ENDPOINT_SLICES,
        "Ingress" => &ingress::INGRESSES,
        "IngressClass" => &ingress::INGRESS_CLASSES,
        "IPAddress" => &network::IP_ADDRESSES,
        "NetworkPolicy" => &network::NETWORK_POLICIES,
        "ServiceCIDR" => &network::SERVICE_CIDRS,
        _ => return None,
    })
}

fn storage(kind: &str) -> Option<&'static TableConvertor> {
    Some(match kind {
        "CSIDriver" => &volumes::CSI_DRIVERS,
        "CSINode" => &volumes::CSI_NODES,
        "CSIStorageCapacity" => &volumes::CSI_STORAGE_CAPACITIES,
        "StorageClass" => &volumes::STORAGE_CLASSES,
        "VolumeAttachment" => &volumes::VOLUME_ATTACHMENTS,
        "VolumeAttributesClass" => &volumes::VOLUME_ATTRIBUTES_CLASSES,
        _ => return None,
    })
}

fn admission(kind: &str) -> Option<&'static TableConvertor> {
    Some(match kind {
        "MutatingAdmissionPolicy" => &admission::MUTATING_POLICIES,
        "MutatingAdmissionPolicyBinding" | "ValidatingAdmissionPolicyBinding" => {
            &admission::POLICY_BINDINGS
        }
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => &admission::WEBHOOKS,
        "ValidatingAdmissionPolicy" => &admission::VALIDATING_POLICIES,
        _ => return None,
    })
}

fn device(kind: &str) -> Option<&'static TableConvertor> {
    Some(match kind {
        "DeviceClass" | "ResourceClaimTemplate" => &cluster::NAME_AND_AGE,
        "ResourceClaim" => &devices::RESOURCE_CLAIMS,
        "ResourceSlice" => &devices::RESOURCE_SLICES,
        _ => return None,
    })
}

fn administration(kind: &str) -> Option<&'static TableConvertor> {
    Some(match kind {
        "APIService" => &cluster::API_SERVICES,
        "CertificateSigningRequest" => &certificates::SIGNING_REQUESTS,
        "ClusterRoleBinding" => &rbac::CLUSTER_ROLE_BINDINGS,
        "FlowSchema" => &flowcontrol::FLOW_SCHEMAS,
        "Lease" => &cluster::LEASES,
        "PriorityClass" => &cluster::PRIORITY_CLASSES,
        "PriorityLevelConfiguration" => &flowcontrol::PRIORITY_LEVELS,
        "RoleBinding" => &rbac::ROLE_BINDINGS,
        "RuntimeClass" => &cluster::RUNTIME_CLASSES,
        _ => return None,
    })
}
