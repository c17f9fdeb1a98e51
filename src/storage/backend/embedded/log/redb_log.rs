//! The durable log: one redb file.
//!
//! Three tables: the records by revision, the leases and their times to live, and two numbers: the
//! format of the file and the compacted revision. A commit is one redb transaction that ends with
//! fsync, so that a batch is there as a whole or not at all.
//!
//! # Opening
//!
//! A file is either taken as a whole or left as it is. redb repairs a file while it opens it, and
//! would write into another program's redb file too. So all its writes are held back in memory
//! ([`TentativeFile`]) until the checksums of every page, the format and every record have proved
//! right.
//!
//! redb checks the checksums only of a file that was not closed, and believes what it noted down
//! when it closed one. So what it writes on closing is held back for good: every start is one
//! after a crash. It reads the whole file, which we do anyway. A last commit whose checksums are
//! wrong counts as one that the crash cut off, and the one before it is taken.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::{
    Database, DatabaseError, ReadableDatabase, ReadableTable, StorageError, TableDefinition,
    TableHandle,
};

use super::super::mvcc::{Record, State};
use super::super::open_error::OpenError;
use super::tentative_file::TentativeFile;
use super::{LogBatch, LogStore};
use crate::storage::backend::{BackendError, LeaseId};

/// Revision -> [`Record::encode`].
const RECORDS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("ringwatch.records");
/// Lease -> its time to live in seconds.
const LEASES: TableDefinition<'_, i64, i64> = TableDefinition::new("ringwatch.leases");
/// One of the names below -> its number.
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("ringwatch.meta");

const META_FORMAT: &str = "format";
const META_COMPACTED: &str = "compacted";

/// The format that this program reads and writes.
const FORMAT: u64 = 1;
/// How much redb may cache. Little: after opening, nothing is read but the paths of new pages.
const CACHE_BYTES_MAX: usize = 64 << 20;

/// The log in a file.
#[derive(Debug)]
pub(crate) struct RedbLog {
    database: Database,
    file: Arc<TentativeFile>,
    path: PathBuf,
}

/// What a log held when it was opened.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) log: RedbLog,
    pub(crate) state: State,
    /// Revisions whose records a compaction left to be removed.
    pub(crate) obsolete: Vec<u64>,
    /// The leases and their times to live in seconds.
    pub(crate) leases: Vec<(LeaseId, i64)>,
}

impl RedbLog {
    /// Opens the log in a file, which is created if it is missing or empty. Blocks.
    ///
    /// # Errors
    /// [`OpenError`]; then the file is as it was.
    pub(crate) fn open(path: &Path) -> Result<Loaded, OpenError> {
        let at = |failure| Failure::into_error(failure, path);
        let is_new = !path.exists();
        let file = open_file(path).map_err(|source| at(Failure::Io(source)))?;
        let loaded = Self::load(path, file);
        match loaded {
            Ok(loaded) => {
                if is_new {
                    sync_folder(path).map_err(|source| at(Failure::Io(source)))?;
                }
                Ok(loaded)
            }
            Err(failure) => Err(at(failure)),
        }
    }

    fn load(path: &Path, file: File) -> Result<Loaded, Failure> {
        let (file, backend) = TentativeFile::new(file)?;
        let database = Database::builder()
            .set_cache_size(CACHE_BYTES_MAX)
            .create_with_backend(backend)?;
        check_format(&database)?;
        let (state, obsolete) = read_records(&database)?;
        let leases = read_leases(&database)?;
        file.accept()?;
        let log = Self {
            database,
            file,
            path: path.to_owned(),
        };
        Ok(Loaded {
            log,
            state,
            obsolete,
            leases,
        })
    }

    fn write(&self, batch: &LogBatch) -> Result<(), redb::Error> {
        let txn = self.database.begin_write()?;
        {
            let mut records = txn.open_table(RECORDS)?;
            for record in &batch.records {
                records.insert(record.revision, record.encode().as_slice())?;
            }
            for revision in &batch.obsolete {
                records.remove(revision)?;
            }
            let mut leases = txn.open_table(LEASES)?;
            for (lease, ttl_seconds) in &batch.granted {
                leases.insert(lease.0, ttl_seconds)?;
            }
            for lease in &batch.expired {
                leases.remove(lease.0)?;
            }
            if let Some(compacted) = batch.compacted {
                txn.open_table(META)?.insert(META_COMPACTED, compacted)?;
            }
        }
        txn.commit()?;
        Ok(())
    }
}

impl Drop for RedbLog {
    fn drop(&mut self) {
        self.file.hold_back();
    }
}

