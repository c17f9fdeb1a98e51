//! The metrics of impersonation, as in `impersonation/metrics/metrics.go` of Kubernetes 1.36.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use super::modes::Mode;

/// The metrics.
#[derive(Clone, Debug)]
pub(super) struct ImpersonationMetrics {
    attempts: Outcomes,
    checks: Outcomes,
}

/// The outcomes of attempts or checks, and their times.
#[derive(Clone, Debug)]
struct Outcomes {
    total: Family<ImpersonationLabels, Counter>,
    seconds: Family<ImpersonationLabels, Histogram, fn() -> Histogram>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ImpersonationLabels {
    mode: &'static str,
    decision: &'static str,
}

impl ImpersonationMetrics {
    /// Registers the metrics of a server.
    pub(super) fn register(registry: &mut Registry) -> Self {
        let (attempts, checks) = (Outcomes::new(), Outcomes::new());
        registry.register(
            "apiserver_impersonation_attempts",
            "[ALPHA] Total number of impersonation attempts split by mode and decision.",
            attempts.total.clone(),
        );
        registry.register(
            "apiserver_impersonation_attempts_duration_seconds",
            "[ALPHA] Latency of impersonation attempts in seconds split by mode and decision.",
            attempts.seconds.clone(),
        );
        registry.register(
            "apiserver_impersonation_authorization_attempts",
            "[ALPHA] Total number of authorization checks made by the impersonation handler split by mode and decision.",
            checks.total.clone(),
        );
        registry.register(
            "apiserver_impersonation_authorization_attempts_duration_seconds",
            "[ALPHA] Latency of authorization checks made by the impersonation handler in seconds split by mode and \
             decision.",
            checks.seconds.clone(),
        );
        Self { attempts, checks }
    }

    /// Counts a request that impersonates, in the mode that allowed it.
    pub(super) fn attempted(&self, allowed: Option<Mode>, time: Duration) {
        let mode = allowed.map_or("", Mode::name);
        self.attempts.count(mode, allowed.is_some(), time);
    }

    /// Counts a question to the authorizer.
    pub(super) fn checked(&self, mode: Mode, allowed: bool, time: Duration) {
        self.checks.count(mode.name(), allowed, time);
    }
}

impl Outcomes {
    fn new() -> Self {
        Self {
            total: Family::default(),
            seconds: Family::new_with_constructor(buckets),
        }
    }

    fn count(&self, mode: &'static str, allowed: bool, time: Duration) {
        let decision = if allowed { "allowed" } else { "denied" };
        let labels = ImpersonationLabels { mode, decision };
        self.total.get_or_create(&labels).inc();
        let seconds = self.seconds.get_or_create(&labels);
        seconds.observe(time.as_secs_f64());
    }
}

fn buckets() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 15))
}
