//! The decrypted seeds that are remembered, and the last failures to decrypt others.

use std::collections::{BTreeMap, HashMap};

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
#[derive(Debug, Default)]
pub(super) struct Seeds(Mutex<CacheState>);

#[derive(Debug, Default)]
struct CacheState {
    /// Each source, with the number of its last use.
    known: HashMap<Digest, (SeedState, u64)>,
    /// The sources in the order of their last uses.
    by_use: BTreeMap<u64, Digest>,
    /// The number of uses so far.
    uses: u64,
}

impl Seeds {
    fn state(&self) -> MutexGuard<'_, CacheState> {
        let state = self.0.lock();
        state.unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Returns what is known of a source.
    pub(super) fn get(&self, source: &EncryptedSource) -> Option<SeedState> {
        let mut state = self.state();
        let digest = source.digest();
        let now = state.next_use(digest);
        match state.known.get_mut(&digest) {
            Some((known, used)) => {
                let (known, before) = (known.clone(), std::mem::replace(used, now));
                state.by_use.remove(&before);
                Some(known)
            }
            None => {
                state.by_use.remove(&now);
                None
            }
        }
    }

    /// Remembers what is known of a source from now on. A failure does not replace a key, which another task has got
    /// meanwhile.
    pub(super) fn insert(&self, source: &EncryptedSource, known: SeedState) {
        let mut state = self.state();
        let digest = source.digest();
        let before = state.known.get(&digest);
        if matches!(
            (before, &known),
            (Some((SeedState::Key(_), _)), SeedState::Failed(..))
        ) {
            return;
        }
        let now = state.next_use(digest);
        if let Some((_, used)) = state.known.insert(digest, (known, now)) {
            state.by_use.remove(&used);
        }
        if state.known.len() > SEEDS_MAX
            && let Some((_, oldest)) = state.by_use.pop_first()
        {
            state.known.remove(&oldest);
        }
    }
}

impl CacheState {
    /// Makes a source the one that was used last, and returns the number of the use.
    fn next_use(&mut self, digest: Digest) -> u64 {
        self.uses += 1;
        self.by_use.insert(self.uses, digest);
        self.uses
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
        let state = seeds.state();
        assert_eq!(
            (state.known.len(), state.by_use.len()),
            (SEEDS_MAX, SEEDS_MAX)
        );
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
