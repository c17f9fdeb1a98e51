//! The one stream of changes of all types, and the types that follow it.
//!
//! Types are added to a [`Feed`] and removed from it; the [`Reflector`] that comes with it fills their caches. The two
//! share the feed's revision and a probe that asks the store for its newest one.

use std::sync::Arc;

use super::config::TypeConfig;
use super::fill::feed_shared::FeedShared;
use super::fill::reflector::Reflector;
use super::handle::Cacher;
use super::metrics::cache_metrics::CacheMetrics;
use crate::budget::Ledger;
use crate::clock::Clock;
use crate::ring::waiters::published;
use crate::storage::ChangeSource;

/// The entry point of the watch cache: types are added to the stream of changes here. The [crate] shows it with a store
/// and a watch.
#[derive(Clone, Debug)]
pub struct Feed {
    /// The part that is shared with the reflector.
    shared: Arc<FeedShared>,
}

impl Feed {
    /// Creates a feed of a store's changes, whose caches count their memory in `ledger`, and its reflector. Nothing
    /// happens until [`Reflector::run`] is polled.
    #[must_use]
    pub fn new(
        source: Arc<dyn ChangeSource>,
        clock: Clock,
        metrics: CacheMetrics,
        ledger: Ledger,
    ) -> (Self, Reflector) {
        let (publisher, published) = published(0);
        let shared = FeedShared::new(source, clock, metrics, ledger, published);
        let shared = Arc::new(shared);
        let reflector = Reflector::new(Arc::clone(&shared), publisher);
        (Self { shared }, reflector)
    }

    /// Adds a type. It may be added while the feed runs; it is then listed while the others are followed.
    #[must_use]
    pub fn add_type(&self, config: TypeConfig) -> Arc<Cacher> {
        let (id, present) = self.shared.add_type(config);
        Arc::new(Cacher::new(id, present, Arc::clone(&self.shared)))
    }

    /// Removes a type: its watches end, its objects and events are dropped, and its metrics are no longer shown. Its
    /// handle returns errors from then on.
    pub fn remove_type(&self, cacher: &Cacher) {
        self.shared.remove_type(cacher.id());
    }

    /// Lists a type again while the others are followed. Its watches end.
    pub fn relist(&self, cacher: &Cacher) {
        self.shared.command(|commands| {
            commands.relisted.insert(cacher.id());
        });
    }

    /// Lists each type again that has a value which could not be read, as it may be readable now. Their watches end.
    pub fn relist_unreadable(&self) {
        self.shared
            .command(|commands| commands.relist_unreadable = true);
    }

    /// Shrinks windows at once if the memory budget demands it; [`Ledger::pressed`] completes when that may be so.
    pub fn shrink_windows(&self) {
        self.shared.command(|_| {});
    }

    /// Returns the part that is shared with the reflector.
    pub(super) fn shared(&self) -> &FeedShared {
        &self.shared
    }

    /// Ends all watches of all types, each with a last bookmark if it wants bookmarks.
    pub fn drain(&self) {
        self.shared.drain();
    }
}
