//! A disk with one file and the system's cache before it, that fails and loses power on demand.
//!
//! It does what Linux may do. A write that fails may have written a part. A sync that fails may have written any
//! blocks; all count as clean afterwards, so that the cache shows what the disk does not have and no later sync writes
//! it. A loss of power leaves any of the blocks that were not synced. A block is a sector of 512 bytes, the unit that
//! disks write whole; a larger write may be torn between blocks.
//!
//! ```
//! use ringwatch_testing::disk::Disk;
//!
//! let disk = Disk::new(1);
//! disk.set_len(3).unwrap();
//! disk.write(0, b"one").unwrap();
//! disk.sync().unwrap();
//! disk.write(0, b"two").unwrap();
//! let mut found = [0; 3];
//! disk.after_power_loss().read(0, &mut found).unwrap();
//! assert!(found == *b"one" || found == *b"two");
//! ```

use std::collections::BTreeSet;
use std::fmt::{self, Debug, Formatter};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

/// The unit in which the disk is written, in bytes.
const BLOCK_BYTES: usize = 512;

/// A disk with one file. Clones are the same disk.
#[derive(Clone)]
pub struct Disk(Arc<Mutex<State>>);

#[derive(Clone)]
struct State {
    /// The file as reads return it.
    cached: Vec<u8>,
    /// The content after a loss of power.
    durable: Vec<u8>,
    /// The blocks that the next sync writes.
    dirty: BTreeSet<usize>,
    fault: Option<Fault>,
    /// The length beyond which the file cannot grow.
    len_max: Option<u64>,
    /// Number of changes, syncs and accesses that failed.
    failures: u64,
    is_off: bool,
    /// Number of changes and syncs that succeeded.
    changes: u64,
    /// The state of the generator of random numbers.
    random: u64,
}

/// The point at which the disk fails, and how.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// Number of changes and syncs that succeed before.
    pub after: u32,
    pub kind: FaultKind,
}

/// The way in which a disk fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// One change fails: the disk is full.
    Once,
    /// All changes fail until the disk is mended: it is full.
    UntilMended,
    /// Every access fails until the disk is mended, reads too.
    Broken,
    /// Every access fails, and nothing changes any more, until [`Disk::power_on`].
    PowerLoss,
}

