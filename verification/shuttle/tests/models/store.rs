//! A store of pods that remembers everything, so that it can say what must be seen of it.

mod answers;
mod history;

use std::collections::BTreeMap;
use std::fmt;
use std::task::{Poll, Waker};

use shuttle::rand::{Rng, thread_rng};
use shuttle_tests::storage::{ChangeBatch, ChangePage, RawObject, StorageError, Versioner};
use shuttle_tests::sync::{Arc, Mutex, MutexGuard};

pub(crate) use self::history::{Entry, Label, Place};
use self::history::{History, pod};

/// The most revisions in a batch of changes.
const BATCH_REVISIONS_MAX: u64 = 3;

/// The most objects in a page, and the divisor of the number of objects that are left: a page may have the quotient if
/// that is more.
const PAGE_OBJECTS_MAX: usize = 2;
const PAGE_PART_MIN: usize = 4;

/// The probability that a change comes to a follower later than other responses.
const LATE: f64 = 0.3;

/// The probability that the value of a change is encrypted.
const ENCRYPTED: f64 = 0.2;

/// The store: a source of changes for the cache, and what the cache falls back to.
pub(crate) struct Store {
    shared: Arc<Mutex<Inner>>,
    versioner: Versioner,
}

struct Inner {
    /// Its changes. Whenever it is put back, another history begins.
    histories: Vec<History>,
    /// The revision before which following and listing fail.
    compacted: u64,
    /// The last revision that there will be, once known.
    last: Option<u64>,
    /// False if its progress notices may overtake changes.
    trusted: bool,
    /// True if some values have to be decrypted.
    encrypts: bool,
    /// True if it sends its followers nothing.
    silent: bool,
    followers: BTreeMap<u64, Follower>,
    next_follower: u64,
    /// The number of reads, of one object or of a list, that the store has answered itself.
    lists: usize,
    /// The number of lists that are being answered, and the most that were at the same time.
    answering: usize,
    answering_most: usize,
}

struct Follower {
    /// The number of changes that have been handed over.
    position: u64,
    broken: bool,
    /// True if progress has been requested since the last batch.
    progress_requested: bool,
    waker: Option<Waker>,
}

impl Store {
    pub(crate) fn new() -> Self {
        let history = History {
            log: Vec::new(),
            revision: 1,
        };
        let inner = Inner {
            histories: vec![history],
            compacted: 0,
            last: None,
            trusted: true,
            encrypts: false,
            silent: false,
            followers: BTreeMap::new(),
            next_follower: 0,
            lists: 0,
            answering: 0,
            answering_most: 0,
        };
        Self {
            shared: Arc::new(Mutex::new(inner)),
            versioner: Versioner::default(),
        }
    }

    /// Creates a store of a pod at revision 2.
    pub(crate) fn of_a_pod() -> Self {
        let store = Self::new();
        store.write(&[("/pods/d/a", Some("x"))]);
        store
    }

    /// Creates a store whose progress notices may overtake changes.
    pub(crate) fn untrusted() -> Self {
        let store = Self::new();
        store.lock().trusted = false;
        store
    }

    /// Creates a store some of whose values have to be decrypted.
    pub(crate) fn encrypting() -> Self {
        let store = Self::new();
        store.lock().encrypts = true;
        store
    }

    /// Has no progress notice overtake changes any more.
    pub(crate) fn trust_progress(&self) {
        self.lock().trusted = true;
    }

    /// Sends the followers nothing any more, or again.
    pub(crate) fn silence(&self, silent: bool) {
        let mut inner = self.lock();
        inner.silent = silent;
        inner.wake();
    }

    /// Writes or deletes keys in one revision, and returns that.
    pub(crate) fn write(&self, changes: &[(&str, Label)]) -> u64 {
        self.lock().write(changes)
    }

    /// Writes for the last time.
    pub(crate) fn write_last(&self, changes: &[(&str, Label)]) -> u64 {
        let mut inner = self.lock();
        let revision = inner.write(changes);
        inner.last = Some(revision);
        revision
    }

    /// Writes, and forgets all history at once: a follower that is behind has a gap.
    pub(crate) fn write_and_compact(&self, changes: &[(&str, Label)]) {
        let mut inner = self.lock();
        inner.compacted = inner.write(changes);
        inner.wake();
    }

    /// Writes an object without sending the change to any follower.
    pub(crate) fn write_unsent(&self, changes: &[(&str, Label)]) {
        self.lock().write_unsent(changes);
    }