impl LogStore for RedbLog {
    fn commit(&mut self, batch: &LogBatch) -> Result<(), BackendError> {
        self.write(batch).map_err(|error| {
            let path = self.path.display();
            BackendError::ReadOnly(format!(
                "{path}: the database takes no more writes: {error}; free space or replace the \
                 disk, then restart"
            ))
        })
    }

    fn size_bytes(&self) -> Result<u64, BackendError> {
        self.file
            .size_bytes()
            .map_err(|error| BackendError::Other(format!("{}: {error}", self.path.display())))
    }
}

/// Objects may be secrets: the file is for its owner alone.
fn open_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Makes it durable that a new file has its name.
fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => File::open(folder)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}

/// Checks who wrote the file and in which format; an empty database is made ours.
fn check_format(database: &Database) -> Result<(), Failure> {
    let txn = database.begin_read()?;
    let names: Vec<_> = txn
        .list_tables()?
        .map(|table| table.name().to_owned())
        .collect();
    if names.is_empty() && txn.list_multimap_tables()?.next().is_none() {
        return initialize(database).map_err(Failure::from);
    }
    if !names.iter().any(|name| name == META.name()) {
        return Err(Failure::Foreign);
    }
    match txn.open_table(META)?.get(META_FORMAT)? {
        Some(format) if format.value() == FORMAT => Ok(()),
        Some(format) => Err(Failure::Format(format.value())),
        None => Err(Failure::Foreign),
    }
}

fn initialize(database: &Database) -> Result<(), redb::Error> {
    let txn = database.begin_write()?;
    txn.open_table(META)?.insert(META_FORMAT, FORMAT)?;
    txn.open_table(RECORDS)?;
    txn.open_table(LEASES)?;
    txn.commit()?;
    Ok(())
}

/// The state that the records make, and what compaction left to be removed.
fn read_records(database: &Database) -> Result<(State, Vec<u64>), Failure> {
    let txn = database.begin_read()?;
    let compacted = txn.open_table(META)?.get(META_COMPACTED)?;
    let compacted = compacted.map_or(0, |compacted| compacted.value());
    let mut state = State::new();
    for entry in txn.open_table(RECORDS)?.iter()? {
        let (revision, bytes) = entry?;
        let revision = revision.value();
        let expected = state.revision().max(compacted) + 1;
        if revision > compacted && revision != expected {
            return Err(Failure::damaged(&format!("revision {expected} is missing")));
        }
        let record = Record::decode(revision, bytes.value())
            .map_err(|error| Failure::damaged(&error.to_string()))?;
        state.apply(Arc::new(record));
    }
    let obsolete = match compacted {
        0 => Vec::new(),
        compacted => state
            .compact(compacted)
            .map_err(|_| Failure::damaged("the compacted revision is missing"))?,
    };
    Ok((state, obsolete))
}

fn read_leases(database: &Database) -> Result<Vec<(LeaseId, i64)>, Failure> {
    let txn = database.begin_read()?;
    let mut leases = Vec::new();
    for entry in txn.open_table(LEASES)?.iter()? {
        let (lease, ttl_seconds) = entry?;
        leases.push((LeaseId(lease.value()), ttl_seconds.value()));
    }
    Ok(leases)
}

/// An [`OpenError`] that does not know the path yet.
#[derive(Debug)]
enum Failure {
    InUse,
    Foreign,
    Damaged(String),
    Format(u64),
    Io(io::Error),
}

impl Failure {
    fn damaged(detail: &str) -> Self {
        Self::Damaged(detail.to_owned())
    }

    fn into_error(self, path: &Path) -> OpenError {
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

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // What redb says of a file that does not begin as its files do.
            io::ErrorKind::InvalidData => Self::Foreign,
            io::ErrorKind::UnexpectedEof => Self::damaged("it is cut off"),
            _ => Self::Io(error),
        }
    }
}

impl From<DatabaseError> for Failure {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::DatabaseAlreadyOpen => Self::InUse,
            DatabaseError::Storage(error) => error.into(),
            other => Self::Damaged(other.to_string()),
        }
    }
}

impl From<StorageError> for Failure {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Io(error) => error.into(),
            StorageError::Corrupted(detail) => Self::Damaged(detail),
            other => Self::Damaged(other.to_string()),
        }
    }
}

impl From<redb::TransactionError> for Failure {
    fn from(error: redb::TransactionError) -> Self {
        redb::Error::from(error).into()
    }
}

impl From<redb::TableError> for Failure {
    fn from(error: redb::TableError) -> Self {
        redb::Error::from(error).into()
    }
}

impl From<redb::Error> for Failure {
    fn from(error: redb::Error) -> Self {
        match error {
            redb::Error::Io(error) => error.into(),
            other => Self::Damaged(other.to_string()),
        }
    }
}
