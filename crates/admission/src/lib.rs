//! Kubernetes' admission: the chain of plugins that change or refuse a write before it is stored, and the plugins by
//! which clients configure it: webhooks and policies.
//!
//! A plugin that knows a kind does not belong here but into `ringwatch-plugins`. The traits by which a store calls the
//! chain are `ringwatch-registry`'s.
//!
//! ```text
//!   decode --> fields tracked --> admit: plugins change the object or refuse it
//!                                   |
//!          stored <-- validate <-- strategy: prepares and checks
//!                     plugins refuse what the object has become
//! ```
//!
//! A [`Chain`] calls its [`Plugin`]s one after the other, always in kube-apiserver's order, whatever the
//! order in which they were named. It runs anew when an update is tried again, since what was admitted has
//! changed meanwhile. What a plugin needs of the network or of other objects it is given when it is made.

mod authorizer_check;
mod chain;
mod conditions;
mod expression;
mod expression_validation;
mod expression_variables;
pub mod lookup;
mod managed_fields;
mod match_context;
mod matching;
mod metrics;
mod parsed_objects;
mod patching;
mod plugin_set;
mod plugin_table;
pub mod policies;
mod reinvocation;
mod review;
mod served_types;
mod steps;
pub mod webhooks;

pub use chain::{Chain, Plugin, Round};

pub use parsed_objects::ParsedObjects;

pub use plugin_set::{PluginSet, parse_plugin};

pub use match_context::MatchContext;
pub use metrics::AdmissionMetrics;
pub use served_types::{ServedType, ServedTypes};

pub use expression_validation::{ExpressionChecks, param_kind_errors};
