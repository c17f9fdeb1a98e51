//! The values from which on the figures of a state are not as they should be, for the findings and for whoever colours
//! figures.

use serde::{Deserialize, Serialize};

/// The seconds from which on a request is slow.
pub const SLOW_SECONDS: f64 = 0.5;

/// The part of the time in which a certificate should be replaced from which on it is bad if it was not: the last of
/// seven days.
const CERTIFICATE_PART_BAD: f64 = 1.0 / 7.0;

/// The severity of a finding or figure, the worse first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// Clients feel it, or will soon.
    Bad,
    /// It is not as it should be.
    Warn,
}

/// The thresholds of a server, each by the name of its figure: the time or part from which on something is told.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Thresholds {
    /// The threshold of the time for which the caches have been behind the store.
    pub lag_seconds: Threshold,
    /// The threshold of the time that a store takes to tell its newest revision. A server waits for half a second.
    pub store_seconds: Threshold,
    /// The threshold of the time for which a store has not answered: any at all is not as it should be.
    pub silent_seconds: Threshold,
    /// The threshold of the part of the memory budget that is spent. From `warn` on windows shrink, from `bad` on no
    /// list and no watch begins.
    pub memory_part: Threshold,
    /// The threshold of the time for which a read has waited for a revision. kube-apiserver gives up after three
    /// seconds.
    pub read_seconds: Threshold,
    /// The threshold of the time for which a request has run.
    pub request_seconds: Threshold,
    /// The threshold of the time for which a webhook has not answered.
    pub webhook_seconds: Threshold,
    /// The threshold of the part of the window that a parked watcher is behind: to be parked is not as it should be,
    /// and at the end of the window a watcher is dropped.
    pub parked_part: Threshold,
}

/// The values from which on a figure is not as it should be, and is bad.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Threshold {
    /// The value from which on it is not as it should be.
    pub warn: f64,
    /// The value from which on it is bad.
    pub bad: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        let from = |warn, bad| Threshold { warn, bad };
        Self {
            lag_seconds: from(1.0, 10.0),
            store_seconds: from(0.1, 0.4),
            silent_seconds: from(0.001, 2.0),
            memory_part: from(3.0 / 4.0, 7.0 / 8.0),
            read_seconds: from(1.0, 3.0),
            request_seconds: from(3.0, 10.0),
            webhook_seconds: from(1.0, 5.0),
            parked_part: from(0.0, 3.0 / 4.0),
        }
    }
}

impl Threshold {
    /// Returns how bad a value is; `None` if it is as it should be.
    #[must_use]
    pub fn level(self, value: f64) -> Option<Severity> {
        match value {
            value if value >= self.bad => Some(Severity::Bad),
            value if value >= self.warn => Some(Severity::Warn),
            _ => None,
        }
    }
}

/// Returns how bad it is that a certificate expires in so many seconds, when it should be replaced so many seconds
/// before that.
#[must_use]
pub fn certificate_level(seconds_left: f64, replaced_before: f64) -> Option<Severity> {
    match seconds_left {
        left if left < replaced_before * CERTIFICATE_PART_BAD => Some(Severity::Bad),
        left if left < replaced_before => Some(Severity::Warn),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: f64 = 86_400.0;

    #[test]
    fn a_figure_has_the_level_of_the_threshold_that_it_reached() {
        let lag = Thresholds::default().lag_seconds;
        let levels = [0.9, 1.0, 9.9, 10.0].map(|lag_seconds| lag.level(lag_seconds));
        let (warn, bad) = (Some(Severity::Warn), Some(Severity::Bad));
        assert_eq!(levels, [None, warn, warn, bad]);
    }

    #[test]
    fn a_certificate_is_bad_in_the_last_seventh_of_the_time_to_replace_it() {
        let of_year = [8.0, 6.9, 0.9, -1.0].map(|days| certificate_level(days * DAY, 7.0 * DAY));
        let (warn, bad) = (Some(Severity::Warn), Some(Severity::Bad));
        assert_eq!(of_year, [None, warn, bad, bad]);
        let of_day = [0.2, 0.05].map(|days| certificate_level(days * DAY, 0.1 * DAY));
        assert_eq!(of_day, [None, warn]);
    }
}
