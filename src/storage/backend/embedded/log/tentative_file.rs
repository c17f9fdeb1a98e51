//! A file whose changes are held back until it has been verified, and again when it is closed.
//!
//! Until [`TentativeFile::accept`], writes go into a list and reads see them; the file does not change. Accepting
//! repeats the writes and syncs in the same order, so that a crash meanwhile leaves what a crash of the database at
//! that point would have left, which it can repair.
//!
//! A new file is accepted whole or not at all: a mark says that it is being created until its header, which replaces
//! the mark, is written last. So a file that has a header but not what was written with it has been damaged.
//!
//! # After a failure
//!
//! A commit of redb writes pages that nothing uses yet, then the header that names them. So when a
//! write or a sync fails, all that the last good commit needs is on the disk, but for the header.
//! [`TentativeFile::roll_back`] writes the header that was there at the last good sync again and
//! syncs it. What the failed commit left, in the file or in the system's cache, is then free space,
//! just as after a crash before the commit.
//!
//! # Damage
//!
//! The file knows what was written to it, and what it had when it was opened, by a checksum of each page.
//! [`TentativeFile::verify`] compares the next part of it.

use std::io;
use std::ops::Bound;
use std::sync::{Arc, PoisonError};

use redb::{BackendError, StorageBackend};

use super::disk_file::DiskFile;
use super::page_sums::PageSums;
use crate::sync::{Mutex, MutexGuard};

/// The largest file that an interrupted creation leaves, in bytes: redb's first layout.
const INTERRUPTED_CREATION_BYTES_MAX: u64 = 16 << 20;
/// The size of redb's header in bytes.
const HEADER_BYTES: usize = 320;
/// The size of redb's magic number in bytes.
const MAGIC_BYTES: usize = 9;
/// The mark of a file that is being created, after the place of the magic number.
const CREATION_MARK: &[u8] = b"ringwatch is creating this file";
/// The bytes of the file that are compared at a time.
const VERIFIED_BYTES: u64 = 1 << 20;

/// A file that does not change before it is accepted.
#[derive(Debug)]
pub(crate) struct TentativeFile {
    file: Box<dyn DiskFile>,
    progress: Mutex<FileState>,
}

/// The state of the file: which changes are held back.
#[derive(Debug)]
struct FileState {
    /// The writes that are held back; `None` once the file is accepted.
    held: Option<BufferedWrites>,
    header: Header,
    /// The checksums of what the file has, as far as it was read or written.
    sums: PageSums,
    /// The place from which the file is compared next.
    verified_up_to: u64,
    /// True if the file stays locked when redb closes it, since it will be opened again.
    keeps_locks: bool,
}

/// The part of the file from which redb finds everything else.
#[derive(Clone, Debug)]
struct Header {
    /// The bytes written last.
    written: [u8; HEADER_BYTES],
    /// The bytes at the last good sync.
    durable: [u8; HEADER_BYTES],
}

/// The half of a [`TentativeFile`] that redb owns.
#[derive(Debug)]
pub(crate) struct TentativeBackend(Arc<TentativeFile>);

#[derive(Debug)]
struct BufferedWrites {
    changes: Vec<BufferedChange>,
    /// The length of the part that is as on the disk, in bytes.
    unchanged_bytes: u64,
    /// The length that the file would have, in bytes.
    len: u64,
}

#[derive(Debug)]
enum BufferedChange {
    Write(u64, Vec<u8>),
    SetLen(u64),
    Sync,
}

impl TentativeFile {
    /// Wraps a file from which nothing has been read yet.
    ///
    /// # Errors
    /// The error of reading the file.
    pub(crate) fn new(file: Box<dyn DiskFile>) -> io::Result<Arc<Self>> {
        file.forget_cached()?;
        let storage = file.storage();
        let len = storage.len()?;
        let mut held = BufferedWrites::new(len);
        let header = if creation_was_interrupted(storage, len)? {
            held.set_len(0);
            Header::blank()
        } else {
            Header::read(storage, len)?
        };
        Ok(Arc::new(Self {
            file,
            progress: Mutex::new(FileState {
                held: Some(held),
                header,
                sums: PageSums::default(),
                verified_up_to: 0,
                keeps_locks: false,
            }),
        }))
    }

    /// Returns the half for redb.
    pub(crate) fn backend(self: &Arc<Self>) -> TentativeBackend {
        TentativeBackend(Arc::clone(self))
    }

