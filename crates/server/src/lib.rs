//! The composition root of a server: reads flags and files, builds everything, runs its tasks and ends them.
//!
//! Only here the flags of a server are read. Rules of requests and of kinds do not belong here, but to the crates that
//! this one composes. What a process has once (logging, the allocator, exit codes) is in `ringwatch-cli`.

pub mod admission;
pub mod assembly;
mod authentication_file;
mod authorization_config;
pub mod backend_factory;
pub mod bootstrap;
pub mod component_statuses;
pub mod credentials;
pub mod feature_gates;
pub mod flags;
pub mod identity;
mod in_process;
pub mod kubeconfig;
pub mod kubelets;
pub mod limits;
pub mod memory;
pub mod metrics;
pub mod oidc;
pub mod own_paths;
pub mod process;
pub mod security;
pub mod serve;
pub mod service_account_keys;
pub mod storages;
pub mod webhook_kubeconfig;
mod write_guards;

pub use self::in_process::{Builder, InProcessServer};
