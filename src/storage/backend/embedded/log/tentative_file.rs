//! A file whose changes are held back until it has proved to be ours, and again when it is closed.
//!
//! Until [`TentativeFile::accept`], writes go into a list and reads see them; the file does not
//! change. Accepting does the same writes and syncs in the same order, so that a crash meanwhile
//! leaves what a crash of the database at that point would have left, which it can repair.

use std::fs::File;
use std::io;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};

/// How large the file of a creation that a crash interrupted can be: redb's first layout.
const INTERRUPTED_CREATION_BYTES_MAX: u64 = 16 << 20;
/// redb's header, the only part of a new file that is written before its magic number.
const HEADER_BYTES: usize = 320;
/// redb's magic number.
const MAGIC_BYTES: usize = 9;

/// A file that does not change before it is accepted.
#[derive(Debug)]
pub(crate) struct TentativeFile {
    file: FileBackend,
    /// What is held back; `None` once accepted.
    held: Mutex<Option<Held>>,
}

/// The half of a [`TentativeFile`] that redb owns.
#[derive(Debug)]
pub(crate) struct TentativeBackend(Arc<TentativeFile>);

#[derive(Debug)]
struct Held {
    changes: Vec<Change>,
    /// How much of the file is still as on the disk.
    unchanged_bytes: u64,
    /// How long the file would be.
    len: u64,
}

#[derive(Debug)]
enum Change {
    Write(u64, Vec<u8>),
    SetLen(u64),
    Sync,
}

impl TentativeFile {
    /// A file and the backend for redb that stands for it.
    ///
    /// # Errors
    /// Those of reading the file.
    pub(crate) fn new(file: File) -> io::Result<(Arc<Self>, TentativeBackend)> {
        let file = FileBackend::new(file).map_err(io::Error::other)?;
        let len = file.len()?;
        let mut held = Held::new(len);
        if creation_was_interrupted(&file, len)? {
            held.set_len(0);
        }
        let file = Arc::new(Self {
            file,
            held: Mutex::new(Some(held)),
        });
        Ok((Arc::clone(&file), TentativeBackend(file)))
    }

    /// Does what was held back, and from now on holds nothing back.
    ///
    /// # Errors
    /// Those of writing the file.
    pub(crate) fn accept(&self) -> io::Result<()> {
        let mut held = self.held();
        let changes = held.take().map_or_else(Vec::new, |held| held.changes);
        for change in changes {
            match change {
                Change::Write(offset, data) => self.file.write(offset, &data)?,
                Change::SetLen(len) => self.file.set_len(len)?,
                Change::Sync => self.file.sync_data()?,
            }
        }
        Ok(())
    }

    /// Holds back what is changed from now on, for good.
    pub(crate) fn hold_back(&self) {
        // Nothing that is read afterwards matters.
        let len = self.file.len().unwrap_or(0);
        self.held().get_or_insert_with(|| Held::new(len));
    }

    /// How long the file is, in bytes.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn size_bytes(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn held(&self) -> MutexGuard<'_, Option<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn new(len: u64) -> Self {
        Self {
            changes: Vec::new(),
            unchanged_bytes: len,
            len,
        }
    }

    fn write(&mut self, offset: u64, data: &[u8]) {
        self.len = self.len.max(offset + data.len() as u64);
        self.changes.push(Change::Write(offset, data.to_vec()));
    }

    fn set_len(&mut self, len: u64) {
        self.len = len;
        self.unchanged_bytes = self.unchanged_bytes.min(len);
        self.changes.push(Change::SetLen(len));
    }

    /// Reads through what is held back. Of the changes the last one wins.
    fn read(&self, file: &FileBackend, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let end = offset + out.len() as u64;
        if end > self.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        out.fill(0);
        let (_, on_disk) = overlap((offset, end), (0, self.unchanged_bytes));
        file.read(offset, &mut out[on_disk])?;
        for change in &self.changes {
            match change {
                Change::Write(at, data) => {
                    let written = (*at, at + data.len() as u64);
                    let (from, to) = overlap((offset, end), written);
                    out[to].copy_from_slice(&data[from]);
                }
                Change::SetLen(len) => {
                    let (_, cut_off) = overlap((offset, end), (*len, u64::MAX));
                    out[cut_off].fill(0);
                }
                Change::Sync => {}
            }
        }
        Ok(())
    }
}

/// Where two spans of a file meet, as seen from the start of the second and of the first; empty if
/// they do not.
fn overlap(
    first: (u64, u64),
    second: (u64, u64),
) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
    let from = first.0.max(second.0);
    let to = first.1.min(second.1).max(from);
    // Both lie in the first span, which is a buffer in memory.
    let index = |position: u64, start: u64| usize::try_from(position - start).unwrap_or(usize::MAX);
    if from == to {
        return (0..0, 0..0);
    }
    (
        index(from, second.0)..index(to, second.0),
        index(from, first.0)..index(to, first.0),
    )
}

/// Whether this is all that a crash left of a new file: redb sizes it and writes its header before
/// the magic number.
fn creation_was_interrupted(file: &FileBackend, len: u64) -> io::Result<bool> {
    if len == 0 || len > INTERRUPTED_CREATION_BYTES_MAX {
        return Ok(false);
    }
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
    file.read(0, &mut bytes)?;
    let magic = &bytes[..bytes.len().min(MAGIC_BYTES)];
    let data = bytes.get(HEADER_BYTES..).unwrap_or_default();
    Ok(magic.iter().chain(data).all(|byte| *byte == 0))
}

impl StorageBackend for TentativeBackend {
    fn len(&self) -> io::Result<u64> {
        match &*self.0.held() {
            Some(held) => Ok(held.len),
            None => self.0.file.len(),
        }
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        match &*self.0.held() {
            Some(held) => held.read(&self.0.file, offset, out),
            None => self.0.file.read(offset, out),
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        match &mut *self.0.held() {
            Some(held) => {
                held.set_len(len);
                Ok(())
            }
            None => self.0.file.set_len(len),
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        match &mut *self.0.held() {
            Some(held) => {
                held.changes.push(Change::Sync);
                Ok(())
            }
            None => self.0.file.sync_data(),
        }
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        match &mut *self.0.held() {
            Some(held) => {
                held.write(offset, data);
                Ok(())
            }
            None => self.0.file.write(offset, data),
        }
    }

    fn close(&self) -> io::Result<()> {
        self.0.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.0.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.file.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.file.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.file.query_lock_range(start, end)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(backend: &TentativeBackend, offset: u64, len: usize) -> Vec<u8> {
        let mut out = vec![0xff; len];
        backend.read(offset, &mut out).unwrap();
        out
    }

    #[test]
    fn what_is_held_back_is_read_and_not_written_before_it_is_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, b"abcdefgh").unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let (file, backend) = TentativeFile::new(file).unwrap();
        backend.write(2, b"XYZ").unwrap();
        backend.set_len(6).unwrap();
        backend.set_len(10).unwrap();
        backend.write(9, b"!").unwrap();
        backend.sync_data().unwrap();
        let expected = b"abXYZf\0\0\0!";
        assert_eq!(read(&backend, 0, 10), expected);
        assert_eq!(read(&backend, 4, 3), b"Zf\0");
        assert_eq!(backend.len().unwrap(), 10);
        assert!(backend.read(9, &mut [0; 2]).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"abcdefgh");
        file.accept().unwrap();
        assert_eq!(fs::read(&path).unwrap(), expected);
        backend.write(0, b"A").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"AbXYZf\0\0\0!");
    }
}
