//! The file under a log, as the log needs it.

use std::fmt::Debug;
use std::fs::File;
use std::io;

use redb::StorageBackend;
use redb::backends::FileBackend;

/// A file that redb writes to. Tests have one that fails on demand.
pub(crate) trait DiskFile: Debug + Send + Sync {
    /// Returns the file as redb sees it.
    fn storage(&self) -> &dyn StorageBackend;

    /// Makes reads come from the disk rather than the system's cache, which may hold what never reached the disk: after
    /// a failed fsync Linux counts the pages as clean, and a later fsync succeeds without writing them.
    ///
    /// # Errors
    /// The error of the operating system.
    fn forget_cached(&self) -> io::Result<()>;
}

/// A file of the operating system.
#[derive(Debug)]
pub(crate) struct SystemFile {
    storage: FileBackend,
    /// The same open file.
    file: File,
}

impl SystemFile {
    /// Wraps a file that is open for reading and writing.
    ///
    /// # Errors
    /// The error of the operating system.
    pub(crate) fn new(file: File) -> io::Result<Self> {
        Ok(Self {
            storage: FileBackend::new(file.try_clone()?).map_err(io::Error::other)?,
            file,
        })
    }
}

impl DiskFile for SystemFile {
    fn storage(&self) -> &dyn StorageBackend {
        &self.storage
    }

    #[cfg(target_os = "linux")]
    fn forget_cached(&self) -> io::Result<()> {
        rustix::fs::fadvise(&self.file, 0, None, rustix::fs::Advice::DontNeed)?;
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    fn forget_cached(&self) -> io::Result<()> {
        self.file.metadata().map(drop)
    }
}
