//! The metrics of PodSecurity, under kube-apiserver's names and labels.
//!
//! Ported from `metrics/metrics.go` of pod-security-admission, Kubernetes 1.36.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use ringwatch_registry::{Operation, Request};

use super::level::{Level, LevelVersion, StandardVersion};

/// The minor version of Kubernetes whose policies are known; newer ones are counted together.
const MINOR: u64 = 36;

/// Counts of evaluations, exemptions and errors.
#[derive(Clone, Debug, Default)]
pub struct PodSecurityMetrics {
    evaluations: Family<EvaluationLabels, Counter>,
    exemptions: Family<RequestedLabels, Counter>,
    errors: Family<FailureLabels, Counter>,
}

/// The purpose of an evaluation.
#[derive(Clone, Copy, Debug)]
pub(super) enum EvaluationMode {
    Enforce,
    Audit,
    Warn,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EvaluationLabels {
    decision: &'static str,
    policy_level: &'static str,
    policy_version: String,
    mode: &'static str,
    request_operation: &'static str,
    resource: &'static str,
    subresource: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestedLabels {
    request_operation: &'static str,
    resource: &'static str,
    subresource: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FailureLabels {
    fatal: &'static str,
    request_operation: &'static str,
    resource: &'static str,
    subresource: String,
}

impl RequestedLabels {
    fn new(request: &Request<'_>) -> Self {
        let group = request.resource.group_version.group.as_str();
        Self {
            request_operation: operation(request.operation),
            resource: match (group, request.resource.plural.as_str()) {
                ("", "pods") => "pod",
                ("", "namespaces") => "namespace",
                _ => "controller",
            },
            subresource: request.subresource().to_owned(),
        }
    }
}

impl PodSecurityMetrics {
    /// Registers the metrics for `/metrics`. Counters are named without the `_total` that the encoder adds.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        metrics.begin_at_zero();
        registry.register(
            "pod_security_evaluations",
            "[ALPHA] Number of policy evaluations that occurred, not counting ignored or exempt requests.",
            metrics.evaluations.clone(),
        );
        registry.register(
            "pod_security_exemptions",
            "[ALPHA] Number of exempt requests, not counting ignored or out of scope requests.",
            metrics.exemptions.clone(),
        );
        registry.register(
            "pod_security_errors",
            "[ALPHA] Number of errors preventing normal evaluation. Non-fatal errors may result in the latest \
             restricted profile being used for evaluation.",
            metrics.errors.clone(),
        );
        metrics
    }

    /// Makes the counters that kube-apiserver has from the start.
    fn begin_at_zero(&self) {
        for request_operation in ["create", "update"] {
            let requested = |resource| RequestedLabels {
                request_operation,
                resource,
                subresource: String::new(),
            };
            drop(self.exemptions.get_or_create(&requested("pod")));
            drop(self.exemptions.get_or_create(&requested("controller")));
            let allowed = EvaluationLabels::new(
                true,
                LevelVersion::PRIVILEGED,
                EvaluationMode::Enforce,
                requested("pod"),
            );
            drop(self.evaluations.get_or_create(&allowed));
        }
    }

    /// Counts the evaluation of a pod or template.
    pub(super) fn evaluated(
        &self,
        request: &Request<'_>,
        mode: EvaluationMode,
        policy: LevelVersion,
        is_allowed: bool,
    ) {
        let labels = EvaluationLabels::new(is_allowed, policy, mode, RequestedLabels::new(request));
        self.evaluations.get_or_create(&labels).inc();
    }

    /// Counts a request that is exempt.
    pub(super) fn exempted(&self, request: &Request<'_>) {
        self.exemptions
            .get_or_create(&RequestedLabels::new(request))
            .inc();
    }

    /// Counts an error; a fatal one prevents the evaluation.
    pub(super) fn failed(&self, request: &Request<'_>, is_fatal: bool) {
        let requested = RequestedLabels::new(request);
        let labels = FailureLabels {
            fatal: if is_fatal { "true" } else { "false" },
            request_operation: requested.request_operation,
            resource: requested.resource,
            subresource: requested.subresource,
        };
        self.errors.get_or_create(&labels).inc();
    }
}

impl EvaluationLabels {
    fn new(
        is_allowed: bool,
        policy: LevelVersion,
        mode: EvaluationMode,
        requested: RequestedLabels,
    ) -> Self {
        Self {
            decision: if is_allowed { "allow" } else { "deny" },
            policy_level: policy.level.name(),
            policy_version: version(policy),
            mode: match mode {
                EvaluationMode::Enforce => "enforce",
                EvaluationMode::Audit => "audit",
                EvaluationMode::Warn => "warn",
            },
            request_operation: requested.request_operation,
            resource: requested.resource,
            subresource: requested.subresource,
        }
    }
}

fn operation(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "create",
        Operation::Update => "update",
        Operation::Delete => "delete",
        Operation::Connect => "connect",
    }
}

fn version(policy: LevelVersion) -> String {
    match policy.version {
        _ if policy.level == Level::Privileged => StandardVersion::Latest.to_string(),
        StandardVersion::Minor(minor) if minor > MINOR => "future".to_owned(),
        version => version.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_few() {
        let of = |level, version| super::version(LevelVersion { level, version });
        assert_eq!(of(Level::Baseline, StandardVersion::Minor(36)), "v1.36");
        assert_eq!(of(Level::Baseline, StandardVersion::Minor(37)), "future");
        assert_eq!(of(Level::Restricted, StandardVersion::Latest), "latest");
        assert_eq!(of(Level::Privileged, StandardVersion::Minor(37)), "latest");
    }
}
