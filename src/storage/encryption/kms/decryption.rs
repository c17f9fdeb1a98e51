//! Has a plugin decrypt the seeds of stored values, and remembers them.
//!
//! ```text
//!   reader --wait--+
//!   reader --wait--+--> call of a seed --Decrypt--> plugin
//!   poll  --drive--+          |
//!                             +--> seeds, or how long the plugin is not asked again
//! ```
//!
//! The hard part is that readers come with deadlines of their own, which are often shorter than a call takes. So a call
//! belongs to no reader: it is kept here until it ends, and whoever is there moves it on, [`Decryption::drive`] if no
//! reader is left. Thus a seed is asked for once however many wait for it, and a plugin that hangs is known to do so
//! after the time of one call, even if no reader has waited that long.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared, select_all};
use tokio::sync::Notify;

use super::client::{Plugin, PluginError};
use super::data_key::DataKey;
use super::envelope::{Digest, EncryptedSource};
use super::messages::{self, DecryptRequest};
use super::seeds::{SeedState, Seeds};
use crate::clock::{Clock, Instant};
use crate::sync::{Arc, Mutex, MutexGuard};

/// Maximum number of seeds for which the plugin is asked at a time. The next wait for one of these calls to end.
const CALLS_MAX: usize = 16;
/// The time for which a plugin is not asked again for a seed that it did not decrypt.
const FAILURE_LIFETIME: Duration = Duration::from_secs(1);
/// The time for which a plugin that did not answer in time is not asked for any seed, unless it tells its status
/// meanwhile.
const SILENCE_LIFETIME: Duration = Duration::from_secs(10);
/// Maximum number of bytes of a plugin's error that are remembered.
const FAILURE_BYTES_MAX: usize = 512;

/// A question for a seed. It takes as long as the plugin's calls do at most, and its outcome is remembered when it
/// ends.
type SeedCall = Shared<BoxFuture<'static, ()>>;

/// The seeds of stored values, and the calls that fetch more of them.
#[derive(Debug)]
pub(super) struct Decryption {
    plugin: Arc<dyn Plugin>,
    memory: Arc<Memory>,
    /// The calls under way, at most [`CALLS_MAX`], and some that have ended.
    calls: Mutex<BTreeMap<Digest, SeedCall>>,
    /// Notified when a call has begun.
    begun: Notify,
}

/// The outcomes of calls.
#[derive(Debug)]
struct Memory {
    /// The name of the provider, for the log.
    provider: String,
    clock: Clock,
    seeds: Seeds,
    /// The error of the last call if the plugin did not answer it in time, and until when it counts.
    silence: Mutex<Option<(String, Instant)>>,
}

impl Decryption {
    /// Starts with no seed.
    pub(super) fn new(provider: &str, plugin: &Arc<dyn Plugin>, clock: &Clock) -> Self {
        let memory = Memory {
            provider: provider.to_owned(),
            clock: clock.clone(),
            seeds: Seeds::default(),
            silence: Mutex::default(),
        };
        Self {
            plugin: Arc::clone(plugin),
            memory: Arc::new(memory),
            calls: Mutex::default(),
            begun: Notify::new(),
        }
    }

    /// Remembers a seed that was made here.
    pub(super) fn learn(&self, source: &EncryptedSource, key: &Arc<DataKey>) {
        let known = SeedState::Key(Arc::clone(key));
        self.memory.seeds.insert(source, known);
    }

    /// Returns the key of a source.
    ///
    /// # Errors
    /// The reason why it is not known.
    pub(super) fn key(&self, source: &EncryptedSource) -> Result<Arc<DataKey>, String> {
        match self.memory.seeds.get(source) {
            Some(SeedState::Key(key)) => Ok(key),
            Some(SeedState::Failed(why, _)) => Err(why),
            None => {
                let silence = self.memory.silence();
                Err(silence.unwrap_or_else(|| "the plugin has not been asked".to_owned()))
            }
        }
    }

    /// Has a seed decrypted unless it is known, or its last failure is. Returns true if it is known then. The time is
    /// that of the call for it; where [`CALLS_MAX`] others are under way, that of these comes before.
    pub(super) async fn fetch(&self, source: EncryptedSource) -> bool {
        loop {
            if let Some(is_known) = self.memory.outcome(&source) {
                return is_known;
            }
            match self.call(&source) {
                Ok(call) => {
                    call.await;
                    return self.key(&source).is_ok();
                }
                Err(others) => {
                    select_all(others).await;
                }
            }
        }
    }

