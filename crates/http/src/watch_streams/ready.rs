//! The list of a connection's watches that may have something to write.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, PoisonError};
use std::task::{Wake, Waker};

use ringwatch::sync::{AtomicBool, Mutex, MutexGuard, Ordering};

/// The ready entries of a connection, each at most once.
pub(super) struct ReadyList<T>(Mutex<List<T>>);

struct List<T> {
    /// Each watch of the connection at most once, and those that have ended since they were woken.
    entries: VecDeque<Arc<ReadyEntry<T>>>,
    /// The connection's task, if it waits.
    task: Option<Waker>,
    /// True once the connection has ended. An entry on the list would keep it and itself alive.
    closed: bool,
}

/// A watch of the connection. Waking it puts it on the list.
pub(super) struct ReadyEntry<T> {
    ready: Arc<ReadyList<T>>,
    /// True while it is on the list.
    queued: AtomicBool,
    pub(super) content: T,
}

impl<T> Default for ReadyList<T> {
    fn default() -> Self {
        Self(Mutex::new(List {
            entries: VecDeque::new(),
            task: None,
            closed: false,
        }))
    }
}

impl<T> fmt::Debug for ReadyList<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Ready").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for ReadyEntry<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Entry").finish_non_exhaustive()
    }
}

impl<T> ReadyList<T> {
    /// Adds an entry, and wakes the connection if it waits. Drops the entry if the connection has ended.
    fn push(&self, entry: Arc<ReadyEntry<T>>) {
        let mut list = self.lock();
        if list.closed {
            return;
        }
        list.entries.push_back(entry);
        let task = list.task.take();
        drop(list);
        if let Some(task) = task {
            task.wake();
        }
    }

    /// Exchanges the list for an empty one. If it is empty, the task is woken when it is not any more.
    pub(super) fn take(&self, empty: &mut VecDeque<Arc<ReadyEntry<T>>>, task: &Waker) {
        let mut list = self.lock();
        if list.entries.is_empty() {
            list.task = Some(task.clone());
        } else {
            std::mem::swap(&mut list.entries, empty);
        }
    }

    /// Returns true if there are entries on the list.
    pub(super) fn has_entries(&self) -> bool {
        !self.lock().entries.is_empty()
    }

    /// Empties the list for good: the connection has ended.
    pub(super) fn close(&self) {
        let mut list = self.lock();
        list.closed = true;
        let left = (std::mem::take(&mut list.entries), list.task.take());
        drop(list);
        drop(left);
    }

    fn lock(&self) -> MutexGuard<'_, List<T>> {
        // The list is consistent after each of its changes, so poison is ignored.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> ReadyEntry<T> {
    /// Creates an entry that is not on the list.
    pub(super) fn new(ready: Arc<ReadyList<T>>, content: T) -> Self {
        Self {
            ready,
            queued: AtomicBool::new(false),
            content,
        }
    }

    /// Returns true if it is on the list.
    pub(super) fn is_queued(&self) -> bool {
        // Acquire: pairs with the swap in `wake`, before which the content has changed.
        self.queued.load(Ordering::Acquire)
    }

    /// Notes that it has left the list. Wakes from here on put it there again, so this comes before the content is
    /// looked at.
    pub(super) fn taken(&self) {
        // Synchronises with the swap in `wake`: whoever finds it queued has changed the content before this.
        self.queued.swap(false, Ordering::AcqRel);
    }
}

impl<T: Send + Sync + 'static> Wake for ReadyEntry<T> {
    fn wake(self: Arc<Self>) {
        // Synchronises with the swap in `taken`.
        if !self.queued.swap(true, Ordering::AcqRel) {
            let ready = Arc::clone(&self.ready);
            ready.push(self);
        }
    }

    fn wake_by_ref(self: &Arc<Self>) {
        Arc::clone(self).wake();
    }
}
