//! The share of the memory budget of a list that is read from the store.
//!
//! The objects of such a list are held by nothing else. So their memory is admitted before they are read, and since the
//! length of a list is not known, page by page. The hard part is the size of objects that have not been read: the
//! estimate is the mean size of the last page of the type, and large if there was none, so that a type's first page is
//! short. The bytes by which a page exceeds its estimate come from the budget's reserve.

use std::sync::Arc;

use crate::budget::{Account, Ledger, Share};
use crate::meta::Object;
use crate::storage::StorageError;
use crate::storage::backend::RangeResponse;
use crate::sync::{AtomicUsize, Ordering};

/// The estimated size of objects of a type of which none has been read, in bytes.
const UNKNOWN_OBJECT_BYTES: usize = 256 << 10;

/// Estimate of the bytes of an object in memory beside its encoding: its record and its attributes.
const OBJECT_OVERHEAD_BYTES: u64 = 1_200;

/// The part of the budget that a page may take, as a divisor.
const PAGE_PARTS: u64 = 16;

/// Maximum number of bytes of a page, however large the budget is.
const PAGE_BYTES_MAX: u64 = 32 << 20;

/// The mean size of the objects of a type. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct ObjectSize {
    /// The mean of the last page that was read, in bytes; 0 before the first.
    mean: Arc<AtomicUsize>,
}

impl ObjectSize {
    fn get(&self) -> usize {
        // Relaxed: an estimate by itself, which orders nothing; so is the store below.
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
    /// Its share of the budget; `None` if the list is not counted.
    share: Option<Share>,
    /// Maximum number of bytes of a page.
    page_bytes: u64,
    /// The mean size of the type's objects.
    size: ObjectSize,
    /// The largest mean size among the pages of this list, in bytes.
    mean: usize,
    /// The bytes of the objects that have been selected so far.
    kept: u64,
}

impl ListMemory {
    /// Creates the memory account of a list; without a ledger the list is not counted.
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

    /// Admits the next page, of `wanted` objects (0: all). Returns how many it may have.
    ///
    /// # Errors
    /// [`StorageError::OutOfMemory`].
    pub(super) fn admit_page(&mut self, wanted: u64) -> Result<u64, StorageError> {
        let Some(share) = &mut self.share else {
            return Ok(wanted);
        };
        let each = while_read(self.mean.max(self.size.get()), 1);
        let most = (self.page_bytes / each).max(1);
        let objects = if wanted == 0 { most } else { wanted.min(most) };
        share.admit(objects * each)?;
        Ok(objects)
    }

    /// Counts a page that has been read, beside the objects kept so far.
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

    /// Counts the objects that were kept of a page, the others of which are dropped.
    pub(super) fn keep(&mut self, objects: &[Arc<Object>]) {
        let bytes = |object: &Arc<Object>| object.stored().len() as u64 + OBJECT_OVERHEAD_BYTES;
        self.kept += objects.iter().map(bytes).sum::<u64>();
        if let Some(share) = &mut self.share {
            share.set(self.kept);
        }
    }

    /// Returns the share of the finished list.
    pub(super) fn held(self) -> Option<Arc<Share>> {
        self.share.map(Arc::new)
    }
}

/// Returns the bytes of objects while they are read: once as stored, and once decoded.
fn while_read(bytes: usize, objects: usize) -> u64 {
    2 * bytes as u64 + objects as u64 * OBJECT_OVERHEAD_BYTES
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::storage::backend::KeyValue;

    const MIB: u64 = 1 << 20;

    fn page(objects: usize, bytes: usize) -> RangeResponse {
        let kv = |number| KeyValue {
            key: format!("/a/{number}"),
            value: Bytes::from(vec![0; bytes]),
            create_revision: 1,
            mod_revision: 1,
            version: 1,
            lease: None,
        };
        RangeResponse {
            revision: 1,
            kvs: (0..objects).map(kv).collect(),
            more: false,
            count: objects as u64,
        }
    }

    #[test]
    fn pages_are_admitted_by_the_size_of_the_last_one() {
        let ledger = Ledger::new(160 * MIB);
        let spent = || ledger.spent(Account::Requests);
        let size = ObjectSize::default();
        let mut memory = ListMemory::new(Some(&ledger), &size);
        // Of objects that nobody has seen, each is taken for one of 256 KiB, and a page may take 10 MiB.
        let unknown = 2 * 256 * 1_024 + 1_200;
        assert_eq!(memory.admit_page(0).expect("room"), 10 * MIB / unknown);
        assert_eq!(spent(), 10 * MIB / unknown * unknown);
        memory.read(&page(10, 1_000));
        assert_eq!(spent(), 10 * (2 * 1_000 + 1_200));
        memory.keep(&[]);
        assert_eq!(spent(), 0);
        let known = 2 * 1_000 + 1_200;
        assert_eq!(memory.admit_page(0).expect("room"), 10 * MIB / known);
        memory.keep(&[]);
        assert_eq!(memory.admit_page(7).expect("room"), 7);
        assert_eq!(spent(), 7 * known);
        // The next list begins with what this one has seen.
        let mut next = ListMemory::new(Some(&ledger), &size);
        assert_eq!(next.admit_page(3).expect("room"), 3);
        assert_eq!(spent(), 10 * known);
        drop(next);
        // The largest mean of a list counts.
        memory.read(&page(1, 100));
        memory.keep(&[]);
        assert_eq!(memory.admit_page(1).expect("room"), 1);
        assert_eq!(spent(), known);
    }

    #[test]
    fn what_is_kept_is_counted_beside_the_page() {
        let ledger = Ledger::new(160 * MIB);
        let mut memory = ListMemory::new(Some(&ledger), &ObjectSize::default());
        let value = serde_json::json!({"kind": "A", "apiVersion": "v1", "metadata": {"name": "a"}});
        let schema = crate::meta::FieldSchema::default();
        let object = Arc::new(Object::from_value(&value, 1, &schema).expect("an object"));
        memory.keep(&[Arc::clone(&object), Arc::clone(&object)]);
        let kept = 2 * (object.stored().len() as u64 + 1_200);
        assert_eq!(ledger.spent(Account::Requests), kept);
        memory.read(&page(2, 500));
        let read = 2 * (2 * 500 + 1_200);
        assert_eq!(ledger.spent(Account::Requests), kept + read);
    }

    #[test]
    fn a_list_without_a_budget_is_read_as_wanted() {
        let mut memory = ListMemory::new(None, &ObjectSize::default());
        assert_eq!(memory.admit_page(0).expect("no limit"), 0);
        assert_eq!(memory.admit_page(500).expect("no limit"), 500);
        assert!(memory.held().is_none());
    }
}