    /// Moves the calls on that no reader waits for. Never completes.
    pub(super) async fn drive(&self) {
        loop {
            let calls: Vec<_> = self.under_way().values().cloned().collect();
            if calls.is_empty() {
                self.begun.notified().await;
                continue;
            }
            tokio::select! {
                _ = select_all(calls) => {}
                () = self.begun.notified() => {}
            }
        }
    }

    /// Forgets that the plugin did not answer in time.
    pub(super) fn forget_silence(&self) {
        self.memory.lock_silence().take();
    }

    /// Returns the call for a seed, which begins if it is not under way.
    ///
    /// # Errors
    /// The calls that are under way if they are as many as can be.
    fn call(&self, source: &EncryptedSource) -> Result<SeedCall, Vec<SeedCall>> {
        let digest = source.digest();
        let mut calls = self.under_way();
        if let Some(call) = calls.get(&digest) {
            return Ok(call.clone());
        }
        if calls.len() >= CALLS_MAX {
            return Err(calls.values().cloned().collect());
        }
        let (plugin, memory) = (Arc::clone(&self.plugin), Arc::clone(&self.memory));
        let source = source.clone();
        let call = async move {
            let fetched = ask(&*plugin, &source).await;
            memory.note(&source, fetched);
        };
        let call = call.boxed().shared();
        calls.insert(digest, call.clone());
        self.begun.notify_one();
        Ok(call)
    }

    /// Returns the calls that have not ended.
    fn under_way(&self) -> MutexGuard<'_, BTreeMap<Digest, SeedCall>> {
        let calls = self.calls.lock();
        let mut calls = calls.unwrap_or_else(std::sync::PoisonError::into_inner);
        calls.retain(|_, call| call.peek().is_none());
        calls
    }
}

impl Memory {
    /// Returns true for a seed that is known, false for one that the plugin is not asked for now.
    fn outcome(&self, source: &EncryptedSource) -> Option<bool> {
        match self.seeds.get(source) {
            Some(SeedState::Key(_)) => Some(true),
            Some(SeedState::Failed(_, until)) if self.clock.now() < until => Some(false),
            Some(SeedState::Failed(..)) | None => self.silence().map(|_| false),
        }
    }

    /// Remembers the outcome of a call: a failure for [`FAILURE_LIFETIME`], and that the plugin did not answer in time
    /// for [`SILENCE_LIFETIME`].
    fn note(&self, source: &EncryptedSource, fetched: Result<DataKey, PluginError>) {
        let error = match fetched {
            Ok(key) => return self.seeds.insert(source, SeedState::Key(Arc::new(key))),
            Err(error) => error,
        };
        let mut why = error.to_string();
        why.truncate(why.floor_char_boundary(FAILURE_BYTES_MAX));
        let provider = &self.provider;
        tracing::warn!(provider, why, "a KMS plugin does not decrypt a key");
        let now = self.clock.now();
        if error.is_silence() {
            *self.lock_silence() = Some((why, now + SILENCE_LIFETIME));
        } else {
            let known = SeedState::Failed(why, now + FAILURE_LIFETIME);
            self.seeds.insert(source, known);
        }
    }

    /// Returns the error of a plugin that did not answer in time, as long as it is not asked again.
    fn silence(&self) -> Option<String> {
        let now = self.clock.now();
        let silence = self.lock_silence();
        let lasting = silence.as_ref().filter(|(_, until)| now < *until);
        lasting.map(|(why, _)| why.clone())
    }

    fn lock_silence(&self) -> MutexGuard<'_, Option<(String, Instant)>> {
        let silence = self.silence.lock();
        silence.unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Has the plugin decrypt a seed.
async fn ask(plugin: &dyn Plugin, source: &EncryptedSource) -> Result<DataKey, PluginError> {
    let request = DecryptRequest {
        ciphertext: source.ciphertext.clone(),
        uid: messages::uid(),
        key_id: source.key_id.clone(),
        annotations: source.annotations.clone(),
    };
    let answer = plugin.decrypt(request).await?;
    DataKey::new(source.kind, &answer.plaintext).ok_or_else(|| {
        let bytes = answer.plaintext.len();
        let why = format!("the plugin returned a key of {bytes} bytes");
        PluginError::new("Internal", why)
    })
}