    /// Does the changes that were held back, and stops holding back.
    ///
    /// # Errors
    /// The error of writing the file.
    pub(crate) fn accept(&self) -> io::Result<()> {
        let mut progress = self.progress();
        let Some(held) = progress.held.take() else {
            return Ok(());
        };
        if progress.header.is_blank() {
            return progress.create(self.storage(), &held);
        }
        for change in held.changes {
            match change {
                BufferedChange::Write(offset, data) => {
                    progress.write(self.storage(), offset, &data)?
                }
                BufferedChange::SetLen(len) => progress.set_len(self.storage(), len)?,
                BufferedChange::Sync => progress.sync(self.storage())?,
            }
        }
        Ok(())
    }

    /// Ends [`Self::suspend`]: the file is in use again.
    pub(crate) fn resume(&self) {
        self.progress().keeps_locks = false;
    }

    /// Holds back all changes from now on, for good.
    pub(crate) fn hold_back(&self) {
        // No content that is read afterwards matters.
        let len = self.storage().len().unwrap_or(0);
        self.progress()
            .held
            .get_or_insert_with(|| BufferedWrites::new(len));
    }

    /// Holds back what redb writes when it closes the file after a failure. The file stays locked, so that no other
    /// process opens it before it is opened again.
    pub(crate) fn suspend(&self) {
        self.hold_back();
        self.progress().keeps_locks = true;
    }

    /// Restores the file to its state at the last good sync, and holds changes back until it is accepted. redb must
    /// have closed it.
    ///
    /// # Errors
    /// The error of writing the file.
    pub(crate) fn roll_back(&self) -> io::Result<()> {
        let mut progress = self.progress();
        let header = progress.header.durable;
        progress.write(self.storage(), 0, &header)?;
        progress.sync(self.storage())?;
        self.file.forget_cached()?;
        progress.held = Some(BufferedWrites::new(self.storage().len()?));
        // What is there from now on is what redb finds good.
        progress.sums = PageSums::default();
        progress.verified_up_to = 0;
        Ok(())
    }

    /// Compares the next part of the file with what is known of it, and begins again at its end. Each time the whole is
    /// begun, it is read from the disk. Does nothing while changes are held back.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] if it differs; the error of reading the file.
    pub(crate) fn verify(&self) -> io::Result<()> {
        let mut progress = self.progress();
        if progress.held.is_some() {
            return Ok(());
        }
        let len = self.storage().len()?;
        if len < progress.sums.end() {
            return Err(damaged_at(len));
        }
        let from = progress.verified_up_to.min(len);
        if from == 0 {
            self.file.forget_cached()?;
        }
        let bytes = (len - from).min(VERIFIED_BYTES);
        let mut part = vec![0; usize::try_from(bytes).unwrap_or(0)];
        self.storage().read(from, &mut part)?;
        let is_last = from + bytes == len;
        progress.verified_up_to = if is_last { 0 } else { from + bytes };
        let header = &progress.header.written[..part.len().min(HEADER_BYTES)];
        if from == 0 && !part.starts_with(header) {
            return Err(damaged_at(0));
        }
        match progress.sums.difference(from, &part) {
            Some(place) => Err(damaged_at(place)),
            None => Ok(()),
        }
    }

    /// Returns true if the file has no content: it is empty, or its creation was interrupted.
    pub(crate) fn is_new(&self) -> bool {
        self.progress().header.is_blank()
    }

    /// Returns the length of the file in bytes.
    ///
    /// # Errors
    /// The error of the operating system.
    pub(crate) fn size_bytes(&self) -> io::Result<u64> {
        self.storage().len()
    }

    fn storage(&self) -> &dyn StorageBackend {
        self.file.storage()
    }

    fn progress(&self) -> MutexGuard<'_, FileState> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FileState {
    /// Writes a new file, its header last. If that is interrupted before the header is durable, the file is still a new
    /// one.
    fn create(&mut self, file: &dyn StorageBackend, held: &BufferedWrites) -> io::Result<()> {
        let header_end = HEADER_BYTES as u64;
        file.set_len(held.len.max(header_end))?;
        file.write(0, &[0; MAGIC_BYTES])?;
        file.write(MAGIC_BYTES as u64, CREATION_MARK)?;
        file.sync_data()?;
        for change in &held.changes {
            match change {
                BufferedChange::Write(offset, data) => {
                    let written = (*offset, offset + data.len() as u64);
                    let (behind_header, _) = overlap((header_end, u64::MAX), written);
                    file.write(header_end.max(*offset), &data[behind_header])?;
                    self.sums.written(*offset, data);
                }
                BufferedChange::SetLen(len) => {
                    file.set_len(header_end.max(*len))?;
                    self.sums.cut_off(*len);
                }
                // Nothing counts before the header.
                BufferedChange::Sync => {}
            }
        }
        file.sync_data()?;
        let mut header = [0; HEADER_BYTES];
        let there = usize::try_from(held.len).unwrap_or(HEADER_BYTES);
        held.read(file, 0, &mut header[..there.min(HEADER_BYTES)])?;
        self.write(file, 0, &header)?;
        self.set_len(file, held.len)?;
        self.sync(file)
    }

