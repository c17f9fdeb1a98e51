//! Watchers that behave alike, and what they have counted.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::position::{Sees, WatcherPosition};
use super::until;
use crate::client::{Encoding, EventKind, OwnedEvent, ReceivedEvent};
use crate::measure::Recorder;
use crate::payload::Stamp;

/// The most faults of a group that are shown in full.
const FAULTS_SHOWN_MAX: usize = 5;
/// A group must have gone away within this time.
const AWAY_SECONDS_MAX: u64 = 30;

/// The request of watchers, and their behaviour.
pub(crate) struct WatchSpec {
    pub(crate) watchers: usize,
    /// Path and query of a watcher, without a version.
    pub(crate) path: Box<dyn Fn(usize) -> String + Send + Sync>,
    pub(crate) encoding: Encoding,
    pub(crate) sees: Sees,
    /// The version from which they watch, and the number of every object's next event.
    pub(crate) revision: u64,
    pub(crate) next: u32,
    /// True if a watch that ends is resumed where it ended; otherwise the end is a fault.
    pub(crate) resumes: bool,
}

/// The behaviour of all watchers of a group.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(usize)]
pub(crate) enum GroupMode {
    /// Reads whatever comes.
    Reads,
    /// Stays connected and reads nothing.
    Stalls,
    /// Has no connection.
    Away,
}

/// Watchers that behave alike, their positions, and what they have counted.
#[derive(Debug)]
pub(crate) struct WatcherGroup {
    pub(crate) spec: WatchSpec,
    mode: AtomicUsize,
    /// True if connections that are opened have small buffers, so that the server feels a client that stalls.
    small_buffers: AtomicBool,
    mode_changed: Notify,
    /// The counts of the watchers of each thread.
    parts: Vec<GroupThread>,
    live: AtomicUsize,
    bookmarks: AtomicUsize,
    resumed: AtomicUsize,
    gone: AtomicUsize,
    faults: Mutex<Faults>,
    /// True if the first watcher's events are kept.
    keeps: AtomicBool,
    /// The first watcher's events of our own objects since they were taken last: as many as were written since.
    kept: Mutex<Vec<OwnedEvent>>,
}

#[derive(Debug)]
struct GroupThread {
    positions: Mutex<Vec<WatcherPosition>>,
    recorder: Arc<Recorder>,
}

#[derive(Debug, Default)]
struct Faults {
    count: usize,
    first: Vec<String>,
}

impl fmt::Debug for WatchSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("WatchSpec")
            .field("watchers", &self.watchers)
            .field("path", &(self.path)(0))
            .field("sees", &self.sees)
            .field("resumes", &self.resumes)
            .finish_non_exhaustive()
    }
}

impl WatcherGroup {
    /// Returns a group of watchers that are not open yet, dealt out to so many threads.
    pub(super) fn new(spec: WatchSpec, threads: usize) -> Self {
        let position =
            |watcher: usize| WatcherPosition::new(spec.sees, watcher, spec.revision, spec.next);
        let part = |thread: usize| GroupThread {
            positions: Mutex::new(
                (thread..spec.watchers)
                    .step_by(threads)
                    .map(position)
                    .collect(),
            ),
            recorder: Arc::default(),
        };
        Self {
            parts: (0..threads).map(part).collect(),
            spec,
            mode: AtomicUsize::new(GroupMode::Reads as usize),
            small_buffers: AtomicBool::new(false),
            mode_changed: Notify::new(),
            live: AtomicUsize::default(),
            bookmarks: AtomicUsize::default(),
            resumed: AtomicUsize::default(),
            gone: AtomicUsize::default(),
            faults: Mutex::default(),
            keeps: AtomicBool::new(false),
            kept: Mutex::default(),
        }
    }

    pub(crate) fn watchers(&self) -> usize {
        self.spec.watchers
    }

    /// Returns the recorders of its events.
    pub(crate) fn recorders(&self) -> impl Iterator<Item = Arc<Recorder>> {
        self.parts.iter().map(|part| Arc::clone(&part.recorder))
    }

