//! The client's own lateness, measured by a task that wakes every few milliseconds and looks how late it was woken.
//! It is part of every latency that the same thread measures.

use std::sync::Arc;
use std::time::Duration;

use super::latency::Recorder;
use crate::time::{nanos, now};

/// The time between two looks at how late the task is.
const PERIOD: Duration = Duration::from_millis(10);

/// Records how late the thread wakes its tasks, until it is dropped.
pub(crate) async fn watch(lag: Arc<Recorder>) {
    loop {
        let due = now() + PERIOD;
        tokio::time::sleep_until(due).await;
        let late = now().saturating_duration_since(due);
        lag.lock().record(nanos(late));
    }
}
