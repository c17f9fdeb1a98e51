//! The results of health checks as metrics, for service level indicators: `/metrics/slis`.
//!
//! `component-base/metrics/prometheus/slis/metrics.go` of Kubernetes 1.36.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The newest result of each check, and the numbers of results.
#[derive(Clone, Debug, Default)]
pub(super) struct HealthMetrics {
    newest: Family<Check, Gauge>,
    all: Family<CheckResult, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Check {
    name: String,
    /// The path that asks for it: `healthz`, `livez` or `readyz`.
    r#type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CheckResult {
    name: String,
    r#type: &'static str,
    status: &'static str,
}

impl HealthMetrics {
    /// Registers the families.
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "kubernetes_healthcheck",
            "[STABLE] The newest result of a health check: 1 if it passed, else 0",
            self.newest.clone(),
        );
        registry.register(
            "kubernetes_healthchecks",
            "[STABLE] The results of health checks",
            self.all.clone(),
        );
    }

    /// Counts the result of a check that one of the paths has asked for.
    pub(super) fn observe(&self, name: &str, path: &'static str, passed: bool) {
        let check = Check {
            name: name.to_owned(),
            r#type: path,
        };
        let newest = self.newest.get_or_create_owned(&check);
        newest.set(passed.into());
        let outcome = CheckResult {
            name: name.to_owned(),
            r#type: path,
            status: if passed { "success" } else { "error" },
        };
        let all = self.all.get_or_create_owned(&outcome);
        all.inc();
    }
}