    /// Creates an object anew whose deletion is sent to no follower.
    pub(crate) fn write_impossible(&self, key: &str) {
        let mut inner = self.lock();
        inner.write(&[(key, Some("x"))]);
        inner.write_unsent(&[(key, None)]);
        inner.write(&[(key, Some("y"))]);
    }

    /// Breaks all streams.
    pub(crate) fn break_streams(&self) {
        self.lock().break_streams();
    }

    /// Rolls the store back to its state at a revision. The streams break.
    pub(crate) fn roll_back(&self, revision: u64) {
        let mut inner = self.lock();
        let mut history = inner.history().clone();
        history.log.retain(|it| it.revision <= revision);
        history.revision = revision;
        inner.histories.push(history);
        inner.break_streams();
    }

    /// Returns the newest revision: every write that has returned is at or before it.
    pub(crate) fn revision(&self) -> u64 {
        self.lock().history().revision
    }

    /// Returns the number of the newest history and the newest revision of it.
    pub(crate) fn newest(&self) -> (usize, u64) {
        let inner = self.lock();
        (inner.histories.len() - 1, inner.history().revision)
    }

    /// Returns the number of the history that a revision is of: the newest that has come to it. The models let no
    /// history come to what clients have of an earlier one.
    pub(crate) fn history_of(&self, revision: u64) -> usize {
        self.lock().history_of(revision)
    }

    /// Returns the newest revision of the history that a client follows.
    pub(crate) fn newest_at(&self, place: Place) -> u64 {
        self.lock().histories[place.history].revision
    }

    /// Returns true if a client has come to the last revision that there will be.
    pub(crate) fn is_at_last(&self, place: Place) -> bool {
        let inner = self.lock();
        let present = place.history == inner.histories.len() - 1;
        present && inner.last.is_some_and(|last| place.revision >= last)
    }

    /// Returns how many lists the store has answered itself.
    pub(crate) fn lists(&self) -> usize {
        self.lock().lists
    }

    /// Returns how many lists the store has answered at the same time at most, and begins to count anew.
    pub(crate) fn take_lists_at_once(&self) -> usize {
        std::mem::take(&mut self.lock().answering_most)
    }

    /// Returns the selected objects at a revision: the revision of each key.
    pub(crate) fn selected(
        &self,
        revision: u64,
        selects: impl Fn(&str, Label) -> bool,
    ) -> BTreeMap<String, u64> {
        let inner = self.lock();
        let content = inner.histories[inner.history_of(revision)].content(revision);
        drop(inner);
        let selected = content.into_iter();
        let selected = selected.filter(|(key, (_, label))| selects(key, Some(label)));
        selected.map(|(key, (at, _))| (key, at)).collect()
    }

    /// Returns the first change after a place that concerns a selection, and the place after it.
    pub(crate) fn next(
        &self,
        place: Place,
        selects: impl Fn(&str, Label) -> bool,
    ) -> Option<(Place, Entry)> {
        let inner = self.lock();
        let log = &inner.histories[place.history].log;
        let mut later = log.iter().enumerate().skip(place.next);
        let (number, entry) =
            later.find(|(_, it)| selects(&it.key, it.before) || selects(&it.key, it.after))?;
        let after = Place {
            revision: entry.revision,
            next: number + 1,
            ..place
        };
        Some((after, entry.clone()))
    }

    /// Returns the place after a revision.
    pub(crate) fn place_after(&self, revision: u64) -> Place {
        let inner = self.lock();
        let history = inner.history_of(revision);
        let log = &inner.histories[history].log;
        Place {
            history,
            revision,
            next: log.partition_point(|it| it.revision <= revision),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.shared.lock().expect("no model panics under the lock")
    }
}

impl Inner {
    fn history(&self) -> &History {
        self.histories.last().expect("there is one at least")
    }

    fn history_of(&self, revision: u64) -> usize {
        let reached = |it: &History| it.revision >= revision;
        let newest = self.histories.iter().rposition(reached);
        newest.expect("a revision that there was")
    }

    fn write(&mut self, changes: &[(&str, Label)]) -> u64 {
        let history = self.histories.last_mut().expect("there is one at least");
        let before = history.content(history.revision);
        let revision = history.revision + 1;
        let before = |key: &str| before.get(key).map(|(_, label)| *label);
        let entries = changes.iter().map(|(key, after)| Entry {
            revision,
            key: (*key).to_owned(),
            before: before(key),
            after: *after,
            is_sent: true,
        });
        let entries: Vec<_> = entries
            .filter(|it| it.before.is_some() || it.after.is_some())
            .collect();
        history.revision = revision;
        history.log.extend(entries);
        self.wake();
        revision
    }

