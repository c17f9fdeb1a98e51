//! Spans of requests: the file of `--tracing-config-file`.
//!
//! `ReadTracingConfiguration` and `ApplyTo` of Kubernetes 1.36 (`apiserver/pkg/server/options/tracing.go`), and the
//! validation in `component-base/tracing/api/v1/config.go`.

use std::path::Path;

use ringwatch_spans::{Endpoint, Sampling};
use ringwatch_tls::error::StartError;
use ringwatch_tls::pem;
use serde::Deserialize;

const KIND: &str = "TracingConfiguration";
const FLAG: &str = "--tracing-config-file";
/// The API versions of the file.
const VERSIONS: [&str; 3] = [
    "apiserver.config.k8s.io/v1",
    "apiserver.config.k8s.io/v1beta1",
    "apiserver.config.k8s.io/v1alpha1",
];
/// The number of requests in which rates are given.
const MILLION: u32 = 1_000_000;

/// The collector of spans, and the share of requests that have some.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SpansConfig {
    pub(crate) endpoint: Endpoint,
    pub(crate) sampling: Sampling,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct File {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    endpoint: Option<String>,
    sampling_rate_per_million: Option<i32>,
}

impl SpansConfig {
    /// Reads the file that the flag names; `None` without the flag.
    ///
    /// # Errors
    /// The file cannot be read or is invalid.
    pub(crate) fn load(path: Option<&Path>) -> Result<Option<Self>, StartError> {
        let Some(path) = path else {
            return Ok(None);
        };
        let text = pem::read(path, FLAG)?;
        let config = Self::parse(&text).map_err(|why| {
            let what = format!("use the tracing configuration {}", path.display());
            StartError::new(
                what,
                why,
                format!("see {KIND} in Kubernetes' documentation"),
            )
        })?;
        Ok(Some(config))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let file: File = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
        if file.kind != KIND || !VERSIONS.contains(&file.api_version.as_str()) {
            return Err(format!(
                "it is no {KIND} of {}, but {}, Kind={}",
                VERSIONS[0], file.api_version, file.kind
            ));
        }
        let mut wrong = Vec::new();
        let rate = file.sampling_rate_per_million.unwrap_or_default();
        let mut refuse_rate = |why: &str| {
            wrong.push(format!(
                "samplingRatePerMillion: Invalid value: {rate}: {why}"
            ));
        };
        let per_million = u32::try_from(rate).unwrap_or_else(|_| {
            refuse_rate("sampling rate must be positive");
            0
        });
        if per_million > MILLION {
            refuse_rate("sampling rate per million must be less than or equal to one million");
        }
        let endpoint = file.endpoint.as_deref().map(Endpoint::parse).transpose();
        let endpoint = endpoint.unwrap_or_else(|why| {
            let text = file.endpoint.as_deref().unwrap_or_default();
            wrong.push(format!("endpoint: Invalid value: {text:?}: {why}"));
            None
        });
        match wrong.as_slice() {
            [] => Ok(Self {
                endpoint: endpoint.unwrap_or_default(),
                sampling: Sampling { per_million },
            }),
            [one] => Err(one.clone()),
            several => Err(format!("[{}]", several.join(", "))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n";

    #[test]
    fn the_default_collector_is_on_this_machine() {
        let config = SpansConfig::parse(V1).expect("a configuration");
        assert_eq!(config, SpansConfig::default());
        let text = format!("{V1}endpoint: otel:1\nsamplingRatePerMillion: 1000000\n");
        let text = text.replace("/v1\n", "/v1beta1\n");
        let config = SpansConfig::parse(&text).expect("a configuration");
        assert_eq!(config.endpoint, Endpoint::Network("otel:1".to_owned()));
        assert_eq!(config.sampling.per_million, MILLION);
    }

    #[test]
    fn wrong_files_are_explained_by_field() {
        for (text, why) in [
            (
                "samplingRatePerMillion: -1",
                "samplingRatePerMillion: Invalid value: -1: sampling rate must be positive",
            ),
            (
                "samplingRatePerMillion: 1000001",
                "samplingRatePerMillion: Invalid value: 1000001: sampling rate per million must be less than or equal to one million",
            ),
            (
                "endpoint: http://localhost:4317",
                "endpoint: Invalid value: \"http://localhost:4317\": unsupported scheme: http.",
            ),
            (
                "endpoint: http://a\nsamplingRatePerMillion: -1",
                "[samplingRatePerMillion: Invalid value: -1: sampling rate must be positive, endpoint:",
            ),
            ("samplingRate: 1", "samplingRate"),
            ("samplingRatePerMillion: many", "samplingRatePerMillion"),
            (
                "samplingRatePerMillion: 3000000000",
                "samplingRatePerMillion",
            ),
        ] {
            let error = SpansConfig::parse(&format!("{V1}{text}\n")).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
        let other = V1.replace("Tracing", "Admission");
        let error = SpansConfig::parse(&other).expect_err("another kind");
        assert!(error.contains("Kind=AdmissionConfiguration"), "{error}");
        let error = SpansConfig::parse(&V1.replace("/v1\n", "/v2\n")).expect_err("a version");
        assert!(error.contains("apiserver.config.k8s.io/v2"), "{error}");
    }
}
