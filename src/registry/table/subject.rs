//! An object whose cells are written, and the time at which.

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimeParser;
use serde_json::Value;

use super::human_duration::human;
use crate::registry::resources::path;

/// What people read where a time is missing.
const UNKNOWN: &str = "<unknown>";

/// An object and the time of its row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject<'a> {
    /// The object as it is stored.
    object: &'a Value,
    /// When the row is written.
    now: Timestamp,
}

impl<'a> Subject<'a> {
    pub(super) fn new(object: &'a Value, now: Timestamp) -> Self {
        Self { object, now }
    }

    /// A part of the object, looked at in the same way.
    pub(super) fn part(&self, object: &'a Value) -> Self {
        Self { object, ..*self }
    }

    /// What is at a dotted path, unless it is null.
    pub(super) fn get(&self, path: &str) -> Option<&'a Value> {
        path::get(self.object, path).filter(|value| !value.is_null())
    }

    /// Whether there is something at a dotted path.
    pub(super) fn has(&self, path: &str) -> bool {
        self.get(path).is_some()
    }

    /// The text at a dotted path; empty if there is none.
    pub(super) fn text(&self, path: &str) -> &'a str {
        path::text(self.object, path)
    }

    /// The text at a dotted path, or another if it is missing or empty.
    pub(super) fn text_or(&self, path: &str, other: &'a str) -> &'a str {
        Some(self.text(path))
            .filter(|text| !text.is_empty())
            .unwrap_or(other)
    }

    /// The number at a dotted path; 0 if there is none.
    pub(super) fn number(&self, path: &str) -> i64 {
        self.get(path).and_then(Value::as_i64).unwrap_or(0)
    }

    /// The boolean at a dotted path.
    pub(super) fn boolean(&self, path: &str) -> Option<bool> {
        self.get(path).and_then(Value::as_bool)
    }

    /// Whatever is at a dotted path, as text without quotes; such as a number that may be text.
    pub(super) fn shown(&self, path: &str) -> Option<String> {
        self.get(path).map(|value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        })
    }

    /// The list at a dotted path.
    pub(super) fn list(
        &self,
        path: &str,
    ) -> impl DoubleEndedIterator<Item = Subject<'a>> + use<'a> {
        let subject = *self;
        path::list(self.object, path)
            .iter()
            .map(move |item| subject.part(item))
    }

    /// How many items or members there are at a dotted path.
    pub(super) fn count(&self, path: &str) -> usize {
        match self.get(path) {
            Some(Value::Array(items)) => items.len(),
            Some(Value::Object(members)) => members.len(),
            _ => 0,
        }
    }

    /// The texts in a list.
    pub(super) fn texts(&self, path: &str) -> Vec<&'a str> {
        let items = path::list(self.object, path).iter();
        items.filter_map(Value::as_str).collect()
    }

    /// The members of a map of texts, by name.
    pub(super) fn pairs(&self, path: &str) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let members = self.get(path).and_then(Value::as_object);
        let members = members.into_iter().flatten();
        members.map(|(name, value)| (name.as_str(), value.as_str().unwrap_or_default()))
    }

    /// A member of a map whose names may have dots, such as an annotation.
    pub(super) fn member(&self, map: &str, name: &str) -> Option<&'a str> {
        self.get(map)?.get(name)?.as_str()
    }

    pub(super) fn name(&self) -> &'a str {
        self.text("metadata.name")
    }

    /// For how long the object has existed.
    pub(super) fn age(&self) -> String {
        self.since("metadata.creationTimestamp")
    }

    pub(super) fn is_being_deleted(&self) -> bool {
        self.has("metadata.deletionTimestamp")
    }

    /// The time at a dotted path.
    pub(super) fn time(&self, path: &str) -> Option<Timestamp> {
        time(self.text(path))
    }

    /// How long ago the time at a dotted path was, for people.
    pub(super) fn since(&self, path: &str) -> String {
        self.time(path)
            .map_or_else(|| UNKNOWN.to_owned(), |then| self.ago(then))
    }

    /// How long ago a time was, for people.
    pub(super) fn ago(&self, then: Timestamp) -> String {
        human(self.now.duration_since(then))
    }
}

fn time(text: &str) -> Option<Timestamp> {
    const RFC3339: DateTimeParser = DateTimeParser::new();
    RFC3339.parse_timestamp(text).ok()
}

/// How long ago a time was that a client has written, for people.
pub(super) fn since(text: &str, now: Timestamp) -> String {
    time(text).map_or_else(
        || "<invalid>".to_owned(),
        |then| human(now.duration_since(then)),
    )
}
