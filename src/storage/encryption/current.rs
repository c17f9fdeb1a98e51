//! The encryption of a store, whose configuration may be replaced while it is used.

use bytes::Bytes;
use tokio::sync::Notify;

use super::config::EncryptionConfig;
use super::providers::Providers;
use super::stored_value::TransformError;
use crate::sync::{Arc, ArcSwap};

/// The encryption of each type. Clones share the configuration.
///
/// ```
/// use ringwatch::clock::Clock;
/// use ringwatch::storage::encryption::{Encryption, EncryptionConfig};
///
/// let config = EncryptionConfig::parse(
///     "
/// kind: EncryptionConfiguration
/// apiVersion: apiserver.config.k8s.io/v1
/// resources:
/// - resources: [secrets]
///   providers:
///   - aesgcm:
///       keys: [{name: key1, secret: AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=}]
///   - identity: {}
/// ",
///     &Clock::real(),
/// )?;
/// let encryption = Encryption::new(config);
/// let secrets = encryption.transformer("secrets", "");
/// let key = "/registry/secrets/default/a";
/// let stored = secrets.seal(b"{}"[..].into(), key)?;
/// assert!(stored.starts_with(b"k8s:enc:aesgcm:v1:key1:"));
/// assert_eq!(secrets.open(&stored, key)?, (b"{}"[..].into(), false));
///
/// let pods = encryption.transformer("pods", "");
/// assert_eq!(pods.seal(b"{}"[..].into(), key)?, &b"{}"[..]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Encryption {
    shared: Arc<CurrentCell>,
}

#[derive(Debug, Default)]
struct CurrentCell {
    config: ArcSwap<EncryptionConfig>,
    /// Notified when the configuration has been replaced.
    replaced: Notify,
}

/// The encryption of a type's values. It follows the configuration.
#[derive(Clone, Debug, Default)]
pub struct Transformer {
    encryption: Encryption,
    /// The names of the rules that may be its own, the nearest first.
    rules: Arc<[String]>,
}

/// The decryption of values that have been read: by one configuration, even if another replaces it meanwhile, to whose
/// providers their keys are not known yet.
#[derive(Clone, Debug, Default)]
pub struct Reader(Providers);

impl Encryption {
    /// Makes the encryption of a configuration.
    #[must_use]
    pub fn new(config: EncryptionConfig) -> Self {
        let shared = CurrentCell {
            config: ArcSwap::from_pointee(config),
            replaced: Notify::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Encrypts and decrypts by another configuration from now on.
    pub fn replace(&self, config: EncryptionConfig) {
        self.shared.config.store(Arc::new(config));
        self.shared.replaced.notify_one();
    }

    /// Returns true if no type is or was encrypted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shared.config.load().is_empty()
    }

    /// Returns true if values are encrypted with KMS plugins.
    #[must_use]
    pub fn uses_kms(&self) -> bool {
        self.shared.config.load().uses_kms()
    }

    /// Checks that all KMS plugins are healthy, see [`EncryptionConfig::check_kms`].
    ///
    /// # Errors
    /// An explanation for the log.
    pub async fn check_kms(&self) -> Result<(), String> {
        self.shared.config.load_full().check_kms().await
    }

    /// Keeps the keys of all KMS plugins confirmed, until it is dropped. Without this, nothing is encrypted with them
    /// after some minutes.
    pub async fn poll_kms(self) {
        loop {
            let config = self.shared.config.load_full();
            tokio::select! {
                () = config.poll_kms() => {}
                () = self.shared.replaced.notified() => {}
            }
        }
    }

    /// Returns the transformer of a type's values.
    #[must_use]
    pub fn transformer(&self, resource: &str, group: &str) -> Transformer {
        Transformer {
            encryption: self.clone(),
            rules: EncryptionConfig::rules_of(resource, group).into(),
        }
    }
}

impl Transformer {
    /// Returns the providers of the type's values now.
    fn providers(&self) -> Providers {
        self.encryption.shared.config.load().providers(&self.rules)
    }

    /// Decrypts a value that is stored under a full key, and returns true with it if it is stale: it would be encrypted
    /// in another way today.
    ///
    /// # Errors
    /// [`TransformError`] when no provider can read it.
    pub fn open(&self, stored: &Bytes, key: &str) -> Result<(Bytes, bool), TransformError> {
        self.providers().open(stored, key)
    }

    /// Encrypts a value for a full key.
    ///
    /// # Errors
    /// [`TransformError`] when there is no randomness, or a KMS plugin does not answer.
    pub fn seal(&self, plain: Bytes, key: &str) -> Result<Bytes, TransformError> {
        self.providers().seal(plain, key)
    }

    /// Returns the decryption of these values. The keys of KMS plugins with which they are encrypted are known to it.
    pub fn reader<'a>(
        &self,
        stored: impl Iterator<Item = &'a Bytes>,
    ) -> impl Future<Output = Reader> + Send + 'static {
        let providers = self.providers();
        let sealed = if providers.uses_kms() {
            stored.cloned().collect()
        } else {
            Vec::new()
        };
        async move {
            providers.fetch_keys(&sealed).await;
            Reader(providers)
        }
    }
}

impl Reader {
    /// Decrypts a value as [`Transformer::open`] does.
    ///
    /// # Errors
    /// [`TransformError`] when no provider can read it.
    pub fn open(&self, stored: &Bytes, key: &str) -> Result<(Bytes, bool), TransformError> {
        self.0.open(stored, key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    fn config(name: &str, resources: &str) -> EncryptionConfig {
        let text = format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n\
             - resources: [{resources}]\n  providers:\n  - secretbox: {{keys: [{{name: {name}, \
             secret: AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=}}]}}\n"
        );
        EncryptionConfig::parse(&text, &Clock::real()).expect("a configuration")
    }

    #[test]
    fn transformers_follow_the_configuration() {
        let encryption = Encryption::default();
        let secrets = encryption.transformer("secrets", "");
        let plain = Bytes::from_static(b"plain");
        assert_eq!(secrets.seal(plain.clone(), "/k"), Ok(plain.clone()));
        assert!(encryption.is_empty());
        let mut before = None;
        for name in ["one", "two"] {
            encryption.replace(config(name, "secrets"));
            let stored = secrets.seal(plain.clone(), "/k").expect("encrypted");
            let prefix = format!("k8s:enc:secretbox:v1:{name}:");
            assert!(stored.starts_with(prefix.as_bytes()));
            assert_eq!(secrets.open(&stored, "/k"), Ok((plain.clone(), false)));
            if let Some(before) = before.replace(stored) {
                secrets.open(&before, "/k").expect_err("its key is gone");
            }
        }
        encryption.replace(config("one", "\"*.apps\""));
        assert_eq!(secrets.seal(plain.clone(), "/k"), Ok(plain));
    }

    #[tokio::test]
    async fn values_that_have_been_read_are_decrypted_by_one_configuration() {
        let encryption = Encryption::new(config("one", "secrets"));
        let secrets = encryption.transformer("secrets", "");
        let plain = Bytes::from_static(b"plain");
        let stored = secrets.seal(plain.clone(), "/k").expect("encrypted");
        let reader = secrets.reader([&stored].into_iter()).await;
        encryption.replace(config("two", "secrets"));
        assert_eq!(reader.open(&stored, "/k"), Ok((plain.clone(), false)));
        let written = secrets.seal(plain, "/k").expect("encrypted");
        assert!(written.starts_with(b"k8s:enc:secretbox:v1:two:"));
        let reader = secrets.reader([&stored].into_iter()).await;
        reader.open(&stored, "/k").expect_err("its key is gone");
    }
}
