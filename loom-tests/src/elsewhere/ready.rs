//! The list of the watches of an HTTP/2 connection that are ready.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::task::Waker;

#[path = "../../../crates/http/src/watch_streams/ready.rs"]
mod included;

/// The list of a connection.
pub struct Ready<T>(Arc<included::ReadyList<T>>);

/// A watch of the connection.
pub struct Entry<T>(Arc<included::ReadyEntry<T>>);

impl<T> fmt::Debug for Ready<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl<T> fmt::Debug for Entry<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl<T> Default for Ready<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Clone for Entry<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Send + Sync + 'static> Ready<T> {
    /// Returns a watch that is not on the list.
    pub fn entry(&self, content: T) -> Entry<T> {
        Entry(Arc::new(included::ReadyEntry::new(
            Arc::clone(&self.0),
            content,
        )))
    }

    /// Takes the watches that are ready off the list; if there are none, `task` is woken when there are.
    pub fn take(&self, task: &Waker) -> Vec<Entry<T>> {
        let mut taken = VecDeque::new();
        self.0.take(&mut taken, task);
        taken.into_iter().map(Entry).collect()
    }

    /// Returns true if a watch is ready.
    pub fn has_entries(&self) -> bool {
        self.0.has_entries()
    }

    /// Empties the list for good.
    pub fn close(&self) {
        self.0.close();
    }
}

impl<T: Send + Sync + 'static> Entry<T> {
    /// Returns the state of the watch.
    pub fn content(&self) -> &T {
        &self.0.content
    }

    /// Returns true if it is on the list.
    pub fn is_queued(&self) -> bool {
        self.0.is_queued()
    }

    /// Notes that it has left the list.
    pub fn taken(&self) {
        self.0.taken();
    }

    /// Puts it on the list, and wakes the connection.
    pub fn wake(&self) {
        Waker::from(Arc::clone(&self.0)).wake();
    }
}
