//! The order of the versions in a watch of the upstream, checked, since all that is cached relies on it.
//!
//! Versions rise from event to event, with one exception: objects that expire together are deleted at one version, and
//! each has an event. A batch of changes must have all of them, since a change at a version that has been reached is
//! taken for one that is known. The upstream does not say which of them is the last. So the deletions at the newest
//! version are remembered: the next one at that version may join those that nobody has seen; if some have been seen,
//! the version was parted, and the resource is to be listed again.
//!
//! After a break, a watch that had ended with such deletions is opened one version earlier, so that the rest of them
//! comes again; those that had come are skipped.

use std::collections::HashSet;

/// Maximum number of objects that are deleted at one version: several times those that API servers let one lease of
/// etcd have.
const DELETIONS_MAX: usize = 10_000;

/// The deletions at the newest version of a watch, of which there may be more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Deletions {
    revision: u64,
    keys: HashSet<String>,
}

impl Deletions {
    /// Returns the version after which a watch is to be opened that goes on after `revision`.
    pub(crate) fn resume_after(&self, revision: u64) -> u64 {
        match self.revision == revision && !self.keys.is_empty() {
            // A watch after version 0 is one of any state.
            true => revision.saturating_sub(1).max(1),
            false => revision,
        }
    }

    /// Forgets those that a list at a version has.
    pub(crate) fn forget_up_to(&mut self, listed: u64) {
        if self.revision <= listed {
            *self = Self::default();
        }
    }
}

/// The versions of a watch so far.
#[derive(Debug)]
pub(crate) struct Order {
    /// The version of the last event or bookmark.
    reached: u64,
    /// The version of the last event or bookmark below `reached`.
    below: u64,
    /// The version up to which batches have been given away.
    given: u64,
    /// The deletions at `reached`.
    deletions: Deletions,
}

/// An event because of which what is known of the resource cannot be relied on any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OutOfOrder {
    /// An event at a version that the watch had passed, or of a version of which a part was given away.
    #[error("an event of version {revision} came after version {reached} had been reached")]
    Late { revision: u64, reached: u64 },
    /// More deletions at one version than are kept back.
    #[error("more than {DELETIONS_MAX} objects were deleted at version {revision}")]
    TooMany { revision: u64 },
}

impl Order {
    /// Creates the order of a watch that goes on after a version at which these deletions were seen.
    pub(crate) fn new(after: u64, seen: Deletions) -> Self {
        Self {
            reached: after,
            below: after,
            given: after,
            deletions: seen,
        }
    }

    /// Notes an event. Returns false if it was seen before a break.
    ///
    /// # Errors
    /// [`OutOfOrder`]: what is known of the resource cannot be relied on any more.
    pub(crate) fn event(
        &mut self,
        revision: u64,
        key: &str,
        is_deletion: bool,
    ) -> Result<bool, OutOfOrder> {
        let out_of_order = OutOfOrder::Late {
            revision,
            reached: self.reached,
        };
        if revision > self.reached {
            self.advance(revision);
            self.deletions
                .keys
                .extend(is_deletion.then(|| key.to_owned()));
            return Ok(true);
        }
        let known = &mut self.deletions;
        let may_be_one_of_them = known.revision == revision && !known.keys.is_empty();
        if revision < self.reached || !is_deletion || !may_be_one_of_them {
            return Err(out_of_order);
        }
        match (known.keys.contains(key), revision <= self.given) {
            (true, true) => Ok(false),
            (false, false) if known.keys.len() == DELETIONS_MAX => {
                Err(OutOfOrder::TooMany { revision })
            }
            (false, false) => {
                known.keys.insert(key.to_owned());
                Ok(true)
            }
            _ => Err(out_of_order),
        }
    }

    /// Notes a bookmark. One below what has been reached says nothing, and one at that very version does not say that
    /// all deletions at it have come: an API server reaches the version with the first of them.
    pub(crate) fn bookmark(&mut self, revision: u64) {
        if revision > self.reached {
            self.advance(revision);
        }
    }

    fn advance(&mut self, revision: u64) {
        self.below = self.reached;
        self.reached = revision;
        self.deletions = Deletions {
            revision,
            keys: HashSet::new(),
        };
    }

    /// Returns the version at which more deletions may follow, if it has not been given away.
    pub(crate) fn may_go_on(&self) -> Option<u64> {
        let may_go_on = !self.deletions.keys.is_empty() && self.reached > self.given;
        may_go_on.then_some(self.reached)
    }

    /// Returns true if something has come that has not been given away.
    pub(crate) fn has_come(&self) -> bool {
        self.reached > self.given
    }

