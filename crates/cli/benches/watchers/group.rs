//! Watches that are opened and counted together, and what they must have got.
//!
//! All of a client process runs on one thread, so everything here is in cells.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::Notify;

use super::event::Fields;
use super::protocol::{Collected, Delay, Mode, Opening};

/// So many faults are told in full.
const FAULTS_TOLD_MAX: usize = 5;
/// How much of an unexpected line is told.
const LINE_TOLD_BYTES: usize = 200;
/// One line in so many is parsed as a whole, to see that it is JSON.
const PARSED_EVERY: u64 = 256;
/// How often a condition is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// A group.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) opening: Opening,
    mode: Cell<Mode>,
    /// Told when the mode changes.
    pub(crate) mode_changed: Notify,
    positions: Vec<Position>,
    fields: Fields,
    /// How many watches are answered.
    live: Cell<usize>,
    counted: RefCell<Counted>,
}

/// Where a watch is.
#[derive(Debug)]
struct Position {
    /// The `number` of the next event.
    next: Cell<u64>,
    /// The version of the last event.
    revision: Cell<u64>,
    /// Events since counting began.
    received: Cell<u64>,
}

/// The counts since counting began.
#[derive(Debug, Default)]
struct Counted {
    sums: Collected,
    delays: Vec<u32>,
}

/// The consequence of a watch's line for its connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Heard {
    /// Read on.
    Event,
    /// The watch is over and cannot be resumed.
    End,
}

impl Group {
    /// A group of watches that are not open yet.
    pub(crate) fn new(opening: Opening) -> Rc<Self> {
        let position = |_| Position {
            next: Cell::new(opening.next),
            revision: Cell::new(opening.revision),
            received: Cell::new(0),
        };
        Rc::new(Self {
            mode: Cell::new(Mode::Reads),
            mode_changed: Notify::new(),
            positions: (0..opening.watches).map(position).collect(),
            fields: Fields::new(),
            live: Cell::new(0),
            counted: RefCell::default(),
            opening,
        })
    }

    /// Path and query of a watch, from where it is.
    pub(crate) fn path(&self, index: usize) -> String {
        let path = self.opening.path.replace("{}", &index.to_string());
        let revision = self.positions[index].revision.get();
        format!("{path}&resourceVersion={revision}")
    }

    pub(crate) fn mode(&self) -> Mode {
        self.mode.get()
    }

    pub(crate) fn set_mode(&self, mode: Mode) {
        self.mode.set(mode);
        self.mode_changed.notify_waiters();
    }

    pub(crate) fn answered(&self) {
        self.live.set(self.live.get() + 1);
    }

    pub(crate) fn ended(&self) {
        self.live.set(self.live.get() - 1);
    }

    pub(crate) fn live(&self) -> usize {
        self.live.get()
    }

    /// Counts a watch that begins again.
    pub(crate) fn resumed(&self) {
        self.counted.borrow_mut().sums.resumed += 1;
    }

    /// Counts an attempt to begin again that must be repeated.
    pub(crate) fn put_off(&self) {
        self.counted.borrow_mut().sums.put_off += 1;
    }

    /// Counts a position that is gone.
    pub(crate) fn gone(&self, index: usize, text: &str) {
        self.counted.borrow_mut().sums.gone += 1;
        self.fault(index, text);
    }

    pub(crate) fn fault(&self, index: usize, text: &str) {
        let sums = &mut self.counted.borrow_mut().sums;
        sums.faults += 1;
        if sums.first_faults.len() < FAULTS_TOLD_MAX {
            sums.first_faults.push(format!("watch {index}: {text}"));
        }
    }

    /// Takes a line that a watch got at `now`, since 1970.
    pub(crate) fn take(&self, index: usize, line: &[u8], now: Duration) -> Heard {
        let position = &self.positions[index];
        let told = || String::from_utf8_lossy(&line[..line.len().min(LINE_TOLD_BYTES)]);
        if !line.starts_with(br#"{"type":"MODIFIED""#) {
            let text = told();
            if text.contains(r#""code":410"#) {
                self.gone(index, &text);
            } else {
                self.fault(index, &text);
            }
            return Heard::End;
        }
        let Some(read) = self.fields.read(line) else {
            self.fault(index, &format!("not an event of the bench: {}", told()));
            return Heard::Event;
        };
        let (next, before) = (position.next.get(), position.revision.get());
        if read.number != next {
            let text = format!("got event {} in the place of {next}", read.number);
            self.fault(index, &text);
        }
        if read.revision <= before {
            self.fault(index, &format!("revision {} after {before}", read.revision));
        }
        position.next.set(read.number + 1);
        position.revision.set(read.revision);
        position.received.set(position.received.get() + 1);
        let counted = &mut *self.counted.borrow_mut();
        counted.sums.delivered += 1;
        counted.sums.bytes += line.len() as u64 + 1;
        let delay = now.saturating_sub(read.at).as_micros();
        counted
            .delays
            .push(u32::try_from(delay).unwrap_or(u32::MAX));
        if counted.sums.delivered % PARSED_EVERY == 1
            && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_err()
        {
            counted.sums.faults += 1;
        }
        Heard::Event
    }

    /// Counts from here on.
    pub(crate) fn begin(&self) {
        *self.counted.borrow_mut() = Counted::default();
        for position in &self.positions {
            position.received.set(0);
        }
    }

    /// Returns the counts, once every watch has had so many events or the time is over.
    pub(crate) async fn collect(&self, events: u64, at_most: Duration) -> Collected {
        let end = now() + at_most;
        let expected = events * self.positions.len() as u64;
        let so_far = || self.counted.borrow().sums.delivered;
        while so_far() < expected && now() < end {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        for (index, position) in self.positions.iter().enumerate() {
            let received = position.received.get();
            if received != events {
                self.fault(index, &format!("got {received} events of {events}"));
            }
        }
        let counted = &mut *self.counted.borrow_mut();
        let delay = Delay::of(&mut counted.delays);
        Collected {
            delay,
            ..counted.sums.clone()
        }
    }
}

/// The time since 1970.
pub(crate) fn now() -> Duration {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("a time after 1970")
}

/// Waits until a condition holds, but at most so long.
pub(crate) async fn until(at_most: Duration, holds: impl Fn() -> bool) -> bool {
    let end = now() + at_most;
    while !holds() {
        if now() >= end {
            return false;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    true
}
