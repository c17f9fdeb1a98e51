//! The durable log: one redb file.
//!
//! Three tables: the records by revision, the leases and their times to live, and two numbers: the
//! format of the file and the compacted revision. A commit is one redb transaction that ends with
//! fsync, so that a batch is there as a whole or not at all.
//!
//! In format 2 a record is a message of protobuf. A file of format 1 keeps its records as they are; the first commit
//! gives it format 2, and from then on it has records of both kinds, which their first byte tells apart.
//!
//! # Opening
//!
//! A file is either accepted as a whole or not changed. redb repairs a file while it opens it, and would write into
//! another program's redb file too. So all its writes are held back in memory ([`TentativeFile`]) until the checksums
//! of every page, the format and every record have been verified.
//!
//! redb verifies the checksums only of a file that was not closed, and trusts the state that it wrote when it closed
//! one. So what it writes on closing is held back for good: every start is one after a crash. It reads the whole file,
//! which we do anyway. A last commit whose checksums are wrong counts as one that the crash interrupted, and the one
//! before it is taken.
//!
//! # After a failure
//!
//! After a commit that failed, on a full disk for instance, redb refuses everything. Then the last good state of the
//! file is restored and the file opened again in the same way, and before other writes are accepted, a write as large
//! as the largest is done and undone. What the failed commit wrote is never relied on: after a failed fsync it is not
//! known how much of it is on the disk.
//!
//! # Damage
//!
//! The file is compared with what was written to it, a part at a time ([`TentativeFile::verify`]). What differs is
//! treated as a failure: nothing more is written, and the file is opened again as after a restart. So damage to pages
//! that nothing needs is none; any other keeps refusing writes, while the process can still be asked for everything.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use prost::Message;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, TableHandle};

use super::disk_file::{Disk, DiskFile, OnDisk, SystemFile};
use super::failure::LogFailure;
use super::stored_record::{self, FORMAT, FORMAT_MIN, StoredRecord};
use super::tentative_file::TentativeFile;
use super::{LogBatch, LogStore, RecoveredLog, room};
use crate::storage::backend::embedded::mvcc::{Record, State};
use crate::storage::backend::embedded::open_error::OpenError;
use crate::storage::backend::{BackendError, LeaseId};

/// Revision -> [`StoredRecord`], or a record of format 1.
pub(super) const RECORDS: TableDefinition<'_, u64, &[u8]> =
    TableDefinition::new("ringwatch.records");
/// Lease -> its time to live in seconds.
const LEASES: TableDefinition<'_, i64, i64> = TableDefinition::new("ringwatch.leases");
/// One of the names below -> its number.
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("ringwatch.meta");
/// Proves that the log can be written again; empty otherwise.
const PROOF: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("ringwatch.proof");

const META_FORMAT: &str = "format";
const META_COMPACTED: &str = "compacted";

/// Maximum number of bytes that redb may cache, of which it gives up to half to pages that are written; a batch that
/// needs more writes pages before it commits. Opening reads everything once, and fills whatever it is given for good;
/// afterwards nothing is read but the paths of new pages and of removed records, and what is not found here is mostly
/// in the kernel's page cache.
pub(super) const CACHE_BYTES_MAX: usize = 8 << 20;
/// The size of the trial write after which writes are accepted again: more than the largest record.
const PROOF_BYTES: usize = 1_600 << 10;

/// The log in a file.
#[derive(Debug)]
pub(crate) struct RedbLog {
    /// `None` while a file that failed could not be opened again.
    database: Option<Database>,
    file: Arc<TentativeFile>,
    /// The format of the file.
    format: u64,
    /// The bytes that the records take.
    used_bytes: u64,
    /// The leases that must be there: unlike records they have no numbers by which one that is missing is known.
    leases: BTreeSet<LeaseId>,
    /// The path of the file, for log messages. Clients do not see it.
    path: PathBuf,
}

/// The content of a log when it was opened.
#[derive(Debug)]
pub(crate) struct LoadedLog {
    pub(crate) log: RedbLog,
    pub(crate) state: State,
    /// Revisions of records that a compaction has left to be removed.
    pub(crate) obsolete: Vec<u64>,
    /// The leases and their times to live in seconds.
    pub(crate) leases: Vec<(LeaseId, i64)>,
    /// The reason why the log has to recover before it accepts writes; `None` if it need not.
    pub(crate) refusal: Option<BackendError>,
}

