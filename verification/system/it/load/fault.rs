//! A fault, and the choice of one of many to plant it in.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Method, StatusCode};

/// A fault that is planted in the server's answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Nothing,
    DropEvent,
    DuplicateEvent,
    SwapEvents,
    /// An event comes after some that are newer.
    DelayEvent,
    EarlyBookmark,
    WrongType,
    /// A list that was answered before is answered again.
    StaleList,
    /// An object is read as it was before.
    StaleGet,
    /// A list of the objects of a type shows those of all types.
    IgnoredType,
    /// A later page is of a later state, and says so.
    MixedPages,
    /// A later page is of a later state, and says that it is of the first page's.
    ForgedPage,
    /// Every write is refused with this status.
    RefuseWrites(StatusCode),
    /// Every deletion is refused.
    RefuseDeletions,
    /// Every chosen watch has to begin anew with a list.
    RefuseWatches,
    /// Every watch ends where its first event would come, and every chosen one has to begin anew with a list.
    EndWatches,
    /// Every list in pages or of some version is refused.
    RefuseLists,
}

impl Fault {
    /// Returns true if it is planted in lists and reads of objects.
    pub(crate) fn is_of_reads(self) -> bool {
        matches!(
            self,
            Self::IgnoredType
                | Self::StaleList
                | Self::StaleGet
                | Self::MixedPages
                | Self::ForgedPage
        )
    }

    /// The status with which a request for secrets is refused.
    pub(crate) fn refuses(
        self,
        method: &Method,
        path: &str,
        chooser: &Chooser,
    ) -> Option<StatusCode> {
        let is_read = method == Method::GET;
        let is_watch = is_read && path.contains("watch=true");
        // The load itself deletes the whole collection before it begins.
        let is_deletion = method == Method::DELETE && path.contains("/secrets/");
        let is_write = is_deletion || (!is_read && method != Method::DELETE);
        let is_chosen = || chooser.is_chosen().then(|| chooser.count()).is_some();
        match self {
            _ if !path.contains("/secrets") => None,
            Self::RefuseWrites(status) => is_write.then_some(status),
            Self::RefuseDeletions => is_deletion.then_some(StatusCode::FORBIDDEN),
            Self::RefuseWatches | Self::EndWatches if is_watch => {
                is_chosen().then_some(StatusCode::GONE)
            }
            Self::RefuseLists if is_read && !is_watch => {
                let is_refused = path.contains("&limit=") || path.contains("&resourceVersion=");
                is_refused.then_some(StatusCode::FORBIDDEN)
            }
            _ => None,
        }
    }
}

/// Chooses one of many, and counts what was done.
#[derive(Debug)]
pub(crate) struct Chooser {
    one_of: usize,
    came: AtomicUsize,
    planted: AtomicUsize,
    /// Faults that found no place where they were to be, and go to the next.
    owed: AtomicUsize,
}

impl Chooser {
    /// Chooses one of so many, the first time after `before`.
    pub(crate) fn new(one_of: usize, before: usize) -> Self {
        Self {
            one_of,
            came: AtomicUsize::new(one_of - 1 - before % one_of),
            planted: AtomicUsize::new(0),
            owed: AtomicUsize::new(0),
        }
    }

    /// Counts a candidate, and returns true if it is chosen, which may settle an owed fault.
    pub(crate) fn is_chosen(&self) -> bool {
        let came = self.came.fetch_add(1, Ordering::Relaxed) + 1;
        let pay = |owed: usize| owed.checked_sub(1);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        came.is_multiple_of(self.one_of) || self.owed.fetch_update(set, fetch, pay).is_ok()
    }

    /// Notes that the chosen one had no place for the fault.
    pub(crate) fn owe(&self) {
        self.owed.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count(&self) {
        self.planted.fetch_add(1, Ordering::Relaxed);
    }
    /// Returns the count of candidates that came, which does not begin with 0, and the number of faults that were
    /// planted.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let count = |it: &AtomicUsize| it.load(Ordering::Relaxed);
        (count(&self.came), count(&self.planted))
    }
}
