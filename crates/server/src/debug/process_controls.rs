//! The profiles and the log level of a process, which a program has once however many servers it runs.

use std::fmt::Debug;

/// Measures and adjusts the process. The program that runs a server gives it one; a server in process has none.
pub trait ProcessControls: Debug + Send + Sync {
    /// Samples the stacks of threads that use a processor until `wait` returns, and returns them in pprof's format,
    /// gzipped. Blocks its thread, for `wait` and to look up the names of functions.
    ///
    /// # Errors
    /// The process cannot be sampled.
    fn cpu_profile(&self, wait: &mut dyn FnMut()) -> Result<Vec<u8>, ProfileError>;

    /// Returns the memory in use by the stacks that allocated it, in pprof's format, gzipped. Blocks its thread.
    ///
    /// # Errors
    /// Allocations are not sampled.
    fn heap_profile(&self) -> Result<Vec<u8>, ProfileError>;

    /// Returns the directives that say which log lines are written.
    fn log_directives(&self) -> String;

    /// Replaces these directives, which have the syntax of `RUST_LOG`.
    ///
    /// # Errors
    /// They have another syntax, or the program logs in a way of its own.
    fn set_log_directives(&self, directives: &str) -> Result<(), LogLevelError>;

    /// Replaces them by those of a level of `-v`.
    ///
    /// # Errors
    /// The program logs in a way of its own.
    fn set_log_level(&self, level: u32) -> Result<(), LogLevelError>;
}

/// A profile that cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The process was not built or started for such profiles; the text says how it is.
    #[error("{0}")]
    NotPrepared(&'static str),
    /// The process could not be sampled.
    #[error("cannot take a profile: {0}; try again")]
    Failed(String),
}

/// A log level that cannot be set.
#[derive(Debug, thiserror::Error)]
pub enum LogLevelError {
    /// The directives are wrong.
    #[error("{0}; write directives as RUST_LOG has them, such as warn,ringwatch=debug")]
    Directives(String),
    /// The log is not the process's own.
    #[error("the log level cannot be set: {0}; set it where the log is set up")]
    Elsewhere(String),
}
