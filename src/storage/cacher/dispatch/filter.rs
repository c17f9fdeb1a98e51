//! The selection of a watch, and the conversion of changes into the events that it sees.

use crate::meta::{Object, ShardSelector, WatchEvent};
use crate::storage::SelectionPredicate;
use crate::storage::cacher::window::event::{CacheEvent, Current};

/// The field that is never used as the exact term: the scope mostly implies it.
const NAMESPACE_FIELD: &str = "metadata.namespace";

/// The selection of a watch.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    /// The key that is watched; ends with `/` if everything under it is.
    scope: Box<str>,
    /// The selectors; `None` selects everything in the scope.
    predicate: Option<SelectionPredicate>,
}

/// A requirement that a field or label have exactly one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExactTerm {
    /// The part of an object that the term compares.
    pub(crate) kind: TermKind,
    /// The name of the label or field.
    pub(crate) name: Box<str>,
    /// The value that the label or field must have.
    pub(crate) value: Box<str>,
    /// True if the selectors have no other requirement but the shard.
    pub(crate) is_all: bool,
}

/// The part of an object that a term compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TermKind {
    Field,
    Label,
}

impl Filter {
    /// Creates a filter of everything under `key`, or of `key` alone if not recursive, as the predicate selects.
    pub(crate) fn new(key: &str, recursive: bool, predicate: SelectionPredicate) -> Self {
        let folder = recursive && !key.ends_with('/');
        let scope = if folder {
            format!("{key}/")
        } else {
            key.to_owned()
        };
        Self {
            scope: scope.into(),
            predicate: Some(predicate).filter(|it| !it.is_everything()),
        }
    }

    /// Returns the watched key, with `/` at its end if everything under it is watched.
    pub(crate) fn scope(&self) -> &str {
        &self.scope
    }

    /// Returns the selectors; `None` if everything in the scope is selected.
    pub(crate) fn predicate(&self) -> Option<&SelectionPredicate> {
        self.predicate.as_ref()
    }

    /// Returns true if it selects everything in its scope.
    pub(crate) fn is_scope(&self) -> bool {
        self.predicate.is_none()
    }

    /// Returns true if it selects the same objects as another one.
    pub(crate) fn selects_as(&self, other: &Self) -> bool {
        let selectors = |filter: &Self| {
            let predicate = filter.predicate.clone()?;
            Some((predicate.label, predicate.field, predicate.shard))
        };
        self.scope == other.scope && selectors(self) == selectors(other)
    }

    /// Returns the shard selector, which may be empty.
    pub(crate) fn shard(&self) -> ShardSelector {
        let shard = self.predicate.as_ref().map(|it| it.shard.clone());
        shard.unwrap_or_default()
    }

    /// Returns true if it selects everything in its scope, or everything of a shard of it.
    pub(crate) fn is_shard_of_scope(&self) -> bool {
        let all = |it: &SelectionPredicate| it.label.is_empty() && it.field.is_empty();
        self.predicate.as_ref().is_none_or(all)
    }

    /// Returns a requirement that every selected object meets, if there is one: of a field, otherwise of a label.
    pub(crate) fn exact_term(&self) -> Option<ExactTerm> {
        let predicate = self.predicate.as_ref()?;
        let (fields, labels) = (&predicate.field, predicate.label.requirements());
        let mut exact_fields = fields.terms().filter(|(_, equal, _)| *equal);
        let field = |(name, _, value)| (TermKind::Field, name, value);
        let mut exact_labels = labels.iter().filter_map(|it| Some((it.key(), it.exact()?)));
        let label = |(name, value)| (TermKind::Label, name, value);
        let telling = exact_fields.find(|(name, ..)| *name != NAMESPACE_FIELD);
        let (kind, name, value) = telling
            .map(field)
            .or_else(|| exact_labels.next().map(label))
            .or_else(|| {
                let value = fields.requires_exact(NAMESPACE_FIELD)?;
                Some((TermKind::Field, NAMESPACE_FIELD, value))
            })?;
        Some(ExactTerm {
            kind,
            name: name.into(),
            value: value.into(),
            is_all: fields.terms().count() + labels.len() == 1,
        })
    }

    /// Returns true if a key lies in the scope.
    pub(crate) fn covers(&self, key: &str) -> bool {
        if self.scope.ends_with('/') {
            key.starts_with(&*self.scope)
        } else {
            *key == *self.scope
        }
    }

    /// Returns true if an object in the scope is selected.
    pub(crate) fn selects(&self, object: &Object) -> bool {
        self.predicate
            .as_ref()
            .is_none_or(|predicate| predicate.matches(object.attributes()))
    }

    /// Returns true if an event in the watch's scope is visible to it.
    pub(crate) fn concerns(&self, event: &CacheEvent) -> bool {
        let current = match &event.current {
            Current::Unreadable => return false,
            Current::Deleted => None,
            Current::Object(object) => Some(object),
        };
        let mut sides = current.into_iter().chain(&event.previous);
        sides.any(|object| self.selects(object))
    }

    /// Converts a change into the event that the watch sees.
    pub(crate) fn convert(&self, event: &CacheEvent) -> Option<WatchEvent> {
        if !self.covers(&event.key) {
            return None;
        }
        let current = match &event.current {
            Current::Unreadable => return None,
            Current::Deleted => None,
            Current::Object(object) => Some(object).filter(|object| self.selects(object)),
        };
        let previous = event.previous.as_ref().filter(|it| self.selects(it));
        event.seen(current, previous)
    }
}

/// Returns the prefixes of a key that end with `/`, the shortest first.
pub(crate) fn folders(key: &str) -> impl DoubleEndedIterator<Item = &str> {
    key.match_indices('/').map(|(at, _)| &key[..=at])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::{FieldSelector, LabelSelector};

    fn filter(label: &str, field: &str) -> Filter {
        let predicate = SelectionPredicate {
            label: LabelSelector::parse(label).expect("a selector"),
            field: FieldSelector::parse(field).expect("a selector"),
            ..SelectionPredicate::default()
        };
        Filter::new("/pods/", true, predicate)
    }

    #[test]
    fn the_most_telling_term_is_the_exact_one() {
        let (label, field) = (TermKind::Label, TermKind::Field);
        for (labels, fields, expected) in [
            ("", "", None),
            ("app!=x", "", None),
            ("app in (x,y)", "spec.nodeName!=n", None),
            ("app=x", "", Some((label, "app", "x", true))),
            ("tier,app=x", "", Some((label, "app", "x", false))),
            (
                "app=x",
                "spec.nodeName=n",
                Some((field, "spec.nodeName", "n", false)),
            ),
            (
                "app=x",
                "metadata.namespace=a",
                Some((label, "app", "x", false)),
            ),
            (
                "",
                "metadata.namespace=a,spec.nodeName=n",
                Some((field, "spec.nodeName", "n", false)),
            ),
            (
                "",
                "metadata.namespace=a",
                Some((field, NAMESPACE_FIELD, "a", true)),
            ),
        ] {
            let filter = filter(labels, fields);
            let expected = expected.map(|(kind, name, value, is_all)| ExactTerm {
                kind,
                name: name.into(),
                value: value.into(),
                is_all,
            });
            assert_eq!(filter.exact_term(), expected, "{labels:?} {fields:?}");
            assert_eq!(filter.is_scope(), (labels, fields) == ("", ""));
        }
    }
}