impl RedbLog {
    /// Opens the log in a file, which is created if it is missing or empty. Blocks.
    ///
    /// # Errors
    /// [`OpenError`]; a file that had content is not changed then.
    pub(crate) fn open(path: &Path) -> Result<LoadedLog, OpenError> {
        let at = |failure| LogFailure::into_error(failure, path);
        let is_new = !path.exists();
        let file = open_file(path).and_then(SystemFile::new);
        let file = file.map_err(|source| at(LogFailure::Io(source)))?;
        let loaded = Self::load(path, Box::new(file)).map_err(at)?;
        if is_new {
            sync_folder(path).map_err(|source| at(LogFailure::Io(source)))?;
        }
        Ok(loaded)
    }

    /// Opens the log on a disk, whose name stands for the path in log messages and errors. Blocks.
    ///
    /// # Errors
    /// [`OpenError`]; the disk is not changed then.
    pub(crate) fn open_on(name: &Path, disk: Box<dyn Disk>) -> Result<LoadedLog, OpenError> {
        let loaded = Self::load(name, Box::new(OnDisk(disk)));
        loaded.map_err(|failure| failure.into_error(name))
    }

    fn load(path: &Path, file: Box<dyn DiskFile>) -> Result<LoadedLog, LogFailure> {
        let file = TentativeFile::new(file)?;
        let (database, format, records, leases) = guarded(|| {
            let (database, format) = open_database(&file)?;
            let records = read_records(&database)?;
            let leases = read_leases(&database)?;
            Ok((database, format, records, leases))
        })?;
        let Records {
            state,
            obsolete,
            used_bytes,
        } = records;
        let mut log = Self {
            database: Some(database),
            file,
            format,
            used_bytes,
            leases: leases.iter().map(|(lease, _)| *lease).collect(),
            path: path.to_owned(),
        };
        let refusal = match log.file.accept() {
            Ok(()) => None,
            Err(error) if log.file.is_new() => return Err(error.into()),
            // The content can be read nevertheless.
            Err(error) => {
                log.close();
                Some(log.refused(&error))
            }
        };
        Ok(LoadedLog {
            log,
            state,
            obsolete,
            leases,
            refusal,
        })
    }

    /// Moves the pages of the file together and cuts off what is free then. Blocks while pages are copied. A crash at
    /// any point leaves the same content.
    ///
    /// # Errors
    /// The error of the database, which takes no more writes then.
    pub(crate) fn shrink(&mut self) -> Result<(), BackendError> {
        let database = self.database.as_mut();
        let shrunk = database.map_or(Ok(false), Database::compact);
        shrunk.map(drop).map_err(|error| refusal(&error))
    }

    /// Closes the database after a failure. No other process can open the file meanwhile.
    fn close(&mut self) {
        self.file.suspend();
        drop(self.database.take());
    }

    /// Opens the file again at its last good state.
    fn reopen(&mut self, since: u64) -> Result<RecoveredLog, LogFailure> {
        self.close();
        self.file.roll_back()?;
        let (database, format, recovered, used_bytes) = guarded(|| {
            let (database, format) = open_database(&self.file)?;
            let (recovered, used_bytes) = read_since(&database, since)?;
            Ok((database, format, recovered, used_bytes))
        })?;
        let leases: BTreeSet<_> = recovered.leases.iter().map(|(lease, _)| *lease).collect();
        if !self.leases.is_subset(&leases) {
            return Err(LogFailure::damaged("acknowledged leases are missing"));
        }
        let accepted = self.file.accept().map_err(LogFailure::from);
        if let Err(failure) = accepted.and_then(|()| Ok(prove_writable(&database)?)) {
            // The database does not know of the failure, and must not write when it is closed.
            self.file.suspend();
            return Err(failure);
        }
        self.file.resume();
        self.database = Some(database);
        self.format = format;
        self.used_bytes = used_bytes;
        self.leases = leases;
        Ok(recovered)
    }

