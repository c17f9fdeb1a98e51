//! Bounds the work of each of many clients, so that none takes everything that all share.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The work under way by client. Memory is kept for clients that have some, or wait.
#[derive(Debug)]
pub struct Shares<K: Eq + Hash + Clone> {
    /// Maximum number of pieces of work of a client at a time.
    of_each_max: usize,
    shares: Mutex<HashMap<K, Share>>,
}

/// The share of a client.
#[derive(Debug)]
struct Share {
    /// The permits of its work under way.
    permits: Arc<Semaphore>,
    /// The number of its pieces of work, under way and waiting; the share is removed with the last.
    work: usize,
}

impl<K: Eq + Hash + Clone> Shares<K> {
    /// Lets each client have so many pieces of work under way.
    #[must_use]
    pub fn new(of_each_max: usize) -> Self {
        Self {
            of_each_max,
            shares: Mutex::default(),
        }
    }

    /// Does a piece of work of a client, once the client has room for it. Those that wait have their turns in order.
    pub async fn within<T>(&self, client: K, work: impl Future<Output = T>) -> T {
        let permits = self.enter(&client);
        let _forget = ForgetOnDrop {
            shares: self,
            client,
        };
        // It is never closed.
        let _permit = permits.acquire().await;
        work.await
    }

    /// Waits until a client has room for a piece of work, which takes it until the permit is dropped.
    pub async fn acquire(self: Arc<Self>, client: K) -> SharePermit<K> {
        let permits = self.enter(&client);
        let forget = ForgetOnDrop {
            shares: self,
            client,
        };
        SharePermit {
            // It is never closed.
            _permit: permits.acquire_owned().await.ok(),
            _forget: forget,
        }
    }

    /// Counts a piece of work of a client, until its [`ForgetOnDrop`] is dropped, and returns the client's permits.
    fn enter(&self, client: &K) -> Arc<Semaphore> {
        let new = || Share {
            permits: Arc::new(Semaphore::new(self.of_each_max)),
            work: 0,
        };
        let mut shares = self.shares();
        let share = shares.entry(client.clone()).or_insert_with(new);
        share.work += 1;
        Arc::clone(&share.permits)
    }

    fn shares(&self) -> MutexGuard<'_, HashMap<K, Share>> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A permit for a piece of work of a client; returned when dropped.
#[derive(Debug)]
pub struct SharePermit<K: Eq + Hash + Clone> {
    /// Held for its drop, before that of the client's share.
    _permit: Option<OwnedSemaphorePermit>,
    /// Held for its drop.
    _forget: ForgetOnDrop<Arc<Shares<K>>, K>,
}

/// Forgets a client when its last work is over, or given up.
#[derive(Debug)]
struct ForgetOnDrop<S: Deref<Target = Shares<K>>, K: Eq + Hash + Clone> {
    shares: S,
    client: K,
}

impl<S: Deref<Target = Shares<K>>, K: Eq + Hash + Clone> Drop for ForgetOnDrop<S, K> {
    fn drop(&mut self) {
        let mut shares = self.shares.shares();
        let Some(share) = shares.get_mut(&self.client) else {
            return;
        };
        share.work -= 1;
        if share.work == 0 {
            shares.remove(&self.client);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use futures::{FutureExt, poll};
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn a_client_waits_for_itself_alone() {
        let shares = Shares::new(2);
        let (ends, ended): (Vec<_>, Vec<_>) = (0..3).map(|_| oneshot::channel::<()>()).unzip();
        let mut working: Vec<_> = ended
            .into_iter()
            .map(|end| shares.within("a", end).boxed())
            .collect();
        for work in &mut working {
            assert!(poll!(work).is_pending());
        }
        assert_eq!(shares.within("b", async { 1 }).now_or_never(), Some(1));
        assert_eq!(shares.within("a", async { 1 }).now_or_never(), None);
        drop(working.pop());
        for end in ends {
            let _ = end.send(());
        }
        for work in working {
            work.await.expect("sent");
        }
        assert_eq!(shares.within("a", async { 1 }).now_or_never(), Some(1));
        assert!(shares.shares().is_empty(), "nobody is left");
    }

    #[tokio::test]
    async fn those_that_give_up_leave_nothing_behind() {
        let shares = Shares::new(1);
        let mut working = shares.within("a", std::future::pending::<()>()).boxed();
        let mut waiting = shares.within("a", std::future::pending::<()>()).boxed();
        assert!(poll!(&mut working).is_pending());
        assert!(poll!(&mut waiting).is_pending());
        drop(working);
        assert_eq!(shares.shares()["a"].work, 1, "one is left");
        assert!(poll!(&mut waiting).is_pending());
        let next = shares.within("a", async { 1 }).now_or_never();
        assert_eq!(next, None, "its permit is taken");
        drop(waiting);
        assert!(shares.shares().is_empty(), "nobody is left");
    }

    #[tokio::test]
    async fn a_permit_is_a_clients_until_it_is_dropped() {
        let shares = Arc::new(Shares::new(1));
        let acquire = |client| Arc::clone(&shares).acquire(client);
        let permit = acquire("a").now_or_never().expect("room");
        let mut next = acquire("a").boxed();
        assert!(poll!(&mut next).is_pending());
        assert!(acquire("b").now_or_never().is_some());
        drop(permit);
        assert!(next.now_or_never().is_some());
        assert!(shares.shares().is_empty(), "nobody is left");
    }

    #[test]
    fn those_that_leave_at_once_leave_nothing_behind() {
        const ROUNDS: usize = 200;
        let shares = Shares::new(2);
        for round in 0..ROUNDS {
            let both_work = Barrier::new(2);
            std::thread::scope(|threads| {
                for _ in 0..2 {
                    threads.spawn(|| {
                        let work = async { both_work.wait() };
                        shares.within("a", work).now_or_never().expect("has room");
                    });
                }
            });
            assert!(shares.shares().is_empty(), "round {round}");
        }
    }
}
