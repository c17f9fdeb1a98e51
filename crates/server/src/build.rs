//! The parts of a server, built in order out of the configuration and of the parts before them. Nothing runs here: each
//! part is built as itself and the tasks that it needs.

pub(crate) mod admission;
pub(crate) mod api_endpoints;
pub(crate) mod audit;
pub(crate) mod authenticator;
pub(crate) mod backend;
pub(crate) mod bootstrap;
pub(crate) mod certificate_metrics;
pub(crate) mod connections;
pub(crate) mod custom_apis;
pub(crate) mod enabled_parts;
pub(crate) mod enabled_resources;
pub(crate) mod flow_control;
pub(crate) mod health;
pub(crate) mod inputs;
pub(crate) mod limits;
pub(crate) mod memory_metrics;
pub(crate) mod metrics_text;
pub(crate) mod objects;
pub(crate) mod post_start_hooks;
pub(crate) mod process_metrics;
pub(crate) mod requests;
pub(crate) mod resources;
pub(crate) mod responses;
pub(crate) mod server;
pub(crate) mod server_paths;
pub(crate) mod storage_factory;
pub(crate) mod storages;
pub(crate) mod store_size;
pub(crate) mod store_snapshot;
pub(crate) mod tasks;
pub(crate) mod traced_backend;
pub(crate) mod tracer;
pub(crate) mod unsynced_file;
pub(crate) mod write_guards;
pub(crate) mod write_path;
