//! The ways in which values merge under server-side apply: as one whole, or by members or items.

use serde_json::Value;

use super::merging::ListKeys;

/// The way in which a value merges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shape<'a> {
    /// As one whole: its one manager owns all of it.
    Leaf,
    /// Member by member, as a granular map or structure.
    Object,
    /// Item by item, each of which is its own key.
    Set,
    /// Item by item, which differ in the values of these members.
    Keyed(Keys<'a>),
}

/// The members by whose values the items of a list differ, with the defaults of those that an item may lack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Keys<'a> {
    /// Names and defaults of a built-in type's list.
    Known(&'static [(&'static str, Option<KeyDefault>)]),
    /// Names and defaults that a custom resource's schema declares.
    Defined(ListKeys<'a>),
}

/// The value of a key that an item lacks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum KeyDefault {
    Text(&'static str),
    Number(i64),
}

impl From<KeyDefault> for Value {
    fn from(default: KeyDefault) -> Self {
        match default {
            KeyDefault::Text(text) => text.into(),
            KeyDefault::Number(number) => number.into(),
        }
    }
}

impl<'a> Keys<'a> {
    /// Returns the names of the members.
    pub(super) fn names(self) -> Vec<&'a str> {
        self.with_defaults().map(|(name, _)| name).collect()
    }

    /// Iterates over the members: name and default.
    pub(super) fn with_defaults(self) -> impl Iterator<Item = (&'a str, Option<Value>)> {
        let (known, defined) = match self {
            Self::Known(known) => (known, None),
            Self::Defined(defined) => (&[][..], Some(defined)),
        };
        let known = known
            .iter()
            .map(|(name, default)| (*name, default.map(Value::from)));
        let defined = defined.into_iter().flat_map(ListKeys::iter);
        known.chain(defined.map(|(name, default)| (name, default.cloned())))
    }
}
