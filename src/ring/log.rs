//! An append-only log of numbered values, of which the newest are kept: one writer, many readers, and neither waits for
//! the other.
//!
//! ```text
//!              Directory: replaced, never changed
//!   base  |  segment    |  segment   |  segment         |
//!         |  [0 1 2 3]  |  [4 5 _ _] |  [6 7 8 _ _ _ _] |
//!            ^ first        sealed        ^ ^
//!                                         | filled, not yet published
//!                                         end: 7
//!
//!  Writer (one, &mut)                       Log (many, Clone)
//!  ------------------                       -----------------
//!  append:  slot.set(value)                 read:  1. end.load(Acquire)
//!  publish: 1. directory.store, if it                    |
//!              has another segment                  2. directory.load
//!           2. end.store(n, Release) -- pairs with 1     |
//!  evict:   directory.store with a later            values in first..end
//!           first and base
//! ```
//!
//! A value is numbered by its place in the order of all values. It is written once, into a slot that nothing else ever
//! uses, so no value can be torn, no slot is reused, and only reference counts free memory. To wait for the next value
//! is to keep a number, which keeps no memory alive. The `base` is the state before the first value.
//!
//! # Invariants
//!
//! - A slot is set once, before its number is published. Numbers never fall and never repeat, not
//!   even over [`Writer::reset`].
//! - `end` rises only in [`Writer::publish`], so what is appended between two calls is seen whole or
//!   not at all.
//! - The segments of a directory stand without a gap in the order of their numbers. The first begins
//!   with `first`, each has a value, and only the last takes more of them: a *sealed* segment may
//!   have slots that stay empty, whose numbers belong to the next one.
//! - A value is evicted only after it was published, and with its whole segment. `base` and `first` change by the same
//!   store, so no reader sees one without the other.
//! - The writer keeps its own copy of everything: a writer that loads what only it stores hides
//!   interleavings from loom.
//!
//! # What a reader finds
//!
//! Let `e` be the loaded end, and `D` the directory that was loaded after it. `D` says which end
//! was published when it was stored; the reader takes the later of the two, `n`. Every number from
//! `D.first` to `n` has its value, and `D.first <= n`:
//!
//! - `D` was stored before `e` was published. The load of `e` acquired what preceded its
//!   publication, so `D` is the last directory that was stored before it and lists each segment
//!   that was begun by then; and each slot below `e` is set. `D` evicted only what was published at
//!   its time, so `D.first <= D.published <= e = n`.
//! - `D` was stored after `e` was published. Then it lists what its writer had then, except for what
//!   was evicted, and what was evicted lies below `D.first`. The slots below `D.published` were set
//!   before `D` was stored, and the load of `D` acquired that. `D.first <= D.published = n`.
//!
//! If the end were loaded second, it could be in a segment that the directory does not have. If `D.published` were
//! ignored, a reader that slept between its two loads could find a base that is later than its end.
//!
//! `n` and `D.first` never fall from one read to the next of the same thread, nor for a thread that synchronised with
//! an earlier read of another: both loads are coherent.
//!
//! # Trade-offs
//!
//! - A reader that looks at one value only pays for the directory's guard (some 10 ns). Reading on
//!   with the same [`Reader`] costs two loads a value.
//! - A `Reader` keeps the segments of its directory alive: take what is needed, and drop it.
//! - Eviction is as coarse as segments are. The caller seals a segment that would be too coarse.
//! - A new directory copies the list of segments: some nanoseconds for each of them, once a segment.

use crate::sync::{Arc, ArcSwap, AtomicU64, Guard, OnceLock, Ordering};

/// Minimum number of slots of a segment.
const SEGMENT_SLOTS_MIN: usize = 16;

/// Maximum number of slots of a segment. Each has twice as many as its predecessor used, between the two bounds, so
/// that a log of few values takes little memory.
const SEGMENT_SLOTS_MAX: usize = 256;

