//! The configuration of a provider in an EncryptionConfiguration.

use std::time::Duration;

use serde::Deserialize;

use super::client::socket_path;
use super::provider::KmsProvider;
use crate::clock::Clock;
use crate::codec::duration;

/// The default of the longest time of a call.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(3);

/// The members of `kms`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::storage::encryption) struct KmsConfig {
    #[serde(rename = "apiVersion", default)]
    api_version: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    endpoint: String,
    timeout: Option<String>,
    cachesize: Option<i64>,
}

impl KmsConfig {
    /// Makes the provider, without connecting to its plugin.
    ///
    /// # Errors
    /// The member that is wrong, and why.
    pub(in crate::storage::encryption) fn read(
        &self,
        clock: &Clock,
    ) -> Result<KmsProvider, String> {
        let name = &self.name;
        if name.is_empty() {
            return Err("name: it is missing".to_owned());
        }
        if name.contains(':') {
            return Err(format!(
                "name: invalid KMS provider name {name}, must not contain ':'"
            ));
        }
        match self.api_version.as_str() {
            "v2" => {}
            "" | "v1" => {
                let why =
                    "apiVersion: v1 is not supported, nor in kube-apiserver by default; use v2";
                return Err(why.to_owned());
            }
            other => {
                return Err(format!(
                    "apiVersion: {other:?} is not a version of KMS plugins; use v2"
                ));
            }
        }
        if self.cachesize.is_some() {
            return Err("cachesize: cachesize is not supported in v2".to_owned());
        }
        let timeout = match &self.timeout {
            None => Some(TIMEOUT_DEFAULT),
            Some(text) => {
                let nanos = duration::parse(text).and_then(|it| u64::try_from(it).ok());
                nanos.filter(|it| *it > 0).map(Duration::from_nanos)
            }
        };
        let timeout = timeout.ok_or("timeout: it should be a positive duration, such as 3s")?;
        if self.endpoint.is_empty() {
            return Err("endpoint: endpoint is a mandatory field for a kms".to_owned());
        }
        let path = socket_path(&self.endpoint).map_err(|why| format!("endpoint: {why}"))?;
        Ok(KmsProvider::at_socket(name, path, timeout, clock))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(members: &str) -> Result<KmsProvider, String> {
        let config: KmsConfig = serde_saphyr::from_str(members).expect("YAML");
        config.read(&Clock::real())
    }

    #[test]
    fn mistakes_are_named() {
        read("{apiVersion: v2, name: x, endpoint: \"unix:///a\", timeout: 1m30s}").expect("valid");
        for (members, words) in [
            ("{apiVersion: v2}", "name: it is missing"),
            ("{name: x}", "apiVersion: v1 is not supported"),
            (
                "{apiVersion: v3, name: x}",
                "apiVersion: \"v3\" is not a version",
            ),
            ("{apiVersion: v2, name: \"a:b\"}", "must not contain ':'"),
            (
                "{apiVersion: v2, name: x}",
                "endpoint: endpoint is a mandatory field",
            ),
            (
                "{apiVersion: v2, name: x, endpoint: \"tcp://a\"}",
                "endpoint: unsupported scheme \"tcp\" for KMS provider",
            ),
            (
                "{apiVersion: v2, name: x, endpoint: \"unix:///a\", timeout: 0s}",
                "timeout: it should be a positive duration",
            ),
            (
                "{apiVersion: v2, name: x, endpoint: \"unix:///a\", cachesize: 1}",
                "cachesize is not supported in v2",
            ),
        ] {
            let error = read(members).expect_err(words);
            assert!(error.contains(words), "{words}: {error}");
        }
    }
}
