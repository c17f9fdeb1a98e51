//! Numbers of which each belongs to one owner at a time.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rand::Rng as _;

/// A range of numbers and who has which. It holds at most one entry a number.
#[derive(Debug)]
pub(super) struct Pool {
    first: u32,
    count: u32,
    /// How many of the first are given away last.
    asked_for: u32,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    owners: HashMap<u32, String>,
    /// What goes on with owners that change.
    changes: HashMap<String, Changes>,
}

/// The changes of one owner that are under way. What they leave over is given back when the last of them is
/// over: until then another may count on it.
#[derive(Debug, Default)]
struct Changes {
    under_way: u32,
    /// The last revision that is known, and what the owner has in it.
    revision: u64,
    numbers: Vec<u32>,
    /// Whether it is unknown what became of one of them.
    lost: bool,
}

impl Pool {
    pub(super) fn new(first: u32, count: u32, asked_for: u32) -> Self {
        Self {
            first,
            count,
            asked_for,
            taken: Mutex::default(),
        }
    }

    /// Whether the number is of this range.
    pub(super) fn contains(&self, number: u32) -> bool {
        (self.first..self.first + self.count).contains(&number)
    }

    /// Takes a certain number, unless somebody has it.
    pub(super) fn claim(&self, number: u32, owner: &str) {
        if self.contains(number) {
            let owners = &mut self.taken().owners;
            owners.entry(number).or_insert_with(|| owner.to_owned());
        }
    }

    /// Takes any free number; `None` if there is none.
    pub(super) fn allocate(&self, owner: &str) -> Option<u32> {
        let owners = &mut self.taken().owners;
        let upper = self.count - self.asked_for;
        let start = rand::rng().random_range(0..upper.max(1));
        let shuffled = (0..upper).map(|step| self.asked_for + (start + step) % upper);
        let free = shuffled
            .chain(0..self.asked_for)
            .map(|offset| self.first + offset)
            .find(|number| !owners.contains_key(number))?;
        owners.insert(free, owner.to_owned());
        Some(free)
    }

    /// Whether the number is this owner's.
    pub(super) fn belongs_to(&self, number: u32, owner: &str) -> bool {
        let taken = self.taken();
        taken.owners.get(&number).is_some_and(|it| it == owner)
    }

    /// Takes back all that an owner has.
    pub(super) fn release(&self, owner: &str) {
        self.taken().owners.retain(|_, it| it != owner);
    }

    /// A change of an owner begins.
    pub(super) fn begin_change(&self, owner: &str) {
        let changes = &mut self.taken().changes;
        changes.entry(owner.to_owned()).or_default().under_way += 1;
    }

    /// A change of an owner is over. `stored` is what the owner has in a revision; `None` if
    /// nobody knows: then nothing is given back until the next start.
    pub(super) fn end_change(&self, owner: &str, stored: Option<(u64, Vec<u32>)>) {
        let mut taken = self.taken();
        let Some(changes) = taken.changes.get_mut(owner) else {
            return;
        };
        match stored {
            None => changes.lost = true,
            Some((revision, numbers)) if revision >= changes.revision => {
                changes.revision = revision;
                changes.numbers = numbers;
            }
            Some(_) => {}
        }
        changes.under_way -= 1;
        if changes.under_way > 0 {
            return;
        }
        if let Some(last) = taken.changes.remove(owner)
            && !last.lost
        {
            let kept = |number: &u32| last.numbers.contains(number);
            taken
                .owners
                .retain(|number, it| it != owner || kept(number));
        }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_given_once_and_taken_back() {
        let pool = Pool::new(10, 4, 2);
        let upper = [pool.allocate("a"), pool.allocate("a")];
        assert!(
            upper.contains(&Some(12)) && upper.contains(&Some(13)),
            "{upper:?}"
        );
        pool.claim(10, "b");
        pool.claim(12, "b");
        pool.claim(99, "b");
        assert!(pool.belongs_to(10, "b") && pool.belongs_to(12, "a"));
        assert!(!pool.belongs_to(99, "b"));
        assert_eq!(pool.allocate("c"), Some(11));
        assert_eq!(pool.allocate("c"), None);
        pool.release("a");
        assert!(pool.allocate("c").is_some());
    }
}
