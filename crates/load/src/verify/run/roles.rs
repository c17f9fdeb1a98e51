//! The roles of watchers: the objects that each watches, and in which way.

use std::ops::Range;

use super::watcher::{Plan, Way};
use crate::client::Encoding;
use crate::verify::history::{LabelValue, ObjectKey, ObjectType, Selector};

/// Selections with one of these groups are made; the writers use no others.
pub(super) const GROUPS: u8 = 3;
/// The object that watchers select by its name, and the least number of objects.
const NAMED: u32 = 1;
pub(super) const OBJECTS_MIN: u32 = 2;

/// The selection and the behaviour of one watcher.
#[derive(Clone, Debug)]
pub(super) struct Role {
    pub(super) name: String,
    pub(super) selector: Selector,
    pub(super) plan: Plan,
    pub(super) encoding: Encoding,
    /// True if it watches all namespaces.
    pub(super) is_cluster: bool,
}

/// Returns the kinds of watchers, in the order in which they are taken.
fn kinds(keys: &Range<u32>) -> Vec<(&'static str, Selector, Plan)> {
    let named = ObjectKey(keys.start + NAMED);
    let everything = || Selector::Everything;
    let groups = |groups: &[u8]| Selector::Groups(groups.iter().copied().map(LabelValue).collect());
    let of_type = || Selector::Type(ObjectType::from_key(named));
    let initial = |any| Plan::InitialEvents { any };
    vec![
        ("everything", everything(), Plan::Follow),
        ("label", groups(&[0]), Plan::Follow),
        ("resumed", everything(), Plan::Leave),
        ("watch-list", everything(), initial(false)),
        ("short", everything(), Plan::Short),
        ("name", Selector::Name(named), Plan::Follow),
        (ALL_NAMESPACES, everything(), Plan::Follow),
        ("labels", groups(&[1, 2]), Plan::Follow),
        ("resumed-label", groups(&[0]), Plan::Leave),
        ("watch-list-labels", groups(&[0, 2]), initial(false)),
        ("short-labels", groups(&[0, 1]), Plan::Short),
        ("not-name", Selector::NotName(named), Plan::Follow),
        ("watch-list-any", groups(&[2]), initial(true)),
        ("type", of_type(), Plan::Follow),
        ("resumed-type", of_type(), Plan::Leave),
        ("watch-list-type", of_type(), initial(false)),
    ]
}

const ALL_NAMESPACES: &str = "all-namespaces";

/// Returns so many watchers of these objects: of all kinds, or those that watch in one way alone, and of each kind in
/// all encodings.
pub(super) fn roles(
    count: usize,
    keys: &Range<u32>,
    encodings: &[Encoding],
    only: Option<Way>,
) -> Vec<Role> {
    let mut kinds = kinds(keys);
    kinds.retain(|(_, _, plan)| only.is_none_or(|way| plan.way() == way));
    let role = |place: usize| {
        let (turn, kind) = (place / kinds.len(), place % kinds.len());
        let (name, selector, plan) = kinds[kind].clone();
        Role {
            name: format!("{name}-{turn}"),
            selector,
            plan,
            encoding: encodings[(kind + turn) % encodings.len()],
            is_cluster: name == ALL_NAMESPACES,
        }
    };
    (0..count).map(role).collect()
}

/// Returns the selections that are listed.
pub(super) fn selectors(keys: &Range<u32>) -> Vec<Selector> {
    let mut selectors: Vec<Selector> = Vec::new();
    for (_, selector, _) in kinds(keys) {
        if !selectors.contains(&selector) {
            selectors.push(selector);
        }
    }
    selectors
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    const ENCODINGS: [Encoding; 2] = [Encoding::Json, Encoding::Protobuf];

    #[test]
    fn every_kind_is_there_in_both_forms() {
        let count = kinds(&(0..9)).len();
        let roles = roles(2 * count, &(0..9), &ENCODINGS, None);
        for kind in 0..count {
            let (one, other) = (&roles[kind], &roles[kind + count]);
            assert_eq!(one.selector, other.selector);
            assert_ne!(one.encoding, other.encoding, "{}", one.name);
        }
    }

    #[test]
    fn watchers_of_one_way_have_no_other() {
        for way in Way::value_variants() {
            let roles = roles(9, &(0..9), &ENCODINGS, Some(*way));
            assert!(roles.iter().all(|role| role.plan.way() == *way), "{way:?}");
        }
    }
}
