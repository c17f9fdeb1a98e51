//! The embedded backend: etcd's data model in this process.
//!
//! Read in this order:
//! - `mvcc`: the core. What the store holds at every revision since the compacted one, as an
//!   immutable snapshot; pure, without I/O and without a clock.
//! - `log`: where changes are made durable: a redb file, or nowhere.
//! - `lease_book`: which leases live until when, and which keys go with them.
//! - `writer`: the single writer. It applies a batch of requests to its own snapshot, makes the
//!   batch durable, and only then publishes the snapshot and answers.
//! - `commit_loop`: feeds the writer with everything that came while the last batch was written.
//! - `watch`: a watch is a position in the published history; nothing is queued for it.
//! - [`Embedded`]: the handle that ties them together and is a [`super::Backend`].

mod backend;
mod commit_loop;
#[cfg(test)]
mod faults;
mod lease_book;
mod log;
mod mvcc;
mod open_error;
mod published;
mod watch;
mod writer;

pub use backend::Embedded;
pub use commit_loop::CommitLoop;
pub use open_error::OpenError;