    fn write(&mut self, file: &dyn StorageBackend, offset: u64, data: &[u8]) -> io::Result<()> {
        file.write(offset, data)?;
        self.header.write(offset, data);
        self.sums.written(offset, data);
        Ok(())
    }

    fn set_len(&mut self, file: &dyn StorageBackend, len: u64) -> io::Result<()> {
        file.set_len(len)?;
        self.sums.cut_off(len);
        let kept = usize::try_from(len).unwrap_or(HEADER_BYTES);
        self.header.written[kept.min(HEADER_BYTES)..].fill(0);
        Ok(())
    }

    fn sync(&mut self, file: &dyn StorageBackend) -> io::Result<()> {
        file.sync_data()?;
        self.header.durable = self.header.written;
        Ok(())
    }
}

impl Header {
    /// Returns the header of a file that has none.
    fn blank() -> Self {
        Self {
            written: [0; HEADER_BYTES],
            durable: [0; HEADER_BYTES],
        }
    }

    /// Returns true if none has ever been durable.
    fn is_blank(&self) -> bool {
        self.durable == [0; HEADER_BYTES]
    }

    fn read(file: &dyn StorageBackend, len: u64) -> io::Result<Self> {
        let mut bytes = [0; HEADER_BYTES];
        let there = usize::try_from(len).unwrap_or(HEADER_BYTES);
        file.read(0, &mut bytes[..there.min(HEADER_BYTES)])?;
        Ok(Self {
            written: bytes,
            durable: bytes,
        })
    }

    fn write(&mut self, offset: u64, data: &[u8]) {
        let written = (offset, offset + data.len() as u64);
        let (from, to) = overlap((0, HEADER_BYTES as u64), written);
        self.written[to].copy_from_slice(&data[from]);
    }
}

impl BufferedWrites {
    fn new(len: u64) -> Self {
        Self {
            changes: Vec::new(),
            unchanged_bytes: len,
            len,
        }
    }

    fn write(&mut self, offset: u64, data: &[u8]) {
        self.len = self.len.max(offset + data.len() as u64);
        self.changes
            .push(BufferedChange::Write(offset, data.to_vec()));
    }

    fn set_len(&mut self, len: u64) {
        self.len = len;
        self.unchanged_bytes = self.unchanged_bytes.min(len);
        self.changes.push(BufferedChange::SetLen(len));
    }

    /// Reads the file with the held-back changes applied; later ones win. Returns true if none concerns what is read.
    fn read(&self, file: &dyn StorageBackend, offset: u64, out: &mut [u8]) -> io::Result<bool> {
        let end = offset + out.len() as u64;
        if end > self.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        out.fill(0);
        let (_, on_disk) = overlap((offset, end), (0, self.unchanged_bytes));
        let mut is_on_disk = on_disk.len() == out.len();
        file.read(offset, &mut out[on_disk])?;
        for change in &self.changes {
            match change {
                BufferedChange::Write(at, data) => {
                    let written = (*at, at + data.len() as u64);
                    let (from, to) = overlap((offset, end), written);
                    is_on_disk &= to.is_empty();
                    out[to].copy_from_slice(&data[from]);
                }
                BufferedChange::SetLen(len) => {
                    let (_, cut_off) = overlap((offset, end), (*len, u64::MAX));
                    out[cut_off].fill(0);
                }
                BufferedChange::Sync => {}
            }
        }
        Ok(is_on_disk)
    }
}

/// Returns the intersection of two spans of a file, relative to the start of the second and of the first; empty if
/// there is none.
fn overlap(
    first: (u64, u64),
    second: (u64, u64),
) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
    let from = first.0.max(second.0);
    let to = first.1.min(second.1).max(from);
    // What overlaps lies in the span that is a buffer in memory.
    let index = |position: u64, start: u64| usize::try_from(position - start).unwrap_or(usize::MAX);
    if from == to {
        return (0..0, 0..0);
    }
    (
        index(from, second.0)..index(to, second.0),
        index(from, first.0)..index(to, first.0),
    )
}

