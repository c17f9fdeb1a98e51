//! The reason why redb's file cannot be opened or read.

use std::io;
use std::path::Path;

use redb::{DatabaseError, StorageError};

use super::stored_record::FORMAT;
use crate::storage::backend::embedded::open_error::OpenError;

/// An [`OpenError`] without the path.
#[derive(Debug)]
pub(super) enum LogFailure {
    InUse,
    Foreign,
    Damaged(String),
    Format(u64),
    Io(io::Error),
}

impl LogFailure {
    pub(super) fn damaged(detail: &str) -> Self {
        Self::Damaged(detail.to_owned())
    }

    /// Returns the reason without the name of the file.
    pub(super) fn into_reason(self) -> String {
        match self {
            Self::InUse => "another process has it open".to_owned(),
            Self::Foreign => "it is no longer a ringwatch database".to_owned(),
            Self::Damaged(detail) => format!("it is damaged: {detail}"),
            Self::Format(found) => format!("it has format {found}"),
            Self::Io(error) => error.to_string(),
        }
    }

    pub(super) fn into_error(self, path: &Path) -> OpenError {
        let path = path.to_owned();
        match self {
            Self::InUse => OpenError::InUse { path },
            Self::Foreign => OpenError::Foreign { path },
            Self::Damaged(detail) => OpenError::Damaged { path, detail },
            Self::Format(found) => OpenError::Format {
                path,
                found,
                known: FORMAT,
            },
            Self::Io(source) => OpenError::Io { path, source },
        }
    }
}

impl From<io::Error> for LogFailure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // redb's error about a file without its magic number.
            io::ErrorKind::InvalidData => Self::Foreign,
            io::ErrorKind::UnexpectedEof => Self::damaged("it is cut off"),
            _ => Self::Io(error),
        }
    }
}

impl From<DatabaseError> for LogFailure {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::DatabaseAlreadyOpen => Self::InUse,
            DatabaseError::Storage(error) => error.into(),
            other => Self::Damaged(other.to_string()),
        }
    }
}

impl From<StorageError> for LogFailure {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Io(error) => error.into(),
            StorageError::Corrupted(detail) => Self::Damaged(detail),
            other => Self::Damaged(other.to_string()),
        }
    }
}

impl From<redb::TransactionError> for LogFailure {
    fn from(error: redb::TransactionError) -> Self {
        redb::Error::from(error).into()
    }
}

impl From<redb::TableError> for LogFailure {
    fn from(error: redb::TableError) -> Self {
        redb::Error::from(error).into()
    }
}

impl From<redb::Error> for LogFailure {
    fn from(error: redb::Error) -> Self {
        match error {
            redb::Error::Io(error) => error.into(),
            other => Self::Damaged(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_do_not_name_the_file() {
        let of_kind = |kind: io::ErrorKind| LogFailure::from(io::Error::from(kind)).into_reason();
        let full = io::Error::other("the disk is full");
        let cases = [
            (
                LogFailure::InUse.into_reason(),
                "another process has it open",
            ),
            (
                of_kind(io::ErrorKind::InvalidData),
                "it is no longer a ringwatch database",
            ),
            (
                of_kind(io::ErrorKind::UnexpectedEof),
                "it is damaged: it is cut off",
            ),
            (LogFailure::Format(7).into_reason(), "it has format 7"),
            (LogFailure::from(full).into_reason(), "the disk is full"),
        ];
        for (reason, expected) in cases {
            assert_eq!(reason, expected);
        }
    }
}
