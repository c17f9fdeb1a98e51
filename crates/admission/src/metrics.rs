//! Metrics of the time that admission takes: as a whole, and in each plugin.
//!
//! Ported from `admission/metrics/metrics.go` of Kubernetes 1.36.

use std::sync::OnceLock;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use ringwatch_registry::Operation;
use ringwatch_spans::TracedHistogram;

use crate::steps::AdmissionStep;

/// kube-apiserver's buckets, in seconds.
const BUCKETS: [f64; 6] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5];

/// The histograms of admission's times.
#[derive(Clone, Debug)]
pub struct AdmissionMetrics {
    steps: Family<StepLabels, TracedHistogram, fn() -> TracedHistogram>,
    plugins: Family<PluginLabels, Histogram, fn() -> Histogram>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StepLabels {
    operation: &'static str,
    rejected: &'static str,
    r#type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PluginLabels {
    name: &'static str,
    operation: &'static str,
    rejected: &'static str,
    r#type: &'static str,
}

impl Default for AdmissionMetrics {
    fn default() -> Self {
        Self {
            steps: Family::new_with_constructor(|| TracedHistogram::new(BUCKETS)),
            plugins: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
        }
    }
}

fn rejected(is_rejected: bool) -> &'static str {
    if is_rejected { "true" } else { "false" }
}

impl AdmissionMetrics {
    /// Registers the families.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "apiserver_admission_step_admission_duration_seconds",
            "[STABLE] Admission sub-step latency histogram in seconds, broken out for each operation and API resource and step type (validate or admit).",
            metrics.steps.clone(),
        );
        registry.register(
            "apiserver_admission_controller_admission_duration_seconds",
            "[STABLE] Admission controller latency histogram in seconds, identified by name and broken out for each operation and API resource and type (validate or admit).",
            metrics.plugins.clone(),
        );
        metrics
    }

    pub(crate) fn step(
        &self,
        step: AdmissionStep,
        operation: Operation,
        took: Duration,
        is_rejected: bool,
    ) {
        let labels = StepLabels {
            operation: operation.name(),
            rejected: rejected(is_rejected),
            r#type: step.name(),
        };
        let histogram = self.steps.get_or_create_owned(&labels);
        histogram.observe(took.as_secs_f64());
    }

    /// Returns the histogram of a plugin's times.
    fn plugin(
        &self,
        name: &'static str,
        step: AdmissionStep,
        operation: Operation,
        is_rejected: bool,
    ) -> Histogram {
        self.plugins.get_or_create_owned(&PluginLabels {
            name,
            operation: operation.name(),
            rejected: rejected(is_rejected),
            r#type: step.name(),
        })
    }
}

/// The histograms of one plugin's times, by step and operation. Those of calls that reject nothing, which are nearly
/// all, are looked up once.
#[derive(Clone, Debug, Default)]
pub(crate) struct PluginTimes {
    allowed: [[OnceLock<Histogram>; 4]; 2],
}

impl PluginTimes {
    /// Measures a call of the plugin, whose histograms are those of `metrics`.
    pub(crate) fn observe(
        &self,
        metrics: &AdmissionMetrics,
        name: &'static str,
        (step, operation): (AdmissionStep, Operation),
        took: Duration,
        is_rejected: bool,
    ) {
        let find = || metrics.plugin(name, step, operation, is_rejected);
        let took = took.as_secs_f64();
        if is_rejected {
            find().observe(took);
        } else {
            let known = &self.allowed[step as usize][operation as usize];
            known.get_or_init(find).observe(took);
        }
    }
}
