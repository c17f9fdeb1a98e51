//! The types of a feed, and the phase that each is in.
//!
//! ```text
//!                                                     +-- an encrypted value came --> Waiting
//!                                                     |                            |    |
//!   add --> Listing --complete, and the stream is there--> Following <--decrypted--+    |
//!              ^                                               |                        |
//!              +----- on request, or after a contradiction ----+                        |
//!              +------------- it cannot be decrypted, or not in time; too much waits ---+
//! ```
//!
//! The phases of types are independent: listing one, slowly or again, does not affect the others.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::backoff::backoff;
use super::cache_writer::{AppliedEvents, CacheWriter, Filling, UndispatchedEvents};
use super::decryption_request::{DecryptionRequest, ValueAnswer};
use super::feed_shared::TypeId;
use super::listing::Listing;
use super::pending_changes::PendingChanges;
use crate::clock::Instant;
use crate::storage::cacher::dispatch::filter::folders;
use crate::storage::cacher::readiness::ReadinessEvent;
use crate::storage::{Change, ChangeBatch, ChangeKind, StorageError};

/// All types of a feed, with their writers.
#[derive(Debug, Default)]
pub(crate) struct FollowedTypes {
    /// The types, by number.
    by_id: BTreeMap<TypeId, FollowedType>,
    /// The type of each prefix; of several types with the same prefix the one added last.
    by_prefix: HashMap<Box<str>, TypeId>,
}

/// A type of the feed, with the writer of its cache.
#[derive(Debug)]
pub(crate) struct FollowedType {
    /// The writer of its cache.
    pub(crate) cache: CacheWriter,
    /// The phase that it is in.
    phase: FillPhase,
    /// The number of changes that contradicted the known state.
    faults: u32,
}

/// The phase of a type.
#[derive(Debug)]
enum FillPhase {
    /// It is being listed, and its changes are applied to the list.
    Listing(Box<Listing>),
    /// Its changes are applied to its cache.
    Following {
        /// True once the type has become ready.
        served: bool,
    },
    /// Its changes wait for the value of one of them.
    Waiting(PendingChanges),
}

/// The events of types that their writers have applied and nobody has seen.
pub(crate) type Batch = BTreeMap<TypeId, AppliedEvents>;

/// The reason why a type must be listed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    /// A change contradicts the known state.
    #[error("a change came that cannot be: an earlier one was lost")]
    Contradiction,
    /// Too many changes wait for a value.
    #[error("too many changes wait for a value that cannot be decrypted yet")]
    TooMuchWaits,
}

impl FollowedTypes {
    /// Adds a type, which is to be listed. If there is one of that number, the new one is stopped instead.
    pub(crate) fn add(&mut self, id: TypeId, cache: CacheWriter, now: Instant) {
        if self.by_id.contains_key(&id) {
            cache.stop();
            return;
        }
        self.by_prefix.insert(cache.prefix().into(), id);
        let listing = Listing::new(cache.begin_filling(), cache.share(), now);
        let followed = FollowedType {
            cache,
            phase: FillPhase::Listing(Box::new(listing)),
            faults: 0,
        };
        self.by_id.insert(id, followed);
    }

    /// Removes a type. Its watches end and its memory is freed, whoever may still hold its handle.
    pub(crate) fn remove(&mut self, id: TypeId) {
        let Some(mut followed) = self.by_id.remove(&id) else {
            return;
        };
        let prefix = followed.cache.prefix();
        if self.by_prefix.get(prefix) == Some(&id) {
            self.by_prefix.remove(prefix);
        }
        followed.cache.stop();
        followed.cache.replace(0, Filling::default());
    }

    /// Lists a type again from an instant on. Its watches end.
    pub(crate) fn relist(&mut self, id: TypeId, reason: &StorageError, due: Instant) {
        if let Some(followed) = self.by_id.get_mut(&id) {
            followed.relist(reason, due);
        }
    }