    /// Writes a batch. Returns the bytes that the records take afterwards.
    fn write(&self, batch: &LogBatch) -> Result<u64, redb::Error> {
        let database = self.database.as_ref().ok_or(redb::Error::PreviousIo)?;
        let txn = database.begin_write()?;
        let mut used_bytes = self.used_bytes;
        {
            let mut records = txn.open_table(RECORDS)?;
            for record in &batch.records {
                let stored = StoredRecord::from(&**record);
                let len = stored.encoded_len();
                used_bytes = used_bytes.saturating_add(room(len));
                let mut place = records.insert_reserve(record.revision, len)?;
                stored
                    .encode(&mut place.as_mut())
                    .map_err(io::Error::from)?;
            }
            for revision in &batch.obsolete {
                if let Some(removed) = records.remove(revision)? {
                    used_bytes = used_bytes.saturating_sub(room(removed.value().len()));
                }
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
            if self.format != FORMAT {
                txn.open_table(META)?.insert(META_FORMAT, FORMAT)?;
            }
        }
        txn.commit()?;
        Ok(used_bytes)
    }

    /// Logs that no writes are accepted from now on. Returns the error for writers.
    fn refused(&self, error: &dyn Display) -> BackendError {
        let path = self.path.display();
        tracing::error!(
            "{path}: the database takes no more writes: {error}; free space or replace the disk; \
             whether it can be written is tried again and again"
        );
        refusal(error)
    }
}

impl Drop for RedbLog {
    fn drop(&mut self) {
        self.file.hold_back();
    }
}

impl LogStore for RedbLog {
    fn commit(&mut self, batch: &LogBatch) -> Result<(), BackendError> {
        let written = self.write(batch);
        if let Ok(used_bytes) = written {
            self.used_bytes = used_bytes;
            self.format = FORMAT;
            self.leases
                .extend(batch.granted.iter().map(|(lease, _)| *lease));
        }
        // A commit that failed may be on the disk nevertheless, so these leases may be missing from now on in either
        // case.
        for lease in &batch.expired {
            self.leases.remove(lease);
        }
        written.map(drop).map_err(|error| self.refused(&error))
    }

    fn recover(&mut self, since: u64) -> Result<RecoveredLog, BackendError> {
        let path = self.path.clone();
        match self.reopen(since) {
            Ok(recovered) => {
                tracing::warn!("{}: the database takes writes again", path.display());
                Ok(recovered)
            }
            Err(failure) => Err(refusal(&failure.into_reason())),
        }
    }

    fn verify(&mut self) -> Result<(), BackendError> {
        let verified = self.file.verify();
        verified.map_err(|error| {
            tracing::error!(
                "{}: {error}; writes are refused, so save what this process has in memory before it ends, by \
                 ringwatch store snapshot FILE --kubeconfig KUBECONFIG",
                self.path.display()
            );
            refusal(&error)
        })
    }

    fn size_bytes(&self) -> Result<u64, BackendError> {
        let size = self.file.size_bytes();
        size.map_err(|error| BackendError::Other(format!("the size of the database: {error}")))
    }

    fn used_bytes(&self) -> u64 {
        self.used_bytes
    }
}

/// Returns the error for writers, which does not name the file.
fn refusal(error: &dyn Display) -> BackendError {
    BackendError::ReadOnly(format!("the database takes no more writes: {error}"))
}

/// Objects may be secrets: only the owner may read the file.
fn open_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Makes the name of a new file durable.
fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => File::open(folder)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}

/// Reads a database, and takes a panic for damage: redb follows some pages before it has verified them, and panics
/// where they make no sense. Nothing is changed by then, since the file holds changes back.
pub(super) fn guarded<T>(read: impl FnOnce() -> Result<T, LogFailure>) -> Result<T, LogFailure> {
    let read = catch_unwind(AssertUnwindSafe(read));
    read.unwrap_or_else(|_| Err(LogFailure::damaged("its pages make no sense")))
}

/// Opens the database in a file that holds changes back. Returns it with its format.
fn open_database(file: &Arc<TentativeFile>) -> Result<(Database, u64), LogFailure> {
    let database = Database::builder()
        .set_cache_size(CACHE_BYTES_MAX)
        .create_with_backend(file.backend())?;
    let format = check_format(&database, file.is_new())?;
    Ok((database, format))
}

