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
//! # Nobody waits for a feed that has stopped
//!
//! The same holds of everything else that is published before `take`. A feed stops by publishing that it has stopped,
//! then taking the queue and ending every member. A watcher registers, then checks whether the feed has stopped. So it
//! is ended, or it sees that it must not begin. [`Registrations::close`] does both at once: later members are refused.
//!
//! # Invariants
//!
//! - The queue keeps the order in which things happened, so a number that is reused comes after the removal that freed
//!   it.
//! - A thread that finds the queue longer than [`WAITING_MAX`] gets `true`, and applies the queue for the
//!   dispatcher before it continues. So the queue exceeds that length by at most one for each thread.

use std::sync::PoisonError;

use crate::sync::{Arc, Mutex, MutexGuard};

/// The number of queued registrations above which a thread that adds another must help to apply them.
pub const WAITING_MAX: usize = 1024;

/// Maximum number of threads that are about to help at the same time: more than a server has.
const HELPERS_MAX: usize = 256;

/// Creates the two halves of a queue without members.
pub fn registrations<T>() -> (Registrar<T>, Registrations<T>) {
    let shared = Arc::new(Mutex::new(RegistrationState {
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
    shared: Arc<Mutex<RegistrationState<T>>>,
}

/// The half of the owner, which applies the registrations. There is one for each queue.
#[derive(Debug)]
pub struct Registrations<T> {
    shared: Arc<Mutex<RegistrationState<T>>>,
    /// The buffer of the registrations that were taken last; kept to reuse its allocation.
    taken: Vec<Registration<T>>,
}

#[derive(Debug)]
struct RegistrationState<T> {
    /// The registrations since they were last taken, in order.
    queue: Vec<Registration<T>>,
    /// The smallest number that has never been used.
    next: u32,
    /// The numbers of removed members, to be reused.
    free: Vec<u32>,
    /// True if further registrations are refused.
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
pub struct RegistrationResult {
    /// The number of the member: current members have different numbers, and small ones.
    pub number: u32,
    /// True if so many registrations are queued that the caller must help to apply them.
    pub crowded: bool,
}

impl<T> Registrar<T> {
    /// Adds a member, unless the queue is closed.
    ///
    /// # Errors
    /// The member, when the queue is closed.
    pub fn add(&self, member: T) -> Result<RegistrationResult, T> {
        let mut shared = lock(&self.shared);
        if shared.closed {
            return Err(member);
        }
        let number = shared.draw();
        let crowded = shared.push(Registration::Add(number, member));
        Ok(RegistrationResult { number, crowded })
    }

    /// Removes a member. Returns true if so many registrations are queued that the caller must help to apply them.
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
    /// Takes the registrations since the last call, in order.
    pub fn take(&mut self) -> impl Iterator<Item = Registration<T>> {
        std::mem::swap(&mut lock(&self.shared).queue, &mut self.taken);
        self.taken.drain(..)
    }

    /// Takes the registrations since the last call, and refuses later ones.
    pub fn close(&mut self) -> impl Iterator<Item = Registration<T>> {
        let mut shared = lock(&self.shared);
        shared.closed = true;
        std::mem::swap(&mut shared.queue, &mut self.taken);
        drop(shared);
        self.taken.drain(..)
    }
}

impl<T> RegistrationState<T> {
    fn draw(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            let number = self.next;
            self.next += 1;
            number
        })
    }

    /// Queues a registration. Returns true if so many are queued that the caller must help.
    fn push(&mut self, registration: Registration<T>) -> bool {
        self.queue.push(registration);
        let waiting = self.queue.len();
        debug_assert!(waiting <= WAITING_MAX + HELPERS_MAX, "nobody helps");
        waiting > WAITING_MAX
    }
}

/// Locks the queue. A panic under the lock cannot leave it half changed, so poison is ignored.
fn lock<T>(shared: &Mutex<RegistrationState<T>>) -> MutexGuard<'_, RegistrationState<T>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