    /// Lists all types again.
    pub(crate) fn relist_all(&mut self, reason: &StorageError, due: Instant) {
        for followed in self.by_id.values_mut() {
            followed.relist(reason, due);
        }
    }

    /// Replaces a type's state by what was listed at a revision, after which its changes are applied.
    pub(crate) fn filled(&mut self, id: TypeId, revision: u64, filling: Filling) {
        if let Some(followed) = self.by_id.get_mut(&id) {
            followed.cache.replace(revision, filling);
            followed.phase = FillPhase::Following { served: false };
        }
    }

    /// Returns the type that a key belongs to: that of the longest prefix.
    fn route(&self, key: &str) -> Option<TypeId> {
        let prefix = |folder| self.by_prefix.get(folder).copied();
        folders(key).rev().find_map(prefix)
    }

    /// Applies each change to its type. Returns the events, which are to be published, and the types that have to be
    /// listed again, and why.
    pub(crate) fn apply(&mut self, batch: ChangeBatch) -> (Batch, Vec<(TypeId, Fault)>) {
        let mut touched: BTreeMap<TypeId, Vec<Change>> = BTreeMap::new();
        for change in batch.changes {
            if let Some(id) = self.route(&change.key) {
                touched.entry(id).or_default().push(change);
            }
        }
        let (mut applied, mut faulty) = (Batch::new(), Vec::new());
        for (id, changes) in touched {
            let Some(followed) = self.by_id.get_mut(&id) else {
                continue;
            };
            match followed.apply(changes, batch.revision) {
                Ok(events) => applied.extend(events.map(|it| (id, it))),
                Err(fault) => faulty.push((id, fault)),
            }
        }
        (applied, faulty)
    }

    /// Publishes events, then calls `published`, then sends the events to the watchers. So whoever is released by
    /// `published` sees the events of all types, and waits for no watcher.
    pub(crate) fn publish(&mut self, mut batch: Batch, published: impl FnOnce()) {
        let touched: Vec<TypeId> = batch.keys().copied().collect();
        let (Some(first), Some(last)) = (touched.first(), touched.last()) else {
            published();
            return;
        };
        let mut undispatched = Vec::with_capacity(touched.len());
        for (id, followed) in self.by_id.range_mut(*first..=*last) {
            let events = batch.remove(id);
            undispatched.extend(events.map(|it| followed.cache.publish(it)));
        }
        published();
        undispatched
            .into_iter()
            .for_each(UndispatchedEvents::dispatch);
        for id in touched {
            if let Some(followed) = self.by_id.get_mut(&id) {
                followed.cache.expire_events();
            }
        }
    }

    /// Returns the type with a value that is to be decrypted now, and that value. `ticket` must differ from that of
    /// every other request.
    pub(crate) fn next_encrypted(
        &mut self,
        ticket: u64,
        now: Instant,
    ) -> Option<(TypeId, DecryptionRequest)> {
        self.by_id.iter_mut().find_map(|(id, followed)| {
            let encrypted = match &mut followed.phase {
                FillPhase::Waiting(pending) => pending.request(ticket),
                FillPhase::Listing(listing) => listing.request_value(ticket, now),
                FillPhase::Following { .. } => None,
            };
            Some((*id, encrypted?))
        })
    }

    /// Returns when the next value of a list is to be decrypted that could not be before.
    pub(crate) fn next_encrypted_due(&self) -> Option<Instant> {
        let due = |followed: &FollowedType| match &followed.phase {
            FillPhase::Listing(listing) => listing.value_due(),
            FillPhase::Following { .. } | FillPhase::Waiting(_) => None,
        };
        self.by_id.values().filter_map(due).min()
    }

