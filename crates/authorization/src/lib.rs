//! Kubernetes' authorization modes: RBAC, the Node authorizer and webhooks.
//!
//! Following the stored objects does not belong here: `ringwatch-controllers` follows roles, bindings and the objects
//! that pods on nodes refer to, and replaces the tables of this crate.
//!
//! ```text
//!   roles, bindings --RoleTable--> grants by subject --Authorizer--> a decision
//! ```
//!
//! A [`RoleTable`] is built again whenever a role or binding changes and replaced as a whole, so that a request is
//! decided in memory, without a lock, by the roles of one moment.

mod attributes;
mod authorizer;
mod coverage;
pub mod default_roles;
mod description;
mod grants;
mod node_authorizer;
mod node_graph;
mod role_table;
mod rule;
mod webhook;

pub(crate) use self::default_roles::node_rules;

pub use attributes::Attributes;
pub use authorizer::{
    AuthorizationMode, Authorizer, AuthorizerStep, Decision, SelfRules, everything,
};
pub use coverage::{Missing, missing_rules};
pub use description::{describe_rules, go_list};
pub use node_authorizer::{NodeAuthorizer, node_of};
pub use node_graph::{MIRROR, NodeGraph, referred_resources};
pub use role_table::{Binding, Role, RoleTable};
pub use rule::Rule;
pub use webhook::{Conditions, FailurePolicy, ReviewVersion, WebhookAuthorizer, WebhookConfig};

/// The target of this crate's log lines, which requests of clients cause.
pub const LOG_TARGET: &str = module_path!();
