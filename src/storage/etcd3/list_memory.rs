//! The memory that a list from the store takes of the budget.
//!
//! The objects of such a list are its own: nobody else has them in memory. So it asks before it reads, and since its length
//! is not known, it reads page by page and asks for each page. The hard part is the size of objects that have not been read:
//! it is taken to be that of the last ones of the type, and large if there were none, so that a type's first page is a short
//! one. The bytes by which a page exceeds its estimate go into the budget's reserve.

use std::sync::Arc;

use crate::budget::{Account, Ledger, Share};
use crate::meta::Object;
use crate::storage::StorageError;
use crate::storage::backend::RangeResponse;
use crate::sync::{AtomicUsize, Ordering};

/// How large objects are thought to be of which none has been read, in bytes.
const UNKNOWN_OBJECT_BYTES: usize = 256 << 10;

/// Bytes of an object in memory beside its encoding: its record and its attributes.
const OBJECT_OVERHEAD_BYTES: u64 = 1_200;

/// A page may take this part of the budget.
const PAGE_PARTS: u64 = 16;

/// A page takes at most this much, however large the budget is.
const PAGE_BYTES_MAX: u64 = 32 << 20;

/// How large the objects of a type are. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct ObjectSize {
    /// The mean of the last page that was read, in bytes; 0 before the first.
    mean: Arc<AtomicUsize>,
}

impl ObjectSize {
    fn get(&self) -> usize {
        // Relaxed: a guess by itself, which orders nothing; so is the store below.
        match self.mean.load(Ordering::Relaxed) {
            0 => UNKNOWN_OBJECT_BYTES,
            mean => mean,
        }
    }

    fn note(&self, mean: usize) {
        // Relaxed: as in `get`.
        self.mean.store(mean.max(1), Ordering::Relaxed);
    }
}

/// The memory of a list that is being read.
pub(super) struct ListMemory {
    /// Its share of the budget; `None` if nobody counts.
    share: Option<Share>,
    /// How much a page may take.
    page_bytes: u64,
    /// How large the type's objects are.
    size: ObjectSize,
    /// The largest mean among the pages of this list.
    mean: usize,
    /// The bytes of the objects that were selected so far.
    kept: u64,
}

impl ListMemory {
    /// A list that takes what it needs from a ledger; `None` if nobody counts.
    pub(super) fn new(ledger: Option<&Ledger>, size: &ObjectSize) -> Self {
        let part = ledger.map_or(0, |ledger| ledger.limit() / PAGE_PARTS);
        Self {
            share: ledger.map(|ledger| ledger.share(Account::Requests)),
            page_bytes: part.min(PAGE_BYTES_MAX),
            size: size.clone(),
            mean: 0,
            kept: 0,
        }
    }

    /// Asks for the next page, of `wanted` objects (0: all that there are). Returns how many it may
    /// have.
    ///
    /// # Errors
    /// [`StorageError::OutOfMemory`].
    pub(super) fn ask(&mut self, wanted: u64) -> Result<u64, StorageError> {
        let Some(share) = &mut self.share else {
            return Ok(wanted);
        };
        let each = while_read(self.mean.max(self.size.get()), 1);
        let most = (self.page_bytes / each).max(1);
        let objects = if wanted == 0 { most } else { wanted.min(most) };
        share.admit(objects * each)?;
        Ok(objects)
    }

    /// Notes what a page takes beside what was kept.
    pub(super) fn read(&mut self, page: &RangeResponse) {
        let bytes: usize = page.kvs.iter().map(|kv| kv.value.len()).sum();
        if let Some(mean) = bytes.checked_div(page.kvs.len()) {
            self.size.note(mean);
            self.mean = self.mean.max(mean);
        }
        if let Some(share) = &mut self.share {
            share.set(self.kept + while_read(bytes, page.kvs.len()));
        }
    }

    /// Notes what was taken from a page, of which the rest goes.
    pub(super) fn keep(&mut self, objects: &[Arc<Object>]) {
        let bytes = |object: &Arc<Object>| object.bytes().len() as u64 + OBJECT_OVERHEAD_BYTES;
        self.kept += objects.iter().map(bytes).sum::<u64>();
        if let Some(share) = &mut self.share {
            share.set(self.kept);
        }
    }

    /// Returns the share that the list holds from now on.
    pub(super) fn held(self) -> Option<Arc<Share>> {
        self.share.map(Arc::new)
    }
}

/// Returns the bytes of objects while they are read: once as stored, and once as objects.
fn while_read(bytes: usize, objects: usize) -> u64 {
    2 * bytes as u64 + objects as u64 * OBJECT_OVERHEAD_BYTES
}
