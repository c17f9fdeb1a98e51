//! The metrics of answered requests, found by one look for each request.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use ringwatch_spans::TracedHistogram;

use super::request_kind::RequestKind;

type Histograms<L> = Family<L, TracedHistogram, fn() -> TracedHistogram>;

/// Counts answered requests by their kinds and outcomes. Clones share the counters.
#[derive(Clone, Debug)]
pub(super) struct AnsweredRequests {
    requests: Family<RequestLabels, Counter>,
    durations: Histograms<DurationLabels>,
    sli_durations: Histograms<RequestKind>,
    response_sizes: Histograms<RequestKind>,
    /// The time series of each kind, by which a request finds all of its own without making their labels.
    series: Arc<RwLock<HashMap<RequestKind, Vec<OutcomeSeries>>>>,
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

/// The time series that the requests of a kind with one outcome are counted in.
#[derive(Debug)]
struct OutcomeSeries {
    code: u16,
    dry_run: bool,
    requests: Counter,
    durations: TracedHistogram,
    /// `None` for dry runs.
    sli_durations: Option<TracedHistogram>,
    /// Made by the first response whose size counts, since a series without one would show.
    response_sizes: OnceLock<TracedHistogram>,
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

impl AnsweredRequests {
    /// Counters that start at zero.
    pub(super) fn new() -> Self {
        Self {
            requests: Family::default(),
            durations: Family::new_with_constructor(duration_histogram),
            sli_durations: Family::new_with_constructor(sli_histogram),
            response_sizes: Family::new_with_constructor(size_histogram),
            series: Arc::default(),
        }
    }

    /// Registers the metrics for `/metrics`. Counters are named without the `_total` that the encoder adds.
    pub(super) fn register(&self, registry: &mut Registry) {
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
        registry.register(
            "apiserver_response_sizes",
            "[STABLE] Response size distribution in bytes for each group, version, verb, resource, \
             subresource, scope and component.",
            self.response_sizes.clone(),
        );
    }

    /// Counts a request that was answered.
    pub(super) fn observe(&self, kind: &RequestKind, outcome: RequestOutcome) {
        {
            let series = self.series.read().unwrap_or_else(PoisonError::into_inner);
            let of_kind = series.get(kind).into_iter().flatten();
            if let Some(found) = of_kind.into_iter().find(|it| it.is_of(outcome)) {
                self.observe_in(found, kind, outcome);
                return;
            }
        }
        let made = self.series_of(kind, outcome);
        self.observe_in(&made, kind, outcome);
        let mut series = self.series.write().unwrap_or_else(PoisonError::into_inner);
        let of_kind = series.entry(kind.clone()).or_default();
        // Another request may have been as fast; both have counted in the same series.
        if !of_kind.iter().any(|it| it.is_of(outcome)) {
            of_kind.push(made);
        }
    }

    /// Counts a request that never came to an answer of its handler in `apiserver_request_total` alone.
    pub(super) fn count(&self, kind: &RequestKind, code: u16) {
        let labels = DurationLabels::new(kind, false);
        self.requests
            .get_or_create(&RequestLabels::new(labels, code))
            .inc();
    }

    fn observe_in(&self, series: &OutcomeSeries, kind: &RequestKind, outcome: RequestOutcome) {
        series.requests.inc();
        series.durations.observe(outcome.seconds);
        if let Some(durations) = &series.sli_durations {
            // The wait for a turn is over by then.
            durations.observe(outcome.seconds - outcome.webhook_seconds);
        }
        // As in kube-apiserver, the sizes are those of reads alone.
        let is_read = matches!(kind.verb, "GET" | "LIST");
        if let Some(bytes) = outcome.response_bytes.filter(|_| is_read) {
            let sizes = &series.response_sizes;
            let sizes = sizes.get_or_init(|| self.response_sizes.get_or_create_owned(kind));
            #[allow(clippy::cast_precision_loss, reason = "sizes stay far below 2^52")]
            sizes.observe(bytes as f64);
        }
    }

    fn series_of(&self, kind: &RequestKind, outcome: RequestOutcome) -> OutcomeSeries {
        let labels = DurationLabels::new(kind, outcome.dry_run);
        let sli_durations = || self.sli_durations.get_or_create_owned(kind);
        OutcomeSeries {
            code: outcome.code,
            dry_run: outcome.dry_run,
            durations: self.durations.get_or_create_owned(&labels),
            requests: self
                .requests
                .get_or_create_owned(&RequestLabels::new(labels, outcome.code)),
            sli_durations: (!outcome.dry_run).then(sli_durations),
            response_sizes: OnceLock::new(),
        }
    }
}

impl OutcomeSeries {
    fn is_of(&self, outcome: RequestOutcome) -> bool {
        self.code == outcome.code && self.dry_run == outcome.dry_run
    }
}

impl DurationLabels {
    fn new(kind: &RequestKind, dry_run: bool) -> Self {
        Self {
            verb: kind.verb,
            dry_run: if dry_run { "All" } else { "" },
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
    fn new(labels: DurationLabels, code: u16) -> Self {
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

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    /// Returns the samples of a metric, by the labels that are given in their order and the value.
    fn samples(registry: &Registry, name: &str) -> Vec<String> {
        let mut text = String::new();
        encode(&mut text, registry).expect("text");
        let found = text.lines().filter_map(|line| line.strip_prefix(name));
        let mut found: Vec<String> = found.map(ToOwned::to_owned).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn a_request_counts_in_the_series_of_its_outcome() {
        let answered = AnsweredRequests::new();
        let mut registry = Registry::default();
        answered.register(&mut registry);
        let kind = |verb| RequestKind {
            verb,
            resource: "pods".to_owned(),
            ..RequestKind::default()
        };
        let outcome = |code, response_bytes, dry_run| RequestOutcome {
            code,
            seconds: 1.0,
            webhook_seconds: 0.5,
            response_bytes,
            dry_run,
        };
        for _ in 0..2 {
            answered.observe(&kind("GET"), outcome(200, None, false));
            answered.observe(&kind("GET"), outcome(404, None, false));
            answered.observe(&kind("PUT"), outcome(200, Some(10), true));
        }
        assert_eq!(samples(&registry, "apiserver_response_sizes"), [""; 0]);
        answered.observe(&kind("GET"), outcome(200, Some(10), false));
        answered.clone().count(&kind("GET"), 200);
        let labels = |verb: &str, dry_run: &str| {
            format!(
                "verb=\"{verb}\",{dry_run}group=\"\",version=\"\",resource=\"pods\",subresource=\"\",scope=\"\",\
                 component=\"\""
            )
        };
        let (none, all) = ("dry_run=\"\",", "dry_run=\"All\",");
        let (get, put) = (labels("GET", none), labels("PUT", all));
        assert_eq!(
            samples(&registry, "apiserver_request_total"),
            [
                format!("{{{get},system_client=\"\",code=\"200\"}} 4"),
                format!("{{{get},system_client=\"\",code=\"404\"}} 2"),
                format!("{{{put},system_client=\"\",code=\"200\"}} 2"),
            ]
        );
        assert_eq!(
            samples(&registry, "apiserver_request_duration_seconds_count"),
            [format!("{{{get}}} 5"), format!("{{{put}}} 2")]
        );
        let get = labels("GET", "");
        assert_eq!(
            samples(&registry, "apiserver_request_sli_duration_seconds_sum"),
            [format!("{{{get}}} 2.5")]
        );
        assert_eq!(
            samples(&registry, "apiserver_response_sizes_count"),
            [format!("{{{get}}} 1")]
        );
    }
}
