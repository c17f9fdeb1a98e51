//! A free list: a stack of slot numbers under Treiber's algorithm, with a version against ABA.
//!
//! Its primitives come from `crate::sync`, so that each model can give it others.

use crate::sync::{AtomicU64, Ordering};

/// The version in a head, and one version more.
const VERSION: u64 = !0 << 32;
const ONE_VERSION: u64 = 1 << 32;

/// Numbers of slots that nobody holds.
pub(crate) struct FreeList<const SLOTS: usize> {
    /// The version in the upper half, the uppermost slot in the lower; `SLOTS` if there is none.
    head: AtomicU64,
    /// The slot below each slot in the free list.
    below: [AtomicU64; SLOTS],
}

impl<const SLOTS: usize> FreeList<SLOTS> {
    /// Makes all slots are free; 0 is taken first.
    pub(crate) fn new() -> Self {
        Self {
            head: AtomicU64::new(0),
            below: std::array::from_fn(|slot| AtomicU64::new(slot as u64 + 1)),
        }
    }

    /// Takes a slot, if one is free.
    pub(crate) fn take(&self) -> Option<usize> {
        // Acquire: pairs with the Release in `give`, for the slot below and what the slot's holder wrote.
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            let slot = slot_of(head);
            let below = self.below.get(slot)?.load(Ordering::Relaxed);
            let next = head & VERSION | below;
            let swap = |to| {
                self.head
                    .compare_exchange(head, to, Ordering::Acquire, Ordering::Acquire)
            };
            match swap(next) {
                Ok(_) => return Some(slot),
                Err(newer) => head = newer,
            }
        }
    }

    /// Gives back a slot that was taken. The version changes, so that who has looked at the list while the slot was
    /// its head before does not take it for the same list.
    pub(crate) fn give(&self, slot: usize) {
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            self.below[slot].store(slot_of(head) as u64, Ordering::Relaxed);
            let next = (head & VERSION).wrapping_add(ONE_VERSION) | slot as u64;
            // Release: pairs with the Acquire in `take`.
            let swap = |to| {
                self.head
                    .compare_exchange(head, to, Ordering::Release, Ordering::Relaxed)
            };
            match swap(next) {
                Ok(_) => return,
                Err(newer) => head = newer,
            }
        }
    }
}

fn slot_of(head: u64) -> usize {
    head as u32 as usize
}
