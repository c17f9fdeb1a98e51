//! Latencies, counted where they are seen and gathered once a second.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hdrhistogram::Histogram;

use crate::outcome::Latency;

/// The bounds of a histogram: microseconds, up to ten minutes, to three digits.
const MICROS_MAX: u64 = 600_000_000;
const DIGITS: u8 = 3;
/// The percentiles that an outcome keeps: enough points for a curve.
const PERCENTILES: [f64; 17] = [
    0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.99,
    99.999, 100.0,
];

/// A histogram of latencies, from one microsecond to ten minutes.
#[derive(Clone, Debug)]
pub(crate) struct Latencies(Histogram<u64>);

/// The counts of one thread, or of one group of clients. It is locked once for all the events that came together.
#[derive(Debug, Default)]
pub(crate) struct Recorder(Mutex<RecordedCounts>);

/// Counts since the last look, and since the run began.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordedCounts {
    /// Latencies since the last [`RecordedCounts::look`].
    fresh: Latencies,
    /// Latencies of the run up to the last look.
    run: Latencies,
    /// Events or answers of the run.
    pub(crate) received: u64,
    /// The bytes of these events or answers.
    pub(crate) bytes: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, MICROS_MAX, DIGITS);
        Self(histogram.expect("bounds that make sense"))
    }
}

impl Latencies {
    /// Counts a latency in nanoseconds.
    pub(crate) fn record(&mut self, nanos: u64) {
        self.0.saturating_record(nanos / 1_000);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        // Both have the same bounds.
        let _ = self.0.add(&other.0);
    }

    pub(crate) fn clear(&mut self) {
        self.0.reset();
    }

    /// Returns the milliseconds at a percentile; `None` if nothing was counted.
    pub(crate) fn at(&self, percentile: f64) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.value_at_percentile(percentile) as f64 / 1e3)
    }

    /// Returns the latency curve, by percentile.
    pub(crate) fn curve(&self) -> Option<Latency> {
        let at = |percentile| Some((percentile, self.at(percentile)?));
        let percentiles: Option<Vec<_>> = PERCENTILES.into_iter().map(at).collect();
        Some(Latency {
            count: self.0.len(),
            percentiles: percentiles?,
        })
    }
}

impl Recorder {
    /// Locks the counts, so that several are read or written together.
    pub(crate) fn lock(&self) -> MutexGuard<'_, RecordedCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one, if it has a latency with that.
    pub(crate) fn record(&self, nanos: Option<u64>, bytes: usize) {
        let mut recorded = self.lock();
        if let Some(nanos) = nanos {
            recorded.record(nanos);
        }
        recorded.received += 1;
        recorded.bytes += bytes as u64;
    }
}

impl RecordedCounts {
    /// Counts a latency in nanoseconds.
    pub(crate) fn record(&mut self, nanos: u64) {
        self.fresh.record(nanos);
    }

    /// Sets all counts to zero, as a run begins.
    pub(crate) fn clear(&mut self) {
        self.fresh.clear();
        self.run.clear();
        (self.received, self.bytes) = (0, 0);
    }

    /// Moves what is fresh to the run's, and adds it to what others have.
    pub(crate) fn look(&mut self, fresh: &mut Latencies) {
        fresh.add(&self.fresh);
        self.run.add(&self.fresh);
        self.fresh.clear();
    }

    /// Returns all latencies of the run so far.
    pub(crate) fn all(&self) -> Latencies {
        let mut all = self.run.clone();
        all.add(&self.fresh);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_moves_and_loses_nothing() {
        let recorder = Recorder::default();
        recorder.record(Some(2_000_000), 10);
        let mut fresh = Latencies::default();
        recorder.lock().look(&mut fresh);
        assert_eq!(fresh.at(50.0), Some(2.0));
        recorder.record(Some(4_000_000), 10);
        let mut fresh = Latencies::default();
        recorder.lock().look(&mut fresh);
        let only = fresh.curve().expect("one latency");
        assert_eq!(only.count, 1);
        let all = recorder.lock().all();
        assert_eq!(all.curve().map(|curve| curve.count), Some(2));
        assert_eq!(recorder.lock().bytes, 20);
        recorder.lock().clear();
        assert_eq!(recorder.lock().all().curve(), None);
    }

    #[test]
    fn what_is_beyond_all_bounds_counts_as_the_bound() {
        let mut latencies = Latencies::default();
        latencies.record(u64::MAX);
        latencies.record(0);
        assert_eq!(latencies.curve().map(|curve| curve.count), Some(2));
    }
}
