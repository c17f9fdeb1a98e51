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
    owners: Mutex<HashMap<u32, String>>,
}

impl Pool {
    pub(super) fn new(first: u32, count: u32, asked_for: u32) -> Self {
        Self {
            first,
            count,
            asked_for,
            owners: Mutex::new(HashMap::new()),
        }
    }

    /// Whether the number is of this range.
    pub(super) fn contains(&self, number: u32) -> bool {
        (self.first..self.first + self.count).contains(&number)
    }

    /// Takes a certain number, unless somebody has it.
    pub(super) fn claim(&self, number: u32, owner: &str) {
        if self.contains(number) {
            let mut owners = self.owners();
            owners.entry(number).or_insert_with(|| owner.to_owned());
        }
    }

    /// Takes any free number; `None` if there is none.
    pub(super) fn allocate(&self, owner: &str) -> Option<u32> {
        let mut owners = self.owners();
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
        self.owners().get(&number).is_some_and(|it| it == owner)
    }

    /// Takes back all that an owner has.
    pub(super) fn release(&self, owner: &str) {
        self.owners().retain(|_, it| it != owner);
    }

    fn owners(&self) -> MutexGuard<'_, HashMap<u32, String>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
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
