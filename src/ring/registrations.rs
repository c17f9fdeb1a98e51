//! The registration queue: members are added and removed by many threads, and applied by one owner.
//!
//! A watcher is registered and removed by one entry in a queue with a small lock of its own. So it
//! does not wait while the dispatcher pushes an event to thousands of others.
//!
//! ```text
//!  Registrar (many, &self)                  Registrations (one, &mut)
//!  -----------------------                  -------------------------
//!  1. add: lock, queue, unlock              1. publish to the window
//!  2. read the window to its end            2. take: lock, take the queue, unlock
//!  3. receive what comes from then on       3. push what was published to every member
//! ```
//!
//! # No gap
//!
//! Of an event and a watcher, the lock orders `add` and the `take` that follows the event's
//! publication:
//!
//! - `add` came first: the watcher is a member, and the event is pushed to it;
//! - `take` came first: the publication precedes it, `add` follows it, and the watcher reads the
//!   window after that. So it finds the event there.
//!
//! Both may be so, and then the number that is pushed to the watcher lies below its cursor.
//!
//! # Nobody hangs on a feed that has stopped
//!
//! The same holds of whatever else is published before `take`. Who stops a feed says so, then takes
//! the queue, and ends every member. A watcher registers, then looks whether the feed has stopped.
//! So it is ended, or it sees that it must not begin. [`Registrations::close`] does both in one: who
//! comes later is refused.
//!
//! # Invariants
//!
//! - The queue keeps the order in which things happened, so a number that is free again comes
//!   behind the removal that freed it.
//! - Whoever finds the queue longer than [`WAITING_MAX`] gets that back, and applies the queue for
//!   the dispatcher before it goes on. So the queue is longer than that by one for each thread at
//!   most.

use std::sync::PoisonError;

use crate::sync::{Arc, Mutex, MutexGuard};

/// How many registrations wait before those who add more must help to apply them.
pub const WAITING_MAX: usize = 1024;

/// How many threads are about to help at the same time at most: more than a server has.
const HELPERS_MAX: usize = 256;

/// Makes the two halves of a queue without members.
pub fn registrations<T>() -> (Registrar<T>, Registrations<T>) {
    let shared = Arc::new(Mutex::new(Shared {
        queue: Vec::new(),
        next: 0,
        free: Vec::new(),
        closed: false,
    }));
    let registrar = Registrar {
        shared: Arc::clone(&shared),
    };
    let taken = Vec::new();
    (registrar, Registrations { shared, taken })
}

/// The half that adds and removes members; shared by all threads.
#[derive(Debug)]
pub struct Registrar<T> {
    shared: Arc<Mutex<Shared<T>>>,
}

/// The half of the owner, which applies what was registered. There is one.
#[derive(Debug)]
pub struct Registrations<T> {
    shared: Arc<Mutex<Shared<T>>>,
    /// The buffer of the registrations that were taken last; kept for its allocation.
    taken: Vec<Registration<T>>,
}

#[derive(Debug)]
struct Shared<T> {
    /// The registrations since they were last taken, in order.
    queue: Vec<Registration<T>>,
    /// The smallest number that no member ever had.
    next: u32,
    /// Numbers of members that were removed.
    free: Vec<u32>,
    /// True if nothing is registered any more.
    closed: bool,
}

/// A change of the members.
#[derive(Debug, PartialEq, Eq)]
pub enum Registration<T> {
    /// This member was added, and has this number until it is removed.
    Add(u32, T),
    /// The member with this number was removed.
    Remove(u32),
}

/// The result of [`Registrar::add`].
#[derive(Debug, PartialEq, Eq)]
pub struct Registered {
    /// The number of the member: members have different numbers, and small ones.
    pub number: u32,
    /// True if so many registrations wait that the caller must help to apply them.
    pub crowded: bool,
}

impl<T> Registrar<T> {
    /// Adds a member, unless the queue is closed.
    ///
    /// # Errors
    /// The member, when the queue is closed.
    pub fn add(&self, member: T) -> Result<Registered, T> {
        let mut shared = lock(&self.shared);
        if shared.closed {
            return Err(member);
        }
        let number = shared.draw();
        let crowded = shared.push(Registration::Add(number, member));
        Ok(Registered { number, crowded })
    }

    /// Removes a member. Returns true if so many registrations wait that the caller must help to apply them.
    pub fn remove(&self, number: u32) -> bool {
        let mut shared = lock(&self.shared);
        if shared.closed {
            return false;
        }
        shared.free.push(number);
        shared.push(Registration::Remove(number))
    }
}

impl<T> Registrations<T> {
    /// Takes what was registered since the last call, in order.
    pub fn take(&mut self) -> impl Iterator<Item = Registration<T>> {
        std::mem::swap(&mut lock(&self.shared).queue, &mut self.taken);
        self.taken.drain(..)
    }

    /// Takes what was registered since the last call, and refuses whatever comes later.
    pub fn close(&mut self) -> impl Iterator<Item = Registration<T>> {
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

    /// Queues a registration. Returns true if so many wait that the caller must help.
    fn push(&mut self, registration: Registration<T>) -> bool {
        self.queue.push(registration);
        let waiting = self.queue.len();
        debug_assert!(waiting <= WAITING_MAX + HELPERS_MAX, "nobody helps");
        waiting > WAITING_MAX
    }
}

/// A panic under the lock cannot leave the queue half changed, so poison is ignored.
fn lock<T>(shared: &Mutex<Shared<T>>) -> MutexGuard<'_, Shared<T>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
