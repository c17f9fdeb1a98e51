//! A disk for tests, with the system's cache before it, that fails on demand.
//!
//! It does what Linux may do. A write that fails may have written a part. A sync that fails may
//! have written any blocks; all count as clean afterwards, so that the cache shows what the disk
//! does not have and no later sync writes it. A loss of power leaves any of the blocks that were
//! not synced.

use std::collections::BTreeSet;
use std::fmt::{self, Debug, Formatter};
use std::io;
use std::sync::Arc;

use redb::StorageBackend;

use super::disk_file::DiskFile;
use crate::sync::{Mutex, MutexGuard};

/// The unit in which the disk is written.
const BLOCK_BYTES: usize = 4_096;

/// A disk with one file. Copies are the same disk.
#[derive(Clone)]
pub(crate) struct FaultyDisk(Arc<Mutex<Disk>>);

#[derive(Clone)]
struct Disk {
    /// The file as reads return it.
    cached: Vec<u8>,
    /// The content after a loss of power.
    durable: Vec<u8>,
    /// The blocks that the next sync writes.
    dirty: BTreeSet<usize>,
    fault: Option<Fault>,
    has_failed: bool,
    /// The state of the generator of random numbers.
    random: u64,
}

/// The point at which the disk fails, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    /// The number of changes and syncs that succeed before.
    pub(crate) after: u32,
    /// True if only one fails; otherwise all do until the disk is repaired.
    pub(crate) once: bool,
}

impl FaultyDisk {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(Disk {
            cached: Vec::new(),
            durable: Vec::new(),
            dirty: BTreeSet::new(),
            fault: None,
            has_failed: false,
            random: seed,
        })))
    }

    pub(crate) fn fail(&self, fault: Fault) {
        self.disk().fault = Some(fault);
    }

    pub(crate) fn mend(&self) {
        self.disk().fault = None;
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.disk().has_failed
    }

    /// Returns a disk with the content after a loss of power now.
    pub(crate) fn after_power_loss(&self) -> Self {
        let mut disk = self.disk().clone();
        disk.write_back(true);
        disk.cached.clone_from(&disk.durable);
        disk.fault = None;
        disk.has_failed = false;
        Self(Arc::new(Mutex::new(disk)))
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().unwrap()
    }
}

impl Disk {
    /// Returns an error if the disk fails now.
    fn change(&mut self) -> io::Result<()> {
        match &mut self.fault {
            Some(Fault { after: 0, once }) => {
                if *once {
                    self.fault = None;
                }
                self.has_failed = true;
                Err(io::ErrorKind::StorageFull.into())
            }
            Some(fault) => {
                fault.after -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn write(&mut self, offset: usize, data: &[u8]) {
        let end = offset + data.len();
        self.cached[offset..end].copy_from_slice(data);
        self.dirty
            .extend(offset / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES));
    }

    /// Writes the dirty blocks, or only some of them. None is dirty afterwards.
    fn write_back(&mut self, only_some: bool) {
        for block in std::mem::take(&mut self.dirty) {
            if !only_some || self.is_lucky() {
                let bytes = self.span(block);
                self.durable[bytes.clone()].copy_from_slice(&self.cached[bytes]);
            }
        }
    }

    fn span(&self, block: usize) -> std::ops::Range<usize> {
        let start = block * BLOCK_BYTES;
        start.min(self.cached.len())..(start + BLOCK_BYTES).min(self.cached.len())
    }

    /// Returns true half of the times, by Knuth's linear congruential generator.
    fn is_lucky(&mut self) -> bool {
        let next = self.random.wrapping_mul(6_364_136_223_846_793_005);
        self.random = next.wrapping_add(1_442_695_040_888_963_407);
        self.random >> 63 == 1
    }
}

fn index(position: u64) -> usize {
    usize::try_from(position).unwrap()
}

impl StorageBackend for FaultyDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.disk().cached.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let disk = self.disk();
        let bytes = disk.cached.get(index(offset)..index(offset) + out.len());
        out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut disk = self.disk();
        disk.change()?;
        disk.cached.resize(index(len), 0);
        disk.durable.resize(index(len), 0);
        let blocks = index(len).div_ceil(BLOCK_BYTES);
        disk.dirty.retain(|block| *block < blocks);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut disk = self.disk();
        let outcome = disk.change();
        disk.write_back(outcome.is_err());
        outcome
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut disk = self.disk();
        let outcome = disk.change();
        let written = match outcome {
            Ok(()) => data.len(),
            // Blocks, and all the more redb's header of some hundred bytes, are written whole.
            Err(_) => data.len() / 2 / BLOCK_BYTES * BLOCK_BYTES,
        };
        disk.write(index(offset), &data[..written]);
        outcome
    }
}

impl DiskFile for FaultyDisk {
    fn storage(&self) -> &dyn StorageBackend {
        self
    }

    fn forget_cached(&self) -> io::Result<()> {
        let mut disk = self.disk();
        for block in 0..disk.cached.len().div_ceil(BLOCK_BYTES) {
            if !disk.dirty.contains(&block) {
                let bytes = disk.span(block);
                let Disk {
                    cached, durable, ..
                } = &mut *disk;
                cached[bytes.clone()].copy_from_slice(&durable[bytes]);
            }
        }
        Ok(())
    }
}

impl Debug for FaultyDisk {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("FaultyDisk")
    }
}
