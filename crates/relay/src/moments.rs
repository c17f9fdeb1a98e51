//! One request to the upstream for all equal lists of a moment.
//!
//! A reader may use only an answer that was asked for after the reader came: an earlier one may miss a write that was
//! acknowledged in between. So readers are numbered as they come, and each request notes the number of the last one
//! that had come when it was sent. One request of a kind is in flight at a time; those who come meanwhile share the
//! next. Nobody waits for more than two.
//!
//! ```text
//!   readers    1     2 3 4       5
//!   requests   |--------|---------|---------|
//!   answers    1        2 3 4     5
//! ```
//!
//! A reader sends the request itself, and one that goes away leaves it to the next.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures::lock;
use ringwatch::storage::{List, StorageError};

/// An answer that several readers share.
type SharedAnswer = Result<List, Arc<StorageError>>;

/// The lists that readers wait for, by their paths. There are as many as different lists in flight.
#[derive(Debug, Default)]
pub(crate) struct Moments(Mutex<HashMap<String, Weak<Moment>>>);

/// The readers of one list.
#[derive(Debug, Default)]
struct Moment {
    /// The number of the last reader that came.
    came: AtomicU64,
    /// The last answer, and the number of the last reader that had come when it was asked for. It is locked while the
    /// next one is asked for.
    answered: lock::Mutex<Option<(u64, SharedAnswer)>>,
}

/// A reader of a list, which leaves when this is dropped. The last one has the list forgotten.
struct SharedReader<'a> {
    moments: &'a Moments,
    path: &'a str,
}

impl Moments {
    /// Returns an answer to a list that is asked for after the call, by `ask` or by another reader of the same path.
    ///
    /// # Errors
    /// The error of the list, as [`StorageError::Shared`].
    pub(crate) async fn list(
        &self,
        path: &str,
        ask: impl Future<Output = Result<List, StorageError>> + Send,
    ) -> Result<List, StorageError> {
        // First, so that it is dropped last.
        let _reader = SharedReader {
            moments: self,
            path,
        };
        let moment = self.moment(path);
        // Relaxed: the lock below orders the reader with those who answer it.
        let number = moment.came.fetch_add(1, Ordering::Relaxed) + 1;
        let mut answered = moment.answered.lock().await;
        let answer = match &*answered {
            Some((up_to, answer)) if *up_to >= number => answer.clone(),
            _ => {
                // Relaxed: a reader that is seen here came before the request is sent; others take the next.
                let up_to = moment.came.load(Ordering::Relaxed);
                let answer = ask.await.map_err(Arc::new);
                *answered = Some((up_to, answer.clone()));
                answer
            }
        };
        answer.map_err(StorageError::Shared)
    }

    fn moment(&self, path: &str) -> Arc<Moment> {
        let mut moments = self.lock();
        if let Some(known) = moments.get(path).and_then(Weak::upgrade) {
            return known;
        }
        let moment = Arc::new(Moment::default());
        moments.insert(path.to_owned(), Arc::downgrade(&moment));
        moment
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Weak<Moment>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SharedReader<'_> {
    fn drop(&mut self) {
        let mut moments = self.moments.lock();
        if moments
            .get(self.path)
            .is_some_and(|it| it.strong_count() == 0)
        {
            moments.remove(self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::FutureExt;
    use futures::channel::oneshot;

    use super::*;

    fn list(revision: u64) -> List {
        List {
            revision,
            ..List::default()
        }
    }

    /// A reader takes an answer that was asked for after it came, and no earlier one.
    #[tokio::test]
    async fn readers_of_a_moment_share_the_request_after_them() {
        let moments = Moments::default();
        let (first, asked) = oneshot::channel();
        let ask = asked.map(|it| Ok(list(it.expect("an answer"))));
        let mut early = pin!(moments.list("/p", ask));
        assert!(early.as_mut().now_or_never().is_none());
        let requests = AtomicU64::new(0);
        let next = || async {
            requests.fetch_add(1, Ordering::Relaxed);
            Ok(list(2))
        };
        let late = (0..10).map(|_| Box::pin(moments.list("/p", next())));
        let mut late: Vec<_> = late.collect();
        for reader in &mut late {
            assert!(reader.now_or_never().is_none());
        }
        first.send(1).expect("it is asked for");
        assert_eq!(early.await.expect("a list").revision, 1);
        for reader in late {
            assert_eq!(reader.await.expect("a list").revision, 2);
        }
        assert_eq!(requests.into_inner(), 1);
    }

    #[tokio::test]
    async fn a_reader_that_goes_away_leaves_the_request_to_the_next() {
        let moments = Moments::default();
        let mut gone = Box::pin(moments.list("/p", std::future::pending()));
        assert!((&mut gone).now_or_never().is_none());
        let waits = moments.list("/p", async { Ok(list(3)) });
        let mut waits = Box::pin(waits);
        assert!((&mut waits).now_or_never().is_none());
        drop(gone);
        assert_eq!(waits.await.expect("a list").revision, 3);
        let other = moments.list("/q", async { Err(StorageError::WatchExpired) });
        let error = other.await.expect_err("an error");
        assert!(matches!(error, StorageError::Shared(_)), "{error:?}");
        assert!(moments.lock().is_empty(), "nobody waits");
    }
}