/// Creates the two halves of an empty log.
pub fn log<T, B: Clone>(base: B) -> (Writer<T, B>, Log<T, B>) {
    let directory = Directory {
        segments: Vec::new(),
        first: 0,
        published: 0,
        base: base.clone(),
    };
    let shared = Arc::new(LogState {
        end: AtomicU64::new(0),
        directory: ArcSwap::new(Arc::new(directory)),
    });
    let writer = Writer {
        shared: Arc::clone(&shared),
        segments: Vec::new(),
        unlisted: false,
        sealed: false,
        first: 0,
        published: 0,
        end: 0,
        base,
    };
    (writer, Log { shared })
}

/// The half that appends and evicts. There is one for each log.
#[derive(Debug)]
pub struct Writer<T, B> {
    shared: Arc<LogState<T, B>>,
    /// The segments that the directory lists, then those that it does not list yet.
    segments: Vec<Segment<T>>,
    /// True if a segment is not listed yet.
    unlisted: bool,
    /// True if the next value begins a segment.
    sealed: bool,
    /// The directory's `first`.
    first: u64,
    /// The value of `shared.end`, or, after a reset, the end that readers see instead.
    published: u64,
    /// The number of the next value.
    end: u64,
    /// The directory's `base`.
    base: B,
}

/// The half that reads; clones read the same log.
#[derive(Debug)]
pub struct Log<T, B> {
    shared: Arc<LogState<T, B>>,
}

/// A consistent view of the log at one moment.
#[derive(Debug)]
pub struct Reader<T, B> {
    directory: Guard<Arc<Directory<T, B>>>,
    /// The end: numbers below it are published.
    end: u64,
}

/// The content of a sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot<'a, T> {
    /// The value with this number.
    Value(&'a T),
    /// There is no value yet: the number is at or above the end.
    Future,
    /// The value has been evicted.
    Gone,
}

/// An iterator over the values from a number on.
#[derive(Debug)]
pub struct Values<'a, T> {
    /// The number of values that remain.
    left: u64,
    /// The rest of the current segment.
    slots: std::slice::Iter<'a, OnceLock<T>>,
    /// The segments after it.
    segments: std::slice::Iter<'a, Segment<T>>,
}

/// Segments that have been evicted. Readers may still hold them; whoever drops the last reference to a segment drops
/// its values, so the writer drops this outside of any lock.
#[derive(Debug)]
#[must_use = "dropping it may take a while; do it outside locks"]
pub struct EvictedSegments<T> {
    /// Held for its drop.
    _segments: Vec<Segment<T>>,
}

#[derive(Debug)]
struct LogState<T, B> {
    /// The end: numbers below it are published. Stored by the writer alone.
    end: AtomicU64,
    /// The list of segments. Stored by the writer alone.
    directory: ArcSwap<Directory<T, B>>,
}

#[derive(Debug)]
struct Directory<T, B> {
    /// The segments, in the order of their numbers.
    segments: Vec<Segment<T>>,
    /// The number of the oldest value; that of the next one if there is none.
    first: u64,
    /// The end that was published when this was stored.
    published: u64,
    /// The state before `first`.
    base: B,
}

/// A segment of the log. Clones share the slots; the first number, by which segments are searched, lies in the list
/// itself.
#[derive(Debug)]
struct Segment<T> {
    /// The number of the first slot.
    first: u64,
    /// The slots, set from the first on. loom's `Arc` cannot hold unsized values, so they are in a box.
    slots: Arc<Box<[OnceLock<T>]>>,
}

impl<T, B: Clone> Writer<T, B> {
    /// Appends a value, which readers see after [`Writer::publish`]. Returns true if it begins a segment.
    pub fn append(&mut self, value: T) -> bool {
        let begins = self.sealed || self.newest().is_none_or(|it| it.is_full(self.end));
        if begins {
            self.begin_segment();
        }
        let newest = self.segments.len() - 1;
        self.segments[newest].set(self.end, value);
        self.end += 1;
        begins
    }

