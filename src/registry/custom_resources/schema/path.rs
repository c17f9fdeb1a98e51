//! The path of a place in an object, written while it is walked.

use std::fmt::Write as _;

/// What a path says for the whole object, as kube-apiserver prints it.
pub(super) const ROOT: &str = "<nil>";

/// A path that grows and shrinks with the walk, so that no place pays for a string of its own.
#[derive(Debug, Default)]
pub(super) struct Path {
    /// What has been written, such as `spec.ports[0]`.
    text: String,
}

/// Where a path was before it went deeper: [`Path::leave`] goes back there.
#[must_use]
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark(usize);

impl Path {
    /// Goes into a member.
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

    /// Goes into an item of a list.
    pub(super) fn index(&mut self, index: usize) -> Mark {
        let mark = Mark(self.text.len());
        // Writing to a string cannot fail.
        let _ = write!(self.text, "[{index}]");
        mark
    }

    /// Goes back.
    pub(super) fn leave(&mut self, mark: Mark) {
        self.text.truncate(mark.0);
    }

    /// The path, empty for the whole object.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// The path as errors have it.
    pub(super) fn field(&self) -> String {
        if self.text.is_empty() {
            ROOT.to_owned()
        } else {
            self.text.clone()
        }
    }
}
