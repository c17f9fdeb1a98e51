//! The composition root: the only place that reads flags, spawns and listens.

pub mod admission;
pub mod api_endpoints;
pub mod assembly;
pub mod backend_factory;
pub mod certificates;
pub mod connection;
pub mod custom_resources;
pub mod doorbell;
pub mod ending;
pub mod error;
pub mod event_stream;
pub mod feature_gates;
pub mod filters;
pub mod flags;
pub mod flow_control;
pub mod following;
pub mod health;
pub mod https_get;
pub mod identity;
pub mod joined_io;
pub mod kubeconfig;
pub mod kubelets;
pub mod listener;
pub mod logging;
pub mod memory;
pub mod metrics;
pub mod object_counts;
pub mod oidc;
pub mod open_files;
pub mod outgoing;
pub mod own_paths;
pub mod preface;
pub mod private_file;
pub mod process;
pub mod roles;
pub mod security;
pub mod serve;
pub mod service_account_keys;
pub mod shutdown;
pub mod storage_factory;
pub mod tls;
pub mod unread_body;
pub mod watch_cache_sizes;
pub mod webhook_client;

#[cfg(test)]
mod testing;
