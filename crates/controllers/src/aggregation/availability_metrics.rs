//! The metrics of APIServices that are unavailable, under kube-apiserver's names.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use ringwatch_resources::Availability;

/// The gauges and counters of all APIServices. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct AvailabilityMetrics {
    /// 1 for each API that is unavailable, 0 for each that is available.
    unavailable: Family<NameLabels, Gauge>,
    /// The number of times that an API that was available became unavailable.
    losses: Family<LossLabels, Counter>,
    /// The APIs whose gauge is there, and which of them are available.
    known: Arc<Mutex<BTreeMap<String, bool>>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NameLabels {
    name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LossLabels {
    name: String,
    reason: &'static str,
}

impl AvailabilityMetrics {
    /// Creates the families and registers them.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "aggregator_unavailable_apiservice",
            "[ALPHA] Gauge of APIServices which are marked as unavailable broken down by APIService name.",
            metrics.unavailable.clone(),
        );
        // The encoder adds `_total` to a counter, which is all by which the two names differ.
        registry.register(
            "aggregator_unavailable_apiservice",
            "[ALPHA] Counter of APIServices which are marked as unavailable broken down by APIService name and reason.",
            metrics.losses.clone(),
        );
        metrics
    }

    /// Notes what a check of an API has found.
    pub(super) fn found(&self, name: &str, said: &Availability) {
        let is_available = said.status == "True";
        if self.set(name, is_available) == Some(true) && !is_available {
            let reason = said.reason;
            let name = name.to_owned();
            self.losses
                .get_or_create(&LossLabels { name, reason })
                .inc();
        }
    }

    /// Notes that this server serves an API itself, so that it is available.
    pub(super) fn is_local(&self, name: &str) {
        self.set(name, true);
    }

    /// Forgets the APIs whose names `is_there` does not accept.
    pub(super) fn retain(&self, is_there: impl Fn(&str) -> bool) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|name, _| {
            let stays = is_there(name);
            if !stays {
                self.unavailable.remove(&NameLabels { name: name.clone() });
            }
            stays
        });
    }

    /// Sets the gauge of an API; returns if it was available before, if that is known.
    fn set(&self, name: &str, is_available: bool) -> Option<bool> {
        let labels = NameLabels {
            name: name.to_owned(),
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let gauge = self.unavailable.get_or_create_owned(&labels);
        gauge.set(i64::from(!is_available));
        known.insert(labels.name, is_available)
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn a_loss_is_counted_once_and_the_gauge_follows() {
        let mut registry = Registry::default();
        let metrics = AvailabilityMetrics::register(&mut registry);
        let shown = || {
            let mut text = String::new();
            encode(&mut text, &registry).expect("text");
            let samples = text.lines().filter(|line| !line.starts_with('#'));
            let mut samples: Vec<String> = samples.map(str::to_owned).collect();
            samples.sort();
            samples
        };
        let available = Availability {
            status: "True",
            reason: "Passed",
            message: String::new(),
        };
        let lost = Availability::no("FailedDiscoveryCheck", String::new());
        let gauge = |value| format!("aggregator_unavailable_apiservice{{name=\"a\"}} {value}");
        metrics.found("a", &lost);
        assert_eq!(shown(), [gauge(1)], "nobody knew that it was available");
        metrics.found("a", &available);
        assert_eq!(shown(), [gauge(0)]);
        for _ in 0..2 {
            metrics.found("a", &lost);
        }
        let losses =
            "aggregator_unavailable_apiservice_total{name=\"a\",reason=\"FailedDiscoveryCheck\"} 1";
        assert_eq!(shown(), [losses.to_owned(), gauge(1)]);
        metrics.is_local("b");
        metrics.retain(|name| name == "b");
        let local = "aggregator_unavailable_apiservice{name=\"b\"} 0";
        assert_eq!(shown(), [losses, local]);
    }
}
