//! The events that a selection must or may see of a change.

use super::history::{ChangeKind, Selector, ShownObject};
use super::timeline::{ObjectChange, ObjectState};

/// The event that a selection must or may see of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expectation {
    /// No event must come.
    Nothing,
    /// This one; a deletion shows the last object that was selected.
    Event(ChangeKind, Option<ShownObject>),
    /// An event with the object in it, of either type, since it is not known what was before.
    AddedOrModified,
    /// Any event or none, since too little is known.
    Anything,
}

impl Expectation {
    pub(crate) fn new(change: &ObjectChange, selector: &Selector) -> Self {
        let selects = |state: ObjectState| match state {
            ObjectState::Absent => Some(None),
            ObjectState::Present(it) => Some(selector.selects(it.key, it.group).then_some(it)),
            ObjectState::Unknown => None,
        };
        // Whatever group it has.
        if matches!(selector, Selector::Name(_) | Selector::NotName(_))
            && !selector.selects(change.key, super::history::LabelValue(0))
        {
            return Self::Nothing;
        }
        match (selects(change.previous), selects(change.after())) {
            (_, None) | (None, Some(None)) => Self::Anything,
            (None, Some(Some(_))) => Self::AddedOrModified,
            (Some(None), Some(None)) => Self::Nothing,
            (Some(None), Some(Some(_))) => Self::Event(ChangeKind::Added, None),
            (Some(Some(_)), Some(Some(_))) => Self::Event(ChangeKind::Modified, None),
            (Some(Some(last)), Some(None)) => Self::Event(ChangeKind::Deleted, Some(last)),
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
    use crate::verify::history::{LabelValue, ObjectKey, WriteId};
    use crate::verify::timeline::ChangeEffect;

    fn version(group: u8) -> ShownObject {
        ShownObject {
            key: ObjectKey(1),
            revision: 4,
            write: WriteId(0),
            group: LabelValue(group),
        }
    }

    fn expected(previous: ObjectState, effect: ChangeEffect) -> Expectation {
        let change = ObjectChange {
            revision: 5,
            key: ObjectKey(1),
            effect,
            previous,
        };
        Expectation::new(&change, &Selector::Groups(vec![LabelValue(1)]))
    }

    fn put(group: u8) -> ChangeEffect {
        ChangeEffect::Put {
            write: WriteId(1),
            group: LabelValue(group),
        }
    }

    #[test]
    fn a_selection_is_entered_stayed_in_and_left() {
        let (inside, outside) = (
            ObjectState::Present(version(1)),
            ObjectState::Present(version(0)),
        );
        let left = Expectation::Event(ChangeKind::Deleted, Some(version(1)));
        assert_eq!(expected(outside, put(0)), Expectation::Nothing);
        assert_eq!(
            expected(outside, ChangeEffect::Deleted),
            Expectation::Nothing
        );
        for before in [outside, ObjectState::Absent] {
            let entered = Expectation::Event(ChangeKind::Added, None);
            assert_eq!(expected(before, put(1)), entered);
        }
        let stayed = Expectation::Event(ChangeKind::Modified, None);
        assert_eq!(expected(inside, put(1)), stayed);
        assert_eq!(expected(inside, put(0)), left);
        assert_eq!(expected(inside, ChangeEffect::Deleted), left);
    }

    #[test]
    fn of_what_is_not_known_only_the_certain_is_demanded() {
        let after_unknown = expected(ObjectState::Unknown, put(1));
        assert_eq!(after_unknown, Expectation::AddedOrModified);
        assert!(!expected(ObjectState::Unknown, put(0)).is_demanded());
        assert!(!expected(ObjectState::Absent, ChangeEffect::Unclear).is_demanded());
    }
}
