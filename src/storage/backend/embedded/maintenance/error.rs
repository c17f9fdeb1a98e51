//! The errors of work on stores and snapshots.

use std::io;
use std::path::{Path, PathBuf};

use crate::storage::backend::BackendError;
use crate::storage::backend::embedded::open_error::OpenError;

/// An error of work on a store or a snapshot: one line that names the file and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MaintenanceError {
    /// The store's file cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// There is no store at the path.
    #[error("{}: there is no store; name the data directory of a server", path.display())]
    Missing {
        /// The path at which the store's file would be.
        path: PathBuf,
    },
    /// The file is no snapshot.
    #[error(
        "{}: this is not a snapshot of ringwatch; name a file that ringwatch store snapshot wrote",
        path.display()
    )]
    NotASnapshot {
        /// The path of the file.
        path: PathBuf,
    },
    /// A newer version of this program wrote the snapshot.
    #[error(
        "{}: the snapshot has format {found}, this program knows format {known}; use the version \
         that wrote it, or a newer one",
        path.display()
    )]
    Format {
        /// The path of the snapshot.
        path: PathBuf,
        /// The format of the snapshot.
        found: u32,
        /// The format that this program reads and writes.
        known: u32,
    },
    /// The snapshot is cut off or changed.
    #[error("{}: the snapshot is damaged: {detail}; use another one", path.display())]
    DamagedSnapshot {
        /// The path of the snapshot.
        path: PathBuf,
        /// The explanation.
        detail: String,
    },
    /// The store cannot be compacted at that revision.
    #[error(
        "{}: it cannot be compacted at revision {revision}: it is compacted at {compacted}, and its newest revision is \
         {newest}; choose one after the first and up to the second",
        path.display()
    )]
    Revision {
        /// The path of the store's file.
        path: PathBuf,
        /// The revision at which it was to be compacted.
        revision: u64,
        /// The compacted revision; 0 if nothing is.
        compacted: u64,
        /// The newest revision.
        newest: u64,
    },
    /// The store's file cannot be written.
    #[error("{}: {source}; free space or replace the disk", path.display())]
    Store {
        /// The path of the store's file.
        path: PathBuf,
        /// The error of the store.
        source: BackendError,
    },
    /// The operating system refuses to read or write a file.
    #[error("{}: {source}; check the path and its permissions", path.display())]
    Io {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl MaintenanceError {
    /// Returns a function that adds the path of a file to an error of the operating system.
    pub(super) fn io(path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }

    /// Returns the error of a damaged snapshot.
    pub(super) fn damaged(path: &Path, detail: impl ToString) -> Self {
        Self::DamagedSnapshot {
            path: path.to_owned(),
            detail: detail.to_string(),
        }
    }
}
