//! The watch cache in front of a store.
//!
//! One [`Feed`] follows all changes of a store. For each type it keeps the objects and a window of
//! events in memory, from which a [`Cacher`] answers gets, lists and watches. A
//! [`CacheDelegator`] puts that in front of the type's store; without one, a [`Cacher`] answers what it can.
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
//!   If the value does not become readable soon, the watches end and the type is listed again, which is complete once
//!   all its values have been read.
//! - Nothing here spawns tasks: the server runs [`Reflector::run`].
//!
//! # Reading order
//!
//! `decide` is the table of reads that the cache or the store answers. Below it are five rooms, each of which imports
//! only those before it:
//!
//! | room | holds |
//! |---|---|
//! | `window` | the objects and the newest events of a type, as data that readers share: `event`, `snapshot`, `view` |
//! | `metrics` | the metrics of all rooms |
//! | `freshness` | the revision that all types have reached, the probe of the store's newest one, the reads that wait |
//! | `dispatch` | a type's `watch_cache`; its `watchers`, which push the numbers of events, with the `index` that finds the watchers that an event concerns; `attachment` and `watcher`, which deliver events to one client |
//! | `fill` | the `reflector`, which fills the caches of all types through `cache_writer` |
//!
//! Of one type's cache, [`Cacher`] is the handle, `WatchCache` the shared state, `CacheWriter` its
//! single writer, and `CacheView` the snapshot that one read works on.

mod answer;
mod config;
mod decide;
mod delegator;
mod dispatch;
mod feed;
mod figures;
mod fill;
mod freshness;
mod handle;
mod list_snapshot;
mod metrics;
mod readiness;
mod reads;
mod state_of_store;
mod window;

pub use config::TypeConfig;
pub use delegator::CacheDelegator;
pub use dispatch::bookmark::BOOKMARK_BEFORE_DEADLINE;
pub use feed::Feed;
pub use figures::{TypeFigures, WindowFill};
pub use fill::reflector::Reflector;
pub use handle::Cacher;
pub use metrics::cache_metrics::CacheMetrics;
pub use readiness::{Progress, Readiness};
pub use window::event_window::WindowLimits;

#[cfg(test)]
#[allow(
    clippy::disallowed_methods,
    reason = "tests bound what they wait for, and let a script take time"
)]
mod tests;
