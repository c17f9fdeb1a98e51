//! The memory of a store's history: its bound, which goes by the memory budget, and its part of what the budget counts.
//!
//! Periodic compaction alone keeps what is written in two intervals, and how much that is, clients choose. So the
//! writer compacts as soon as the history is larger than the bound: in the batch that made it so, but for what that
//! adds, and in the next one the rest. Half of the bound stays: watches that are a little behind go on, and compactions
//! are far apart.
//!
//! A version that was replaced is in the window of a watch cache too, with the same bytes, until the window drops its
//! event. So the budget counts of the history what it has beyond the windows. That is an estimate: windows also have
//! bytes of their own, such as what each event takes, objects that are encrypted at rest, and versions that were
//! compacted. By so much, and at most by itself, the history is counted too low.

use super::mvcc::State;
use crate::budget::{Account, Ledger, Share};

/// The part of the memory budget as much as which the history may have, as a divisor.
const BUDGET_DIVISOR: u64 = 8;
/// The bytes that the history may have under any budget: a few objects of the largest size.
const HISTORY_BYTES_MIN: u64 = 4 << 20;

/// The bound of the history, and the share of the budget that it takes.
#[derive(Debug)]
pub(super) struct HistoryBound {
    bytes_max: u64,
    memory: Ledger,
    share: Share,
}

impl HistoryBound {
    /// Returns the bound under a memory budget.
    pub(super) fn new(memory: &Ledger) -> Self {
        Self {
            bytes_max: (memory.limit() / BUDGET_DIVISOR).max(HISTORY_BYTES_MIN),
            memory: memory.clone(),
            share: memory.share(Account::History),
        }
    }

    /// Counts the history of a state in the budget.
    pub(super) fn count(&mut self, state: &State) {
        let of_windows = self.memory.spent(Account::Windows);
        let beyond_windows = state.history_bytes().saturating_sub(of_windows);
        self.share.set(beyond_windows);
    }

    /// Returns the revision to which a state has to be compacted now, if it has to.
    pub(super) fn compaction_due(&self, state: &State) -> Option<u64> {
        let is_exceeded = state.history_bytes() > self.bytes_max;
        is_exceeded.then(|| state.compaction_within(self.bytes_max / 2))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_counts_what_the_history_has_beyond_the_windows() {
        let ledger = Ledger::new(128 << 20);
        let mut bound = HistoryBound::new(&ledger);
        let mut state = State::new();
        for _ in 0..3 {
            state.put("/a", vec![0; 1 << 20].into(), None);
        }
        bound.count(&state);
        assert_eq!(ledger.spent(Account::History), state.history_bytes());
        let mut window = ledger.share(Account::Windows);
        window.set(1 << 20);
        bound.count(&state);
        assert_eq!(ledger.total(), state.history_bytes());
        window.set(3 << 20);
        bound.count(&state);
        assert_eq!(ledger.spent(Account::History), 0);
        window.set(0);
        bound.count(&state);
        drop(bound);
        assert_eq!(ledger.total(), 0);
    }
}
