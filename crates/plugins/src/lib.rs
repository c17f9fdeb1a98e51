//! Admission plugins of Kubernetes that know kinds, such as LimitRanger, ResourceQuota, ServiceAccount and
//! NodeRestriction, and the checks of writes that grant permissions.
//!
//! The chain that calls them does not belong here, nor do webhooks and policies: they are in `ringwatch-admission`,
//! which knows no kind.

mod certificate_signers;
mod certificate_subjects;
mod claim_resize;
mod default_class;
mod empty_namespaces;
mod limit_ranger;
mod namespace_lifecycle;
mod node_restriction;
mod node_troubles;
mod pod_security;
mod priority;
pub mod quota;
mod resource_quota;
mod runtime_class;
mod service_account;
mod storage_protection;
mod topology_labels;
mod write_guards;

pub use self::certificate_signers::CertificateSigners;
pub use self::certificate_subjects::CertificateSubjects;
pub use self::claim_resize::ClaimResize;
pub use self::default_class::DefaultClass;
pub use self::limit_ranger::LimitRanger;
pub use self::namespace_lifecycle::NamespaceLifecycle;
pub use self::node_restriction::{NodeRestriction, NodeStorages};
pub use self::node_troubles::{DefaultTolerations, NodeTaint};
pub use self::pod_security::{
    PodSecurity, PodSecurityConfiguration, PodSecurityConfigurationError, PodSecurityMetrics,
};
pub use self::priority::Priority;
pub use self::resource_quota::ResourceQuota;
pub use self::runtime_class::RuntimeClass;
pub use self::service_account::ServiceAccount;
pub use self::storage_protection::StorageProtection;
pub use self::topology_labels::TopologyLabels;
pub use self::write_guards::device_claims::DeviceClaims;
pub use self::write_guards::escalation::Escalation;
pub use self::write_guards::policy_parameters::PolicyParameters;