    /// Publishes everything that was appended, at once.
    pub fn publish(&mut self) {
        if self.unlisted {
            self.store_directory();
        }
        self.published = self.end;
        // Release: pairs with the Acquire load in `Log::read`. It comes after the slots and the
        // directory, so who sees the number finds the values.
        self.shared.end.store(self.end, Ordering::Release);
    }

    /// Makes the next value begin a segment.
    pub fn seal(&mut self) {
        self.sealed = true;
    }

    /// Evicts the oldest segments, all of whose values must be published. `base` is the state before those that stay.
    pub fn evict(&mut self, segments: usize, base: B) -> EvictedSegments<T> {
        debug_assert_eq!(self.published, self.end, "what nobody has seen must stay");
        let evicted = self.segments.drain(..segments).collect();
        self.first = self.segments.first().map_or(self.end, |it| it.first);
        self.base = base;
        self.store_directory();
        EvictedSegments { _segments: evicted }
    }

    /// Evicts everything and begins again after `base`. One number is skipped, so that a reader which waits for the
    /// next value finds it evicted.
    pub fn reset(&mut self, base: B) -> EvictedSegments<T> {
        let evicted = std::mem::take(&mut self.segments);
        self.end += 1;
        self.first = self.end;
        self.published = self.end;
        self.base = base;
        self.store_directory();
        EvictedSegments { _segments: evicted }
    }

    /// Returns the last value of the oldest `segments` segments; `None` if there is no such value.
    pub fn last_of(&self, segments: usize) -> Option<&T> {
        let segment = self.segments.get(segments.checked_sub(1)?)?;
        let next = self.segments.get(segments).map_or(self.end, |it| it.first);
        segment.get(next - 1)
    }

    /// Returns the number of the next value.
    pub fn end(&self) -> u64 {
        self.end
    }

    fn newest(&self) -> Option<&Segment<T>> {
        self.segments.last()
    }

    fn begin_segment(&mut self) {
        let used = self.newest().map_or(0, |it| it.index(self.end));
        let slots = (2 * used).clamp(SEGMENT_SLOTS_MIN, SEGMENT_SLOTS_MAX);
        let slots = (0..slots).map(|_| OnceLock::new()).collect();
        self.segments.push(Segment {
            first: self.end,
            slots: Arc::new(slots),
        });
        self.sealed = false;
        self.unlisted = true;
    }

    /// Stores a directory of the current segments. `published` is the end before it.
    fn store_directory(&mut self) {
        self.unlisted = false;
        self.shared.directory.store(Arc::new(Directory {
            segments: self.segments.clone(),
            first: self.first,
            published: self.published,
            base: self.base.clone(),
        }));
    }
}

impl<T, B> Clone for Log<T, B> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<T, B> Log<T, B> {
    /// Returns a view of the log as it is now.
    pub fn read(&self) -> Reader<T, B> {
        // Acquire: pairs with the Release store in `Writer::publish`. It comes before the load of
        // the directory, which is thereby at least as new.
        let end = self.shared.end.load(Ordering::Acquire);
        let directory = self.shared.directory.load();
        Reader {
            end: end.max(directory.published),
            directory,
        }
    }
}

impl<T, B> Reader<T, B> {
    /// Returns the state before the first value.
    pub fn base(&self) -> &B {
        &self.directory.base
    }

    /// Returns the number of the oldest value; that of the next one if there is none.
    pub fn first(&self) -> u64 {
        self.directory.first
    }

