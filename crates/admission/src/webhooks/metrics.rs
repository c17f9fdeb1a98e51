//! Metrics of calls of webhooks: the time that they take, and the ways in which they end.
//!
//! Ported from `admission/metrics/metrics.go` and the dispatchers of `admission/plugin/webhook` of Kubernetes 1.36.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use ringwatch_registry::Operation;
use ringwatch_spans::TracedHistogram;

use super::call_error::{CallError, CallOutcome};
use crate::steps::AdmissionStep;

/// The code of a call that succeeded, and of one that this server did not make.
const ALLOWED: u16 = 200;
const NOT_CALLED: u16 = 0;

/// The largest code that is shown.
const CODE_MAX: u16 = 600;

/// The metrics of calls of webhooks. Clones share them.
#[derive(Clone, Debug)]
pub struct WebhookMetrics {
    seconds: Family<TimeLabels, TracedHistogram, fn() -> TracedHistogram>,
    requests: Family<RequestLabels, Counter>,
    /// A gauge, since the encoder would add `_total` to the name of a counter.
    rejections: Family<RejectionLabels, Gauge>,
    /// A gauge for the same reason.
    open_failures: Family<OpenLabels, Gauge>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TimeLabels {
    name: String,
    operation: &'static str,
    rejected: &'static str,
    r#type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    code: u16,
    name: String,
    operation: &'static str,
    rejected: &'static str,
    r#type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RejectionLabels {
    error_type: &'static str,
    name: String,
    operation: &'static str,
    rejection_code: u16,
    r#type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OpenLabels {
    name: String,
    r#type: &'static str,
}

/// A call that has ended.
#[derive(Debug)]
pub(super) struct MeasuredCall<'a> {
    /// The name of the webhook.
    pub(super) name: &'a str,
    pub(super) step: AdmissionStep,
    pub(super) operation: Operation,
    pub(super) took: Duration,
}

impl Default for WebhookMetrics {
    fn default() -> Self {
        Self {
            seconds: Family::new_with_constructor(|| {
                TracedHistogram::new([0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0])
            }),
            requests: Family::default(),
            rejections: Family::default(),
            open_failures: Family::default(),
        }
    }
}

impl WebhookMetrics {
    /// Creates the families and registers them.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "apiserver_admission_webhook_admission_duration_seconds",
            "[STABLE] Admission webhook latency histogram in seconds, identified by name and broken out for each operation and API resource and type (validate or admit).",
            metrics.seconds.clone(),
        );
        registry.register(
            "apiserver_admission_webhook_request",
            "[ALPHA] Admission webhook request total, identified by name and broken out for each admission type (validating or admit) and operation. Additional labels specify whether the request was rejected or not and an HTTP status code. Codes greater than 600 are truncated to 600, to keep the metrics cardinality bounded.",
            metrics.requests.clone(),
        );
        registry.register(
            "apiserver_admission_webhook_rejection_count",
            "[ALPHA] Admission webhook rejection count, identified by name and broken out for each admission type (validating or admit) and operation. Additional labels specify an error type (calling_webhook_error or apiserver_internal_error if an error occurred; no_error otherwise) and optionally a non-zero rejection code if the webhook rejects the request with an HTTP status code (honored by the apiserver when the code is greater or equal to 400). Codes greater than 600 are truncated to 600, to keep the metrics cardinality bounded.",
            metrics.rejections.clone(),
        );
        registry.register(
            "apiserver_admission_webhook_fail_open_count",
            "[ALPHA] Admission webhook fail open count, identified by name and broken out for each admission type (validating or admit).",
            metrics.open_failures.clone(),
        );
        metrics
    }

    /// Counts a call and its outcome.
    pub(super) fn called(&self, call: &MeasuredCall<'_>, outcome: &Result<CallOutcome, CallError>) {
        let (code, error_type) = match outcome {
            Ok(CallOutcome::Allowed(_)) => (ALLOWED, None),
            Ok(CallOutcome::Ignored(code)) => (*code, None),
            Err(CallError::Failed(failed)) => (failed.code, Some("calling_webhook_error")),
            Err(CallError::Refused(status)) => (status.code.unwrap_or_default(), Some("no_error")),
            Err(CallError::Unsupported(_)) => (NOT_CALLED, Some("apiserver_internal_error")),
        };
        let code = code.min(CODE_MAX);
        let (name, operation) = (call.name.to_owned(), call.operation.name());
        // The name of the step is another one here than elsewhere, as in kube-apiserver.
        let r#type = match call.step {
            AdmissionStep::Admit => "admit",
            AdmissionStep::Validate => "validating",
        };
        let rejected = if error_type.is_some() {
            "true"
        } else {
            "false"
        };
        let times = TimeLabels {
            name: name.clone(),
            operation,
            rejected,
            r#type,
        };
        self.seconds
            .get_or_create(&times)
            .observe(call.took.as_secs_f64());
        let request = RequestLabels {
            code,
            name: name.clone(),
            operation,
            rejected,
            r#type,
        };
        self.requests.get_or_create(&request).inc();
        if let Some(error_type) = error_type {
            let rejection = RejectionLabels {
                error_type,
                name,
                operation,
                rejection_code: code,
                r#type,
            };
            self.rejections.get_or_create(&rejection).inc();
        } else if let Ok(CallOutcome::Ignored(_)) = outcome {
            let open = OpenLabels { name, r#type };
            self.open_failures.get_or_create(&open).inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use ringwatch::meta::Status;
    use ringwatch_apimachinery::Error;

    use super::*;

    #[test]
    fn calls_count_by_who_refused_and_with_which_code() {
        let mut registry = Registry::default();
        let metrics = WebhookMetrics::register(&mut registry);
        let call = MeasuredCall {
            name: "a",
            step: AdmissionStep::Admit,
            operation: Operation::Create,
            took: Duration::from_millis(700),
        };
        let dry_run = Error::BadRequest(String::new());
        let status = Box::new(Status::failure(422, String::new(), String::new()));
        for refusal in [CallError::Refused(status), CallError::Unsupported(dry_run)] {
            metrics.called(&call, &Err(refusal));
        }
        // It answered with this status, and the request goes on without.
        metrics.called(&call, &Ok(CallOutcome::Ignored(418)));
        let mut text = String::new();
        encode(&mut text, &registry).expect("text");
        let rejections = "apiserver_admission_webhook_rejection_count";
        let requests = "apiserver_admission_webhook_request_total";
        let opened = "apiserver_admission_webhook_fail_open_count";
        let times = "apiserver_admission_webhook_admission_duration_seconds_bucket";
        let (call, kind) = ("name=\"a\",operation=\"CREATE\"", "type=\"admit\"");
        for line in [
            format!(
                "{rejections}{{error_type=\"no_error\",{call},rejection_code=\"422\",{kind}}} 1"
            ),
            format!(
                "{rejections}{{error_type=\"apiserver_internal_error\",{call},rejection_code=\"0\",{kind}}} 1"
            ),
            format!("{requests}{{code=\"418\",{call},rejected=\"false\",{kind}}} 1"),
            format!("{opened}{{name=\"a\",{kind}}} 1"),
            format!("{times}{{le=\"0.5\",{call},rejected=\"true\",{kind}}} 0"),
            format!("{times}{{le=\"1.0\",{call},rejected=\"true\",{kind}}} 2"),
        ] {
            assert!(text.lines().any(|it| it == line), "{line} in {text}");
        }
    }
}
