//! MutatingWebhookConfiguration and ValidatingWebhookConfiguration, as they are stored.

use std::time::Duration;

use ringwatch_webhook::ClientConfig;
use serde_json::Value;

use crate::conditions::Conditions;
use crate::matching::Criteria;

/// The timeout of a webhook that names none, in seconds.
const TIMEOUT_SECONDS_DEFAULT: u64 = 10;

/// The longest that a webhook may have.
const TIMEOUT_SECONDS_MAX: u64 = 30;

/// A MutatingWebhookConfiguration or ValidatingWebhookConfiguration.
#[derive(Debug)]
pub struct Configuration {
    pub(super) hooks: Vec<Hook>,
}

/// One webhook of a configuration.
#[derive(Debug)]
pub(super) struct Hook {
    /// The name of the webhook, which need not be unique. The id is: the name of the configuration, and the place of
    /// the webhook there.
    pub(super) name: String,
    pub(super) id: (String, usize),
    pub(super) client: Result<ClientConfig, String>,
    pub(super) criteria: Criteria,
    pub(super) conditions: Conditions,
    /// True if the request fails when the webhook cannot be called: `failurePolicy: Fail`.
    pub(super) fails: bool,
    pub(super) timeout: Duration,
    /// True if it may be called for dry runs: it has no side effects.
    pub(super) knows_dry_runs: bool,
    /// True if it is called again when later webhooks change the object: `reinvocationPolicy: IfNeeded`.
    pub(super) reinvoked: bool,
    /// The version of AdmissionReview that it wants.
    pub(super) review_version: ReviewVersion,
}

/// A version of AdmissionReview that this server sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReviewVersion {
    V1,
    V1beta1,
}

impl ReviewVersion {
    pub(super) fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "admission.k8s.io/v1",
            Self::V1beta1 => "admission.k8s.io/v1beta1",
        }
    }
}

impl Configuration {
    /// Reads a configuration out of its object.
    ///
    /// # Errors
    /// A message that names the member that cannot be read.
    pub fn read(object: &Value) -> Result<Self, String> {
        let name = object.pointer("/metadata/name").and_then(Value::as_str);
        let name = name.unwrap_or_default();
        let hooks = object.get("webhooks").and_then(Value::as_array);
        let hooks = hooks.into_iter().flatten().enumerate();
        let hooks = hooks.map(|(index, hook)| Hook::read(hook, (name.to_owned(), index)));
        Ok(Self {
            hooks: hooks.collect::<Result<_, _>>()?,
        })
    }
}

impl Hook {
    fn read(source: &Value, id: (String, usize)) -> Result<Self, String> {
        let text = |name: &str| {
            let text = source.get(name).and_then(Value::as_str);
            text.unwrap_or_default()
        };
        let seconds = source.get("timeoutSeconds").and_then(Value::as_u64);
        let seconds = seconds
            .unwrap_or(TIMEOUT_SECONDS_DEFAULT)
            .clamp(1, TIMEOUT_SECONDS_MAX);
        let versions = source
            .get("admissionReviewVersions")
            .and_then(Value::as_array);
        let versions = versions.into_iter().flatten().filter_map(Value::as_str);
        let mut versions = versions.filter_map(|version| match version {
            "v1" => Some(ReviewVersion::V1),
            "v1beta1" => Some(ReviewVersion::V1beta1),
            _ => None,
        });
        Ok(Self {
            name: text("name").to_owned(),
            id,
            client: ClientConfig::read(text("name"), &source["clientConfig"]),
            criteria: Criteria::read(source, "rules")?,
            conditions: Conditions::read(source),
            fails: text("failurePolicy") != "Ignore",
            timeout: Duration::from_secs(seconds),
            knows_dry_runs: matches!(text("sideEffects"), "None" | "NoneOnDryRun"),
            reinvoked: text("reinvocationPolicy") == "IfNeeded",
            review_version: versions.next().unwrap_or(ReviewVersion::V1),
        })
    }
}
