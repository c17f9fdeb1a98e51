//! The metrics of the encryption configuration, under kube-apiserver's names.

use std::sync::atomic::AtomicU64;

use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use sha2::{Digest, Sha256};

use super::server_id::server_id;

/// The metrics.
#[derive(Debug)]
pub(crate) struct ReloadMetrics {
    /// The digest of the server's identity.
    identity: String,
    reloads: Family<ReloadOutcome, Counter>,
    last_reload: Family<ReloadOutcome, Gauge<f64, AtomicU64>>,
    config: Family<Config, Gauge>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReloadOutcome {
    status: &'static str,
    apiserver_id_hash: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Config {
    apiserver_id_hash: String,
    hash: String,
}

impl ReloadMetrics {
    /// Creates the metrics of a server on this machine, which uses the configuration of a digest.
    pub(crate) fn new(digest: &str) -> Self {
        let metrics = Self {
            identity: sha256(server_id().as_bytes()),
            reloads: Family::default(),
            last_reload: Family::default(),
            config: Family::default(),
        };
        metrics.set_config(digest);
        metrics
    }

    /// Registers the metrics.
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "apiserver_encryption_config_controller_automatic_reloads",
            "[ALPHA] Total number of reload successes and failures of encryption configuration split by apiserver \
             identity.",
            self.reloads.clone(),
        );
        registry.register(
            "apiserver_encryption_config_controller_automatic_reload_last_timestamp_seconds",
            "[ALPHA] Timestamp of the last successful or failed automatic reload of encryption configuration split by \
             apiserver identity.",
            self.last_reload.clone(),
        );
        registry.register(
            "apiserver_encryption_config_controller_last_config_info",
            "[ALPHA] Information about the last applied encryption configuration with hash as label, split by apiserver \
             identity.",
            self.config.clone(),
        );
    }

    /// Counts a reload at a time that succeeded or failed.
    pub(crate) fn count(&self, succeeded: bool, at: Timestamp) {
        let outcome = ReloadOutcome {
            status: if succeeded { "success" } else { "failure" },
            apiserver_id_hash: self.identity.clone(),
        };
        self.reloads.get_or_create(&outcome).inc();
        let last = self.last_reload.get_or_create(&outcome);
        last.set(at.as_duration().as_secs_f64());
    }

    /// Shows the digest of the configuration that is used.
    pub(crate) fn set_config(&self, digest: &str) {
        self.config.clear();
        let config = Config {
            apiserver_id_hash: self.identity.clone(),
            hash: digest.to_owned(),
        };
        self.config.get_or_create(&config).set(1);
    }
}

/// Returns a digest in the form that the metrics show.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    let digits = Sha256::digest(bytes);
    let digits = digits.iter().map(|byte| format!("{byte:02x}"));
    format!("sha256:{}", digits.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_kube_apiservers() {
        assert_eq!(
            sha256(b""),
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }
}
