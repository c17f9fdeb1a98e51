//! A waker that remembers whether it was called.
//!
//! A task that waits for two futures does not know which of them woke it, so it polls both. If one is ready a thousand
//! times as often as the other, nearly all polls of the other are in vain, and each touches cold memory. So the rarer
//! future gets the waker of a doorbell, which wakes the task as well, and is polled only when the doorbell has rung.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use ringwatch::sync::{Mutex, MutexGuard};

/// The task's side of a doorbell.
#[derive(Debug)]
pub(super) struct Doorbell(Arc<Bell>);

#[derive(Debug)]
struct Bell(Mutex<DoorbellState>);

#[derive(Debug)]
struct DoorbellState {
    /// True if it has rung since the task checked.
    rung: bool,
    /// The task to wake.
    task: Option<Waker>,
}

impl Default for Doorbell {
    /// Creates a doorbell that has rung, so that the first check polls the future.
    fn default() -> Self {
        Self(Arc::new(Bell(Mutex::new(DoorbellState {
            rung: true,
            task: None,
        }))))
    }
}

impl Doorbell {
    /// Returns the waker with which the rarer future is to be polled; `None` if it has not rung since this task polled
    /// it last, and so would not be ready.
    pub(super) fn answer(&self, context: &Context<'_>) -> Option<Waker> {
        let mut state = self.0.lock();
        let task = context.waker();
        if !state.rung && state.task.as_ref().is_some_and(|it| it.will_wake(task)) {
            return None;
        }
        state.rung = false;
        state.task = Some(task.clone());
        Some(Arc::clone(&self.0).into())
    }
}

impl Doorbell {
    /// Has the next check poll the future.
    pub(super) fn ring(&self) {
        self.0.lock().rung = true;
    }

    /// Returns true if the next check polls the future.
    pub(super) fn has_rung(&self) -> bool {
        self.0.lock().rung
    }
}

/// Completes with a future that is polled only when it was woken, however often its task is.
pub(super) async fn rarely<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let bell = Doorbell::default();
    poll_fn(|context| match bell.answer(context) {
        Some(waker) => future.as_mut().poll(&mut Context::from_waker(&waker)),
        None => Poll::Pending,
    })
    .await
}

impl Bell {
    fn lock(&self) -> MutexGuard<'_, DoorbellState> {
        // The state is consistent after each of its changes, so poison is ignored.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut state = self.lock();
        state.rung = true;
        let task = state.task.take();
        drop(state);
        if let Some(task) = task {
            task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Default)]
    struct Task(AtomicUsize);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn it_is_answered_when_it_has_rung_and_by_a_task_that_is_new() {
        let (task, other) = (Arc::new(Task::default()), Arc::new(Task::default()));
        let (first, second) = (task.clone().into(), other.clone().into());
        let bell = Doorbell::default();
        let ring = bell.answer(&Context::from_waker(&first)).expect("new");
        assert!(bell.answer(&Context::from_waker(&first)).is_none());
        ring.wake_by_ref();
        ring.wake_by_ref();
        assert_eq!(task.0.load(Ordering::SeqCst), 1, "asleep once");
        assert!(bell.answer(&Context::from_waker(&first)).is_some());
        assert!(bell.answer(&Context::from_waker(&first)).is_none());
        assert!(bell.answer(&Context::from_waker(&second)).is_some());
        ring.wake();
        assert_eq!(task.0.load(Ordering::SeqCst), 1);
        assert_eq!(other.0.load(Ordering::SeqCst), 1);
    }
}
