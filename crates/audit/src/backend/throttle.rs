//! Limits how many batches are sent in a second: a bucket of tokens, as in client-go.

use std::time::Duration;

use ringwatch::clock::{Clock, Instant};

/// The limit of batches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThrottleOptions {
    /// Batches a second, on average; positive.
    pub rate: f32,
    /// Batches that may be sent at once after a pause; positive.
    pub burst: u32,
}

/// A bucket that has a token for each batch that may be sent now.
#[derive(Debug)]
pub(super) struct Throttle {
    options: ThrottleOptions,
    tokens: f64,
    /// The time for which `tokens` holds.
    at: Instant,
}

impl Throttle {
    pub(super) fn new(options: ThrottleOptions, now: Instant) -> Self {
        Self {
            options,
            tokens: options.burst.into(),
            at: now,
        }
    }

    /// Waits for a token and takes it. If it is dropped before, it has taken none.
    pub(super) async fn take(&mut self, clock: &Clock) {
        let rate = f64::from(self.options.rate);
        loop {
            let now = clock.now();
            let gained = now.duration_since(self.at).as_secs_f64() * rate;
            self.tokens = (self.tokens + gained).min(self.options.burst.into());
            self.at = now;
            if self.tokens >= 1.0 {
                self.tokens -= 1.0;
                return;
            }
            let pause = (1.0 - self.tokens) / rate;
            let pause = Duration::try_from_secs_f64(pause).unwrap_or(Duration::MAX);
            // Less than a timer's precision would not pass, and the loop would spin.
            clock.sleep(pause.max(Duration::from_millis(1))).await;
        }
    }
}
