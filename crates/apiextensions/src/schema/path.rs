//! The path of the current field, such as `spec.ports[0]`, kept up to date while a function walks over an object.

use std::cell::Cell;
use std::fmt::Write as _;

use ringwatch_apimachinery::FieldError;

use super::node::SchemaNode;

/// The path of the whole object, as kube-apiserver prints it.
pub(super) const ROOT: &str = "<nil>";

/// The path of the current field. Going into a field appends to one string and leaving it truncates that, so no field
/// allocates a string of its own.
#[derive(Clone, Debug, Default)]
pub(super) struct Path {
    /// The path so far, such as `spec.ports[0]`.
    text: String,
    /// The path of the value in which the walk began; empty for a whole object.
    base: String,
    /// Bytes of all errors created on the walk, reported or not.
    error_bytes: Cell<usize>,
}

/// Maximum number of bytes of errors that one walk creates. Without it an object could cause any amount: a path may
/// have a megabyte and lead to 300,000 wrong values, and a schema may list a megabyte of allowed values.
const ERROR_BYTES_MADE_MAX: usize = 16 << 20;

/// The length of a path before it went deeper: [`Path::leave`] goes back there.
#[must_use]
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark(usize);

impl Path {
    /// Begins a walk in a value that is not a whole object, such as a default. Texts name what is in it by the path
    /// from there, as kube-apiserver's do.
    pub(super) fn below(base: String) -> Self {
        Self {
            base,
            ..Self::default()
        }
    }

    /// Appends a member to the path, and returns the mark by which to leave it.
    pub(super) fn member(&mut self, name: &str) -> Mark {
        let mark = Mark(self.text.len());
        if mark.0 > 0 {
            self.text.push('.');
        }
        self.text.push_str(name);
        mark
    }

    /// Goes into a member of a map, whose name comes from the user.
    pub(super) fn key(&mut self, name: &str) -> Mark {
        let mark = Mark(self.text.len());
        self.text.extend(["[", name, "]"]);
        mark
    }

    /// Goes into a member of an object: by its name if the schema has it, and else as into a map.
    pub(super) fn member_of(&mut self, node: &SchemaNode, name: &str) -> Mark {
        if node.properties.contains_key(name) {
            self.member(name)
        } else {
            self.key(name)
        }
    }

    /// Goes into an item of a list.
    pub(super) fn index(&mut self, index: usize) -> Mark {
        let mark = Mark(self.text.len());
        // Writing to a string cannot fail.
        let _ = write!(self.text, "[{index}]");
        mark
    }

    /// Returns to the place at which the mark was made.
    pub(super) fn leave(&mut self, mark: Mark) {
        self.text.truncate(mark.0);
    }

    /// Returns an error about the place; `None` if so many were made on this walk that it would not be shown.
    pub(super) fn error(&self, make: impl FnOnce() -> FieldError) -> Option<FieldError> {
        if self.error_bytes.get() > ERROR_BYTES_MADE_MAX {
            return None;
        }
        let error = make();
        let bytes = self.error_bytes.get() + error.field.len() + error.detail.len();
        self.error_bytes.set(bytes);
        Some(error)
    }

    /// Returns true if the walk is at the whole object.
    pub(super) fn is_root(&self) -> bool {
        self.base.is_empty() && self.text.is_empty()
    }

    /// Returns the path from where the walk began, empty for that value itself.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the path as errors have it.
    pub(super) fn field(&self) -> String {
        match (self.base.as_str(), self.text.as_str()) {
            (_, "") => self.base().to_owned(),
            ("", text) => text.to_owned(),
            (base, text) => format!("{base}.{text}"),
        }
    }

    /// Returns the path of the value in which the walk began, as errors have it.
    pub(super) fn base(&self) -> &str {
        if self.base.is_empty() {
            ROOT
        } else {
            &self.base
        }
    }
}