    /// Gives a type the value that it waits for, and returns the events that it had kept waiting. If there is no value,
    /// its list waits on, and a type that is followed is listed again.
    ///
    /// # Errors
    /// The type that has to be listed again for another reason.
    pub(crate) fn take_value(
        &mut self,
        answer: ValueAnswer,
        reached: u64,
        now: Instant,
    ) -> Result<Batch, (TypeId, Fault)> {
        let none = Batch::new();
        let Some(followed) = self.by_id.get_mut(&answer.id) else {
            return Ok(none);
        };
        match (&mut followed.phase, answer.value) {
            (FillPhase::Waiting(pending), Ok(value)) if pending.is_in_flight(answer.ticket) => {
                pending.take(value);
                let applied = followed.apply_readable(reached);
                let events = applied.map_err(|fault| (answer.id, fault))?;
                Ok(events.map(|it| (answer.id, it)).into_iter().collect())
            }
            (FillPhase::Waiting(pending), Err(error)) if pending.is_in_flight(answer.ticket) => {
                tracing::error!(%error, "a type is listed again until its values can be read");
                followed.relist(&error, now);
                Ok(none)
            }
            (FillPhase::Listing(listing), Ok(value)) if listing.awaits_value(answer.ticket) => {
                listing.take_value(followed.cache.shared(), value, now);
                Ok(none)
            }
            (FillPhase::Listing(listing), Err(error)) if listing.awaits_value(answer.ticket) => {
                tracing::warn!(%error, prefix = followed.cache.prefix(), "a value of a list cannot be read");
                listing.fail_value(now);
                followed.cache.note_failure(&error);
                Ok(none)
            }
            // The type does not wait for it any more.
            _ => Ok(none),
        }
    }

    /// Returns how long to wait before a type is listed again after a fault. Contradictions are counted, and each makes
    /// it longer.
    pub(crate) fn pause_after(&mut self, id: TypeId, fault: Fault) -> Duration {
        match (fault, self.by_id.get_mut(&id)) {
            (Fault::Contradiction, Some(followed)) => {
                followed.faults = followed.faults.saturating_add(1);
                backoff(followed.faults)
            }
            // The list itself waits for values that cannot be read.
            (Fault::TooMuchWaits, _) | (_, None) => Duration::ZERO,
        }
    }

    /// Completes the lists for which the stream has reached a high enough revision.
    pub(crate) fn finish_lists(&mut self, revision: u64) {
        for followed in self.by_id.values_mut() {
            let FillPhase::Listing(listing) = &mut followed.phase else {
                continue;
            };
            if let Some(filling) = listing.finish(revision) {
                followed.cache.replace(revision, filling);
                followed.phase = FillPhase::Following { served: false };
            }
        }
    }

    /// Reports in the readiness of types how far the changes since the lists have been applied.
    pub(crate) fn note_progress(&self, reached: u64, newest: u64) {
        for followed in self.by_id.values() {
            if matches!(followed.phase, FillPhase::Following { served: false }) {
                let cache = followed.cache.shared();
                cache.note(ReadinessEvent::CaughtUp { reached, newest });
            }
        }
    }

    /// Makes every type ready that has a complete state.
    pub(crate) fn serve(&mut self) {
        for followed in self.by_id.values_mut() {
            if let FillPhase::Following { served } = &mut followed.phase
                && !*served
            {
                *served = true;
                followed.cache.serve();
            }
        }
    }

    /// Returns the list of a type, if it is in progress, and the type's writer.
    pub(crate) fn listing(&mut self, id: TypeId) -> Option<(&CacheWriter, &mut Listing)> {
        let followed = self.by_id.get_mut(&id)?;
        match &mut followed.phase {
            FillPhase::Listing(listing) => Some((&followed.cache, &mut **listing)),
            FillPhase::Following { .. } | FillPhase::Waiting(_) => None,
        }
    }

    /// Returns the type whose next page is due first, and when.
    pub(crate) fn next_due(&self) -> Option<(Instant, TypeId)> {
        let due = |(id, followed): (&TypeId, &FollowedType)| match &followed.phase {
            FillPhase::Listing(listing) => Some((listing.due()?, *id)),
            FillPhase::Following { .. } | FillPhase::Waiting(_) => None,
        };
        self.by_id.iter().filter_map(due).min()
    }

