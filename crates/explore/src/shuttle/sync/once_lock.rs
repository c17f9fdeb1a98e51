//! The standard library's `OnceLock`, each use of which is a step of the schedule.

use super::{Mutex, Step};

/// `std::sync::OnceLock`, with the part of its methods that follows.
#[derive(Debug)]
pub struct OnceLock<T> {
    value: std::sync::OnceLock<T>,
    /// Held by the task that sets the value, for which the others wait.
    setting: Mutex<()>,
    step: Step,
}

impl<T> OnceLock<T> {
    /// Makes a cell that is not set yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            value: std::sync::OnceLock::new(),
            setting: Mutex::new(()),
            step: Step::default(),
        }
    }

    /// Returns the value, if it is set.
    pub fn get(&self) -> Option<&T> {
        self.step.take();
        self.value.get()
    }

    /// Sets the value, if none has been set.
    ///
    /// # Errors
    ///
    /// Gives the value back if another was set before.
    pub fn set(&self, value: T) -> Result<(), T> {
        let _setting = self.setting.lock();
        self.value.set(value)
    }

    /// Returns the value, made by `make` if it is not set yet. It is made once: who comes meanwhile waits.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        if let Some(value) = self.get() {
            return value;
        }
        let _setting = self.setting.lock();
        self.value.get_or_init(make)
    }
}

impl<T> Default for OnceLock<T> {
    fn default() -> Self {
        Self::new()
    }
}
