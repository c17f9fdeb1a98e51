//! The watch cache in front of a store.
//!
//! One [`Feed`] follows all changes of a store. For each type it keeps the objects and a window of
//! events in memory, from which a [`Cacher`] answers gets, lists and watches. A
//! [`CacheDelegator`] puts that in front of the type's store.
//!
//! ```text
//!  ChangeSource --> Reflector --> CacheWriter (a type's writer)
//!                       |              | appends to the window, pushes to the Watchers
//!                       |              v
//!                   revision       WatchCache <--- Cacher <--- CacheDelegator ---> store
//!                  (all types)         ^
//!                                      +--- CacheWatcher (one per watch)
//! ```
//!
//! # What holds
//!
//! - Each type has one writer, the reflector. Readers read immutable data and take no lock.
//! - The feed's revision rises only after every change up to it is in its type's window. So one number is the freshness
//!   of all types, and a quiet type is as fresh as a busy one.
//! - A watch delivers every event of its selection once, in the order of revisions, from where it began; or it ends.
//!   There is never a gap. A slow client blocks nobody and ends only when the window has passed it.
//! - A bookmark never precedes an event at or below its revision.
//! - A stored value that is not an object is logged and counted. It stops neither its type nor its watches, but as long
//!   as there is one the store answers the type's lists, since only it can report the error. Watches keep the last
//!   content that was sent to them until there is a new one.
//! - A value that cannot be read without waiting suspends its type alone: its reads are refused and its watches wait.
//!   If the value does not become readable soon, the watches end and the type is listed again, which is complete once all
//!   its values have been read.
//! - Nothing here spawns tasks: the server runs [`Reflector::run`].
//!
//! # Reading order
//!
//! `decide` is the table of reads that the cache or the store answers. `reflector` fills the caches through
//! `cache_writer`, using `event`, `snapshot`, `window` and `view`. `watcher` delivers events to a client, starting with
//! its `attachment`; `watchers` pushes the numbers of events to it, and an `index` finds the watchers that an event
//! concerns, those of shards through `shard_groups`.
//!
//! Of one type's cache, [`Cacher`] is the handle, `WatchCache` the shared state, `CacheWriter` its
//! single writer, and `CacheView` the snapshot that one read works on.

mod attachment;
mod backoff;
mod base;
mod bookmark;
mod cache_writer;
mod config;
mod decide;
mod delegator;
mod dispatch_metrics;
mod engine_metrics;
mod event;
mod feed;
mod feed_shared;
mod field_index;
mod figures;
mod filter;
mod followed_types;
mod freshness;
mod handle;
mod held;
mod index;
mod list_snapshot;
mod listing;
mod metrics;
mod readiness;
mod ready_changes;
mod reflector;
mod revision_probe;
mod sealed;
mod sealed_values;
mod shard_groups;
mod shard_index;
mod shrink_windows;
mod signal_channel;
mod snapshot;
mod state_of_store;
mod type_labels;
mod value_requests;
mod view;
mod waiting_reads;
mod watch_cache;
mod watch_place;
mod watcher;
mod watchers;
mod window;

pub use config::TypeConfig;
pub use delegator::CacheDelegator;
pub use feed::Feed;
pub use figures::{TypeFigures, WindowFill};
pub use handle::Cacher;
pub use metrics::CacheMetrics;
pub use readiness::{Progress, Readiness};
pub use reflector::Reflector;
pub use window::WindowLimits;

#[cfg(test)]
#[allow(
    clippy::disallowed_methods,
    reason = "tests bound what they wait for, and let a script take time"
)]
mod tests;
