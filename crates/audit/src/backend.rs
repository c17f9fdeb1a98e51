//! The backends: where events go. Each has a queue, which requests fill, and a future that empties it.

mod batches;
mod log;
mod queue;
mod rotation;
mod throttle;
mod truncation;
mod webhook;

pub use batches::BatchOptions;
pub use log::{LogFile, LogFormat, LogOptions, LogWriter};
pub use queue::{BackendMode, EventQueue, QueueOptions};
pub use rotation::{Housekeeping, Rotation};
pub use throttle::ThrottleOptions;
pub use truncation::Truncation;
pub use webhook::{WebhookOptions, WebhookSender};

#[cfg(test)]
mod tests;
