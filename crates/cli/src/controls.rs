//! The profiles and the log level of this process, for the paths below `/debug`.

use std::sync::Arc;

use ringwatch_server::{LogLevelError, ProcessControls, ProfileError};

use super::logging::{self, Log};
use super::{cpu_profile, heap_profile};

/// The controls of this process.
#[derive(Debug)]
pub(crate) struct Controls {
    log: Log,
}

impl Controls {
    /// Returns the controls of a process with this log.
    pub(crate) fn shared(log: Log) -> Arc<dyn ProcessControls> {
        Arc::new(Self { log })
    }
}

impl ProcessControls for Controls {
    fn cpu_profile(&self, wait: &mut dyn FnMut()) -> Result<Vec<u8>, ProfileError> {
        cpu_profile::take(wait)
    }

    fn heap_profile(&self) -> Result<Vec<u8>, ProfileError> {
        heap_profile::take()
    }

    fn log_directives(&self) -> String {
        self.log.directives()
    }

    fn set_log_directives(&self, directives: &str) -> Result<(), LogLevelError> {
        self.log.set(directives)
    }

    fn set_log_level(&self, level: u32) -> Result<(), LogLevelError> {
        self.log.set(&logging::directives(level))
    }
}
