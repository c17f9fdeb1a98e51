//! The errors of opening a database file. None of them changes the file.

use std::io;
use std::path::PathBuf;

/// An error of [`super::Embedded::open`]: one line that names the file and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process, or another handle of this one, has the file open.
    #[error(
        "{}: the database is in use by another process; stop that one or choose another file",
        path.display()
    )]
    InUse {
        /// The path of the database file.
        path: PathBuf,
    },
    /// Something else wrote the file.
    #[error(
        "{}: this is not a ringwatch database; choose another file, or move this one away to \
         start empty",
        path.display()
    )]
    Foreign {
        /// The path of the database file.
        path: PathBuf,
    },
    /// The file was a database but is cut off or changed.
    #[error(
        "{}: the database is damaged ({detail}); restore it from a backup, or move it away to \
         start empty",
        path.display()
    )]
    Damaged {
        /// The path of the database file.
        path: PathBuf,
        /// The explanation.
        detail: String,
    },
    /// A newer version of this program wrote the file.
    #[error(
        "{}: the database has format {found}, this program knows formats up to {known}; use the \
         version that wrote it, or a newer one",
        path.display()
    )]
    Format {
        /// The path of the database file.
        path: PathBuf,
        /// The format of the file.
        found: u64,
        /// The newest format that this program reads, which it writes as well.
        known: u64,
    },
    /// The operating system refuses to read or write it.
    #[error("{}: cannot open the database: {source}; check the path and its permissions", path.display())]
    Io {
        /// The path of the database file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}
