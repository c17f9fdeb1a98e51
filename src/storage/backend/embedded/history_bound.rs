//! The bound of a store's history in memory, which goes by the memory budget.
//!
//! Periodic compaction alone keeps what is written in two intervals, and how much that is, clients choose. So the writer
//! compacts as soon as the history is larger than the bound, in the batch that made it so. Half of the bound stays:
//! watches that are a little behind go on, and compactions are far apart.

use super::mvcc::State;
use crate::budget::Ledger;

/// The part of the memory budget as much as which the history may have, as a divisor.
const BUDGET_DIVISOR: u64 = 8;
/// The bytes that the history may have under any budget: a few objects of the largest size.
const HISTORY_BYTES_MIN: u64 = 4 << 20;

/// The bound of the history.
#[derive(Debug)]
pub(super) struct HistoryBound {
    bytes_max: u64,
}

impl HistoryBound {
    /// Returns the bound under a memory budget. The history is no part of that: what windows keep as well would be counted
    /// twice, and writes would be shed for it.
    pub(super) fn new(memory: &Ledger) -> Self {
        Self {
            bytes_max: (memory.limit() / BUDGET_DIVISOR).max(HISTORY_BYTES_MIN),
        }
    }

    /// Returns the revision to which a state has to be compacted now, if it has to.
    pub(super) fn compaction_due(&self, state: &State) -> Option<u64> {
        let is_exceeded = state.history_bytes() > self.bytes_max;
        is_exceeded.then(|| state.compaction_within(self.bytes_max / 2))?
    }
}
