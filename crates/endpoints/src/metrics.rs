//! The metrics of requests, under kube-apiserver's names and labels.

use std::sync::atomic::AtomicI64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use ringwatch_registry::Resource;
use ringwatch_spans::{Span, TracedHistogram};

use super::event_sizes::{EventSizes, Tally};
use super::request_info::RequestInfo;
use super::request_kind::COMPONENT;
pub(crate) use super::request_kind::RequestKind;
use super::terminations::Terminations;

/// The counters of the endpoints. Clones share them.
#[derive(Clone, Debug)]
pub struct Metrics {
    requests: Family<RequestLabels, Counter>,
    durations: Family<DurationLabels, TracedHistogram, fn() -> TracedHistogram>,
    sli_durations: Family<RequestKind, TracedHistogram, fn() -> TracedHistogram>,
    terminations: Terminations,
    response_sizes: Family<RequestKind, TracedHistogram, fn() -> TracedHistogram>,
    long_running: Family<RequestKind, Gauge<i64, AtomicI64>>,
    watch_events: Family<WatchLabels, Counter>,
    watch_sizes: Family<WatchLabels, EventSizes>,
    watch_lists: Family<WatchListLabels, TracedHistogram, fn() -> TracedHistogram>,
    sheds: Family<ShedLabels, Counter>,
}

/// The labels of `apiserver_request_total`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    verb: &'static str,
    dry_run: &'static str,
    group: String,
    version: String,
    resource: String,
    subresource: String,
    scope: &'static str,
    component: &'static str,
    system_client: &'static str,
    code: u16,
}

/// The labels of `apiserver_request_duration_seconds`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DurationLabels {
    verb: &'static str,
    dry_run: &'static str,
    group: String,
    version: String,
    resource: String,
    subresource: String,
    scope: &'static str,
    component: &'static str,
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

/// The outcome of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestOutcome {
    /// The HTTP status code.
    pub(crate) code: u16,
    /// The time in seconds from the request to the head of the response.
    pub(crate) seconds: f64,
    /// The part of it that admission webhooks took.
    pub(crate) webhook_seconds: f64,
    /// The size of the response in bytes; `None` for watches and streams.
    pub(crate) response_bytes: Option<u64>,
    /// True for a dry run, which stores nothing.
    pub(crate) dry_run: bool,
}

impl Metrics {
    /// Counters that start at zero.
    #[must_use]
    pub fn new() -> Self {
        let metrics = Self {
            requests: Family::default(),
            durations: Family::new_with_constructor(duration_histogram),
            sli_durations: Family::new_with_constructor(sli_histogram),
            terminations: Terminations::default(),
            response_sizes: Family::new_with_constructor(size_histogram),
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
        registry.register(
            "apiserver_request",
            "[STABLE] Counter of apiserver requests broken out for each verb, dry run value, group, \
             version, resource, scope, component, and HTTP response code.",
            self.requests.clone(),
        );
        registry.register(
            "apiserver_request_duration_seconds",
            "[STABLE] Response latency distribution in seconds for each verb, dry run value, group, \
             version, resource, subresource, scope and component.",
            self.durations.clone(),
        );
        registry.register(
            "apiserver_request_sli_duration_seconds",
            "[ALPHA] Response latency distribution (not counting webhook duration and priority & fairness queue \
             wait times) in seconds for each verb, group, version, resource, subresource, scope and component.",
            self.sli_durations.clone(),
        );
        self.terminations.register(registry);
        registry.register(
            "apiserver_response_sizes",
            "[STABLE] Response size distribution in bytes for each group, version, verb, resource, \
             subresource, scope and component.",
            self.response_sizes.clone(),
        );
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
        let dry_run = if outcome.dry_run { "All" } else { "" };
        let labels = DurationLabels::new(kind, dry_run);
        self.requests
            .get_or_create(&RequestLabels::new(&labels, outcome.code))
            .inc();
        self.durations
            .get_or_create(&labels)
            .observe(outcome.seconds);
        if !outcome.dry_run {
            // The wait for a turn is over by then.
            self.sli_durations
                .get_or_create(kind)
                .observe(outcome.seconds - outcome.webhook_seconds);
        }
        // As in kube-apiserver, the sizes are those of reads alone.
        let is_read = matches!(kind.verb, "GET" | "LIST");
        if let Some(bytes) = outcome.response_bytes.filter(|_| is_read) {
            #[allow(clippy::cast_precision_loss, reason = "sizes stay far below 2^52")]
            self.response_sizes
                .get_or_create(kind)
                .observe(bytes as f64);
        }
    }

    /// Counts a request that a filter refused for its number (429) or ended at its time limit (504).
    pub fn terminate(&self, info: &RequestInfo, code: u16) {
        let kind = self.terminations.count(info, code);
        // Nothing else counts it: it has not reached its handler, or was dropped there.
        let labels = DurationLabels::new(&kind, "");
        self.requests
            .get_or_create(&RequestLabels::new(&labels, code))
            .inc();
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

impl DurationLabels {
    fn new(kind: &RequestKind, dry_run: &'static str) -> Self {
        Self {
            verb: kind.verb,
            dry_run,
            group: kind.group.clone(),
            version: kind.version.clone(),
            resource: kind.resource.clone(),
            subresource: kind.subresource.clone(),
            scope: kind.scope,
            component: kind.component,
        }
    }
}

impl RequestLabels {
    fn new(labels: &DurationLabels, code: u16) -> Self {
        let labels = labels.clone();
        Self {
            verb: labels.verb,
            dry_run: labels.dry_run,
            group: labels.group,
            version: labels.version,
            resource: labels.resource,
            subresource: labels.subresource,
            scope: labels.scope,
            component: labels.component,
            system_client: "",
            code,
        }
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

/// Creates a histogram with kube-apiserver's buckets of durations, in seconds.
fn duration_histogram() -> TracedHistogram {
    TracedHistogram::new([
        0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0,
        10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
    ])
}

/// Creates a histogram with the buckets of kube-apiserver's service level indicator, in seconds.
fn sli_histogram() -> TracedHistogram {
    TracedHistogram::new([
        0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0,
        20.0, 30.0, 45.0, 60.0,
    ])
}

/// Creates a histogram with kube-apiserver's buckets of sizes, in bytes: 1 kB and then ten times as much, seven times.
fn size_histogram() -> TracedHistogram {
    TracedHistogram::new([1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9])
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
