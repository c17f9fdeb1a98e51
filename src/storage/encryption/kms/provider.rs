//! A provider of a configuration that encrypts with a plugin: the seed in use, and the plugin's health.

use std::time::Duration;

use bytes::Bytes;

use super::client::{GrpcPlugin, Plugin};
use super::data_key::DataKey;
use super::decryption::Decryption;
use super::envelope::{self, EncryptedSource, SourceKind};
use super::messages::{self, EncryptRequest, StatusResponse};
use crate::clock::{Clock, Instant};
use crate::sync::{Arc, Mutex, MutexGuard};

/// The time between two questions for the status of a healthy plugin, and of one that is not.
const POLL_PERIOD: Duration = Duration::from_secs(60);
const RETRY_PERIOD: Duration = Duration::from_secs(10);
/// The time for which a seed encrypts after its key was last confirmed.
const SEED_LIFETIME: Duration = Duration::from_secs(180);
/// The times for which health checks are answered with the last status, a good one and a bad one.
const GOOD_STATUS_LIFETIME: Duration = Duration::from_secs(20);
const BAD_STATUS_LIFETIME: Duration = Duration::from_secs(3);

/// A provider that encrypts with a plugin.
#[derive(Debug)]
pub(in crate::storage::encryption) struct KmsProvider {
    name: String,
    prefix: String,
    plugin: Arc<dyn Plugin>,
    clock: Clock,
    /// The seed with which values are encrypted; `None` until the plugin has encrypted one.
    writing: Mutex<Option<Writing>>,
    /// The seeds of stored values.
    decryption: Decryption,
    /// The last status, held while the plugin is asked.
    health: tokio::sync::Mutex<Health>,
}

/// A seed with which values are encrypted.
#[derive(Clone, Debug)]
struct Writing {
    source: EncryptedSource,
    key: Arc<DataKey>,
    expires: Instant,
}

#[derive(Debug, Default)]
struct Health {
    /// The version of the interface in the first status.
    version: Option<String>,
    /// The outcome of the last question, and until when it counts.
    last: Option<(Result<(), String>, Instant)>,
}

/// A value that cannot be decrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::storage::encryption) enum OpenError {
    /// It is not of this provider, or has been changed.
    Unreadable(String),
    /// The plugin has not decrypted its seed, and may do so later.
    Unavailable(String),
}

impl KmsProvider {
    /// Makes a provider with the plugin at the path of a Unix socket, whose calls take so long at most. It encrypts
    /// nothing until the plugin has been asked.
    pub(in crate::storage::encryption) fn at_socket(
        name: &str,
        path: String,
        timeout: Duration,
        clock: &Clock,
    ) -> Self {
        let plugin = GrpcPlugin::new(path, timeout, clock.clone());
        Self::new(name, Arc::new(plugin), clock.clone())
    }

    /// Returns the longest time of a call.
    pub(in crate::storage::encryption) fn call_time_max(&self) -> Duration {
        self.plugin.call_time_max()
    }

    /// Makes a provider with a plugin.
    pub(super) fn new(name: &str, plugin: Arc<dyn Plugin>, clock: Clock) -> Self {
        Self {
            name: name.to_owned(),
            prefix: format!("k8s:enc:kms:v2:{name}:"),
            decryption: Decryption::new(name, &plugin, &clock),
            plugin,
            clock,
            writing: Mutex::default(),
            health: tokio::sync::Mutex::default(),
        }
    }

    /// Returns the beginning of its values.
    pub(in crate::storage::encryption) fn prefix(&self) -> &str {
        &self.prefix
    }

    fn writing(&self) -> MutexGuard<'_, Option<Writing>> {
        let writing = self.writing.lock();
        writing.unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Encrypts a value for a key, without the prefix.
    ///
    /// # Errors
    /// An explanation: the plugin has not been reached yet, or not for long.
    pub(in crate::storage::encryption) fn seal(
        &self,
        plain: &[u8],
        storage_key: &str,
    ) -> Result<Vec<u8>, String> {
        let Some(writing) = self.writing().clone() else {
            return Err(format!(
                "KMS provider {:?} cannot encrypt: its plugin has not answered yet",
                self.name
            ));
        };
        let now = self.clock.now();
        if now > writing.expires {
            return Err(format!(
                "KMS provider {:?} cannot encrypt: its plugin has not confirmed the key for {} seconds",
                self.name,
                (now - writing.expires + SEED_LIFETIME).as_secs()
            ));
        }
        let sealed = writing.key.seal(plain, storage_key);
        let sealed = sealed.map_err(|_| "the value cannot be encrypted".to_owned())?;
        Ok(envelope::wrap(&writing.source, sealed))
    }

    /// Decrypts a value without its prefix, and returns true with it if it would be encrypted with another key today.
    ///
    /// # Errors
    /// [`OpenError`]
    pub(in crate::storage::encryption) fn open(
        &self,
        sealed: Bytes,
        storage_key: &str,
    ) -> Result<(Bytes, bool), OpenError> {
        let (source, data) = envelope::unwrap(sealed).map_err(OpenError::Unreadable)?;
        let failed = |why: &str| format!("failed to decrypt DEK, error: {why}");
        let key = self.decryption.key(&source);
        let key = key.map_err(|why| OpenError::Unavailable(failed(&why)))?;
        let plain = key.open(&data, storage_key).map_err(|_| {
            OpenError::Unreadable("the value cannot be decrypted with its DEK".to_owned())
        })?;
        let stale = self
            .writing()
            .as_ref()
            .is_some_and(|it| it.source.key_id != source.key_id || it.source.kind != source.kind);
        Ok((plain.into(), stale))
    }

