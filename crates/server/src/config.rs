//! The flags of a server and of a relay, and the files that they name: read, checked and followed.

pub(crate) mod admin_kubeconfig;
pub(crate) mod admission_file;
pub(crate) mod audit_files;
pub(crate) mod authentication_file;
pub(crate) mod authorization_file;
pub mod check_config;
pub mod config_file;
pub(crate) mod credentials;
pub(crate) mod data_dir;
pub(crate) mod encryption_file;
pub(crate) mod encryption_metrics;
pub(crate) mod feature_gates;
pub mod flags;
pub(crate) mod kubelets;
pub(crate) mod log_targets;
pub(crate) mod memory_budget;
pub(crate) mod oidc;
pub(crate) mod security;
pub(crate) mod server_id;
pub(crate) mod service_account_keys;
pub(crate) mod tracing_file;
pub(crate) mod upstream_kubeconfig;
pub(crate) mod webhook_kubeconfig;
