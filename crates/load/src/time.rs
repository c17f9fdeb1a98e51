//! The only place in the load generator that reads time.
//!
//! Times that are compared across processes are wall time in nanoseconds, since that is what a stamp in an object can
//! hold; everything else is monotonic.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(crate) use tokio::time::Instant;

/// Returns the monotonic time, for deadlines and durations.
#[allow(clippy::disallowed_methods, reason = "the one place that reads time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Returns the wall time, in nanoseconds since 1970.
#[allow(clippy::disallowed_methods, reason = "the one place that reads time")]
pub(crate) fn wall_nanos() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the wall time, in RFC 3339.
#[allow(clippy::disallowed_methods, reason = "the one place that reads time")]
pub(crate) fn timestamp() -> String {
    jiff::Timestamp::now().strftime("%FT%TZ").to_string()
}

/// Returns the nanoseconds of a duration, at most `u64::MAX`.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
