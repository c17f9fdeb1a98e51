//! Limits the watches of each user.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ringwatch_apimachinery::User;

use crate::Lane;

/// The watches of each user.
#[derive(Debug)]
pub struct UserWatches {
    /// The most watches that a user may have; 0 for no limit.
    most: u32,
    standing: Arc<Mutex<HashMap<Arc<str>, u32>>>,
}

/// A watch that is counted until this is dropped.
#[derive(Debug)]
pub struct CountedWatch {
    standing: Arc<Mutex<HashMap<Arc<str>, u32>>>,
    user: Arc<str>,
}

impl UserWatches {
    /// Creates a limit of this number of watches for each user; 0 for no limit.
    #[must_use]
    pub fn new(most: u32) -> Self {
        Self {
            most,
            standing: Arc::default(),
        }
    }

    /// Takes a place for one more watch of a user; `None` if it need not be counted.
    ///
    /// # Errors
    /// The user has the maximum number of watches.
    pub fn enter(&self, user: &User) -> Result<Option<CountedWatch>, super::TooMany> {
        if self.most == 0 || Lane::from(user) == Lane::Administrators {
            return Ok(None);
        }
        let mut standing = lock(&self.standing);
        let known = standing.get_key_value(user.name.as_str());
        let (name, count) = match known {
            Some((_, count)) if *count >= self.most => return Err(super::TooMany),
            Some((name, count)) => (Arc::clone(name), *count),
            None => (Arc::from(user.name.as_str()), 0),
        };
        standing.insert(Arc::clone(&name), count + 1);
        Ok(Some(CountedWatch {
            standing: Arc::clone(&self.standing),
            user: name,
        }))
    }
}

impl Drop for CountedWatch {
    fn drop(&mut self) {
        let mut standing = lock(&self.standing);
        match standing.get_mut(&self.user) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(standing.remove(&self.user)),
        }
    }
}

fn lock(standing: &Mutex<HashMap<Arc<str>, u32>>) -> MutexGuard<'_, HashMap<Arc<str>, u32>> {
    // No change leaves the counts inconsistent if it panics.
    standing.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_so_many_watches_and_no_more() {
        let watches = UserWatches::new(2);
        let user = |name: &str, group: &str| User {
            name: name.to_owned(),
            groups: vec![group.to_owned()],
            ..User::default()
        };
        let (jane, joe, boss) = (
            user("jane", "a"),
            user("joe", "a"),
            user("boss", "system:masters"),
        );
        let first = watches.enter(&jane).expect("one");
        let second = watches.enter(&jane).expect("two");
        assert!(watches.enter(&jane).is_err());
        assert!(watches.enter(&joe).is_ok() && watches.enter(&boss).is_ok());
        drop(first);
        let third = watches.enter(&jane).expect("one is gone");
        drop((second, third));
        assert!(lock(&watches.standing).is_empty(), "nobody is remembered");
        assert!(
            UserWatches::new(0)
                .enter(&jane)
                .expect("no limit")
                .is_none()
        );
    }
}
