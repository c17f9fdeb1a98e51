//! The file of `--encryption-provider-config`: it is read at the start, and with
//! `--encryption-provider-config-automatic-reload` again when it changes.
//!
//! A file that is invalid, or whose KMS plugins are not healthy, changes nothing: the last one that was used stays in
//! effect, and the file is tried again. Values that were encrypted by a provider that is gone cannot be read any more;
//! those in the watch caches were decrypted before.
//!
//! Ported from `staging/src/k8s.io/apiserver/pkg/server/options/encryptionconfig/controller/controller.go`, Kubernetes
//! 1.36, which looks at the file once a minute.

use std::path::PathBuf;
use std::time::Duration;

use prometheus_client::registry::Registry;
use ringwatch::clock::Clock;
use ringwatch::storage::cacher::Feed;
use ringwatch::storage::encryption::{Encryption, EncryptionConfig};
use ringwatch_endpoints::health::Done;
use ringwatch_tls::error::StartError;
use ringwatch_tls::{pem, watched_file};

use super::encryption_metrics::{ReloadMetrics, sha256};
use super::flags::ServeFlags;

/// The period of looks for changes.
const LOOK_PERIOD: Duration = Duration::from_secs(1);

/// Maximum time between two attempts to use a file that could not be used.
const RETRY_PERIOD_MAX: Duration = Duration::from_secs(60);

/// The least time in which the KMS plugins of a new file have to become healthy. Files with many plugins have twice the
/// longest time that their calls may take.
const HEALTHY_WITHIN: Duration = Duration::from_secs(10);

/// The period of checks whether they are.
const HEALTH_PERIOD: Duration = Duration::from_millis(100);

/// The encryption that a file configures.
#[derive(Debug)]
pub(crate) struct EncryptionFile {
    /// The encryption of the store.
    pub(crate) encryption: Encryption,
    /// The file; `None` without the flag.
    source: Option<Source>,
    reload: bool,
}

/// The file, and its content that is used.
#[derive(Debug)]
struct Source {
    path: PathBuf,
    /// The digest of the content.
    digest: String,
    metrics: ReloadMetrics,
}

impl EncryptionFile {
    /// Reads the file that the flags name.
    ///
    /// # Errors
    /// It cannot be read or is invalid.
    pub(crate) fn load(flags: &ServeFlags, clock: &Clock) -> Result<Self, StartError> {
        let Some(path) = &flags.encryption_provider_config else {
            return Ok(Self {
                encryption: Encryption::default(),
                source: None,
                reload: false,
            });
        };
        let text = pem::read(path, "--encryption-provider-config")?;
        let config = EncryptionConfig::parse(&text, clock).map_err(|why| {
            StartError::new(
                format!("use the encryption configuration {}", path.display()),
                why,
                "see EncryptionConfiguration in Kubernetes' documentation",
            )
        })?;
        let digest = sha256(text.as_bytes());
        Ok(Self {
            encryption: Encryption::new(config),
            source: Some(Source {
                path: path.clone(),
                metrics: ReloadMetrics::new(&digest),
                digest,
            }),
            reload: flags.encryption_provider_config_automatic_reload,
        })
    }

    /// Registers the metrics of the file, if there is one.
    pub(crate) fn register(&self, registry: &mut Registry) {
        if let Some(source) = &self.source {
            source.metrics.register(registry);
        }
    }

    /// Returns the task that reads the file again when it changes; `None` if it is not to be read again.
    pub(crate) fn reload(self) -> Option<EncryptionReload> {
        let source = self.source.filter(|_| self.reload)?;
        Some(EncryptionReload {
            source,
            encryption: self.encryption,
        })
    }
}

/// Reads the file again when it changes.
#[derive(Debug)]
pub(crate) struct EncryptionReload {
    source: Source,
    encryption: Encryption,
}

impl EncryptionReload {
    /// Follows the file until it is dropped. `begun` is set at once. Types of the feed that could not be read are
    /// listed again after a change.
    pub(crate) async fn follow(mut self, feed: Feed, begun: Done, clock: Clock) {
        begun.set();
        let mut pause = LOOK_PERIOD;
        loop {
            watched_file::next_look(pause, &clock).await;
            match self.look(&clock).await {
                Ok(None) => pause = LOOK_PERIOD,
                Ok(Some(digest)) => {
                    feed.relist_unreadable();
                    self.source.metrics.count(true, clock.wall());
                    self.source.metrics.set_config(&digest);
                    self.source.digest = digest;
                    pause = LOOK_PERIOD;
                    tracing::info!(path = %self.source.path.display(), "the encryption configuration has changed");
                }
                Err(error) => {
                    self.source.metrics.count(false, clock.wall());
                    let path = self.source.path.display();
                    tracing::error!(
                        error,
                        "error processing encryption config file {path}; the previous one is used"
                    );
                    pause = (pause * 2).min(RETRY_PERIOD_MAX);
                }
            }
        }
    }

    /// Uses the file if it has changed, and returns its digest then.
    ///
    /// # Errors
    /// An explanation for the log, without secrets.
    async fn look(&self, clock: &Clock) -> Result<Option<String>, String> {
        let text = watched_file::content(&self.source.path).await;
        let text = text.map_err(|error| error.to_string())?;
        let digest = sha256(text.as_bytes());
        if digest == self.source.digest {
            return Ok(None);
        }
        let config = EncryptionConfig::parse(&text, clock)
            .map_err(|error| format!("error while parsing file: {error}"))?;
        become_healthy(&config, clock).await?;
        self.encryption.replace(config);
        Ok(Some(digest))
    }
}

/// Waits until the KMS plugins of a configuration are healthy.
///
/// # Errors
/// An explanation: they are not in time.
async fn become_healthy(config: &EncryptionConfig, clock: &Clock) -> Result<(), String> {
    let at_most = HEALTHY_WITHIN.max(config.check_time_max() * 2);
    let mut last = "it has not answered".to_owned();
    let healthy = async {
        while let Err(error) = config.check_kms().await {
            last = error;
            clock.sleep(HEALTH_PERIOD).await;
        }
    };
    let outcome = clock.timeout(at_most, healthy).await;
    outcome.map_err(|_| {
        format!(
            "health check for new transformers failed, polling error timed out waiting for the condition: {last}"
        )
    })
}
