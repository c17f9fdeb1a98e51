//! The position of a watcher, and the check that an event is the one that comes next.
//!
//! Versions rise over all events. Each object's writes are numbered, and one writer makes them one
//! after the other; so for each object a watcher sees every number once and in order, whatever the
//! order between objects.

use crate::payload::Stamp;

/// The objects of which a watcher must see the events.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Sees {
    /// The first objects, as many as this number.
    All(u32),
    /// The one whose index is the watcher's.
    Own,
}

/// The position of a watcher: its version, and the number of the next event of each object.
#[derive(Clone, Debug)]
pub(crate) struct WatcherPosition {
    /// The version of the last event.
    pub(crate) revision: u64,
    /// The index of the first object that it sees.
    first: u32,
    /// The number of each object's next event.
    next: Box<[u32]>,
}

impl WatcherPosition {
    /// Returns the position of a watcher that has seen everything up to this version, after which `next` numbers the
    /// next event of every object.
    pub(crate) fn new(sees: Sees, watcher: usize, revision: u64, next: u32) -> Self {
        let watcher = u32::try_from(watcher).unwrap_or(u32::MAX);
        let (first, count) = match sees {
            Sees::All(count) => (0, count),
            Sees::Own => (watcher, 1),
        };
        Self {
            revision,
            first,
            next: vec![next; count as usize].into(),
        }
    }

    /// Goes on to an event's version; a fault if it does not rise.
    pub(crate) fn advance(&mut self, revision: u64) -> Result<(), String> {
        let before = self.revision;
        if revision <= before {
            return Err(format!("version {revision} after {before}"));
        }
        self.revision = revision;
        Ok(())
    }

    /// Goes on to a bookmark, which must not lie before what was seen.
    pub(crate) fn bookmark(&mut self, revision: u64) -> Result<(), String> {
        let before = self.revision;
        if revision < before {
            return Err(format!("bookmark {revision} after version {before}"));
        }
        self.revision = revision;
        Ok(())
    }

    /// Takes an event's stamp; a fault if another had to come.
    pub(crate) fn take(&mut self, stamp: Stamp) -> Result<(), String> {
        let Stamp { object, number, .. } = stamp;
        let index = object.checked_sub(self.first);
        let next = index.and_then(|index| self.next.get_mut(index as usize));
        let Some(next) = next else {
            return Err(format!(
                "an event of object {object}, which it did not ask for"
            ));
        };
        let wanted = std::mem::replace(next, number.wrapping_add(1));
        if number != wanted {
            return Err(format!(
                "event {number} of object {object} in the place of {wanted}"
            ));
        }
        Ok(())
    }

    /// Takes the end of an object, which carries the stamp of its last write; a fault if that was not
    /// seen.
    pub(crate) fn take_end(&mut self, stamp: Stamp) -> Result<(), String> {
        let Stamp { object, number, .. } = stamp;
        let index = object.checked_sub(self.first);
        let next = index.and_then(|index| self.next.get(index as usize));
        if next == Some(&number.wrapping_add(1)) {
            return Ok(());
        }
        Err(format!(
            "the end of object {object} after event {number}, which it did not get"
        ))
    }

    /// Returns the events that it has not seen of the objects from this one on, given the number of each object's next
    /// event.
    pub(crate) fn missing(&self, first: u32, next: &[u32]) -> Option<String> {
        let objects = self.first..;
        let mut behind = objects.zip(&self.next).filter_map(|(object, own)| {
            let wanted = next.get(object as usize)?;
            (object >= first && own < wanted)
                .then(|| format!("events {own} to {} of object {object}", wanted - 1))
        });
        behind
            .next()
            .map(|missing| format!("did not get {missing}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(object: u32, number: u32) -> Stamp {
        Stamp {
            object,
            number,
            at: 0,
        }
    }

    #[test]
    fn events_come_once_and_in_order_for_each_object() {
        let mut position = WatcherPosition::new(Sees::All(2), 7, 10, 1);
        for (object, number) in [(0, 1), (1, 1), (0, 2)] {
            assert_eq!(position.take(stamp(object, number)), Ok(()));
        }
        assert!(position.take(stamp(0, 2)).is_err(), "twice");
        assert!(position.take(stamp(0, 4)).is_err(), "lost");
        assert!(position.take(stamp(0, 3)).is_err(), "out of order");
        assert!(position.take(stamp(2, 1)).is_err(), "not asked for");
    }

    #[test]
    fn what_never_came_is_told() {
        let mut position = WatcherPosition::new(Sees::All(2), 7, 10, 1);
        assert_eq!(position.missing(0, &[1, 1]), None);
        position.take(stamp(1, 1)).expect("the next");
        assert_eq!(position.missing(0, &[1, 2]), None);
        let missing = position.missing(0, &[1, 4]).expect("something");
        assert!(missing.contains("events 2 to 3 of object 1"), "{missing}");
        assert_eq!(
            WatcherPosition::new(Sees::Own, 7, 10, 1).missing(0, &[5, 5]),
            None
        );
    }

    #[test]
    fn an_end_follows_the_last_write() {
        let mut position = WatcherPosition::new(Sees::All(1), 0, 10, 1);
        assert!(position.take_end(stamp(0, 1)).is_err());
        position.take(stamp(0, 1)).expect("the next");
        assert_eq!(position.take_end(stamp(0, 1)), Ok(()));
        assert!(position.take_end(stamp(1, 1)).is_err());
    }

    #[test]
    fn a_selective_watcher_sees_its_own() {
        let mut position = WatcherPosition::new(Sees::Own, 7, 10, 1);
        assert_eq!(position.take(stamp(7, 1)), Ok(()));
        assert!(position.take(stamp(6, 1)).is_err());
    }

    #[test]
    fn versions_rise_and_bookmarks_never_fall() {
        let mut position = WatcherPosition::new(Sees::All(1), 0, 10, 1);
        assert_eq!(position.advance(12), Ok(()));
        assert!(position.advance(12).is_err());
        assert_eq!(position.bookmark(12), Ok(()));
        assert_eq!(position.bookmark(15), Ok(()));
        assert!(position.bookmark(14).is_err());
        assert!(position.advance(15).is_err());
    }
}
