//! Kubernetes' admission: plugins, webhooks and policies that change or refuse a write before it is stored.
//!
//! ```text
//!   decode --> fields tracked --> admit: plugins change the object or refuse it
//!                                   |
//!          stored <-- validate <-- strategy: prepares and checks
//!                     plugins refuse what the object has become
//! ```
//!
//! A [`Chain`] asks its [`Plugin`]s one after the other, always in kube-apiserver's order, whatever the
//! order in which they were named. It is asked anew when an update is tried again, since what was admitted has
//! changed meanwhile. What a plugin needs of the network or of other objects it is given when it is made.

mod certificate_signers;
mod certificate_subjects;
mod chain;
mod claim_resize;
mod conditions;
mod default_class;
mod empty_namespaces;
mod expression;
mod followed;
mod judge;
mod limit_ranger;
mod lookup;
mod matching;
mod names;
mod namespace_lifecycle;
mod node_restriction;
mod node_troubles;
mod patching;
mod plugin_set;
pub mod policies;
mod priority;
mod reinvocation;
mod request;
mod resource_quota;
mod review;
mod runtime_class;
mod scene;
mod served_types;
mod service_account;
mod storage_protection;
mod topology_labels;
pub mod webhooks;
mod written;

pub use certificate_signers::CertificateSigners;
pub use certificate_subjects::CertificateSubjects;
pub use chain::{Chain, Plugin, Round};
pub use claim_resize::ClaimResize;
pub use default_class::DefaultClass;
pub use followed::Followed;
pub use limit_ranger::LimitRanger;
pub use namespace_lifecycle::NamespaceLifecycle;
pub use node_restriction::{NodeRestriction, NodeStorages};
pub use node_troubles::{DefaultTolerations, NodeTaint};
pub use plugin_set::{PluginSet, parse_plugin};
pub use priority::Priority;
pub use request::{Admission, Operation, Request};
pub use resource_quota::ResourceQuota;
pub use runtime_class::RuntimeClass;
pub use scene::Scene;
pub use served_types::{ServedType, ServedTypes};
pub use service_account::ServiceAccount;
pub use storage_protection::StorageProtection;
pub use topology_labels::TopologyLabels;
pub(in crate::registry) use written::{mutating_errors, validating_errors, webhook_errors};
