//! The events that a selection must or may see of a change.

use super::history::{Kind, Selector, Version};
use super::timeline::{Change, State};

/// The event that a selection must or may see of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expectation {
    /// No event must come.
    Nothing,
    /// This one; a deletion shows the last object that was selected.
    Event(Kind, Option<Version>),
    /// An event with the object in it, of either type, since it is not known what was before.
    AddedOrModified,
    /// Any event or none, since too little is known.
    Anything,
}

impl Expectation {
    pub(crate) fn new(change: &Change, selector: &Selector) -> Self {
        let selects = |state: State| match state {
            State::Absent => Some(None),
            State::Present(it) => Some(selector.selects(it.key, it.group).then_some(it)),
            State::Unknown => None,
        };
        // Whatever group it has.
        if matches!(selector, Selector::Name(_) | Selector::NotName(_))
            && !selector.selects(change.key, super::history::Group(0))
        {
            return Self::Nothing;
        }
        match (selects(change.previous), selects(change.after())) {
            (_, None) | (None, Some(None)) => Self::Anything,
            (None, Some(Some(_))) => Self::AddedOrModified,
            (Some(None), Some(None)) => Self::Nothing,
            (Some(None), Some(Some(_))) => Self::Event(Kind::Added, None),
            (Some(Some(_)), Some(Some(_))) => Self::Event(Kind::Modified, None),
            (Some(Some(last)), Some(None)) => Self::Event(Kind::Deleted, Some(last)),
        }
    }

    /// Returns true if there has to be an event.
    pub(crate) fn is_demanded(self) -> bool {
        matches!(self, Self::Event(..) | Self::AddedOrModified)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::history::{Group, Key, WriteId};
    use crate::verify::timeline::Effect;

    fn version(group: u8) -> Version {
        Version {
            key: Key(1),
            revision: 4,
            write: WriteId(0),
            group: Group(group),
        }
    }

    fn expected(previous: State, effect: Effect) -> Expectation {
        let change = Change {
            revision: 5,
            key: Key(1),
            effect,
            previous,
        };
        Expectation::new(&change, &Selector::Groups(vec![Group(1)]))
    }

    fn put(group: u8) -> Effect {
        Effect::Put {
            write: WriteId(1),
            group: Group(group),
        }
    }

    #[test]
    fn a_selection_is_entered_stayed_in_and_left() {
        let (inside, outside) = (State::Present(version(1)), State::Present(version(0)));
        let left = Expectation::Event(Kind::Deleted, Some(version(1)));
        assert_eq!(expected(outside, put(0)), Expectation::Nothing);
        assert_eq!(expected(outside, Effect::Deleted), Expectation::Nothing);
        for before in [outside, State::Absent] {
            let entered = Expectation::Event(Kind::Added, None);
            assert_eq!(expected(before, put(1)), entered);
        }
        let stayed = Expectation::Event(Kind::Modified, None);
        assert_eq!(expected(inside, put(1)), stayed);
        assert_eq!(expected(inside, put(0)), left);
        assert_eq!(expected(inside, Effect::Deleted), left);
    }

    #[test]
    fn of_what_is_not_known_only_the_certain_is_demanded() {
        let after_unknown = expected(State::Unknown, put(1));
        assert_eq!(after_unknown, Expectation::AddedOrModified);
        assert!(!expected(State::Unknown, put(0)).is_demanded());
        assert!(!expected(State::Absent, Effect::Unclear).is_demanded());
    }
}
