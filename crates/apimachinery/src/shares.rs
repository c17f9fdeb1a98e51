//! Bounds the work of each of many clients, so that none takes everything that all share.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;

/// The work under way by client. Memory is kept for clients that have some, or wait.
#[derive(Debug)]
pub struct Shares<K: Eq + Hash + Clone> {
    /// Maximum number of pieces of work of a client at a time.
    of_each_max: usize,
    shares: Mutex<HashMap<K, Arc<Semaphore>>>,
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
        let semaphore = self.share(&client);
        let _leaving = Leaving {
            shares: self,
            client,
        };
        // It is never closed.
        let _place = semaphore.acquire().await;
        work.await
    }

    fn share(&self, client: &K) -> Arc<Semaphore> {
        let new = || Arc::new(Semaphore::new(self.of_each_max));
        let mut shares = self.shares();
        Arc::clone(shares.entry(client.clone()).or_insert_with(new))
    }

    fn shares(&self) -> MutexGuard<'_, HashMap<K, Arc<Semaphore>>> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets a client when its last work is over. It is dropped before the client's semaphore.
struct Leaving<'a, K: Eq + Hash + Clone> {
    shares: &'a Shares<K>,
    client: K,
}

impl<K: Eq + Hash + Clone> Drop for Leaving<'_, K> {
    fn drop(&mut self) {
        let mut shares = self.shares.shares();
        let share = shares.get(&self.client);
        // Its own, and that in the map.
        if share.is_some_and(|it| Arc::strong_count(it) <= 2) {
            shares.remove(&self.client);
        }
    }
}

#[cfg(test)]
mod tests {
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
}