    fn write_unsent(&mut self, changes: &[(&str, Label)]) {
        let revision = self.write(changes);
        let history = self.histories.last_mut().expect("there is one at least");
        let lost = history.log.iter_mut().filter(|it| it.revision == revision);
        lost.for_each(|it| it.is_sent = false);
    }

    fn break_streams(&mut self) {
        for follower in self.followers.values_mut() {
            follower.broken = true;
        }
        self.wake();
    }

    fn wake(&mut self) {
        for follower in self.followers.values_mut() {
            if let Some(waker) = follower.waker.take() {
                waker.wake();
            }
        }
    }

    /// Polls the next batch of a follower.
    fn poll(&mut self, id: u64, waker: &Waker) -> Poll<Option<Result<ChangeBatch, StorageError>>> {
        let (trusted, encrypts, silent) = (self.trusted, self.encrypts, self.silent);
        let history = self.histories.last().expect("there is one at least");
        let (revision, compacted) = (history.revision, self.compacted);
        let Some(follower) = self.followers.get_mut(&id) else {
            return Poll::Ready(None);
        };
        let failed = if follower.broken {
            Some(unreachable())
        } else if follower.position < compacted {
            Some(StorageError::WatchExpired)
        } else {
            None
        };
        if let Some(error) = failed {
            self.followers.remove(&id);
            return Poll::Ready(Some(Err(error)));
        }
        if silent {
            follower.waker = Some(waker.clone());
            return Poll::Pending;
        }
        if !trusted && std::mem::take(&mut follower.progress_requested) {
            // It overtakes what has not been sent.
            return Poll::Ready(Some(Ok(ChangeBatch {
                changes: Vec::new(),
                revision,
            })));
        }
        if thread_rng().gen_bool(LATE) {
            // On its way: other answers may overtake it.
            waker.wake_by_ref();
            return Poll::Pending;
        }
        // A revision without a change comes with a later one, or as the progress that was requested.
        let mut changes = history.sent();
        if let Some(next) = changes.find(|it| it.revision > follower.position) {
            let to = next.revision + thread_rng().gen_range(0..BATCH_REVISIONS_MAX);
            let mut to = to.min(revision);
            // What is not sent is contradicted by what comes with it: nobody could know of it before.
            let lost = |at| {
                history
                    .log
                    .iter()
                    .any(|it| it.revision == at && !it.is_sent)
            };
            while lost(to) && to < revision {
                to += 1;
            }
            follower.position = to;
            let sent = next.revision..=to;
            let changes = history.sent();
            let changes = changes.filter(|it| sent.contains(&it.revision));
            let changes = changes.map(|it| it.change(encrypts && thread_rng().gen_bool(ENCRYPTED)));
            return Poll::Ready(Some(Ok(ChangeBatch {
                changes: changes.collect(),
                revision: to,
            })));
        }
        if std::mem::take(&mut follower.progress_requested) {
            follower.position = revision;
            return Poll::Ready(Some(Ok(ChangeBatch {
                changes: Vec::new(),
                revision,
            })));
        }
        follower.waker = Some(waker.clone());
        Poll::Pending
    }

    fn page(
        &self,
        prefix: &str,
        after: Option<&str>,
        revision: u64,
        limit: u32,
    ) -> Result<ChangePage, StorageError> {
        let revision = if revision == 0 {
            self.history().revision
        } else {
            revision
        };
        if revision < self.compacted {
            return Err(StorageError::ListExpired);
        }
        let mut items = self.list(prefix, revision);
        items.retain(|it| after.is_none_or(|after| &*it.key > after));
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let limit = limit.min(PAGE_OBJECTS_MAX.max(items.len() / PAGE_PART_MIN));
        let more = items.len() > limit;
        items.truncate(limit);
        Ok(ChangePage {
            revision,
            items,
            more,
        })
    }

    fn list(&self, prefix: &str, revision: u64) -> Vec<RawObject> {
        let content = self.history().content(revision).into_iter();
        let under = content.filter(|(key, _)| key.starts_with(prefix));
        let raw = under.map(|(key, (revision, label))| RawObject {
            value: pod(&key, label).into(),
            key,
            revision,
        });
        raw.collect()
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Store")
    }
}

fn unreachable() -> StorageError {
    StorageError::Unreachable {
        message: "as the model wants it".to_owned(),
    }
}
