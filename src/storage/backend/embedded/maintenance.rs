//! Work on stores besides serving them: status, snapshots, checks, restoring and compaction.
//!
//! - [`Snapshot`]: the content of a store at one moment, and the stream of bytes that keeps it. [`Embedded::snapshot`]
//!   makes one of a store that is served, [`snapshot`] of a file that nothing serves.
//! - [`Seal`]: verifies that such a stream is whole.
//! - [`status`] and [`check`] read a store's file or a snapshot, and change nothing.
//! - [`SnapshotSource`] and [`CopyFile`]: a store's file or a snapshot as the source of a copy, and a store's file as
//!   its target ([`crate::storage::backend::copy`]).
//! - [`restore`] makes a store's file of a snapshot, [`compact`] a smaller one of itself.
//!
//! All of it blocks, and whatever has a path takes the lock of the file for as long as it works.
//!
//! [`Embedded::snapshot`]: super::Embedded::snapshot

mod check;
mod compact;
mod content_digest;
mod copy_file;
mod error;
mod record_checks;
mod restore;
mod seal;
mod snapshot;
mod snapshot_reader;
mod snapshot_source;
mod status;
mod stopped_store;
#[cfg(test)]
mod tests;
mod verified_snapshot;

pub use check::{CheckReport, check, check_snapshot};
pub use compact::{Compaction, compact};
pub use copy_file::CopyFile;
pub use error::MaintenanceError;
pub use restore::restore;
pub use seal::{Seal, SealError};
pub use snapshot::{Chunks, Snapshot, snapshot};
pub use snapshot_reader::is_snapshot;
pub use snapshot_source::SnapshotSource;
pub use status::{StoreStatus, snapshot_status, status};
