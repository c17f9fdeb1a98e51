//! The keys of a source and of a target side by side.

use std::cmp::Ordering;

use super::error::CopyError;
use super::pages::{Keys, Pages};
use crate::storage::backend::KeyValue;

/// A key that one of two stores has, or both.
#[derive(Debug)]
pub(super) enum Pair {
    Wanted(KeyValue),
    Found(KeyValue),
    Both(KeyValue, KeyValue),
}

/// A walk through the keys of a source at a revision and those of a target, in their order.
#[derive(Debug)]
pub(super) struct Merge {
    wanted: Keys,
    found: Keys,
}

impl Merge {
    /// Begins before the first key.
    pub(super) fn new(revision: u64) -> Self {
        Self {
            wanted: Keys::new(revision),
            found: Keys::new(0),
        }
    }

    /// Returns the next key; `None` after the last.
    ///
    /// # Errors
    /// [`CopyError::Source`] or [`CopyError::Target`].
    pub(super) async fn next(
        &mut self,
        source: &dyn Pages,
        target: &dyn Pages,
    ) -> Result<Option<Pair>, CopyError> {
        let wanted = self.wanted.peek(source).await.map_err(CopyError::Source)?;
        let found = self.found.peek(target).await.map_err(CopyError::Target)?;
        let order = match (wanted, found) {
            (Some(wanted), Some(found)) => wanted.key.cmp(&found.key),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        Ok(match order {
            Ordering::Less => self.wanted.take().map(Pair::Wanted),
            Ordering::Greater => self.found.take().map(Pair::Found),
            Ordering::Equal => {
                let both = self.wanted.take().zip(self.found.take());
                both.map(|(wanted, found)| Pair::Both(wanted, found))
            }
        })
    }
}
