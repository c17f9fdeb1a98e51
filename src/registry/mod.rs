//! Reads and writes of API objects with defaulting, validation and admission: Kubernetes' generic registry store and its strategies.
//!
//! A [`Resource`] describes a type as served in one version; its [`Strategy`] prepares and checks
//! what is written; a [`Store`] runs every write through them in kube-apiserver's order and keeps the result in
//! a [`crate::storage::Interface`].

mod accessor;
pub mod admission;
pub mod allocation;
mod allocator;
mod api_endpoints;
mod api_services;
pub mod authorization;
mod bootstrap;
pub mod bounds;
pub mod cel;
mod conditions;
mod context;
pub mod custom_resources;
mod defaults_on_read;
mod error;
mod extension_authentication;
pub mod field_manager;
pub mod flow_control;
mod generation;
mod group_version;
mod names;
mod options;
mod pattern;
mod quota;
mod remote_api;
mod resource;
pub mod resources;
pub mod selector_text;
mod server_leases;
mod service_addresses;
mod store;
mod stores;
mod strategy;
pub mod table;
#[cfg(test)]
mod testing;
mod user;
pub mod validation;
mod version_order;
pub mod webhook_client;
mod write_guard;
mod write_guards;

pub use allocator::{Allocation, Allocator, Outcome};
pub use api_endpoints::publish_addresses;
pub use api_services::{
    Availability, local_priorities, publish_built_in_apis, publish_custom_apis, tell_availability,
};
pub use bootstrap::{
    RolesAndBindings, default_flows, ensure_default_roles, ensure_flow_control,
    ensure_kubernetes_service, ensure_service_range, ensure_system_namespaces,
    ensure_system_priorities, ensure_token_tracking,
};
pub use context::RequestContext;
pub use defaults_on_read::DefaultsOnRead;
pub use error::{Error, FieldError, FieldErrorKind};
pub use extension_authentication::publish_extension_authentication;
pub use group_version::GroupVersion;
pub use options::{
    CreateOptions, DeleteOptions, IGNORE_STORE_READ_ERROR, PropagationPolicy, UpdateOptions,
};
pub use remote_api::{RemoteApi, ServiceReference};
pub use resource::{Resource, ScalePaths, SelectorForm, Served, Subresource, Verb};
pub use server_leases::{SERVER_LEASES, ServerLeases};
pub use service_addresses::ServiceAddresses;
pub use store::{After, Deleted, Store, UpdatedObject};
pub use stores::Stores;
pub use strategy::{GarbageCollection, Graceful, Strategy};
pub use user::{SERVICE_ACCOUNT_PREFIX, User, service_account};
pub use validation::formats::NameRule;
pub use version_order::version_order;
pub use write_guard::WriteGuard;
pub use write_guards::{DeviceClaims, Escalation, PolicyParameters};