fn damaged_at(place: u64) -> io::Error {
    let why = format!("the file is damaged at byte {place}: it has not what was written there");
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Returns true if the file is what a crash left of a new one: it has the mark, or nothing but a part of a header.
fn creation_was_interrupted(file: &dyn StorageBackend, len: u64) -> io::Result<bool> {
    if len == 0 || len > INTERRUPTED_CREATION_BYTES_MAX {
        return Ok(false);
    }
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
    file.read(0, &mut bytes)?;
    let (magic, rest) = bytes.split_at(bytes.len().min(MAGIC_BYTES));
    let data = bytes.get(HEADER_BYTES..).unwrap_or_default();
    let is_zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    Ok(is_zero(magic) && (rest.starts_with(CREATION_MARK) || is_zero(data)))
}

impl StorageBackend for TentativeBackend {
    fn len(&self) -> io::Result<u64> {
        match &self.0.progress().held {
            Some(held) => Ok(held.len),
            None => self.0.storage().len(),
        }
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut progress = self.0.progress();
        let is_on_disk = match &progress.held {
            Some(held) => held.read(self.0.storage(), offset, out)?,
            None => {
                self.0.storage().read(offset, out)?;
                true
            }
        };
        if is_on_disk {
            progress.sums.read(offset, out);
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut progress = self.0.progress();
        match &mut progress.held {
            Some(held) => {
                held.set_len(len);
                Ok(())
            }
            None => progress.set_len(self.0.storage(), len),
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut progress = self.0.progress();
        match &mut progress.held {
            Some(held) => {
                held.changes.push(BufferedChange::Sync);
                Ok(())
            }
            None => progress.sync(self.0.storage()),
        }
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut progress = self.0.progress();
        match &mut progress.held {
            Some(held) => {
                held.write(offset, data);
                Ok(())
            }
            None => progress.write(self.0.storage(), offset, data),
        }
    }

    fn close(&self) -> io::Result<()> {
        match self.0.progress().keeps_locks {
            true => Ok(()),
            false => self.0.storage().close(),
        }
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.storage().try_lock_range(start, end)
    }

    fn try_lock_shared_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.0.storage().try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.storage().lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.storage().lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        match self.0.progress().keeps_locks {
            true => Ok(()),
            false => self.0.storage().unlock_range(start, end),
        }
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.storage().query_lock_range(start, end)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use ringwatch_testing::disk::{Disk, Fault, FaultKind};

    use super::*;
    use crate::storage::backend::embedded::log::disk_file::{OnDisk, SystemFile};

    /// Disks that lose different blocks when a sync fails.
    const SEEDS: u64 = 10;
    /// More changes than a creation makes.
    const CHANGES_MAX: u32 = 100;

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
        let file = TentativeFile::new(Box::new(SystemFile::new(file).unwrap())).unwrap();
        let backend = file.backend();
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

    /// Returns a file of these bytes, opened `count` times.
    fn opened(content: &[u8], count: usize) -> (tempfile::TempDir, Vec<Arc<TentativeFile>>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, content).unwrap();
        let open = || {
            let file = File::options().read(true).write(true).open(&path).unwrap();
            TentativeFile::new(Box::new(SystemFile::new(file).unwrap())).unwrap()
        };
        let files = (0..count).map(|_| open()).collect();
        (folder, files)
    }

    #[test]
    fn rolling_back_shows_what_the_disk_has() {
        for seed in 0..SEEDS {
            let disk = Disk::new(seed);
            let file = TentativeFile::new(Box::new(OnDisk(Box::new(disk.clone())))).unwrap();
            let backend = file.backend();
            backend.set_len(4_096).unwrap();
            backend.write(0, &[7; 4_096]).unwrap();
            backend.sync_data().unwrap();
            file.accept().unwrap();
            backend.write(0, &[1; 64]).unwrap();
            backend.write(1_024, &[1; 2_048]).unwrap();
            disk.fail(Fault {
                after: 0,
                kind: FaultKind::Once,
            });
            backend.sync_data().unwrap_err();
            file.roll_back().unwrap();
            let mut durable = vec![0; 4_096];
            disk.after_power_loss().read(0, &mut durable).unwrap();
            assert_eq!(read(&backend, 0, 4_096), durable, "seed {seed}");
            // The header is that of the last good sync, whatever else the failed one has written.
            assert_eq!(durable[..64], [7; 64], "seed {seed}");
        }
    }

    #[test]
    fn damage_is_found_wherever_it_is_while_the_file_is_open() {
        let disk = Disk::new(1);
        let open = || TentativeFile::new(Box::new(OnDisk(Box::new(disk.clone())))).unwrap();
        let file = open();
        let backend = file.backend();
        let len = 3 * VERIFIED_BYTES + 4_096;
        backend.set_len(len).unwrap();
        for page in 0..len / 4_096 {
            backend.write(page * 4_096, &[7; 4_096]).unwrap();
        }
        backend.sync_data().unwrap();
        file.verify().expect("nothing is written yet");
        file.accept().unwrap();
        let whole = |file: &TentativeFile| (0..4).try_for_each(|_| file.verify());
        whole(&file).expect("it is as it was written");
        for place in [9, 4_096, 2 * VERIFIED_BYTES, len - 1] {
            disk.write(place, &[8]).unwrap();
            let found = whole(&file).expect_err("it is damaged").to_string();
            let page = place / 4_096 * 4_096;
            assert!(
                found.contains(&format!("at byte {page}:")),
                "{place}: {found}"
            );
            disk.write(place, &[7]).unwrap();
            (0..4).for_each(|_| drop(file.verify()));
        }
        // What a file has when it is opened is known once it has been read.
        let again = open();
        read(&again.backend(), 4_096, 4_096);
        again.accept().unwrap();
        disk.write(5_000, &[8]).unwrap();
        whole(&again).expect_err("it is damaged");
        again.roll_back().unwrap();
        again.accept().unwrap();
        whole(&again).expect("it is read anew");
        backend.set_len(4_096).unwrap();
        whole(&file).expect("it was cut off on purpose");
        disk.set_len(0).unwrap();
        whole(&file).expect_err("it was cut off by somebody else");
    }

    #[test]
    fn what_is_cut_off_while_a_file_is_created_is_no_damage() {
        let disk = Disk::new(1);
        let file = TentativeFile::new(Box::new(OnDisk(Box::new(disk)))).unwrap();
        let backend = file.backend();
        backend.set_len(3 * 4_096).unwrap();
        backend.write(0, &[7; 3 * 4_096]).unwrap();
        backend.set_len(4_096).unwrap();
        backend.set_len(3 * 4_096).unwrap();
        file.accept().unwrap();
        file.verify().expect("it is as it was written");
    }

    /// Whenever power is lost, the file is the new one or can be created again.
    #[test]
    fn a_new_file_is_created_whole_or_not_at_all() {
        for after in 0..CHANGES_MAX {
            let disk = Disk::new(after.into());
            disk.fail(Fault {
                after,
                kind: FaultKind::PowerLoss,
            });
            let create = |content: u8| {
                let file = TentativeFile::new(Box::new(OnDisk(Box::new(disk.clone())))).unwrap();
                let backend = file.backend();
                if file.is_new() {
                    assert_eq!(backend.len().unwrap(), 0, "after {after}");
                    backend.set_len(4_096).unwrap();
                    backend.write(MAGIC_BYTES as u64, &[content; 600]).unwrap();
                    backend.sync_data().unwrap();
                    backend.write(0, &[content; MAGIC_BYTES]).unwrap();
                    backend.write(2_048, &[content; 2_048]).unwrap();
                }
                file.accept().ok().map(|()| read(&backend, 0, 4_096))
            };
            let whole = |content| {
                let mut bytes = vec![content; 4_096];
                bytes[MAGIC_BYTES + 600..2_048].fill(0);
                bytes
            };
            if let Some(found) = create(1) {
                assert_eq!(found, whole(1));
                assert!(after > 3, "{after} interruptions");
                return;
            }
            disk.power_on();
            let found = create(2).expect("the disk works");
            assert!(found == whole(1) || found == whole(2), "after {after}");
        }
        panic!("it is never created");
    }

    #[test]
    fn a_file_is_new_until_something_in_it_is_durable() {
        let (folder, files) = opened(b"", 1);
        let (file, backend) = (&files[0], files[0].backend());
        assert!(file.is_new());
        backend.write(8, b"ij").unwrap();
        assert_eq!(backend.len().unwrap(), 10);
        assert_eq!(file.size_bytes().unwrap(), 0, "it is held back");
        backend.sync_data().unwrap();
        file.accept().unwrap();
        assert!(!file.is_new());
        assert_eq!(file.size_bytes().unwrap(), 10);
        file.hold_back();
        backend.write(0, b"a").unwrap();
        assert_eq!(read(&backend, 0, 10), b"a\0\0\0\0\0\0\0ij");
        let content = fs::read(folder.path().join("file")).unwrap();
        assert_eq!(content, b"\0\0\0\0\0\0\0\0ij");
    }

    #[test]
    fn what_an_interrupted_creation_left_is_taken_for_empty() {
        let left = |len: u64, written: Option<usize>| {
            let mut content = vec![0; usize::try_from(len).unwrap()];
            if let Some(at) = written {
                content[at] = 1;
            }
            let (_folder, files) = opened(&content, 1);
            files[0].backend().len().unwrap()
        };
        let header = HEADER_BYTES as u64;
        assert_eq!(left(header + 100, None), 0);
        assert_eq!(
            left(header + 100, Some(MAGIC_BYTES)),
            0,
            "the rest of the header"
        );
        assert_eq!(
            left(header + 100, Some(0)),
            header + 100,
            "the magic number"
        );
        assert_eq!(left(header + 100, Some(HEADER_BYTES)), header + 100, "data");
        let mark = [&[0; MAGIC_BYTES], CREATION_MARK, b"data"].concat();
        let (_folder, files) = opened(&mark, 1);
        assert_eq!(files[0].backend().len().unwrap(), 0, "the mark");
        let largest = INTERRUPTED_CREATION_BYTES_MAX;
        assert_eq!(left(largest, None), 0);
        assert_eq!(
            left(largest + 1, None),
            largest + 1,
            "too large for a new one"
        );
    }

    #[test]
    fn locks_are_those_of_the_file() {
        let (_folder, files) = opened(b"abcdefgh", 2);
        let (one, other) = (files[0].backend(), files[1].backend());
        let (start, end) = (Bound::Included(0), Bound::Included(3));
        let is_locked = || other.query_lock_range(start, end).unwrap();
        assert!(!is_locked());
        assert!(one.try_lock_range(start, end).unwrap());
        assert!(is_locked());
        assert!(!other.try_lock_range(start, end).unwrap());
        assert!(!other.try_lock_shared_range(start, end).unwrap());
        one.unlock_range(start, end).unwrap();
        assert!(!is_locked());
        one.lock_range(start, end).unwrap();
        assert!(is_locked());
        one.unlock_range(start, end).unwrap();
        one.lock_shared_range(start, end).unwrap();
        assert!(is_locked());
        assert!(other.try_lock_shared_range(start, end).unwrap());
        assert!(!other.try_lock_range(start, end).unwrap());
    }

    #[test]
    fn a_file_that_will_be_opened_again_stays_locked() {
        let (_folder, files) = opened(b"abcdefgh", 2);
        let (one, other) = (files[0].backend(), files[1].backend());
        let (start, end) = (Bound::Included(0), Bound::Included(3));
        assert!(one.try_lock_range(start, end).unwrap());
        files[0].suspend();
        one.unlock_range(start, end).unwrap();
        one.close().unwrap();
        assert!(!other.try_lock_range(start, end).unwrap());
        files[0].resume();
        one.close().unwrap();
        assert!(other.try_lock_range(start, end).unwrap());
    }

    #[test]
    fn what_the_disk_has_lost_is_found_though_the_cache_has_it() {
        let mut lost = 0;
        for seed in 0..SEEDS {
            let disk = Disk::new(seed);
            let file = TentativeFile::new(Box::new(OnDisk(Box::new(disk.clone())))).unwrap();
            let backend = file.backend();
            backend.set_len(8_192).unwrap();
            backend.write(0, &[7; 8_192]).unwrap();
            backend.sync_data().unwrap();
            file.accept().unwrap();
            backend.write(4_096, &[1; 4_096]).unwrap();
            disk.fail(Fault {
                after: 0,
                kind: FaultKind::Once,
            });
            backend.sync_data().unwrap_err();
            let mut durable = vec![0; 4_096];
            disk.after_power_loss().read(4_096, &mut durable).unwrap();
            let is_lost = durable != [1; 4_096];
            assert_eq!(file.verify().is_err(), is_lost, "seed {seed}");
            lost += u64::from(is_lost);
        }
        assert!(lost > 0);
    }
}
