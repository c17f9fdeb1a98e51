//! The decrypted seeds that are remembered, and the last failures to decrypt others.

use std::collections::HashMap;

use super::data_key::DataKey;
use super::envelope::EncryptedSource;
use crate::sync::{Arc, Mutex, MutexGuard};

/// Maximum number of seeds; the one that has not been used for longest gives way. There is one for each key of the plugin
/// and each start of a server, as long as values of theirs are stored.
const SEEDS_MAX: usize = 4_096;

/// The state of a source: decrypted, or not.
#[derive(Clone, Debug)]
pub(super) enum Known {
    /// Its key.
    Key(Arc<DataKey>),
    /// The reason why the plugin did not decrypt it the last time.
    Failed(String),
}

/// Seeds by their encrypted form.
#[derive(Debug, Default)]
pub(super) struct Seeds(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    known: HashMap<EncryptedSource, (Known, u64)>,
    /// The number of uses so far, by which the order of uses is told.
    uses: u64,
}

impl Seeds {
    fn state(&self) -> MutexGuard<'_, State> {
        let state = self.0.lock();
        state.unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Returns what is known of a source.
    pub(super) fn get(&self, source: &EncryptedSource) -> Option<Known> {
        let mut state = self.state();
        state.uses += 1;
        let now = state.uses;
        let (known, used) = state.known.get_mut(source)?;
        *used = now;
        Some(known.clone())
    }

    /// Returns true if the key of a source is known.
    pub(super) fn has_key(&self, source: &EncryptedSource) -> bool {
        matches!(self.get(source), Some(Known::Key(_)))
    }

    /// Remembers what is known of a source from now on. A failure does not replace a key, which another task has got
    /// meanwhile.
    pub(super) fn insert(&self, source: EncryptedSource, known: Known) {
        let mut state = self.state();
        let before = state.known.get(&source).map(|(known, _)| known);
        if matches!((before, &known), (Some(Known::Key(_)), Known::Failed(_))) {
            return;
        }
        state.uses += 1;
        let now = state.uses;
        if state.known.len() >= SEEDS_MAX && !state.known.contains_key(&source) {
            let mut by_use = state.known.iter();
            let oldest = by_use.by_ref().min_by_key(|(_, (_, used))| *used);
            if let Some(oldest) = oldest.map(|(source, _)| source.clone()) {
                state.known.remove(&oldest);
            }
        }
        state.known.insert(source, (known, now));
    }
}

#[cfg(test)]
mod tests {
    use super::super::envelope::SourceKind;
    use super::*;

    fn source(number: usize) -> EncryptedSource {
        EncryptedSource {
            kind: SourceKind::Seed,
            ciphertext: number.to_be_bytes().to_vec().into(),
            key_id: "k".to_owned(),
            annotations: Default::default(),
        }
    }

    #[test]
    fn a_bounded_number_is_remembered() {
        let seeds = Seeds::default();
        let known = Known::Failed(String::new());
        for number in 0..SEEDS_MAX {
            seeds.insert(source(number), known.clone());
        }
        assert!(seeds.get(&source(0)).is_some());
        seeds.insert(source(SEEDS_MAX), known);
        assert!(seeds.get(&source(0)).is_some(), "used lately");
        assert!(seeds.get(&source(1)).is_none(), "not used for longest");
        assert!(seeds.get(&source(SEEDS_MAX)).is_some());
    }

    #[test]
    fn a_failure_does_not_replace_a_key() {
        let seeds = Seeds::default();
        let key = DataKey::new(SourceKind::Seed, &[1; 32]).expect("a seed");
        seeds.insert(source(0), Known::Failed("late".to_owned()));
        seeds.insert(source(0), Known::Key(Arc::new(key)));
        seeds.insert(source(0), Known::Failed("late".to_owned()));
        assert!(seeds.has_key(&source(0)));
    }
}