impl Disk {
    /// Creates a disk with an empty file. The seed decides what is left by losses of power and failed syncs.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            cached: Vec::new(),
            durable: Vec::new(),
            dirty: BTreeSet::new(),
            fault: None,
            len_max: None,
            failures: 0,
            is_off: false,
            changes: 0,
            random: seed,
        })))
    }

    /// Plans a fault, in the place of one that is planned.
    pub fn fail(&self, fault: Fault) {
        self.state().fault = Some(fault);
    }

    /// Ends a fault: changes succeed again.
    pub fn mend(&self) {
        self.state().fault = None;
    }

    /// Sets the length beyond which the file cannot grow, as on a full disk; `None` for no limit. What the file has can
    /// be overwritten.
    pub fn limit(&self, len_max: Option<u64>) {
        self.state().len_max = len_max;
    }

    /// Returns the number of accesses that have failed since the disk was turned on.
    pub fn failures(&self) -> u64 {
        self.state().failures
    }

    /// Returns true if power was lost and is not back.
    pub fn is_off(&self) -> bool {
        self.state().is_off
    }

    /// Returns the number of changes and syncs that succeeded.
    pub fn changes(&self) -> u64 {
        self.state().changes
    }

    /// Loses power now: every access fails until [`Self::power_on`].
    pub fn power_off(&self) {
        self.state().is_off = true;
    }

    /// Turns the disk on again, mended: of what was not synced when power was lost, any blocks are there.
    pub fn power_on(&self) {
        self.state().lose_cache();
    }

    /// Returns a disk with the content after a loss of power now.
    pub fn after_power_loss(&self) -> Self {
        let mut state = self.state().clone();
        state.lose_cache();
        Self(Arc::new(Mutex::new(state)))
    }

    /// Returns a disk with the same content but for one bit, which is another.
    pub fn with_flipped_bit(&self, position: usize) -> Self {
        let mut state = self.state().clone();
        let byte = position / 8 % state.cached.len().max(1);
        for content in [&mut state.cached, &mut state.durable] {
            if let Some(byte) = content.get_mut(byte) {
                *byte ^= 1 << (position % 8);
            }
        }
        Self(Arc::new(Mutex::new(state)))
    }

    /// Returns a disk with the same content as far as `len`.
    pub fn cut_off(&self, len: usize) -> Self {
        let mut state = self.state().clone();
        state.set_len(len.min(state.cached.len()));
        Self(Arc::new(Mutex::new(state)))
    }

    /// Returns the length of the file in bytes.
    ///
    /// # Errors
    /// The disk is broken or has no power.
    pub fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.powered()?.cached.len() as u64)
    }

    /// Reads bytes of the file.
    ///
    /// # Errors
    /// They lie behind its end, or the disk is broken or has no power.
    pub fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.powered()?;
        let offset = index(offset);
        let bytes = state.cached.get(offset..offset + out.len());
        out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    /// Cuts the file off, or extends it by zeros.
    ///
    /// # Errors
    /// The planned fault; the limit.
    pub fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.powered()?;
        if state.len_max.is_some_and(|max| len > max) {
            state.failures += 1;
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.change()?;
        state.set_len(index(len));
        Ok(())
    }

    /// Writes bytes within the file. They are durable after the next [`Self::sync`], and may be before.
    ///
    /// # Errors
    /// The planned fault. A part may have been written.
    ///
    /// # Panics
    /// They lie behind the end of the file.
    pub fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.powered()?;
        let outcome = state.change();
        let written = match outcome {
            Ok(()) => data.len(),
            Err(_) => data.len() / 2 / BLOCK_BYTES * BLOCK_BYTES,
        };
        state.write(index(offset), &data[..written]);
        outcome
    }

    /// Makes the changes before durable.
    ///
    /// # Errors
    /// The planned fault. Some of the changes may be durable, and no later sync makes the others so.
    pub fn sync(&self) -> io::Result<()> {
        let mut state = self.powered()?;
        let outcome = state.change();
        state.write_back(outcome.is_err());
        outcome
    }

    /// Makes reads return what is durable, but where a sync would still write.
    ///
    /// # Errors
    /// The disk is broken or has no power.
    pub fn forget_cached(&self) -> io::Result<()> {
        let mut state = self.powered()?;
        for block in 0..state.cached.len().div_ceil(BLOCK_BYTES) {
            if !state.dirty.contains(&block) {
                let bytes = state.span(block);
                let State {
                    cached, durable, ..
                } = &mut *state;
                cached[bytes.clone()].copy_from_slice(&durable[bytes]);
            }
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn powered(&self) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.state();
        let why = match state.fault {
            _ if state.is_off => "the disk has no power",
            Some(Fault {
                after: 0,
                kind: FaultKind::Broken,
            }) => "input/output error",
            _ => return Ok(state),
        };
        state.failures += 1;
        Err(io::Error::other(why))
    }
}

impl State {
    /// Returns an error if the disk fails now.
    fn change(&mut self) -> io::Result<()> {
        let Some(fault) = &mut self.fault else {
            self.changes += 1;
            return Ok(());
        };
        if fault.after > 0 {
            fault.after -= 1;
            self.changes += 1;
            return Ok(());
        }
        self.failures += 1;
        self.is_off = fault.kind == FaultKind::PowerLoss;
        if fault.kind == FaultKind::Once {
            self.fault = None;
        }
        Err(io::ErrorKind::StorageFull.into())
    }

    fn set_len(&mut self, len: usize) {
        self.cached.resize(len, 0);
        self.durable.resize(len, 0);
        let blocks = len.div_ceil(BLOCK_BYTES);
        self.dirty.retain(|block| *block < blocks);
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

    /// Leaves what is durable, and any of the blocks that were not synced.
    fn lose_cache(&mut self) {
        self.write_back(true);
        self.cached.clone_from(&self.durable);
        self.fault = None;
        self.failures = 0;
        self.is_off = false;
    }

    fn span(&self, block: usize) -> Range<usize> {
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

impl Debug for Disk {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Disk")
    }
}
