//! A controller's loop: follows objects, keeps a queue of what has to be looked at, and looks at a few at a time.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::FuturesUnordered;
use futures::{StreamExt, future};
use ringwatch::clock::{Clock, Instant};
use ringwatch::meta::Object;
use ringwatch_apimachinery::Error;
use ringwatch_registry::informer::{InformerChange, InformerList};
use ringwatch_registry::{Informer, ListWatch};

use crate::queue::Queue;

/// Maximum number of keys that a controller looks at at a time. The others wait.
const LOOKS_MAX: usize = 8;

/// The longest pause until a key is looked at again that others have to finish with, such as one with finalizers.
const AGAIN_PAUSE_MAX: Duration = Duration::from_secs(1);

/// The longest pause until a key is looked at again whose look failed.
const FAILED_PAUSE_MAX: Duration = Duration::from_secs(30);

/// The step after a look at a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing until it is added again.
    Done,
    /// Another look soon, since somebody else has to do something first of which nothing is told here.
    Again,
    /// Another look at this time.
    At(Instant),
}

/// A controller: which keys a change concerns, and what to do about each.
#[async_trait]
pub(crate) trait Controller: Sync {
    /// The store that an object is of.
    type Source: Copy + Send + Sync;
    /// The name of what is looked at.
    type Key: Clone + Debug + Eq + Hash + Ord + Send + Sync;

    /// Forgets what it knows of objects, since all are told anew.
    fn reset(&self) {}

    /// Returns the keys that have to be looked at whenever everything is told anew, whatever there is.
    fn standing_keys(&self) -> Vec<Self::Key> {
        Vec::new()
    }

    /// Returns the keys that have to be looked at after a change.
    fn keys(&self, source: Self::Source, change: &InformerChange) -> Vec<Self::Key>;

    /// Does the next step about a key.
    ///
    /// # Errors
    /// An error of the stores; the key is looked at again after a while.
    async fn reconcile(&self, key: &Self::Key) -> Result<Next, Error>;
}

/// Runs a controller until it is dropped. In messages its objects are called `what`.
pub(crate) async fn run<C: Controller>(
    controller: &C,
    what: &'static str,
    sources: Vec<(C::Source, &dyn ListWatch)>,
    clock: &Clock,
) {
    let informer = Informer::new(what, sources, clock.clone());
    loop {
        let ended = follow(controller, what, &informer, clock).await;
        informer.pause_after(ended).await;
    }
}

/// Lists all objects, and looks at what changes until a watch ends. Looks that have begun are dropped then: everything
/// is looked at anew.
async fn follow<C: Controller>(
    controller: &C,
    what: &'static str,
    informer: &Informer<'_, C::Source>,
    clock: &Clock,
) -> Result<(), Error> {
    let InformerList {
        objects,
        mut changes,
        ..
    } = informer.list().await?;
    controller.reset();
    let mut queue = Queue::new();
    for key in controller.standing_keys() {
        queue.add(key, clock.now());
    }
    let listed = objects.into_iter();
    let listed = listed.map(|(source, object)| (source, InformerChange::Upserted(object)));
    note(controller, listed, &mut queue, clock);
    let mut looks = FuturesUnordered::new();
    loop {
        while looks.len() < LOOKS_MAX
            && let Some(key) = queue.take(clock.now())
        {
            looks.push(async move {
                let next = controller.reconcile(&key).await;
                (key, next)
            });
        }
        let due = queue.next_due().filter(|_| looks.len() < LOOKS_MAX);
        let at_next = async {
            match due {
                Some(due) => clock.sleep_until(due).await,
                None => future::pending().await,
            }
        };
        tokio::select! {
            next = changes.next() => {
                let Some(next) = next? else { return Ok(()) };
                note(controller, next, &mut queue, clock);
            }
            Some((key, next)) = looks.next() => finish(what, key, next, &mut queue, clock),
            () = at_next => {}
        }
    }
}

/// Adds the keys that changes concern.
fn note<C: Controller>(
    controller: &C,
    changes: impl IntoIterator<Item = (C::Source, InformerChange)>,
    queue: &mut Queue<C::Key>,
    clock: &Clock,
) {
    let now = clock.now();
    for (source, change) in changes {
        for key in controller.keys(source, &change) {
            queue.add(key, now);
        }
    }
}

fn finish<K: Clone + Debug + Eq + Hash + Ord>(
    what: &'static str,
    key: K,
    next: Result<Next, Error>,
    queue: &mut Queue<K>,
    clock: &Clock,
) {
    let now = clock.now();
    match next {
        Ok(Next::Done) => queue.done(key, now),
        Ok(Next::Again) => queue.repeat(key, AGAIN_PAUSE_MAX, now),
        Ok(Next::At(due)) => queue.done_until(key, due, now),
        // Another writer was faster, whose change is told as well.
        Err(Error::Conflict { .. }) => queue.repeat(key, AGAIN_PAUSE_MAX, now),
        Err(error) => {
            tracing::warn!(%error, ?key, what, "a controller of the test cluster failed, and tries again later");
            queue.repeat(key, FAILED_PAUSE_MAX, now);
        }
    }
}

/// Returns the object of a change.
pub(crate) fn object_of(change: &InformerChange) -> &Arc<Object> {
    match change {
        InformerChange::Upserted(object) | InformerChange::Deleted(object) => object,
    }
}

/// Returns the object that was found; `None` if there is none.
pub(crate) fn found(result: Result<Arc<Object>, Error>) -> Result<Option<Arc<Object>>, Error> {
    match result {
        Ok(object) => Ok(Some(object)),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
