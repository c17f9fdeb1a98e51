//! Reading a snapshot's file.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use super::error::MaintenanceError;
use super::seal::{SEAL_BYTES, Seal};
use super::snapshot::{FORMAT, MAGIC};
use crate::storage::backend::LeaseId;

/// The size of the pieces in which a file is read for its digest, in bytes.
const PIECE_BYTES: usize = 256 << 10;

/// The records of a snapshot's file, one after the other.
#[derive(Debug)]
pub(super) struct SnapshotReader {
    /// The newest revision.
    pub(super) revision: u64,
    /// The compacted revision; 0 if nothing is.
    pub(super) compacted: u64,
    /// The leases and their times to live in seconds.
    pub(super) leases: Vec<(LeaseId, i64)>,
    /// The number of records that are still to come.
    left: u64,
    input: BufReader<io::Take<File>>,
    path: PathBuf,
}

/// Returns true if a file begins as snapshots do.
///
/// # Errors
/// The error of the operating system.
pub fn is_snapshot(path: &Path) -> Result<bool, MaintenanceError> {
    match SnapshotReader::open(path) {
        Err(MaintenanceError::NotASnapshot { .. }) => Ok(false),
        Err(error @ MaintenanceError::Io { .. }) => Err(error),
        _ => Ok(true),
    }
}

/// Verifies the digest at the end of a snapshot's file.
///
/// # Errors
/// [`MaintenanceError::DamagedSnapshot`], or the file cannot be read.
pub(super) fn verify_seal(path: &Path) -> Result<(), MaintenanceError> {
    let failed = MaintenanceError::io(path);
    let mut file = File::open(path).map_err(&failed)?;
    let mut seal = Seal::default();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match file.read(&mut piece).map_err(&failed)? {
            0 => break,
            length => seal.update(&piece[..length]),
        }
    }
    seal.verify()
        .map_err(|error| MaintenanceError::damaged(path, error))
}

impl SnapshotReader {
    /// Opens a snapshot, and reads all but its records. The digest is not verified.
    ///
    /// # Errors
    /// [`MaintenanceError`]: the file is no snapshot, has another format, is cut off, or cannot be read.
    pub(super) fn open(path: &Path) -> Result<Self, MaintenanceError> {
        let failed = MaintenanceError::io(path);
        let file = File::open(path).map_err(&failed)?;
        let size = file.metadata().map_err(&failed)?.len();
        let content = size.saturating_sub(SEAL_BYTES as u64);
        let mut reader = Self {
            revision: 0,
            compacted: 0,
            leases: Vec::new(),
            left: 0,
            input: BufReader::new(file.take(content)),
            path: path.to_owned(),
        };
        let mut magic = [0; MAGIC.len()];
        if reader.input.read_exact(&mut magic).is_err() || magic != *MAGIC {
            return Err(MaintenanceError::NotASnapshot {
                path: path.to_owned(),
            });
        }
        let found = u32::from_le_bytes(reader.array()?);
        if found != FORMAT {
            return Err(MaintenanceError::Format {
                path: path.to_owned(),
                found,
                known: FORMAT,
            });
        }
        reader.revision = reader.number()?;
        reader.compacted = reader.number()?;
        let leases = reader.number()?;
        reader.left = reader.number()?;
        for _ in 0..leases {
            let id = i64::from_le_bytes(reader.array()?);
            let ttl_seconds = i64::from_le_bytes(reader.array()?);
            reader.leases.push((LeaseId(id), ttl_seconds));
        }
        Ok(reader)
    }

    /// Returns the next revision and its record's bytes; `None` after the last.
    ///
    /// # Errors
    /// [`MaintenanceError::DamagedSnapshot`] if it is cut off or goes on after the last record, or the file cannot be
    /// read.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Vec<u8>)>, MaintenanceError> {
        if self.left == 0 {
            let more = self.input.read(&mut [0]);
            return match more.map_err(MaintenanceError::io(&self.path))? {
                0 => Ok(None),
                _ => {
                    let detail = "it goes on after its last record";
                    Err(MaintenanceError::damaged(&self.path, detail))
                }
            };
        }
        self.left -= 1;
        let revision = self.number()?;
        let length = u32::from_le_bytes(self.array()?);
        // The buffer grows only as far as there are bytes.
        let mut bytes = Vec::new();
        let read = (&mut self.input)
            .take(length.into())
            .read_to_end(&mut bytes);
        let read = read.map_err(MaintenanceError::io(&self.path))?;
        if read < usize::try_from(length).unwrap_or(usize::MAX) {
            return Err(self.cut_off());
        }
        Ok(Some((revision, bytes)))
    }

    /// Verifies that the records end at the newest revision that the head states.
    ///
    /// # Errors
    /// [`MaintenanceError::DamagedSnapshot`].
    pub(super) fn verify_end(&self, revision: u64) -> Result<(), MaintenanceError> {
        if revision == self.revision {
            return Ok(());
        }
        let stated = self.revision;
        let detail = format!("its head says revision {stated}, its records end at {revision}");
        Err(MaintenanceError::damaged(&self.path, detail))
    }

    fn number(&mut self) -> Result<u64, MaintenanceError> {
        self.array().map(u64::from_le_bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], MaintenanceError> {
        let mut bytes = [0; N];
        match self.input.read_exact(&mut bytes) {
            Ok(()) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(self.cut_off()),
            Err(error) => Err(MaintenanceError::io(&self.path)(error)),
        }
    }

    fn cut_off(&self) -> MaintenanceError {
        MaintenanceError::damaged(&self.path, "it ends within a record")
    }
}
