//! The bound of a store's history in memory, a part of the memory budget.
//!
//! Periodic compaction alone keeps what is written in two intervals, and how much that is, clients choose. So the writer
//! compacts as soon as the history is larger than the bound, in the batch that made it so. Half of the bound stays:
//! watches that are a little behind go on, and compactions are far apart.

use super::mvcc::State;
use crate::budget::{Account, Ledger, Share};

/// The part of the memory budget that the history may have, as a divisor.
const BUDGET_DIVISOR: u64 = 8;
/// The bytes that the history may have under any budget: after a compaction some objects of the largest size are left.
const HISTORY_BYTES_MIN: u64 = 16 << 20;

/// The bound of the history, and the memory that it is known to have.
#[derive(Debug)]
pub(super) struct HistoryBound {
    bytes_max: u64,
    counted: Share,
}

impl HistoryBound {
    /// Returns the bound under a memory budget, in which the history is counted.
    pub(super) fn new(memory: &Ledger) -> Self {
        Self {
            bytes_max: (memory.limit() / BUDGET_DIVISOR).max(HISTORY_BYTES_MIN),
            counted: memory.share(Account::StoreHistory),
        }
    }

    /// Returns the revision to which a state has to be compacted now, if it has to.
    pub(super) fn compaction_due(&self, state: &State) -> Option<u64> {
        let is_exceeded = state.history_bytes() > self.bytes_max;
        is_exceeded.then(|| state.compaction_within(self.bytes_max / 2))?
    }

    /// Counts the history of a state in the memory budget.
    pub(super) fn count(&mut self, state: &State) {
        self.counted.set(state.history_bytes());
    }
}
