//! Histogram of the sizes of watch events, updated without a lock.
//!
//! Every delivery of every watch of a resource is counted here, on all threads at once; a lock would be contended. So
//! the buckets are atomic counters, and a watch counts the events of a chunk together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};

/// The upper bounds of kube-apiserver's buckets, in bytes. One more bucket has the larger events.
const BOUNDS: [usize; 8] = [1024, 2048, 4096, 8192, 16384, 32768, 65536, 131_072];

/// A histogram of sizes. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventSizes(Arc<Buckets>);

#[derive(Debug, Default)]
struct Buckets {
    /// The number of events that fell into each bucket.
    events: [AtomicUsize; BOUNDS.len() + 1],
    /// The sum of the events' sizes.
    bytes: AtomicUsize,
}

/// Adds up the events of a chunk before they are counted in the histogram together.
#[derive(Debug)]
pub(crate) struct Tally {
    /// The number of watches that the chunk is sent to.
    watches: usize,
    /// The number of events in the chunk.
    all: u64,
    /// The bucket into which the newest events fall.
    bucket: usize,
    /// The number of the newest events, which fall into `bucket`.
    events: usize,
    /// The sum of the sizes of those events.
    bytes: usize,
}

impl Default for Tally {
    /// The tally of a chunk that is sent to one watch.
    fn default() -> Self {
        Self {
            watches: 1,
            all: 0,
            bucket: 0,
            events: 0,
            bytes: 0,
        }
    }
}

impl Tally {
    /// Has the events of the next chunks counted as sent to so many watches.
    pub(crate) fn count_for(&mut self, watches: usize) {
        self.watches = watches;
    }

    /// Returns the number of watches that the chunk is sent to.
    pub(crate) fn watches(&self) -> usize {
        self.watches
    }
}

impl EventSizes {
    /// Adds an event to a tally. If it is of another bucket, flushes the tally first.
    pub(crate) fn add(&self, tally: &mut Tally, bytes: usize) {
        let bucket = bucket_of(bytes);
        if bucket != tally.bucket {
            self.flush(tally);
            tally.bucket = bucket;
        }
        tally.all += 1;
        tally.events += 1;
        tally.bytes += bytes;
    }

    /// Flushes a tally, and returns the number of events of the chunk, which each of its watches is sent.
    pub(crate) fn count(&self, tally: &mut Tally) -> u64 {
        self.flush(tally);
        std::mem::take(&mut tally.all)
    }

    fn flush(&self, tally: &mut Tally) {
        let events = std::mem::take(&mut tally.events) * tally.watches;
        let bytes = std::mem::take(&mut tally.bytes) * tally.watches;
        if events > 0 {
            // Relaxed: figures by themselves, which order nothing; as below.
            self.0.events[tally.bucket].fetch_add(events, Ordering::Relaxed);
            self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

/// Returns the first bucket with a bound that is not less. The bounds double, so no search is needed.
fn bucket_of(bytes: usize) -> usize {
    let over = bytes.saturating_sub(1) / BOUNDS[0];
    let doublings = over.checked_ilog2().map_or(0, |it| it as usize + 1);
    doublings.min(BOUNDS.len())
}

impl TypedMetric for EventSizes {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for EventSizes {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        let bounds = BOUNDS.iter().map(|bound| *bound as f64);
        let events = self.0.events.iter();
        let events = events.map(|events| events.load(Ordering::Relaxed) as u64);
        // The last one has no bound.
        let buckets: Vec<(f64, u64)> = bounds.chain([f64::INFINITY]).zip(events).collect();
        let count = buckets.iter().map(|(_, events)| events).sum();
        let sum = self.0.bytes.load(Ordering::Relaxed) as f64;
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::metrics::histogram::Histogram;
    use prometheus_client::registry::{Metric, Registry};

    use super::*;

    #[test]
    fn it_says_what_a_histogram_with_a_lock_says() {
        let expected = Histogram::new(BOUNDS.map(|bound| bound as f64));
        let found = EventSizes::default();
        let mut tally = Tally::default();
        let mut events = 0;
        for bytes in [0, 100, 1024, 1025, 500, 131_072, 131_073, 1 << 20, 7] {
            expected.observe(bytes as f64);
            found.add(&mut tally, bytes);
            events += 1;
        }
        assert_eq!(found.count(&mut tally), events);
        assert_eq!(found.count(&mut tally), 0);
        assert_eq!(text(found), text(expected));
    }

    #[test]
    fn a_bucket_has_the_events_up_to_its_bound() {
        for bound in BOUNDS {
            for bytes in [bound - 1, bound, bound + 1] {
                let searched = BOUNDS.partition_point(|bound| *bound < bytes);
                assert_eq!(bucket_of(bytes), searched, "{bytes}");
            }
        }
        assert_eq!((bucket_of(0), bucket_of(usize::MAX)), (0, BOUNDS.len()));
    }

    fn text(metric: impl Metric) -> String {
        let mut registry = Registry::default();
        registry.register("sizes", "Sizes.", metric);
        let mut text = String::new();
        encode(&mut text, &registry).expect("text");
        text
    }
}