    /// Has the seeds of these values, without their prefixes, decrypted that are not known yet, up to the first that
    /// fails; [`Self::open`] tells why.
    pub(in crate::storage::encryption) async fn fetch_seeds(&self, sealed: Vec<Bytes>) {
        let sources = sealed.into_iter();
        for source in sources.filter_map(|it| Some(envelope::unwrap(it).ok()?.0)) {
            if !self.decryption.fetch(source).await {
                return;
            }
        }
    }

    /// Checks that the plugin is healthy. It is not asked again if it was a moment ago.
    ///
    /// # Errors
    /// An explanation for the log.
    pub(in crate::storage::encryption) async fn check(&self) -> Result<(), String> {
        let mut health = self.health.lock().await;
        let now = self.clock.now();
        if let Some((outcome, _)) = health.last.as_ref().filter(|(_, until)| now < *until) {
            return outcome.clone();
        }
        let outcome = self.ask(&mut health.version).await;
        let lifetime = match &outcome {
            Ok(()) => GOOD_STATUS_LIFETIME,
            Err(_) => BAD_STATUS_LIFETIME,
        };
        health.last = Some((outcome.clone(), self.clock.now() + lifetime));
        outcome
    }

    /// Asks for the status again and again, and completes calls that nobody waits for any more, until it is dropped.
    pub(in crate::storage::encryption) async fn poll(&self) {
        let statuses = async {
            loop {
                let period = match self.check().await {
                    Ok(()) => POLL_PERIOD,
                    Err(error) => {
                        tracing::warn!(provider = self.name, error, "a KMS plugin is not healthy");
                        RETRY_PERIOD
                    }
                };
                self.clock.sleep(period).await;
            }
        };
        tokio::select! {
            () = statuses => {}
            () = self.decryption.drive() => {}
        }
    }

    /// Asks for the status, and makes a new seed if the plugin has a new key.
    async fn ask(&self, version: &mut Option<String>) -> Result<(), String> {
        let name = &self.name;
        // The lifetime of the seed begins before the question.
        let expires = self.clock.now() + SEED_LIFETIME;
        let status = self.plugin.status().await.map_err(|error| {
            format!(
                "failed to perform status section of the healthz check for KMS Provider {name}, error: {error}"
            )
        })?;
        self.decryption.forget_silence();
        let mut errors = Vec::new();
        if status.healthz != "ok" {
            errors.push(format!("got unexpected healthz status: {}", status.healthz));
        }
        errors.extend(check_version(&status, version).err());
        match EncryptedSource::check_key_id(&status.key_id) {
            Ok(()) => errors.extend(self.use_key(&status.key_id, expires).await.err()),
            Err(why) => errors.push(format!("got invalid KMSv2 KeyID: {why}")),
        }
        let joined = match &errors[..] {
            [] => return Ok(()),
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        Err(format!(
            "kmsv2 Provider {name} is not healthy, error: {joined}"
        ))
    }

    /// Encrypts with a seed of this key of the plugin until the time. A seed of another key is used on if there is
    /// none.
    async fn use_key(&self, key_id: &str, expires: Instant) -> Result<(), String> {
        if let Some(writing) = self.writing().as_mut()
            && writing.source.key_id == key_id
        {
            writing.expires = expires;
            return Ok(());
        }
        let failed = |why: String| format!("failed to rotate DEK: {why}");
        let seed = DataKey::generate().map_err(|_| failed("no randomness".to_owned()))?;
        let request = EncryptRequest {
            plaintext: seed.to_vec(),
            uid: messages::uid(),
        };
        let answer = self.plugin.encrypt(request).await;
        let answer =
            answer.map_err(|error| failed(format!("failed to encrypt DEK, error: {error}")))?;
        let source = EncryptedSource::from_answer(answer).map_err(failed)?;
        if source.key_id != key_id {
            return Err(failed(
                "the plugin has encrypted with another key than it named in its status".to_owned(),
            ));
        }
        let key = DataKey::new(SourceKind::Seed, &seed);
        let key = Arc::new(key.ok_or_else(|| failed("the seed is short".to_owned()))?);
        self.decryption.learn(&source, &key);
        *self.writing() = Some(Writing {
            source,
            key,
            expires,
        });
        tracing::info!(provider = self.name, "values are encrypted with a new seed");
        Ok(())
    }
}

/// Checks that the plugin speaks version 2, and the same form of it each time.
fn check_version(status: &StatusResponse, first: &mut Option<String>) -> Result<(), String> {
    let version = &status.version;
    if !matches!(version.as_str(), "v2" | "v2beta1") {
        return Err(format!("expected KMSv2 API version v2, got {version}"));
    }
    let first = first.get_or_insert_with(|| version.clone());
    if first == version {
        return Ok(());
    }
    Err(format!(
        "KMSv2 API version should not change after the initial status response version {first}, got {version}"
    ))
}
