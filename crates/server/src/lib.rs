//! The composition root of a server: reads flags and files, builds everything, runs its tasks and ends them.
//!
//! ```text
//!   config: flags and files -> debug: the paths below /debug -> build: parts and their tasks -> run: start, tasks, end
//!                                                                          relay: both for a relay
//! ```
//!
//! A room imports those before it alone.
//!
//! Only here the flags of a server are read. Rules of requests and of kinds do not belong here, but to the crates that
//! this one composes. What a process has once (logging, the allocator, exit codes) is in `ringwatch-cli`.

mod build;
mod config;
mod debug;
pub mod relay;
mod run;
mod shutdown;

pub use self::config::log_targets::CAUSED_BY_CLIENTS;
pub use self::config::{check_config, config_file, flags};
pub use self::debug::{LogLevelError, ProcessControls, ProfileError};
pub use self::run::in_process::{Builder, InProcessServer};
pub use self::run::serve;
