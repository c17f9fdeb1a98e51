//! A log that is read and not changed, whatever is wrong with it.

use std::cell::Cell;
use std::fs::OpenOptions;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use redb::{Database, ReadableDatabase, ReadableTable};

use super::disk_file::SystemFile;
use super::failure::LogFailure;
use super::redb_log::{self, CACHE_BYTES_MAX, RECORDS, Records, guarded};
use super::tentative_file::TentativeFile;
use crate::storage::backend::LeaseId;
use crate::storage::backend::embedded::mvcc::State;
use crate::storage::backend::embedded::open_error::OpenError;

/// The progress that redb reports of a repair that has left out the last commit: 0.3. Of every repair it reports 0, 0.6
/// and 0.9.
const PROGRESS_WITHOUT_LAST_COMMIT: Range<f64> = 0.15..0.45;

/// The file of a log, open for reading: what redb repairs in it is held back for good. Opening it has verified the
/// checksums of all its pages. No other process can open it meanwhile.
#[derive(Debug)]
pub(crate) struct InspectedLog {
    database: Database,
    /// Keeps changes of the file held back.
    file: Arc<TentativeFile>,
    /// The format of the file.
    pub(crate) format: u64,
    /// The compacted revision; 0 if nothing is.
    pub(crate) compacted: u64,
    /// The leases and their times to live in seconds.
    pub(crate) leases: Vec<(LeaseId, i64)>,
    /// True if the pages of the last commit are not whole, so that the one before it counts.
    pub(crate) lacks_last_commit: bool,
    path: PathBuf,
}

impl InspectedLog {
    /// Opens the log in a file; `None` if the file is empty, or its creation was interrupted. Blocks while the file is
    /// read.
    ///
    /// # Errors
    /// [`OpenError`]; [`OpenError::Io`] of the kind `NotFound` if there is no file.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, OpenError> {
        Self::read(path).map_err(|failure| failure.into_error(path))
    }

    fn read(path: &Path) -> Result<Option<Self>, LogFailure> {
        // redb's locks need a file that can be written.
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let file = TentativeFile::new(Box::new(SystemFile::new(file)?))?;
        if file.is_new() {
            return Ok(None);
        }
        let inspected = guarded(|| {
            let (database, lacks_last_commit) = open_database(&file)?;
            Ok(Self {
                format: redb_log::check_format(&database, false)?,
                compacted: redb_log::read_compacted(&database)?,
                leases: redb_log::read_leases(&database)?,
                database,
                file: Arc::clone(&file),
                lacks_last_commit,
                path: path.to_owned(),
            })
        })?;
        Ok(Some(inspected))
    }

    /// Reads the state, as a server would at its start. Returns it with the bytes that the records take.
    ///
    /// # Errors
    /// [`OpenError::Damaged`].
    pub(crate) fn state(&self) -> Result<(State, u64), OpenError> {
        let records = guarded(|| redb_log::read_records(&self.database));
        let records = records.map_err(|failure| failure.into_error(&self.path))?;
        let Records {
            state, used_bytes, ..
        } = records;
        Ok((state, used_bytes))
    }

    /// Calls `record` with each revision and the bytes of its record, in rising order.
    ///
    /// # Errors
    /// [`OpenError`] when the file cannot be read.
    pub(crate) fn for_each(&self, mut record: impl FnMut(u64, &[u8])) -> Result<(), OpenError> {
        let read = guarded(|| {
            let txn = self.database.begin_read()?;
            for entry in txn.open_table(RECORDS)?.iter()? {
                let (revision, bytes) = entry?;
                record(revision.value(), bytes.value());
            }
            Ok(())
        });
        read.map_err(|failure| failure.into_error(&self.path))
    }

    /// Returns the length of the file in bytes.
    ///
    /// # Errors
    /// The error of the operating system.
    pub(crate) fn size_bytes(&self) -> Result<u64, OpenError> {
        let size = self.file.size_bytes();
        size.map_err(|error| LogFailure::Io(error).into_error(&self.path))
    }
}

/// Opens the database in a file that holds changes back, and tells if it lacks its last commit.
fn open_database(file: &Arc<TentativeFile>) -> Result<(Database, bool), LogFailure> {
    let lacks_last_commit = Rc::new(Cell::new(false));
    let told = Rc::clone(&lacks_last_commit);
    let database = Database::builder()
        .set_cache_size(CACHE_BYTES_MAX)
        .set_repair_callback(move |repair| {
            if PROGRESS_WITHOUT_LAST_COMMIT.contains(&repair.progress()) {
                told.set(true);
            }
        })
        .create_with_backend(file.backend())?;
    Ok((database, lacks_last_commit.get()))
}