    /// Returns the number of the next value.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns the content of a sequence number.
    pub fn slot(&self, number: u64) -> Slot<'_, T> {
        if number < self.first() {
            return Slot::Gone;
        }
        if number >= self.end {
            return Slot::Future;
        }
        let segment = self.directory.segments.get(self.segment_of(number));
        // By the invariants there is a value, and the models assert it. Otherwise the reader would take it for a value
        // that is not there yet, and wait.
        segment
            .and_then(|it| it.get(number))
            .map_or(Slot::Future, Slot::Value)
    }

    /// Returns the newest value, if there is one.
    pub fn last(&self) -> Option<&T> {
        match self.slot(self.end.checked_sub(1)?) {
            Slot::Value(value) => Some(value),
            Slot::Future | Slot::Gone => None,
        }
    }

    /// Returns the values from a number on, or from the oldest if that is later.
    pub fn values(&self, from: u64) -> Values<'_, T> {
        let from = from.max(self.first());
        let segments = self.directory.segments.get(self.segment_of(from)..);
        let mut segments = segments.unwrap_or_default().iter();
        let slots = segments
            .next()
            .and_then(|it| it.slots.get(it.index(from)..));
        Values {
            left: self.end.saturating_sub(from),
            slots: slots.unwrap_or_default().iter(),
            segments,
        }
    }

    /// Returns the number of the first value that does not satisfy a predicate, which must not hold for any later one.
    pub fn partition_point(&self, predicate: impl Fn(&T) -> bool) -> u64 {
        let segments = &self.directory.segments;
        let passes = |segment: &Segment<T>, index: usize| {
            let slot = segment.slots.get(index).and_then(OnceLock::get);
            slot.is_some_and(&predicate)
        };
        // The segments that begin with a value that passes; those after the end do not count.
        let passed = segments.partition_point(|it| it.first < self.end && passes(it, 0));
        let Some(at) = passed.checked_sub(1) else {
            return self.first();
        };
        let segment = &segments[at];
        let next = segments.get(passed).map_or(self.end, |it| it.first);
        let (mut low, mut high) = (0, segment.index(next.min(self.end)));
        while low < high {
            let middle = low.midpoint(high);
            if passes(segment, middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        segment.first + low as u64
    }

    /// Returns the index of the segment of a number, which must not be below the first segment's.
    fn segment_of(&self, number: u64) -> usize {
        let segments = &self.directory.segments;
        let Some(newest) = segments.last() else {
            return 0;
        };
        // No segment has more numbers than the longest, so it is here or further back. Full ones are as long, and most
        // calls ask for the newest.
        let back = newest.first.saturating_sub(number);
        let back = back.div_ceil(SEGMENT_SLOTS_MAX as u64);
        let guess =
            (segments.len() - 1).saturating_sub(usize::try_from(back).unwrap_or(usize::MAX));
        if segments[guess].first <= number {
            return guess;
        }
        let before = segments[..guess].partition_point(|it| it.first <= number);
        before.saturating_sub(1)
    }
}

impl<T> Clone for Segment<T> {
    fn clone(&self) -> Self {
        Self {
            first: self.first,
            slots: Arc::clone(&self.slots),
        }
    }
}

impl<T> Segment<T> {
    /// Returns the slot of a number that is not below the segment's first.
    fn index(&self, number: u64) -> usize {
        // A segment has few slots; an index far beyond them is beyond them in any case.
        usize::try_from(number - self.first).unwrap_or(usize::MAX)
    }

    fn is_full(&self, next: u64) -> bool {
        self.index(next) >= self.slots.len()
    }

    /// Sets a slot for the first and only time.
    fn set(&self, number: u64, value: T) {
        let set = self.slots[self.index(number)].set(value);
        debug_assert!(set.is_ok(), "a number is used once");
    }

    fn get(&self, number: u64) -> Option<&T> {
        self.slots.get(self.index(number))?.get()
    }
}

impl<'a, T> Iterator for Values<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        self.left = self.left.checked_sub(1)?;
        loop {
            if let Some(value) = self.slots.next().and_then(OnceLock::get) {
                return Some(value);
            }
            // The segment is at its end, or was sealed here: what follows in it stays empty.
            self.slots = self.segments.next()?.slots.iter();
        }
    }
}
