//! The composition root of a server: reads flags and files, builds everything, runs its tasks and ends them.
//!
//! Only here the flags of a server are read. Rules of requests and of kinds do not belong here, but to the crates that
//! this one composes. What a process has once (logging, the allocator, exit codes) is in `ringwatch-cli`.

mod admission;
mod admission_config;
mod announcement;
mod assembly;
mod audit;
mod authentication_file;
mod authenticator;
mod authorization_config;
mod backend_factory;
mod background;
mod bootstrap;
mod certificate_metrics;
pub mod check_config;
mod component_statuses;
pub mod config_file;
mod connections;
mod credentials;
mod debug;
mod enabled;
mod encryption_file;
mod encryption_metrics;
mod feature_gates;
pub mod flags;
mod flow_control;
mod health_checks;
mod in_process;
mod kubeconfig;
mod kubelets;
mod life;
mod limits;
mod memory;
mod metrics;
mod oidc;
mod post_start_hooks;
mod process;
mod process_controls;
pub mod relay;
mod resources;
mod responses;
mod security;
pub mod serve;
mod served_apis;
mod server_id;
mod server_paths;
mod service_account_keys;
mod spans;
mod storages;
mod store_size;
mod store_snapshot;
mod stores;
mod traced_backend;
mod webhook_kubeconfig;
mod write_guards;

pub use self::in_process::{Builder, InProcessServer};
pub use self::process_controls::{LogLevelError, ProcessControls, ProfileError};

/// The targets of the log lines that requests of clients cause, so that clients choose how many there are.
pub const CAUSED_BY_CLIENTS: [&str; 4] = [
    ringwatch_apiserver::LOG_TARGET,
    ringwatch_authentication::LOG_TARGET,
    ringwatch_authorization::LOG_TARGET,
    ringwatch_http::LOG_TARGET,
];
