//! The paths below `/debug`, for authorized users: the live page and what it shows, profiles of the process, and its
//! log level.
//!
//! Profiles and the log level follow `apiserver/pkg/server/routes/profiling.go` and `flags.go` of Kubernetes 1.36, and
//! like these are served unless `--profiling=false`.

mod log_level;
mod page;
mod paths;
mod process_controls;
mod process_memory;
mod profiles;
mod state;

pub use self::process_controls::{LogLevelError, ProcessControls, ProfileError};

pub(crate) use self::paths::{DebugPaths, ROOTS, is_own};
pub(crate) use self::process_memory::{memory_bytes, resident_bytes};
pub(crate) use self::state::{CachesSource, DebugState, Sources, StatusInputs};
