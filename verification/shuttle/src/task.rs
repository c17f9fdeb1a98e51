//! tokio's `task`, as far as the included files use it.

pub use real_tokio::task::yield_now;

use shuttle::rand::{Rng, thread_rng};

/// The probability that a task has used up its budget when it asks.
const BUDGET_ENDS: f64 = 0.1;

/// Lets other tasks go first now and then. tokio's own never would: only its scheduler gives budgets.
pub async fn consume_budget() {
    if thread_rng().gen_bool(BUDGET_ENDS) {
        shuttle::future::yield_now().await;
    }
}