    /// Returns how many watchers are being answered.
    pub(crate) fn live(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    /// Waits until so many watchers are being answered, but at most so many seconds. Returns false if they are not by
    /// then.
    pub(crate) async fn until_live(&self, live: usize, seconds_max: u64) -> bool {
        until(Duration::from_secs(seconds_max), || self.live() == live).await
    }

    /// Waits until watches were begun again so often, but at most so many seconds. Returns false if they were not by
    /// then.
    pub(crate) async fn until_resumed(&self, resumed: usize, seconds_max: u64) -> bool {
        until(Duration::from_secs(seconds_max), || {
            self.resumed() >= resumed
        })
        .await
    }

    /// Returns how many bookmarks came, over all watchers.
    pub(crate) fn bookmarks(&self) -> usize {
        self.bookmarks.load(Ordering::Relaxed)
    }

    /// Returns how often a watch was begun again.
    pub(crate) fn resumed(&self) -> usize {
        self.resumed.load(Ordering::Relaxed)
    }

    /// Returns how often a watcher was told that its position is gone.
    pub(crate) fn gone(&self) -> usize {
        self.gone.load(Ordering::Relaxed)
    }

    /// Returns how many events the run has had.
    pub(crate) fn received(&self) -> u64 {
        let received = self.parts.iter().map(|part| part.recorder.lock().received);
        received.sum()
    }

    pub(super) fn mode(&self) -> GroupMode {
        match self.mode.load(Ordering::Relaxed) {
            0 => GroupMode::Reads,
            1 => GroupMode::Stalls,
            _ => GroupMode::Away,
        }
    }

    /// Sets whether connections that are opened from here on have small buffers. Over HTTP/2 they are not shared then.
    pub(crate) fn set_small_buffers(&self, small: bool) {
        self.small_buffers.store(small, Ordering::Relaxed);
    }

    pub(super) fn has_small_buffers(&self) -> bool {
        self.small_buffers.load(Ordering::Relaxed)
    }

    pub(super) fn mode_changed(&self) -> &Notify {
        &self.mode_changed
    }

    /// Sets the mode of its watchers. Those that are to go away have gone when this returns, or it is a fault.
    pub(crate) async fn set_mode(&self, mode: GroupMode) {
        self.mode.store(mode as usize, Ordering::Relaxed);
        self.mode_changed.notify_waiters();
        if mode == GroupMode::Away && !self.until_live(0, AWAY_SECONDS_MAX).await {
            self.fault(format!("{} watchers do not go away", self.live()));
        }
    }

    pub(super) fn answered(&self) {
        self.live.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn ended(&self) {
        self.live.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn count_resumed(&self) {
        self.resumed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_gone(&self) {
        self.gone.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes a fault, which fails the run. The first few are told in full.
    pub(crate) fn fault(&self, what: String) {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        faults.count += 1;
        if faults.first.len() < FAULTS_SHOWN_MAX {
            faults.first.push(what);
        }
    }

    /// Returns true if there have been faults so far.
    pub(crate) fn has_faults(&self) -> bool {
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        faults.count > 0
    }

    /// Returns the first of what went wrong so far.
    pub(crate) fn first_faults(&self) -> Vec<String> {
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        faults.first.clone()
    }

    /// Returns the faults since the last call, after every watcher was asked whether it has got everything up to the
    /// number of each object's next event.
    pub(crate) fn take_faults(&self, next: &[u32]) -> Vec<String> {
        self.take_faults_from(0, next)
    }

    /// Returns the faults like [`Self::take_faults`], leaving out objects before `first`.
    pub(crate) fn take_faults_from(&self, first: u32, next: &[u32]) -> Vec<String> {
        for watcher in 0..self.watchers() {
            let missing = self.positions(watcher)[watcher / self.parts.len()].missing(first, next);
            if let Some(missing) = missing {
                self.fault(format!("watcher {watcher} {missing}"));
            }
        }
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let Faults { count, mut first } = std::mem::take(&mut *faults);
        if count > first.len() {
            first.push(format!("and {} faults more", count - first.len()));
        }
        first
    }

    /// Sets whether the events of the first watcher are kept from here on, for [`WatcherGroup::take_kept`].
    pub(crate) fn set_keeping(&self, keeps: bool) {
        self.keeps.store(keeps, Ordering::Relaxed);
    }

    /// Returns the events that the first watcher got since the last call, if the group keeps them.
    pub(crate) fn take_kept(&self) -> Vec<OwnedEvent> {
        std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns path and query of a watcher, with the version that it has come to.
    pub(super) fn path(&self, watcher: usize) -> String {
        let revision = self.positions(watcher)[watcher / self.parts.len()].revision;
        format!("{}&resourceVersion={revision}", (self.spec.path)(watcher))
    }

    /// Returns the positions of all watchers of this one's thread.
    fn positions(&self, watcher: usize) -> MutexGuard<'_, Vec<WatcherPosition>> {
        let part = &self.parts[watcher % self.parts.len()];
        part.positions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an event that a watcher read at `now`, in nanoseconds since 1970. Breaks if the watch is over and cannot
    /// be resumed.
    pub(super) fn take(
        &self,
        watcher: usize,
        event: &ReceivedEvent<'_>,
        now: u64,
    ) -> ControlFlow<()> {
        if event.kind == EventKind::Error {
            let failure = event.failure();
            if failure.is_gone() {
                self.count_gone();
            }
            self.fault(format!("watcher {watcher}: {failure}"));
            return ControlFlow::Break(());
        }
        let mut positions = self.positions(watcher);
        let position = &mut positions[watcher / self.parts.len()];
        let read = match (event.kind, event.revision()) {
            (_, None) => Err("an event without a version".to_owned()),
            (EventKind::Bookmark, Some(revision)) => {
                self.bookmarks.fetch_add(1, Ordering::Relaxed);
                position.bookmark(revision)
            }
            (_, Some(revision)) => position.advance(revision),
        };
        // Others may put objects of their own into a namespace; they have no stamp.
        let stamp = match event.kind {
            EventKind::Bookmark => None,
            _ => Stamp::find(event.object),
        };
        let taken = read.and_then(|()| match stamp {
            None => Ok(()),
            Some(stamp) if event.kind == EventKind::Deleted => position.take_end(stamp),
            Some(stamp) => position.take(stamp),
        });
        drop(positions);
        if let Err(why) = taken {
            self.fault(format!("watcher {watcher}: {why}"));
        }
        if let Some(stamp) = stamp {
            if watcher == 0 && self.keeps.load(Ordering::Relaxed) {
                let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.push(event.kept());
            }
            let recorder = &self.parts[watcher % self.parts.len()].recorder;
            // A deletion carries the time of the last write, not its own.
            let latency = (event.kind != EventKind::Deleted).then(|| now.saturating_sub(stamp.at));
            recorder.record(latency, event.object.len());
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(watchers: usize) -> WatcherGroup {
        let spec = WatchSpec {
            watchers,
            path: Box::new(|watcher| format!("/watch?watcher={watcher}")),
            encoding: Encoding::Json,
            sees: Sees::All(1),
            revision: 10,
            next: 1,
            resumes: false,
        };
        WatcherGroup::new(spec, 2)
    }

    fn event(kind: EventKind, object: String) -> OwnedEvent {
        OwnedEvent {
            kind,
            revision: 0,
            object: object.into(),
            encoding: Encoding::Json,
            ends_initial_events: false,
        }
    }

    fn write(number: u32, revision: u64) -> OwnedEvent {
        let object = format!(
            r#"{{"metadata":{{"resourceVersion":"{revision}"}},"stamp":"rwl1:000000:{number:08}:{:019};"}}"#,
            5
        );
        event(EventKind::Modified, object)
    }

    fn take(group: &WatcherGroup, watcher: usize, event: &OwnedEvent) -> ControlFlow<()> {
        group.take(watcher, &event.borrowed(), 1_000_005)
    }

    #[test]
    fn what_came_once_and_in_order_is_no_fault() {
        let group = group(3);
        for watcher in 0..3 {
            for (number, revision) in [(1, 11), (2, 15)] {
                assert_eq!(
                    take(&group, watcher, &write(number, revision)),
                    ControlFlow::Continue(())
                );
            }
        }
        assert_eq!(group.take_faults(&[3]), Vec::<String>::new());
        assert_eq!(group.received(), 6);
        assert_eq!(group.path(2), "/watch?watcher=2&resourceVersion=15");
    }

    #[test]
    fn a_lost_a_repeated_and_a_missing_event_are_faults() {
        for (events, words) in [
            (
                &[(1, 11), (3, 13)][..],
                "event 3 of object 0 in the place of 2",
            ),
            (&[(1, 11), (1, 12)], "event 1 of object 0 in the place of 2"),
            (&[(1, 11), (2, 11)], "version 11 after 11"),
            (&[(1, 11)], "watcher 1 did not get events 2 to 2"),
        ] {
            let group = group(2);
            for (number, revision) in events {
                let _ = take(&group, 1, &write(*number, *revision));
            }
            let _ = take(&group, 0, &write(1, 11));
            let _ = take(&group, 0, &write(2, 12));
            let faults = group.take_faults(&[3]).join("; ");
            assert!(faults.contains(words), "{faults}");
        }
    }

    #[test]
    fn a_gone_position_ends_a_watch() {
        let group = group(1);
        let gone = r#"{"kind":"Status","message":"too old","code":410}"#.to_owned();
        let flow = take(&group, 0, &event(EventKind::Error, gone));
        assert_eq!((flow, group.gone()), (ControlFlow::Break(()), 1));
        assert!(group.has_faults());
    }

    #[test]
    fn the_first_watcher_keeps_its_events_if_asked() {
        let group = group(1);
        let _ = take(&group, 0, &write(1, 5));
        group.set_keeping(true);
        for (number, revision) in [(2, 11), (3, 15)] {
            let _ = take(&group, 0, &write(number, revision));
        }
        let kept: Vec<u64> = group.take_kept().iter().map(|it| it.revision).collect();
        assert_eq!(kept, [11, 15]);
        group.set_keeping(false);
        let _ = take(&group, 0, &write(4, 16));
        assert!(group.take_kept().is_empty());
    }

    #[test]
    fn objects_of_others_are_passed_over() {
        let group = group(1);
        let object = r#"{"metadata":{"resourceVersion":"12"}}"#.to_owned();
        let _ = take(&group, 0, &event(EventKind::Added, object));
        assert_eq!(group.take_faults(&[1]), Vec::<String>::new());
        assert_eq!(group.received(), 0);
    }
}