    /// Returns true if a list has all its pages and waits for the stream alone.
    pub(crate) fn awaits_stream(&self) -> bool {
        self.by_id.values().any(
            |followed| matches!(&followed.phase, FillPhase::Listing(listing) if listing.awaits_stream()),
        )
    }

    /// Returns the writers of all types.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (TypeId, &CacheWriter)> {
        self.by_id.iter().map(|(id, it)| (*id, &it.cache))
    }

    /// Returns the types that have values which could not be read, and those that may be about to have some: what is
    /// being listed or waiting may have been found unreadable already.
    pub(crate) fn unreadable(&self) -> impl Iterator<Item = TypeId> {
        let is_settled = |it: &FollowedType| {
            matches!(it.phase, FillPhase::Following { .. }) && !it.cache.has_unreadable()
        };
        let unreadable = self.by_id.iter().filter(move |(_, it)| !is_settled(it));
        unreadable.map(|(id, _)| *id)
    }

    /// Returns the writers of all types, to be changed.
    pub(crate) fn caches_mut(&mut self) -> impl Iterator<Item = &mut CacheWriter> {
        self.by_id.values_mut().map(|it| &mut it.cache)
    }
}

impl FollowedType {
    fn relist(&mut self, reason: &StorageError, due: Instant) {
        if !matches!(self.phase, FillPhase::Listing(_)) {
            self.cache.invalidate(reason);
        }
        let listing = Listing::new(self.cache.begin_filling(), self.cache.share(), due);
        self.phase = FillPhase::Listing(Box::new(listing));
    }

    /// Applies changes, or keeps them from the first encrypted one on. Those of one revision are not parted. Returns
    /// the events, if there may be some.
    fn apply(
        &mut self,
        changes: Vec<Change>,
        revision: u64,
    ) -> Result<Option<AppliedEvents>, Fault> {
        match &mut self.phase {
            FillPhase::Listing(listing) => {
                for change in changes {
                    listing.absorb(self.cache.shared(), change);
                }
                Ok(None)
            }
            FillPhase::Following { .. } => {
                let encrypted = |it: &Change| matches!(it.kind, ChangeKind::Encrypted { .. });
                if changes.iter().any(encrypted) {
                    self.phase = FillPhase::Waiting(PendingChanges::new(self.cache.share()));
                    return self.wait_for_values(changes, revision);
                }
                let applied = self.cache.apply(changes, revision);
                applied.map(Some).ok_or(Fault::Contradiction)
            }
            FillPhase::Waiting(_) => self.wait_for_values(changes, revision),
        }
    }

    /// Keeps changes until the values before them can be read, and applies those that can be.
    fn wait_for_values(
        &mut self,
        changes: Vec<Change>,
        revision: u64,
    ) -> Result<Option<AppliedEvents>, Fault> {
        let now = self.cache.shared().clock.now();
        if let FillPhase::Waiting(pending) = &mut self.phase
            && !pending.push(changes, now)
        {
            return Err(Fault::TooMuchWaits);
        }
        self.apply_readable(revision)
    }

    /// Applies the changes before the first encrypted one. With the last of all, the type has reached `revision`.
    fn apply_readable(&mut self, revision: u64) -> Result<Option<AppliedEvents>, Fault> {
        let FillPhase::Waiting(pending) = &mut self.phase else {
            return Ok(None);
        };
        let changes = pending.take_readable();
        let applied = match pending.first_key() {
            Some(key) => {
                // First, so that no reader takes a state without the changes that wait for the newest.
                self.cache
                    .suspend(format!("the value of {key} cannot be decrypted yet"));
                let Some(last) = changes.last().map(|it| it.revision) else {
                    return Ok(None);
                };
                self.cache.apply(changes, last)
            }
            None => {
                self.phase = FillPhase::Following { served: false };
                self.cache.resume(changes, revision)
            }
        };
        applied.map(Some).ok_or(Fault::Contradiction)
    }
}
