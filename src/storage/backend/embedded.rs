//! The embedded backend: etcd's data model in this process.
//!
//! Read in this order:
//! - `mvcc`: the core: the content of the store at every revision since the compacted one, as an immutable snapshot;
//!   without I/O and without a clock.
//! - `log`: makes changes durable in a redb file, or keeps nothing.
//! - `lease_book`: the deadlines of leases, and the keys attached to each.
//! - `history_bound`: the memory that the history may take.
//! - `request`: a request to the writer, and its reply.
//! - `writer`: the single writer. It applies a batch of requests to its own snapshot, makes the
//!   batch durable, and only then publishes the snapshot and answers.
//! - `commit_loop`: passes to the writer everything that came while the last batch was written.
//! - `watch`: a watch is a position in the published history; no events are queued for it.
//! - `maintenance`: status, snapshots, checks, restoring and compaction of stores that nothing serves.
//! - [`Embedded`]: the handle, which is a [`super::Backend`].

mod backend;
mod commit_loop;
#[cfg(test)]
mod faults;
mod history_bound;
mod lease_book;
mod log;
pub mod maintenance;
mod mvcc;
mod open_error;
mod published;
mod request;
mod watch;
mod writer;

pub use backend::Embedded;
pub use commit_loop::CommitLoop;
pub use log::Disk;
pub use open_error::OpenError;

/// The name of a store's file in the data directory of a server.
pub const FILE_NAME: &str = "store.redb";
/// The name that the file of a copy has there until it is whole.
pub const UNFINISHED_COPY_NAME: &str = ".ringwatch-store-copy";
