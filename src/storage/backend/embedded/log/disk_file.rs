//! The file under a log: one of the system, or a [`Disk`] of the caller's making.

use std::fmt::Debug;
use std::fs::File;
use std::io;

use redb::StorageBackend;
use redb::backends::FileBackend;

/// A disk with one file, which the embedded store can be kept on instead of a file of the system.
///
/// [`super::super::Embedded::open_on`] has the guarantees that the store gives over it. One process has it at a time.
pub trait Disk: Debug + Send + Sync + 'static {
    /// Returns the length of the file in bytes.
    ///
    /// # Errors
    /// Any. The store accepts no writes until it has recovered; so it does after every error here.
    fn size_bytes(&self) -> io::Result<u64>;

    /// Reads bytes of the file, as they were written last.
    ///
    /// # Errors
    /// They lie behind the end of the file, or cannot be read.
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;

    /// Cuts the file off, or extends it by zeros.
    ///
    /// # Errors
    /// The file has its old length, or the new one.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Writes bytes within the file.
    ///
    /// # Errors
    /// A part may have been written.
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()>;

    /// Returns when all earlier changes would survive a loss of power.
    ///
    /// # Errors
    /// Some of the changes may be durable, and no later sync need make the others so.
    fn sync(&self) -> io::Result<()>;

    /// Makes reads come from the disk rather than from a cache before it, which may hold what never reached the disk:
    /// after a failed fsync Linux counts the pages as clean, and a later fsync succeeds without writing them.
    ///
    /// # Errors
    /// Reads may still come from the cache.
    fn forget_cached(&self) -> io::Result<()>;
}

/// A file that redb writes to.
pub(crate) trait DiskFile: Debug + Send + Sync {
    /// Returns the file as redb sees it.
    fn storage(&self) -> &dyn StorageBackend;

    /// Makes reads come from the disk, as [`Disk::forget_cached`].
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

/// The file of a [`Disk`]. It has no locks, since nobody else has the disk.
#[derive(Debug)]
pub(crate) struct OnDisk(pub(crate) Box<dyn Disk>);

impl StorageBackend for OnDisk {
    fn len(&self) -> io::Result<u64> {
        self.0.size_bytes()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }
}

impl DiskFile for OnDisk {
    fn storage(&self) -> &dyn StorageBackend {
        self
    }

    fn forget_cached(&self) -> io::Result<()> {
        self.0.forget_cached()
    }
}

#[cfg(test)]
impl Disk for ringwatch_testing::disk::Disk {
    fn size_bytes(&self) -> io::Result<u64> {
        Self::size_bytes(self)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        Self::read(self, offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        Self::set_len(self, len)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        Self::write(self, offset, data)
    }

    fn sync(&self) -> io::Result<()> {
        Self::sync(self)
    }

    fn forget_cached(&self) -> io::Result<()> {
        Self::forget_cached(self)
    }
}
