//! Runs one call for all who want its result at the same time.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::{BoxFuture, Shared, WeakShared};

type Flight<V> = Shared<BoxFuture<'static, V>>;

/// Calls in progress, by key.
///
/// A call is driven by those who wait for it, and is dropped with the last of them. There are never more calls than
/// callers of [`SingleFlight::run`].
#[derive(Debug)]
pub struct SingleFlight<K: Eq + Hash + Clone, V: Clone>(
    Mutex<HashMap<K, WeakShared<BoxFuture<'static, V>>>>,
);

impl<K: Eq + Hash + Clone, V: Clone> Default for SingleFlight<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash + Clone, V: Clone> SingleFlight<K, V> {
    /// Returns the result of the call that is in progress for this key, or else of a new one.
    pub async fn run(&self, key: K, call: impl FnOnce() -> BoxFuture<'static, V>) -> V {
        // Dropped after the flight.
        let _landing = Landing {
            flights: self,
            key: key.clone(),
        };
        self.flight(key, call).await
    }

    fn flight(&self, key: K, call: impl FnOnce() -> BoxFuture<'static, V>) -> Flight<V> {
        let mut flights = self.flights();
        if let Some(flight) = flights.get(&key).and_then(WeakShared::upgrade) {
            return flight;
        }
        let flight = call().shared();
        if let Some(weak) = flight.downgrade() {
            flights.insert(key, weak);
        }
        flight
    }

    fn flights(&self) -> MutexGuard<'_, HashMap<K, WeakShared<BoxFuture<'static, V>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes a call when the last who waited for it is gone.
struct Landing<'a, K: Eq + Hash + Clone, V: Clone> {
    flights: &'a SingleFlight<K, V>,
    key: K,
}

impl<K: Eq + Hash + Clone, V: Clone> Drop for Landing<'_, K, V> {
    fn drop(&mut self) {
        let mut flights = self.flights.flights();
        let flight = flights.get(&self.key);
        if flight.is_some_and(|flight| flight.upgrade().is_none()) {
            flights.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::poll;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn those_who_come_during_a_call_share_it_and_the_last_ends_it() {
        let flights = SingleFlight::default();
        let call = |answer: oneshot::Receiver<u8>| move || async { answer.await.ok() }.boxed();
        let (answer, answered) = oneshot::channel();
        let mut first = Box::pin(flights.run("a", call(answered)));
        assert!(poll!(&mut first).is_pending());
        let mut second = Box::pin(flights.run("a", || unreachable!("a call is in progress")));
        assert!(poll!(&mut second).is_pending());
        drop(first);
        let other = flights.run("b", || async { Some(2) }.boxed());
        assert_eq!(other.await, Some(2), "another key has a call of its own");
        answer.send(1).expect("waited for");
        assert_eq!(second.await, Some(1));
        assert!(flights.flights().is_empty());

        let (answer, answered) = oneshot::channel();
        let mut third = Box::pin(flights.run("a", call(answered)));
        assert!(poll!(&mut third).is_pending(), "the first call is over");
        drop(third);
        assert!(answer.is_closed(), "nobody waits");
        assert!(flights.flights().is_empty());
    }
}
