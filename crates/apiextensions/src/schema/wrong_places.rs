//! The places of a schema at which keywords are wrong. Rules are looked at where nothing is, there and below.

use std::collections::BTreeSet;

use super::node::{Additional, SchemaNode};
use super::outcome::SchemaErrors;
use super::path::Path;

/// The fields of errors, relative to the whole schema.
#[derive(Debug)]
pub(super) struct WrongPlaces(BTreeSet<String>);

impl WrongPlaces {
    pub(super) fn of(errors: &SchemaErrors) -> Self {
        Self(errors.fields().map(str::to_owned).collect())
    }

    /// Returns true if something is wrong in a schema or below it.
    fn has(&self, place: &str) -> bool {
        let below = |end: &str| {
            let start = format!("{place}{end}");
            let mut rest = self.0.range(start.clone()..);
            rest.next().is_some_and(|field| field.starts_with(&start))
        };
        match place {
            "" => !self.0.is_empty(),
            place => self.0.contains(place) || below(".") || below("["),
        }
    }

    /// Removes the rules of all schemas in which something is wrong.
    pub(super) fn forget_rules(&self, node: &mut SchemaNode, path: &mut Path) {
        if !node.ruled {
            return;
        }
        if self.has(path.as_str()) {
            node.rules.clear();
        }
        if let Some(Additional::Schema(values)) = &mut node.additional {
            let mark = path.member("additionalProperties");
            self.forget_rules(values, path);
            path.leave(mark);
        }
        for (name, property) in &mut node.properties {
            let mark = path.member("properties");
            let key = path.key(name);
            self.forget_rules(property, path);
            path.leave(key);
            path.leave(mark);
        }
        if let Some(items) = node.items.as_deref_mut() {
            let mark = path.member("items");
            self.forget_rules(items, path);
            path.leave(mark);
        }
        node.ruled = node.has_rules();
    }
}

#[cfg(test)]
mod tests {
    use ringwatch_apimachinery::FieldError;

    use super::*;

    #[test]
    fn rules_are_hidden_at_and_above_what_is_wrong() {
        let mut path = Path::default();
        let mut errors = SchemaErrors::default();
        let mark = path.member("properties");
        let key = path.key("a");
        errors.push(&path, || {
            FieldError::required(format!("{}.type", path.field()))
        });
        path.leave(key);
        path.leave(mark);
        let wrong = WrongPlaces::of(&errors);
        for (place, hidden) in [
            ("", true),
            ("properties[a]", true),
            ("properties[a].items", false),
            ("properties[ab]", false),
        ] {
            assert_eq!(wrong.has(place), hidden, "{place}");
        }
        assert!(!WrongPlaces::of(&SchemaErrors::default()).has(""));
    }
}
