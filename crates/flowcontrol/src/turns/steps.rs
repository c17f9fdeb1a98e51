//! Work that is done in turns.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::ready;

use ringwatch::clock::Clock;

use super::{Turn, Turns};
use crate::Requester;

impl Turns {
    /// Waits for a turn.
    pub async fn take(&self, requester: &Requester) -> Turn {
        let mut turn = self.ask(requester);
        poll_fn(|context| turn.poll_given(context)).await;
        turn
    }

    /// Does work of a user in steps, from one wait of it to the next, each in a turn of its own. While the work waits
    /// for something it has no turn.
    pub async fn do_in_steps<T>(
        &self,
        requester: &Requester,
        clock: &Clock,
        work: impl Future<Output = T>,
    ) -> T {
        let mut work = pin!(work);
        let mut next = None;
        let steps = poll_fn(|context| {
            let turn = next.get_or_insert_with(|| self.ask(requester));
            ready!(turn.poll_given(context));
            let since = clock.now();
            let polled = work.as_mut().poll(context);
            turn.uses(clock.now().duration_since(since));
            next = None;
            polled
        });
        steps.await
    }
}

#[cfg(test)]
mod tests {
    use std::panic::AssertUnwindSafe;
    use std::time::Duration;

    use futures::{FutureExt, poll};
    use tokio::sync::oneshot;

    use super::*;
    use crate::Lane;

    fn user(name: &str) -> Requester {
        Requester {
            lane: Lane::Others,
            name: name.into(),
        }
    }

    #[tokio::test]
    async fn a_turn_goes_to_the_next_when_it_is_dropped_given_or_not() {
        let turns = Turns::new(1);
        let first = turns.take(&user("ann")).await;
        let (bob, eve) = (user("bob"), user("eve"));
        let mut second = Box::pin(turns.take(&bob));
        let mut third = Box::pin(turns.take(&eve));
        assert!(poll!(&mut second).is_pending() && poll!(&mut third).is_pending());
        drop(first);
        // It has been given to the second, which goes away without having looked.
        drop(second);
        let third = third.now_or_never().expect("it was passed on");
        assert!(turns.take(&user("ann")).now_or_never().is_none());
        drop(third);
        assert!(turns.take(&user("ann")).now_or_never().is_some());
    }

    #[tokio::test]
    async fn work_has_no_turn_while_it_waits() {
        let (turns, clock) = (Turns::new(1), Clock::real());
        let (wake, woken) = oneshot::channel::<()>();
        let ann = user("ann");
        let mut waits = Box::pin(turns.do_in_steps(&ann, &clock, woken));
        assert!(poll!(&mut waits).is_pending());
        let turn = turns.take(&user("bob")).now_or_never();
        let turn = turn.expect("nobody has one");
        wake.send(()).expect("it waits");
        assert!(poll!(&mut waits).is_pending(), "the turn is another's");
        drop(turn);
        assert_eq!(waits.now_or_never(), Some(Ok(())), "it has a turn");
    }

    #[tokio::test]
    async fn a_panic_ends_the_turn() {
        let (turns, clock) = (Turns::new(1), Clock::real());
        let ann = user("ann");
        let panics = turns.do_in_steps(&ann, &clock, async { panic!("as asked") });
        let panic = AssertUnwindSafe(panics).catch_unwind().await;
        assert!(panic.is_err());
        assert!(turns.take(&ann).now_or_never().is_some());
    }

    #[tokio::test]
    async fn the_time_of_steps_counts() {
        let (turns, clock) = (Turns::new(3), Clock::manual(jiff::Timestamp::UNIX_EPOCH));
        let (ann, bob) = (user("ann"), user("bob"));
        let first = turns.take(&user("carol")).await;
        let mut of_bob = turns.take(&bob).await;
        of_bob.uses(Duration::from_millis(500));
        drop(of_bob);
        let work = async { clock.advance(Duration::from_secs(1)) };
        turns.do_in_steps(&ann, &clock, work).await;
        let second = turns.take(&user("dave")).await;
        let mut of_ann = Box::pin(turns.take(&ann));
        let mut of_bob = Box::pin(turns.take(&bob));
        assert!(poll!(&mut of_ann).is_pending() && poll!(&mut of_bob).is_pending());
        drop(second);
        assert!(poll!(&mut of_ann).is_pending(), "it has used more");
        assert!(poll!(&mut of_bob).is_ready());
        drop(first);
    }
}
