//! The time between attempts at what has failed.

use std::time::Duration;

use crate::clock::Clock;

/// The least and the longest time between two attempts, before jitter.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// Returns how long to wait before an attempt: doubling, bounded, with jitter against other servers in step.
pub(crate) fn backoff(attempt: u32) -> Duration {
    let (least, most) = BACKOFF;
    let doubled = least.saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1)));
    doubled.min(most).mul_f64(rand::random_range(0.5..1.0))
}

/// Waits before an attempt, unless it is the first, 0.
pub(crate) async fn back_off(clock: &Clock, attempt: u32) {
    if attempt > 0 {
        clock.sleep(backoff(attempt)).await;
    }
}
