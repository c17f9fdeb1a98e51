//! The metrics of requests, under kube-apiserver's names and labels.

use std::sync::atomic::AtomicI64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use ringwatch_registry::Resource;
use ringwatch_spans::{Span, TracedHistogram};

use super::answered_requests::AnsweredRequests;
pub(crate) use super::answered_requests::RequestOutcome;
use super::event_sizes::{EventSizes, Tally};
use super::request_info::RequestInfo;
use super::request_kind::COMPONENT;
pub(crate) use super::request_kind::RequestKind;
use super::terminations::Terminations;

/// The counters of the endpoints. Clones share them.
#[derive(Clone, Debug)]
pub struct Metrics {
    answered: AnsweredRequests,
    terminations: Terminations,
    long_running: Family<RequestKind, Gauge<i64, AtomicI64>>,
    watch_events: Family<WatchLabels, Counter>,
    watch_sizes: Family<WatchLabels, EventSizes>,
    watch_lists: Family<WatchListLabels, TracedHistogram, fn() -> TracedHistogram>,
    sheds: Family<ShedLabels, Counter>,
}

/// The labels of `apiserver_watch_events_total`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WatchLabels {
    group: String,
    version: String,
    resource: String,
}

/// The labels of `apiserver_watch_list_duration_seconds`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WatchListLabels {
    group: String,
    version: String,
    resource: String,
    scope: &'static str,
}

/// The metrics of a watch.
#[derive(Clone, Debug)]
pub(crate) struct WatchCounts {
    /// Counts the events that were sent, bookmarks included.
    events: Counter,
    /// Counts the sizes of the events in bytes, as they are sent.
    sizes: EventSizes,
    /// Observes the time from the request to the end of the initial events, in seconds.
    state_seconds: TracedHistogram,
}

impl WatchCounts {
    /// Adds an event to a chunk's tally.
    pub(crate) fn event(&self, chunk: &mut Tally, bytes: usize) {
        self.sizes.add(chunk, bytes);
    }

    /// Counts the events of a chunk, and returns how many they are.
    pub(crate) fn chunk(&self, chunk: &mut Tally) -> u64 {
        let events = self.sizes.count(chunk);
        self.events.inc_by(events * chunk.watches() as u64);
        events
    }

    /// Counts the end of the initial events, which had this span.
    pub(crate) fn state_sent(&self, span: &Span, seconds: f64) {
        self.state_seconds.observe_in(span, seconds);
    }
}

/// The kind of request that was refused for lack of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefusedKind {
    /// A list request.
    List,
    /// A watch request.
    Watch,
}

/// The labels of `ringwatch_sheds_total`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ShedLabels {
    kind: &'static str,
}

impl ShedLabels {
    fn new(kind: RefusedKind) -> Self {
        let kind = match kind {
            RefusedKind::List => "list",
            RefusedKind::Watch => "watch",
        };
        Self { kind }
    }
}

impl Metrics {
    /// Counters that start at zero.
    #[must_use]
    pub fn new() -> Self {
        let metrics = Self {
            answered: AnsweredRequests::new(),
            terminations: Terminations::default(),
            long_running: Family::default(),
            watch_events: Family::default(),
            watch_sizes: Family::default(),
            watch_lists: Family::new_with_constructor(watch_list_histogram),
            sheds: Family::default(),
        };
        // Both time series exist from the start.
        for kind in [RefusedKind::List, RefusedKind::Watch] {
            let _ = metrics.sheds.get_or_create(&ShedLabels::new(kind));
        }
        metrics
    }

    /// Registers the metrics for `/metrics`. Counters are named without the `_total` that the encoder adds.
    pub fn register(&self, registry: &mut Registry) {
        self.answered.register(registry);
        self.terminations.register(registry);
        registry.register(
            "apiserver_longrunning_requests",
            "[STABLE] Gauge of all active long-running apiserver requests broken out by verb, \
             group, version, resource, scope and component. Not all requests are tracked this way.",
            self.long_running.clone(),
        );
        registry.register(
            "apiserver_watch_events",
            "[ALPHA] Number of events sent in watch clients",
            self.watch_events.clone(),
        );
        registry.register(
            "apiserver_watch_events_sizes",
            "[ALPHA] Watch event size distribution in bytes",
            self.watch_sizes.clone(),
        );
        registry.register(
            "apiserver_watch_list_duration_seconds",
            "[BETA] Response latency distribution in seconds for watch list requests broken by \
             group, version, resource and scope.",
            self.watch_lists.clone(),
        );
        registry.register(
            "ringwatch_sheds",
            "Lists and watches refused because the memory budget is spent.",
            self.sheds.clone(),
        );
    }

    /// Counts a request that was answered.
    pub(crate) fn observe(&self, kind: &RequestKind, outcome: RequestOutcome) {
        self.answered.observe(kind, outcome);
    }

