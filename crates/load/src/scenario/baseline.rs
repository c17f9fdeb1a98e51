//! The processor time that a server needs without what is measured, which is subtracted from what it needs with it.

use std::time::Duration;

use crate::measure::Observation;

/// The processor time of a server with nothing to do but writes, if there are any.
#[derive(Clone, Copy, Debug)]
pub(super) struct Baseline {
    cpu: Duration,
    elapsed: Duration,
    writes: u64,
}

impl Baseline {
    /// Returns the baseline of a phase with nothing but so many writes; `None` if the server's processor time is
    /// unknown.
    pub(super) fn of(seen: &Observation, writes: u64) -> Option<Self> {
        let elapsed = seen.elapsed;
        seen.server_cpu.map(|cpu| Self {
            cpu,
            elapsed,
            writes,
        })
    }

    /// Returns the processor time that the server needed in a phase beyond its baseline, if it is known. `writes` is
    /// how many of the baseline's writes were made in the phase.
    pub(super) fn beyond(
        baseline: Option<Self>,
        seen: &Observation,
        writes: u64,
    ) -> Option<Duration> {
        let without = baseline.map(|it| it.during(seen.elapsed, writes));
        Some(seen.server_cpu?.saturating_sub(without.unwrap_or_default()))
    }

    /// Returns the part of the baseline in a phase: with writes it is in proportion to these, else to time.
    fn during(self, elapsed: Duration, writes: u64) -> Duration {
        let times = match self.writes {
            0 => elapsed.as_secs_f64() / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE),
            all => writes as f64 / all as f64,
        };
        self.cpu.mul_f64(times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_baseline_of_nothing_grows_with_time() {
        let baseline = Baseline {
            cpu: secs(1),
            elapsed: secs(10),
            writes: 0,
        };
        assert_eq!(baseline.during(secs(30), 0), secs(3));
    }

    /// Writes that are late are made after the phase, whose server had less to do.
    #[test]
    fn a_baseline_beside_writes_grows_with_them() {
        let baseline = Baseline {
            cpu: secs(4),
            elapsed: secs(10),
            writes: 1_000,
        };
        assert_eq!(baseline.during(secs(10), 500), secs(2));
        assert_eq!(baseline.during(secs(30), 1_000), secs(4));
    }
}
