//! Those who come and go, for one who looks after those present.
//!
//! A watcher is attached and detached by a word in a queue of its own small lock. So it does not wait
//! while the dispatcher tells thousands of others.
//!
//! ```text
//!  Gate (many, &self)                       Arrivals (one, &mut)
//!  ------------------                       --------------------
//!  1. enter: lock, queue, unlock            1. publish to the window
//!  2. read the window to its end            2. take: lock, take the queue, unlock
//!  3. hear of what comes from then on       3. tell everyone present of what was published
//! ```
//!
//! # No gap
//!
//! Of an event and a watcher, the lock orders `enter` and the `take` that follows the event's
//! publication:
//!
//! - `enter` came first: the watcher is among those present, and is told of the event;
//! - `take` came first: the publication precedes it, `enter` follows it, and the watcher reads the
//!   window after that. So it finds the event there.
//!
//! Both may be so, and then the number of what the watcher is told lies below its cursor.
//!
//! # Nobody hangs on a feed that has stopped
//!
//! The same holds of whatever else is published before `take`. Who stops a feed says so, then takes
//! the queue, and ends everyone present. A watcher enters, then looks whether the feed has stopped.
//! So it is ended, or it sees that it must not begin. [`Arrivals::close`] does both in one: who comes
//! later is sent away.
//!
//! # Invariants
//!
//! - The queue keeps the order in which things happened, so a number that is free again comes
//!   behind the departure that freed it.
//! - Whoever finds the queue longer than [`WAITING_MAX`] is told so, and does the dispatcher's
//!   work before it goes on. So the queue is longer than that by one for each thread at most.

use std::sync::PoisonError;

use crate::sync::{Arc, Mutex, MutexGuard};

/// How many arrivals and departures wait before those who come must help.
pub const WAITING_MAX: usize = 1024;

/// How many threads are about to help at the same time at most: more than a server has.
const HELPERS_MAX: usize = 256;

/// Makes the two halves, with nobody present.
pub fn arrivals<T>() -> (Gate<T>, Arrivals<T>) {
    let shared = Arc::new(Mutex::new(Shared {
        queue: Vec::new(),
        next: 0,
        free: Vec::new(),
        closed: false,
    }));
    let gate = Gate {
        shared: Arc::clone(&shared),
    };
    let taken = Vec::new();
    (gate, Arrivals { shared, taken })
}

/// Where one comes and goes.
#[derive(Debug)]
pub struct Gate<T> {
    shared: Arc<Mutex<Shared<T>>>,
}

/// The half of the one who looks after those present. There is one.
#[derive(Debug)]
pub struct Arrivals<T> {
    shared: Arc<Mutex<Shared<T>>>,
    /// The passages that were taken last; kept for the allocation.
    taken: Vec<Passage<T>>,
}

#[derive(Debug)]
struct Shared<T> {
    /// The passages since the last look, in order.
    queue: Vec<Passage<T>>,
    /// The smallest number that nobody ever had.
    next: u32,
    /// Numbers of those who have left.
    free: Vec<u32>,
    /// True if nobody may enter any more.
    closed: bool,
}

/// Somebody has come or gone.
#[derive(Debug, PartialEq, Eq)]
pub enum Passage<T> {
    /// This one has come, and has this number until it goes.
    Entered(u32, T),
    /// The one with this number has gone.
    Left(u32),
}

/// The result of entering.
#[derive(Debug, PartialEq, Eq)]
pub struct Entered {
    /// Its number: the numbers of those present are different, and small.
    pub number: u32,
    /// True if so many wait that it must help.
    pub crowded: bool,
}

impl<T> Gate<T> {
    /// Enters, or gets back what wanted to when it is closed.
    ///
    /// # Errors
    /// The newcomer, when the gate is closed.
    pub fn enter(&self, newcomer: T) -> Result<Entered, T> {
        let mut shared = lock(&self.shared);
        if shared.closed {
            return Err(newcomer);
        }
        let number = shared.draw();
        let crowded = shared.push(Passage::Entered(number, newcomer));
        Ok(Entered { number, crowded })
    }

    /// Leaves, and says whether so many wait that the one who leaves must help.
    pub fn leave(&self, number: u32) -> bool {
        let mut shared = lock(&self.shared);
        if shared.closed {
            return false;
        }
        shared.free.push(number);
        shared.push(Passage::Left(number))
    }
}

impl<T> Arrivals<T> {
    /// Takes what has happened since the last look, in order.
    pub fn take(&mut self) -> impl Iterator<Item = Passage<T>> {
        std::mem::swap(&mut lock(&self.shared).queue, &mut self.taken);
        self.taken.drain(..)
    }

    /// The same, and nobody enters any more.
    pub fn close(&mut self) -> impl Iterator<Item = Passage<T>> {
        let mut shared = lock(&self.shared);
        shared.closed = true;
        std::mem::swap(&mut shared.queue, &mut self.taken);
        drop(shared);
        self.taken.drain(..)
    }
}

impl<T> Shared<T> {
    fn draw(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            let number = self.next;
            self.next += 1;
            number
        })
    }

    /// Queues an arrival or departure. Returns true if so many wait that the caller must help.
    fn push(&mut self, passage: Passage<T>) -> bool {
        self.queue.push(passage);
        let waiting = self.queue.len();
        debug_assert!(waiting <= WAITING_MAX + HELPERS_MAX, "nobody helps");
        waiting > WAITING_MAX
    }
}

/// A panic under the lock cannot leave the queue half changed, so poison is ignored.
fn lock<T>(shared: &Mutex<Shared<T>>) -> MutexGuard<'_, Shared<T>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