    /// Counts a request that a filter refused for its number (429) or ended at its time limit (504).
    pub fn terminate(&self, info: &RequestInfo, code: u16) {
        let kind = self.terminations.count(info, code);
        // Nothing else counts it: it has not reached its handler, or was dropped there.
        self.answered.count(&kind, code);
    }

    /// Counts a request that was refused for want of memory.
    pub(super) fn count_shed(&self, kind: RefusedKind) {
        self.sheds.get_or_create(&ShedLabels::new(kind)).inc();
    }

    /// Sets the gauge of watches of a resource to 0, before the first one runs.
    pub(crate) fn expect_watches(&self, resource: &Resource) {
        let kind = RequestKind {
            verb: "WATCH",
            group: resource.group_version.group.clone(),
            version: resource.group_version.version.clone(),
            resource: resource.plural.clone(),
            subresource: String::new(),
            scope: "cluster",
            component: COMPONENT,
        };
        self.long_running.get_or_create(&kind).set(0);
    }

    /// Counts a watch as running until the guard is dropped.
    pub(crate) fn long_running(&self, kind: &RequestKind) -> LongRunning {
        let gauge = self.long_running.get_or_create_owned(kind);
        gauge.inc();
        LongRunning { gauge }
    }

    /// Returns the metrics of a watch of a resource.
    pub(crate) fn watch(&self, kind: &RequestKind) -> WatchCounts {
        let labels = WatchLabels {
            group: kind.group.clone(),
            version: kind.version.clone(),
            resource: kind.resource.clone(),
        };
        WatchCounts {
            events: self.watch_events.get_or_create_owned(&labels),
            sizes: self.watch_sizes.get_or_create_owned(&labels),
            state_seconds: self.watch_lists.get_or_create_owned(&WatchListLabels {
                group: labels.group,
                version: labels.version,
                resource: labels.resource,
                scope: kind.scope,
            }),
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

/// A watch that counts as running until it is dropped.
#[derive(Debug)]
pub(crate) struct LongRunning {
    gauge: Gauge<i64, AtomicI64>,
}

impl Drop for LongRunning {
    fn drop(&mut self) {
        self.gauge.dec();
    }
}

/// Creates a histogram with kube-apiserver's buckets of initial lists of watches, in seconds.
fn watch_list_histogram() -> TracedHistogram {
    TracedHistogram::new([
        0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
    ])
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn families_have_kube_apiservers_names_and_labels() {
        let metrics = Metrics::new();
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let kind = RequestKind {
            verb: "LIST",
            resource: "pods".to_owned(),
            scope: "namespace",
            component: "apiserver",
            ..RequestKind::default()
        };
        metrics.observe(
            &kind,
            RequestOutcome {
                code: 200,
                seconds: 1.1,
                webhook_seconds: 0.75,
                response_bytes: Some(10),
                dry_run: false,
            },
        );
        let running = metrics.long_running(&kind);
        let watch = metrics.watch(&kind);
        let mut chunk = Tally::default();
        watch.event(&mut chunk, 3_000);
        watch.chunk(&mut chunk);
        watch.state_sent(&Span::default(), 0.3);
        let mut text = String::new();
        encode(&mut text, &registry).expect("text");
        assert!(
            text.contains("apiserver_request_total{verb=\"LIST\""),
            "{text}"
        );
        assert!(text.contains("code=\"200\"} 1"), "{text}");
        assert!(
            text.contains("apiserver_longrunning_requests{verb=\"LIST\""),
            "{text}"
        );
        assert!(
            text.contains("apiserver_watch_events_total{group=\"\""),
            "{text}"
        );
        let (time, kind) = (
            "apiserver_request_sli_duration_seconds_bucket",
            "verb=\"LIST\"",
        );
        for line in [
            format!("{time}{{le=\"0.2\",{kind}"),
            format!("{time}{{le=\"0.4\",{kind}"),
        ] {
            let sample = text.lines().find(|it| it.starts_with(&line)).expect(&line);
            let within = u8::from(line.contains("0.4")).to_string();
            assert!(sample.ends_with(&format!(" {within}")), "{sample}");
        }
        let pods = "group=\"\",version=\"\",resource=\"pods\"";
        for line in [
            format!("apiserver_watch_events_sizes_bucket{{le=\"4096.0\",{pods}}} 1"),
            format!("apiserver_watch_events_sizes_bucket{{le=\"2048.0\",{pods}}} 0"),
            format!("apiserver_watch_list_duration_seconds_count{{{pods},scope=\"namespace\"}} 1"),
        ] {
            assert!(text.contains(&line), "{line} in {text}");
        }
        drop(running);
        text.clear();
        encode(&mut text, &registry).expect("text");
        let line = text
            .lines()
            .find(|line| line.starts_with("apiserver_longrunning_requests{"))
            .expect("the gauge");
        assert!(line.ends_with(" 0"), "{line}");
    }
}
