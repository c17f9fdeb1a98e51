//! The selection of a list or watch by labels, fields and shards, and the page of a list.

use crate::meta::{Attributes, FieldSelector, LabelSelector, ShardSelector};

/// Selectors and paging of a list or watch.
///
/// ```
/// use ringwatch::meta::FieldSelector;
/// use ringwatch::storage::SelectionPredicate;
///
/// let predicate = SelectionPredicate {
///     field: FieldSelector::parse("metadata.name=a")?,
///     limit: 500,
///     ..SelectionPredicate::default()
/// };
/// assert_eq!(predicate.single_name(), Some("a"));
/// assert!(!predicate.is_everything());
/// # Ok::<(), ringwatch::meta::selector::ParseError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct SelectionPredicate {
    /// The label selector.
    pub label: LabelSelector,
    /// The field selector.
    pub field: FieldSelector,
    /// The shard selector.
    pub shard: ShardSelector,
    /// Maximum number of objects of a page; 0 for all.
    pub limit: u64,
    /// The continue token of the previous page; empty for the first page.
    pub continue_token: String,
    /// True if the watch wants bookmarks.
    pub allow_watch_bookmarks: bool,
}

impl SelectionPredicate {
    /// Returns true if the selectors select everything.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.label.is_empty() && self.field.is_empty() && self.shard.is_empty()
    }

    /// Returns true if an object is selected.
    #[inline]
    #[must_use]
    pub fn matches(&self, attributes: Attributes<'_>) -> bool {
        self.label.matches(attributes.labels())
            && self.field.matches(attributes)
            && self.shard.matches(attributes)
    }

    /// Returns the only name that the field selector can match, if there is one.
    #[must_use]
    pub fn single_name(&self) -> Option<&str> {
        self.field.requires_exact("metadata.name")
    }

    /// Returns the only namespace that the field selector can match, if there is one.
    #[must_use]
    pub fn single_namespace(&self) -> Option<&str> {
        self.field.requires_exact("metadata.namespace")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::{OwnedAttributes, ShardField, ShardRange, shard_hash};

    fn predicate(label: &str, field: &str) -> SelectionPredicate {
        SelectionPredicate {
            label: LabelSelector::parse(label).expect("a label selector"),
            field: FieldSelector::parse(field).expect("a field selector"),
            ..SelectionPredicate::default()
        }
    }

    #[test]
    fn both_selectors_must_agree() {
        let attributes = OwnedAttributes::new("", "a", [("app", "x")]);
        for (label, field, selects) in [
            ("", "", true),
            ("app=x", "metadata.name=a", true),
            ("app=y", "metadata.name=a", false),
            ("app=x", "metadata.name=b", false),
        ] {
            let predicate = predicate(label, field);
            assert_eq!(
                predicate.matches(attributes.get()),
                selects,
                "{label} {field}"
            );
            assert_eq!(
                predicate.is_everything(),
                label.is_empty() && field.is_empty()
            );
        }
    }

    #[test]
    fn the_shard_must_agree_too() {
        let attributes = OwnedAttributes::new("space", "a", [("app", "x")]);
        let hash = shard_hash("space");
        for (first, last, selects) in [(hash, hash, true), (hash + 1, u64::MAX, false)] {
            let shard = ShardSelector::new(ShardField::Namespace, &[ShardRange { first, last }]);
            for (label, agrees) in [("", true), ("app=x", true), ("app=y", false)] {
                let predicate = SelectionPredicate {
                    shard: shard.clone(),
                    ..predicate(label, "")
                };
                assert_eq!(predicate.matches(attributes.get()), selects && agrees);
                assert!(!predicate.is_everything());
            }
        }
    }

    #[test]
    fn a_single_object_is_recognised() {
        let predicate = predicate("", "metadata.name=a,metadata.namespace=b");
        assert_eq!(predicate.single_name(), Some("a"));
        assert_eq!(predicate.single_namespace(), Some("b"));
    }
}
