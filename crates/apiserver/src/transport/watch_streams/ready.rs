//! The list of a connection's watches that may have something to write.

use std::sync::{Arc, PoisonError};
use std::task::Waker;

use ringwatch::sync::{Mutex, MutexGuard};

use super::slot::Slot;

/// The ready watches of a connection, each at most once.
#[derive(Debug, Default)]
pub(super) struct Ready(Mutex<List>);

#[derive(Debug, Default)]
struct List {
    /// At most as long as there are watches on the connection.
    slots: Vec<Arc<Slot>>,
    /// The connection's task, if it waits.
    task: Option<Waker>,
}

impl Ready {
    /// Adds a watch, and wakes the connection if it waits.
    pub(super) fn push(&self, slot: Arc<Slot>) {
        let mut list = self.lock();
        list.slots.push(slot);
        let task = list.task.take();
        drop(list);
        if let Some(task) = task {
            task.wake();
        }
    }

    /// Exchanges the list for an empty one. If it is empty, the task is woken when it is not any more.
    pub(super) fn take(&self, empty: &mut Vec<Arc<Slot>>, task: &Waker) {
        let mut list = self.lock();
        if list.slots.is_empty() {
            list.task = Some(task.clone());
        } else {
            std::mem::swap(&mut list.slots, empty);
        }
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        // The list is consistent after each of its changes, so poison is ignored.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
