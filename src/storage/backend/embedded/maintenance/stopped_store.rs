//! The file of a store that nothing serves.

use std::io;
use std::path::Path;

use super::error::MaintenanceError;
use crate::storage::backend::embedded::log::InspectedLog;
use crate::storage::backend::embedded::open_error::OpenError;

/// Opens the log of a store for reading.
///
/// # Errors
/// [`MaintenanceError`].
pub(super) fn open(store: &Path) -> Result<InspectedLog, MaintenanceError> {
    let missing = || MaintenanceError::Missing {
        path: store.to_owned(),
    };
    match InspectedLog::open(store) {
        Ok(log) => log.ok_or_else(missing),
        Err(OpenError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            Err(missing())
        }
        Err(error) => Err(error.into()),
    }
}
