//! Access to the fields of an object for the cells of its row.

use jiff::Timestamp;
use ringwatch_apimachinery::path;
use ringwatch_registry::human_duration::{human, time};
use serde_json::Value;

/// Text of a time that is missing or malformed.
const UNKNOWN: &str = "<unknown>";

/// An object, or a part of one, and the time of its row, from which ages count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowSubject<'a> {
    /// The object in its storage version, or a part of it.
    object: &'a Value,
    /// The time of the row.
    now: Timestamp,
}

impl<'a> RowSubject<'a> {
    pub(super) fn new(object: &'a Value, now: Timestamp) -> Self {
        Self { object, now }
    }

    /// Returns a subject for a part of the object, with the same time.
    pub(crate) fn part(&self, object: &'a Value) -> Self {
        Self { object, ..*self }
    }

    /// Returns the value at a dotted path, unless it is missing or null.
    pub(crate) fn get(&self, path: &str) -> Option<&'a Value> {
        path::get(self.object, path).filter(|value| !value.is_null())
    }

    /// Returns true if the value at a dotted path is there and not null.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.get(path).is_some()
    }

    /// Returns the string at a dotted path; empty if there is none.
    pub(crate) fn text(&self, path: &str) -> &'a str {
        path::text(self.object, path)
    }

    /// Returns the string at a dotted path, or `other` if it is missing or empty.
    pub(crate) fn text_or(&self, path: &str, other: &'a str) -> &'a str {
        Some(self.text(path))
            .filter(|text| !text.is_empty())
            .unwrap_or(other)
    }

    /// Returns the integer at a dotted path; 0 if there is none.
    pub(crate) fn number(&self, path: &str) -> i64 {
        self.get(path).and_then(Value::as_i64).unwrap_or(0)
    }

    /// Returns the boolean at a dotted path, if there is one.
    pub(crate) fn boolean(&self, path: &str) -> Option<bool> {
        self.get(path).and_then(Value::as_bool)
    }

    /// Returns the value at a dotted path as text without quotes, for fields such as IntOrString.
    pub(crate) fn shown(&self, path: &str) -> Option<String> {
        self.get(path).map(|value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        })
    }

    /// Returns the items of the list at a dotted path; none if there is no list.
    pub(crate) fn list(
        &self,
        path: &str,
    ) -> impl DoubleEndedIterator<Item = RowSubject<'a>> + use<'a> {
        let subject = *self;
        path::list(self.object, path)
            .iter()
            .map(move |item| subject.part(item))
    }

    /// Returns the number of items or members at a dotted path; 0 if there is neither list nor map.
    pub(crate) fn count(&self, path: &str) -> usize {
        match self.get(path) {
            Some(Value::Array(items)) => items.len(),
            Some(Value::Object(members)) => members.len(),
            _ => 0,
        }
    }

    /// Returns the strings in the list at a dotted path.
    pub(crate) fn texts(&self, path: &str) -> Vec<&'a str> {
        let items = path::list(self.object, path).iter();
        items.filter_map(Value::as_str).collect()
    }

    /// Returns the keys and values of the map of strings at a dotted path.
    pub(crate) fn pairs(&self, path: &str) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let members = self.get(path).and_then(Value::as_object);
        let members = members.into_iter().flatten();
        members.map(|(name, value)| (name.as_str(), value.as_str().unwrap_or_default()))
    }

    /// Returns a string in the map at a dotted path by a key that may have dots, such as an annotation.
    pub(crate) fn member(&self, map: &str, name: &str) -> Option<&'a str> {
        self.get(map)?.get(name)?.as_str()
    }

    pub(crate) fn name(&self) -> &'a str {
        self.text("metadata.name")
    }

    /// Returns the time since the object was created, for people.
    pub(crate) fn age(&self) -> String {
        self.since("metadata.creationTimestamp")
    }

    pub(crate) fn is_being_deleted(&self) -> bool {
        self.has("metadata.deletionTimestamp")
    }

    /// Returns the RFC 3339 time at a dotted path, if there is a valid one.
    pub(crate) fn time(&self, path: &str) -> Option<Timestamp> {
        time(self.text(path))
    }

    /// Returns the time that has passed since the time at a dotted path, for people; `<unknown>` if there is none.
    pub(crate) fn since(&self, path: &str) -> String {
        self.time(path)
            .map_or_else(|| UNKNOWN.to_owned(), |then| self.ago(then))
    }

    /// Returns the time that has passed since `then`, for people.
    pub(crate) fn ago(&self, then: Timestamp) -> String {
        human(self.now.duration_since(then))
    }
}
