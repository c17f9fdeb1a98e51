//! Controllers inside the server: each follows objects in the server's own store and keeps some state up to date with
//! them.
//!
//! That state is the types that custom resources define, aggregated APIs, the authorizer's roles and node graph, flow
//! schemas, and the addresses of the Service `kubernetes`. The kind ComponentStatus is here too, whose objects are
//! asked for at each read. Controllers of workloads do not belong here, but to kube-controller-manager; nor does any
//! rule by which one request is answered.

pub mod admission_objects;
pub mod aggregation;
pub mod api_endpoints;
pub mod api_services;
pub mod component_statuses;
pub mod custom_resources;
pub mod extension_authentication;
pub mod flow_control;
pub mod nodes;
pub mod roles;
mod work_queue;

pub use self::api_endpoints::server_leases::{SERVER_LEASES, ServerLeases};
pub use self::extension_authentication::entries::publish_extension_authentication;
pub use self::work_queue::WorkQueueMetrics;
