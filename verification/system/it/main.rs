//! All integration tests in one binary, which links once.
#![allow(
    clippy::disallowed_methods,
    reason = "a test is the composition root of what it tests"
)]
#![allow(
    clippy::unwrap_used,
    reason = "the functions that tests share fail as tests do; the lint exempts only #[test] functions"
)]

mod admission;
mod aggregation;
mod allocations;
mod answers;
mod api_endpoints;
mod api_services;
mod audit;
mod authorization;
mod certificates;
mod clients;
mod cluster_flags;
mod codec_peer;
mod controllers;
mod corrupt_value;
mod crash;
mod custom_resources;
mod debug;
mod debug_page;
mod debug_state;
mod defaults_on_read;
mod encryption;
mod endpoints;
mod envtest;
mod events;
mod fairness;
mod flags;
mod full_disk;
mod hostile_definitions;
mod identity;
mod install;
mod kubelet;
mod load;
mod memory;
mod metrics;
mod object_counts;
mod oidc;
mod operations;
mod quotas;
mod relay;
mod separate_types;
mod serve_errors;
mod served_whole;
mod service_accounts;
mod spans;
mod specs;
mod store;
mod store_copy;
mod stored_forms;
mod support;
mod test_cluster;
mod workers;
