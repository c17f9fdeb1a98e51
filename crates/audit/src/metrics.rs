//! The metrics of audit, under kube-apiserver's names.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use crate::level::Level;

/// The metrics of audit. Clones are the same metrics.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    events: Counter,
    errors: Family<Plugin, Counter>,
    levels: Family<LevelLabel, Counter>,
    rejected: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Plugin {
    plugin: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LevelLabel {
    level: &'static str,
}

impl Metrics {
    /// Creates the metrics and registers them.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "apiserver_audit_event",
            "[ALPHA] Counter of audit events generated and sent to the audit backend.",
            metrics.events.clone(),
        );
        registry.register(
            "apiserver_audit_error",
            "[ALPHA] Counter of audit events that failed to be audited properly. Plugin identifies the plugin affected by the error.",
            metrics.errors.clone(),
        );
        registry.register(
            "apiserver_audit_level",
            "[ALPHA] Counter of policy levels for audit events (1 per request).",
            metrics.levels.clone(),
        );
        registry.register(
            "apiserver_audit_requests_rejected",
            "[ALPHA] Counter of apiserver requests rejected due to an error in audit logging backend.",
            metrics.rejected.clone(),
        );
        metrics
    }

    pub(crate) fn event(&self) {
        self.events.inc();
    }

    pub(crate) fn level(&self, level: Level) {
        let level = level.name();
        self.levels.get_or_create(&LevelLabel { level }).inc();
    }

    /// Counts events that a plugin, such as `buffered` or `log`, could not pass on.
    pub(crate) fn errors(&self, plugin: &'static str, events: usize) {
        let counter = self.errors.get_or_create(&Plugin { plugin });
        counter.inc_by(events as u64);
    }

    pub(crate) fn rejected(&self) {
        self.rejected.inc();
    }
}
