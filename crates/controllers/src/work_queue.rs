//! Queues of keys that wait for one of a bounded number of workers, measured under kube-apiserver's names.
//!
//! As `workqueue` of Kubernetes 1.36 (`client-go/util/workqueue/metrics.go`): a key that waits already is not added
//! again, and one that is being worked on waits no more. Which key is next is not decided here.

use std::collections::BTreeMap;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use ringwatch::clock::Instant;

/// The metrics of all queues. Clones share them.
#[derive(Clone, Debug)]
pub struct WorkQueueMetrics {
    adds: Family<QueueLabels, Counter>,
    depth: Family<QueueLabels, Gauge>,
    waits: Family<QueueLabels, Histogram, fn() -> Histogram>,
    works: Family<QueueLabels, Histogram, fn() -> Histogram>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueLabels {
    name: &'static str,
}

/// A queue, without its order.
#[derive(Debug)]
pub(crate) struct WorkQueue {
    /// The keys that wait, each with the time since when.
    waiting: BTreeMap<String, Instant>,
    /// The keys that are being worked on, each with the time since when.
    working: BTreeMap<String, Instant>,
    adds: Counter,
    depth: Gauge,
    waits: Histogram,
    works: Histogram,
}

impl Default for WorkQueueMetrics {
    fn default() -> Self {
        Self {
            adds: Family::default(),
            depth: Family::default(),
            waits: Family::new_with_constructor(buckets),
            works: Family::new_with_constructor(buckets),
        }
    }
}

/// Creates a histogram with kube-apiserver's buckets: 10 ns and then ten times as much, nine times. Multiplied one by
/// one they are the very numbers that kube-apiserver shows, such as 9.999999999999999e-06.
fn buckets() -> Histogram {
    let bounds = std::iter::successors(Some(1e-8), |bound| Some(bound * 10.0));
    Histogram::new(bounds.take(10))
}

impl WorkQueueMetrics {
    /// Creates the families and registers them.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "workqueue_adds",
            "[BETA] Total number of adds handled by workqueue",
            metrics.adds.clone(),
        );
        registry.register(
            "workqueue_depth",
            "[BETA] Current depth of workqueue",
            metrics.depth.clone(),
        );
        registry.register(
            "workqueue_queue_duration_seconds",
            "[BETA] How long in seconds an item stays in workqueue before being requested.",
            metrics.waits.clone(),
        );
        registry.register(
            "workqueue_work_duration_seconds",
            "[BETA] How long in seconds processing an item from workqueue takes.",
            metrics.works.clone(),
        );
        metrics
    }

    /// Returns an empty queue, in the place of one with this name.
    pub(crate) fn queue(&self, name: &'static str) -> WorkQueue {
        let labels = QueueLabels { name };
        let queue = WorkQueue {
            waiting: BTreeMap::new(),
            working: BTreeMap::new(),
            adds: self.adds.get_or_create_owned(&labels),
            depth: self.depth.get_or_create_owned(&labels),
            waits: self.waits.get_or_create_owned(&labels),
            works: self.works.get_or_create_owned(&labels),
        };
        queue.show_depth();
        queue
    }
}

impl WorkQueue {
    /// Sets the keys that wait, each with the time since when it does. Those that waited before and are not among them
    /// need no work any more.
    pub(crate) fn set_waiting<'a>(&mut self, keys: impl IntoIterator<Item = (&'a str, Instant)>) {
        let mut before = std::mem::take(&mut self.waiting);
        for (key, since) in keys {
            let known = before.remove(key);
            if known.is_none() {
                self.adds.inc();
            }
            self.waiting.insert(key.to_owned(), known.unwrap_or(since));
        }
        self.show_depth();
    }

    /// Begins to work on a key that waits.
    pub(crate) fn begin(&mut self, key: &str, now: Instant) {
        if let Some(since) = self.waiting.remove(key) {
            let waited = now.saturating_duration_since(since);
            self.waits.observe(waited.as_secs_f64());
        }
        self.working.insert(key.to_owned(), now);
        self.show_depth();
    }

    /// Ends the work on a key.
    pub(crate) fn end(&mut self, key: &str, now: Instant) {
        if let Some(since) = self.working.remove(key) {
            let took = now.saturating_duration_since(since);
            self.works.observe(took.as_secs_f64());
        }
    }

    fn show_depth(&self) {
        let depth = i64::try_from(self.waiting.len());
        self.depth.set(depth.unwrap_or(i64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use prometheus_client::encoding::text::encode;
    use ringwatch::clock::Clock;

    use super::*;

    const A_SECOND: Duration = Duration::from_secs(1);

    /// Returns the values of the samples that are no buckets, by name.
    fn shown(registry: &Registry) -> BTreeMap<String, f64> {
        let mut text = String::new();
        encode(&mut text, registry).expect("text");
        let samples = text
            .lines()
            .filter(|it| !it.starts_with('#') && !it.contains("_bucket"));
        let samples = samples.filter_map(|it| it.rsplit_once("{name=\"q\"} "));
        samples
            .map(|(name, value)| (name.to_owned(), value.parse().expect("a number")))
            .collect()
    }

    #[test]
    fn keys_are_counted_once_until_they_are_worked_on() {
        let mut registry = Registry::default();
        let metrics = WorkQueueMetrics::register(&mut registry);
        let now = Clock::real().now();
        let later = |seconds| now + A_SECOND * seconds;
        let mut queue = metrics.queue("q");
        assert_eq!(shown(&registry)["workqueue_depth"], 0.0);
        queue.set_waiting([("a", now), ("b", now)]);
        queue.set_waiting([("a", later(1)), ("b", later(1)), ("c", later(1))]);
        assert_eq!(shown(&registry)["workqueue_adds_total"], 3.0);
        assert_eq!(shown(&registry)["workqueue_depth"], 3.0);

        queue.begin("a", later(2));
        queue.begin("c", later(2));
        // The key b needs no work any more, and a is added anew while it is worked on.
        queue.set_waiting([("a", later(2))]);
        queue.end("a", later(7));
        for (name, value) in [
            ("workqueue_adds_total", 4.0),
            ("workqueue_depth", 1.0),
            ("workqueue_queue_duration_seconds_count", 2.0),
            ("workqueue_queue_duration_seconds_sum", 3.0),
            ("workqueue_work_duration_seconds_count", 1.0),
            ("workqueue_work_duration_seconds_sum", 5.0),
        ] {
            assert_eq!(shown(&registry)[name], value, "{name}");
        }
        let _ = metrics.queue("q");
        assert_eq!(shown(&registry)["workqueue_depth"], 0.0);
    }
}
