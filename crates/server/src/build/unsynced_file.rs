//! The file of an embedded store that waits for no write to reach the disk: writes survive the process, not the host.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use ringwatch::storage::backend::embedded::{Disk, OpenError};

/// A file of the operating system that one process has open.
#[derive(Debug)]
pub(crate) struct UnsyncedFile(File);

impl UnsyncedFile {
    /// Opens the file, which is created if it is missing.
    ///
    /// # Errors
    /// Another process has it open, or the operating system refuses.
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let failed = |source| OpenError::Io {
            path: path.to_path_buf(),
            source,
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).mode(0o600);
        let file = options.open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse {
                path: path.to_path_buf(),
            }),
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }
}

impl Disk for UnsyncedFile {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(out, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_all_at(data, offset)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    /// Does nothing: what is cached is all that there may be.
    fn forget_cached(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_has_the_file_and_finds_what_was_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store");
        let file = UnsyncedFile::open(&path).expect("opened");
        file.set_len(8).expect("longer");
        file.write(2, b"abc").expect("written");
        file.sync().expect("nothing to do");
        let second = UnsyncedFile::open(&path).expect_err("in use");
        assert!(matches!(second, OpenError::InUse { .. }), "{second}");
        drop(file);
        let file = UnsyncedFile::open(&path).expect("opened");
        let mut read = [0; 4];
        file.read(1, &mut read).expect("read");
        assert_eq!(&read, b"\0abc");
        assert_eq!(file.size_bytes().expect("a length"), 8);
        file.read(6, &mut read).expect_err("behind the end");
    }
}