/// Writes as much as the largest record takes, and removes it. The bytes are random, since a file system that
/// compresses has room for any number of zeros.
fn prove_writable(database: &Database) -> Result<(), redb::Error> {
    let mut bytes = vec![0; PROOF_BYTES];
    rand::fill(bytes.as_mut_slice());
    let txn = database.begin_write()?;
    txn.open_table(PROOF)?.insert(0, bytes.as_slice())?;
    txn.commit()?;
    let txn = database.begin_write()?;
    txn.delete_table(PROOF)?;
    txn.commit()?;
    Ok(())
}

/// Checks which program wrote the file, and returns its format; a new one is given the newest.
pub(super) fn check_format(database: &Database, is_new: bool) -> Result<u64, LogFailure> {
    if is_new {
        initialize(database)?;
        return Ok(FORMAT);
    }
    let txn = database.begin_read()?;
    let names: Vec<_> = txn
        .list_tables()?
        .map(|table| table.name().to_owned())
        .collect();
    if names.is_empty() && txn.list_multimap_tables()?.next().is_none() {
        return Err(LogFailure::damaged("it has no tables"));
    }
    if !names.iter().any(|name| name == META.name()) {
        return Err(LogFailure::Foreign);
    }
    match txn.open_table(META)?.get(META_FORMAT)? {
        Some(format) => match format.value() {
            known @ FORMAT_MIN..=FORMAT => Ok(known),
            unknown => Err(LogFailure::Format(unknown)),
        },
        None => Err(LogFailure::Foreign),
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

/// The state that the records of a log add up to.
pub(super) struct Records {
    pub(super) state: State,
    /// Revisions of records that a compaction has left to be removed.
    obsolete: Vec<u64>,
    pub(super) used_bytes: u64,
}

/// Reads the records, and returns their state and what compaction has left to be removed.
pub(super) fn read_records(database: &Database) -> Result<Records, LogFailure> {
    let compacted = read_compacted(database)?;
    let mut state = State::new();
    let mut used_bytes = 0;
    let txn = database.begin_read()?;
    for entry in txn.open_table(RECORDS)?.iter()? {
        let (revision, bytes) = entry?;
        let revision = revision.value();
        let expected = state.revision().max(compacted) + 1;
        if revision > compacted && revision != expected {
            return Err(LogFailure::damaged(&format!(
                "revision {expected} is missing"
            )));
        }
        used_bytes += room(bytes.value().len());
        state.apply(decode(revision, bytes.value())?);
    }
    let obsolete = match compacted {
        0 => Vec::new(),
        compacted => state
            .compact(compacted)
            .map_err(|_| LogFailure::damaged("the compacted revision is missing"))?,
    };
    Ok(Records {
        state,
        obsolete,
        used_bytes,
    })
}

/// Reads the part of a log after a revision, and the bytes that all its records take.
fn read_since(database: &Database, since: u64) -> Result<(RecoveredLog, u64), LogFailure> {
    let compacted = read_compacted(database)?;
    let mut records: Vec<Arc<Record>> = Vec::new();
    let mut used_bytes = 0;
    let txn = database.begin_read()?;
    let mut newest = 0;
    for entry in txn.open_table(RECORDS)?.iter()? {
        let (revision, bytes) = entry?;
        newest = revision.value();
        used_bytes += room(bytes.value().len());
        if newest > since {
            records.push(decode(newest, bytes.value())?);
        }
    }
    // An empty store has a revision, but no record of it.
    if newest < since && since > State::new().revision() {
        return Err(LogFailure::damaged("acknowledged revisions are missing"));
    }
    let recovered = RecoveredLog {
        records,
        compacted,
        leases: read_leases(database)?,
    };
    Ok((recovered, used_bytes))
}

pub(super) fn read_compacted(database: &Database) -> Result<u64, LogFailure> {
    let compacted = database.begin_read()?.open_table(META)?;
    let compacted = compacted.get(META_COMPACTED)?;
    Ok(compacted.map_or(0, |compacted| compacted.value()))
}

fn decode(revision: u64, bytes: &[u8]) -> Result<Arc<Record>, LogFailure> {
    let record = stored_record::decode(revision, bytes);
    let record = record.map_err(|error| LogFailure::damaged(&error.to_string()))?;
    Ok(Arc::new(record))
}

pub(super) fn read_leases(database: &Database) -> Result<Vec<(LeaseId, i64)>, LogFailure> {
    let txn = database.begin_read()?;
    let mut leases = Vec::new();
    for entry in txn.open_table(LEASES)?.iter()? {
        let (lease, ttl_seconds) = entry?;
        leases.push((LeaseId(lease.value()), ttl_seconds.value()));
    }
    Ok(leases)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use ringwatch_testing::disk::{Disk, Fault, FaultKind};

    use super::*;

    /// More changes than a recovery makes.
    const CHANGES_MAX: u32 = 1_000;

    /// Returns a log in a file, with a batch of three records and a lease in it.
    fn written(path: &Path) -> RedbLog {
        let mut log = RedbLog::open(path).expect("a log").log;
        let mut state = State::new();
        let put = |key| state.put(key, Bytes::from(vec![0; 5_000]), None);
        let batch = LogBatch {
            records: ["/a", "/b", "/c"].map(put).into(),
            granted: vec![(LeaseId(5), 60)],
            ..LogBatch::default()
        };
        log.commit(&batch).expect("a commit");
        log
    }

    #[test]
    fn what_came_after_a_revision_is_recovered() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        let mut log = written(&path);
        let used_bytes = log.used_bytes();
        assert!(used_bytes > 15_000, "{used_bytes}");
        assert!(log.size_bytes().expect("a size") > used_bytes);
        let recovered = log.recover(2).expect("recovered");
        let revisions: Vec<u64> = recovered.records.iter().map(|it| it.revision).collect();
        assert_eq!(revisions, [3, 4]);
        assert_eq!(recovered.leases, [(LeaseId(5), 60)]);
        assert_eq!(recovered.compacted, 0);
        assert_eq!(log.used_bytes(), used_bytes);
        assert!(log.recover(4).expect("recovered").records.is_empty());
        let refused = log.recover(5).expect_err("a revision that is not there");
        assert!(refused.to_string().contains("are missing"), "{refused}");
        drop(log);
        let loaded = RedbLog::open(&path).expect("the log");
        assert_eq!(loaded.log.used_bytes(), used_bytes);
        assert_eq!(loaded.leases, [(LeaseId(5), 60)]);
        assert_eq!(loaded.state.revision(), 4);
    }

    /// The commit before the last one is whole, and redb takes it.
    #[test]
    fn a_lease_that_damage_took_is_missed() {
        let disk = Disk::new(1);
        let opened = RedbLog::open_on(Path::new("log"), Box::new(disk.clone()));
        let mut log = opened.expect("a log").log;
        let grant = |lease| LogBatch {
            granted: vec![(LeaseId(lease), 60)],
            ..LogBatch::default()
        };
        log.commit(&grant(5)).expect("a commit");
        let mut before =
            vec![0; usize::try_from(disk.size_bytes().expect("a size")).expect("small")];
        disk.read(0, &mut before).expect("a read");
        log.commit(&grant(6)).expect("a commit");
        disk.write(0, &before).expect("a write");
        let refused = log.recover(0).expect_err("a lease is lost");
        assert!(
            refused.to_string().contains("leases are missing"),
            "{refused}"
        );
    }

    /// A commit that fails while it shortens the file, after it was durable, has removed the lease.
    #[test]
    fn a_lease_that_a_failed_commit_removes_is_not_missed() {
        /// Enough that the file is shortened once they are gone.
        const RECORDS: u64 = 64;
        const LEASES: i64 = 12;
        let mut removed = 0;
        for after in 0..CHANGES_MAX {
            let disk = Disk::new(u64::from(after));
            let opened = RedbLog::open_on(Path::new("log"), Box::new(disk.clone()));
            let mut log = opened.expect("a log").log;
            let mut state = State::new();
            let mut put = |bytes| state.put("/a", Bytes::from(vec![0; bytes]), None);
            let large = (1..RECORDS).map(|_| 50_000);
            let batch = LogBatch {
                records: large.chain([0]).map(&mut put).collect(),
                granted: (0..LEASES).map(|lease| (LeaseId(lease), 60)).collect(),
                ..LogBatch::default()
            };
            log.commit(&batch).expect("a commit");
            let obsolete = state.compact(state.revision()).expect("compacted");
            let batch = LogBatch {
                obsolete,
                compacted: Some(state.revision()),
                ..LogBatch::default()
            };
            log.commit(&batch).expect("a commit");
            let kind = FaultKind::Once;
            disk.fail(Fault { after, kind });
            let compacted = state.revision();
            // Each table is written, so that its pages move to where there is room.
            let mut expire = |lease| LogBatch {
                records: vec![state.put("/b", Bytes::new(), None)],
                compacted: Some(compacted),
                expired: vec![LeaseId(lease)],
                ..LogBatch::default()
            };
            let Some(failed) = (0..LEASES).find(|it| log.commit(&expire(*it)).is_err()) else {
                assert!(removed > 0, "no commit failed after it was durable");
                return;
            };
            let recovered = log.recover(compacted).expect("recovered").leases;
            let is_removed = recovered.first().is_none_or(|(lease, _)| lease.0 > failed);
            removed += u32::from(is_removed);
            let left = failed + i64::from(is_removed)..LEASES;
            let expected: Vec<_> = left.map(|lease| (LeaseId(lease), 60)).collect();
            assert_eq!(recovered, expected, "failure {after}");
        }
        panic!("it never commits");
    }

    /// There is nothing yet that could be read.
    #[test]
    fn a_new_log_that_cannot_be_written_is_refused() {
        let disk = Disk::new(1);
        disk.fail(Fault {
            after: 0,
            kind: FaultKind::UntilMended,
        });
        let opened = RedbLog::open_on(Path::new("log"), Box::new(disk.clone()));
        assert!(matches!(opened, Err(OpenError::Io { .. })), "{opened:?}");
        disk.mend();
        let opened = RedbLog::open_on(Path::new("log"), Box::new(disk));
        assert!(opened.expect("a log").refusal.is_none());
    }

    #[test]
    fn an_empty_log_is_recovered() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        let mut log = RedbLog::open(&path).expect("a log").log;
        let revision = State::new().revision();
        let recovered = log.recover(revision).expect("recovered");
        assert!(recovered.records.is_empty() && recovered.leases.is_empty());
    }

    #[test]
    fn the_folder_of_a_new_file_is_synced() {
        let folder = tempfile::tempdir().expect("a folder");
        sync_folder(&folder.path().join("log")).expect("a folder");
        sync_folder(Path::new("log")).expect("the folder of the process");
        let missing = folder.path().join("missing").join("log");
        sync_folder(&missing).expect_err("there is none");
    }

    #[test]
    fn a_lease_that_has_ended_is_not_there_after_a_restart() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        let mut log = written(&path);
        let batch = LogBatch {
            granted: vec![(LeaseId(6), 60)],
            expired: vec![LeaseId(5)],
            ..LogBatch::default()
        };
        log.commit(&batch).expect("a commit");
        drop(log);
        let loaded = RedbLog::open(&path).expect("the log");
        assert_eq!(loaded.leases, [(LeaseId(6), 60)]);
    }

    /// The database would note that it was closed well, and the next start would trust what it finds.
    #[test]
    fn a_recovery_that_fails_writes_nothing_more() {
        for after in 0..CHANGES_MAX {
            let disk = Disk::new(1);
            let fail_once = |after| {
                let kind = FaultKind::Once;
                disk.fail(Fault { after, kind });
            };
            let opened = RedbLog::open_on(Path::new("log"), Box::new(disk.clone()));
            let mut log = opened.expect("a log").log;
            fail_once(0);
            let batch = LogBatch {
                granted: vec![(LeaseId(5), 60)],
                ..LogBatch::default()
            };
            log.commit(&batch).expect_err("the disk fails");
            let before = disk.changes();
            fail_once(after);
            if log.recover(State::new().revision()).is_ok() {
                assert!(after > 3, "{after} failures");
                return;
            }
            assert_eq!(disk.changes() - before, u64::from(after));
        }
        panic!("it never recovers");
    }
}
