//! Models of what is made by hand outside `ring`: the memory ledger, the encodings cached with an object, the
//! cancellation flag, the doorbell, the joined writes of a connection, the ready watches of one, the seats of requests
//! in progress, and the turns of users at what only a few can have at a time.

mod budget;
mod cancellation;
mod doorbell;
mod encodings;
mod joined_io;
mod ready;
mod seats;
mod turns;

use std::task::{Context, Waker};

/// Returns a context whose waker is known to be that of the same task at the next poll. Two clones of a waker may look
/// different where the compiler has made its functions twice, a clone and its own clones do not.
fn of_same_task<'a>(task: &'a mut Option<Waker>, context: &Context<'_>) -> Context<'a> {
    Context::from_waker(task.get_or_insert_with(|| context.waker().clone()))
}
