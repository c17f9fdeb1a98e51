//! The decrypted seeds that are remembered, and the last failures to decrypt others.

use lru::LruCache;

use super::data_key::DataKey;
use super::envelope::{Digest, EncryptedSource};
use crate::clock::Instant;
use crate::sync::{Arc, Mutex, MutexGuard};

/// Maximum number of seeds; the one that has not been used for longest gives way. There is one for each key of the
/// plugin and each start of a server, as long as values of theirs are stored. One takes less than 1 KiB.
const SEEDS_MAX: usize = 4_096;

/// The state of a source: decrypted, or not.
#[derive(Clone, Debug)]
pub(super) enum SeedState {
    /// Its key.
    Key(Arc<DataKey>),
    /// The reason why the plugin did not decrypt it the last time, and until when it is not asked again.
    Failed(String, Instant),
}

/// Seeds by the digest of their encrypted form.
#[derive(Debug)]
pub(super) struct Seeds(Mutex<LruCache<Digest, SeedState>>);

impl Default for Seeds {
    fn default() -> Self {
        // With a bound it would take the memory of them all at once.
        Self(Mutex::new(LruCache::unbounded()))
    }
}

impl Seeds {
    fn state(&self) -> MutexGuard<'_, LruCache<Digest, SeedState>> {
        let state = self.0.lock();
        state.unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Returns what is known of a source.
    pub(super) fn get(&self, source: &EncryptedSource) -> Option<SeedState> {
        self.state().get(&source.digest()).cloned()
    }

    /// Remembers what is known of a source from now on. A failure does not replace a key, which another task has got
    /// meanwhile.
    pub(super) fn insert(&self, source: &EncryptedSource, known: SeedState) {
        let mut state = self.state();
        let digest = source.digest();
        let before = state.peek(&digest);
        if matches!(
            (before, &known),
            (Some(SeedState::Key(_)), SeedState::Failed(..))
        ) {
            return;
        }
        state.put(digest, known);
        if state.len() > SEEDS_MAX {
            state.pop_lru();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::envelope::SourceKind;
    use super::*;
    use crate::clock::Clock;

    fn source(number: usize) -> EncryptedSource {
        EncryptedSource {
            kind: SourceKind::Seed,
            ciphertext: number.to_be_bytes().to_vec().into(),
            key_id: "k".to_owned(),
            annotations: Default::default(),
        }
    }

    fn failed() -> SeedState {
        SeedState::Failed("late".to_owned(), Clock::real().now())
    }

    #[test]
    fn a_bounded_number_is_remembered() {
        let seeds = Seeds::default();
        for number in 0..SEEDS_MAX {
            seeds.insert(&source(number), failed());
        }
        assert!(seeds.get(&source(0)).is_some());
        assert!(seeds.get(&source(SEEDS_MAX)).is_none());
        seeds.insert(&source(2), failed());
        for number in [SEEDS_MAX, SEEDS_MAX + 1] {
            seeds.insert(&source(number), failed());
        }
        for (number, kept) in [(0, true), (1, false), (2, true), (3, false), (4, true)] {
            assert_eq!(seeds.get(&source(number)).is_some(), kept, "{number}");
        }
        assert!(seeds.get(&source(SEEDS_MAX)).is_some());
        assert_eq!(seeds.state().len(), SEEDS_MAX);
    }

    #[test]
    fn a_failure_does_not_replace_a_key() {
        let seeds = Seeds::default();
        let key = DataKey::new(SourceKind::Seed, &[1; 32]).expect("a seed");
        seeds.insert(&source(0), failed());
        seeds.insert(&source(0), SeedState::Key(Arc::new(key)));
        seeds.insert(&source(0), failed());
        assert!(matches!(seeds.get(&source(0)), Some(SeedState::Key(_))));
    }
}