    /// Gives away the versions of which all has come, and returns the last of them; `None` if there are none.
    pub(crate) fn give_whole(&mut self) -> Option<u64> {
        let whole = match self.may_go_on() {
            Some(_) => self.below,
            None => self.reached,
        };
        if whole <= self.given {
            return None;
        }
        self.given = whole;
        Some(whole)
    }

    /// Gives away all that has come, and returns its version.
    pub(crate) fn give(&mut self) -> u64 {
        self.given = self.reached;
        self.given
    }

    /// Returns the deletions at the version up to which all was given away.
    pub(crate) fn given_deletions(&self) -> Deletions {
        match self.may_go_on() {
            // Below the newest version all have come.
            Some(_) => Deletions::default(),
            None => self.deletions.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_rise() {
        let mut order = Order::new(5, Deletions::default());
        order.event(5, "a", false).expect_err("not after 5");
        order.event(5, "a", true).expect_err("not after 5");
        assert_eq!(order.event(7, "a", false), Ok(true));
        let error = order.event(6, "b", false).expect_err("after 7");
        assert_eq!(
            error.to_string(),
            "an event of version 6 came after version 7 had been reached"
        );
        order.event(7, "b", true).expect_err("7 was no deletion");
        order.bookmark(6);
        assert_eq!(order.give(), 7);
        order.bookmark(9);
        assert_eq!(order.give_whole(), Some(9));
        assert!(!order.has_come());
        order
            .event(8, "b", false)
            .expect_err("a bookmark covers it");
    }

    #[test]
    fn deletions_at_one_version_belong_together() {
        let mut order = Order::new(5, Deletions::default());
        assert_eq!(order.event(7, "a", true), Ok(true));
        assert_eq!(order.may_go_on(), Some(7));
        assert_eq!(order.event(7, "b", true), Ok(true));
        order.event(7, "b", true).expect_err("twice");
        order.event(7, "c", false).expect_err("no deletion");
        assert_eq!(order.give(), 7);
        order.event(7, "c", true).expect_err("the others are gone");
        order.bookmark(7);
        assert_eq!(
            order.given_deletions().resume_after(7),
            6,
            "there may be more"
        );
        order.bookmark(8);
        assert_eq!(order.given_deletions().resume_after(7), 7);
    }

    #[test]
    fn a_higher_version_shows_that_all_below_has_come() {
        let mut order = Order::new(5, Deletions::default());
        assert_eq!(order.event(6, "a", false), Ok(true));
        assert_eq!(order.event(7, "a", true), Ok(true));
        assert_eq!(order.give_whole(), Some(6));
        assert_eq!(order.give_whole(), None, "7 may go on");
        assert_eq!(order.given_deletions(), Deletions::default());
        assert_eq!(order.event(7, "b", true), Ok(true));
        assert_eq!(order.event(8, "c", true), Ok(true));
        assert_eq!(order.give_whole(), Some(7));
        assert_eq!((order.may_go_on(), order.give()), (Some(8), 8));
    }

    #[test]
    fn a_version_has_not_more_deletions_than_are_kept() {
        let mut order = Order::new(5, Deletions::default());
        for number in 0..DELETIONS_MAX {
            assert_eq!(order.event(7, &number.to_string(), true), Ok(true));
        }
        let error = order.event(7, "one more", true).expect_err("too many");
        assert_eq!(error, OutOfOrder::TooMany { revision: 7 });
    }

    #[test]
    fn a_break_among_deletions_is_seen() {
        let mut order = Order::new(5, Deletions::default());
        assert_eq!(order.event(7, "a", true), Ok(true));
        order.give();
        let seen = order.given_deletions();
        assert_eq!((seen.resume_after(7), seen.resume_after(8)), (6, 8));
        let mut resumed = Order::new(7, seen.clone());
        assert_eq!(resumed.event(7, "a", true), Ok(false));
        assert!(!resumed.has_come());
        assert_eq!(resumed.event(8, "a", false), Ok(true));
        let mut parted = Order::new(7, seen);
        parted
            .event(7, "b", true)
            .expect_err("a part was given away");
    }

    #[test]
    fn a_watch_is_never_opened_at_any_version() {
        let mut order = Order::new(0, Deletions::default());
        assert_eq!(order.event(1, "a", true), Ok(true));
        order.give();
        assert_eq!(order.given_deletions().resume_after(1), 1);
    }

    #[test]
    fn a_list_below_the_deletions_does_not_have_them() {
        let mut order = Order::new(5, Deletions::default());
        assert_eq!(order.event(7, "a", true), Ok(true));
        order.give();
        let mut seen = order.given_deletions();
        seen.forget_up_to(6);
        assert_eq!(seen.resume_after(7), 6);
        seen.forget_up_to(7);
        assert_eq!(seen.resume_after(7), 7);
    }
}
