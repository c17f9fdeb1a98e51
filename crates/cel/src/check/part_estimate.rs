//! The estimate of a part of an expression.

use super::field_path::FieldPath;
use super::ranges::Range;
use crate::types::Type;

/// The cost of evaluating a part of an expression, and what is known of the size of its value.
#[derive(Clone, Debug)]
pub(super) struct PartEstimate<'a> {
    pub(super) cost: Range,
    /// The size that follows from what the value is made of.
    pub(super) computed: Option<Range>,
    /// The size of the value that a macro's variable stands for, which counts least.
    pub(super) bound: Option<Range>,
    pub(super) entries: Option<Entries>,
    /// The declaration of the value, if it has one.
    pub(super) path: FieldPath<'a>,
    pub(super) of: Type,
    /// The value of an integer literal.
    pub(super) whole: Option<i64>,
}

/// The sizes of the keys or indexes of a map or list, and of its values or items.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entries {
    pub(super) in_list: bool,
    pub(super) key: Range,
    pub(super) value: Range,
}

impl<'a> PartEstimate<'a> {
    pub(super) fn new(cost: Range, of: Type, path: FieldPath<'a>) -> Self {
        Self {
            cost,
            computed: None,
            bound: None,
            entries: None,
            path,
            of,
            whole: None,
        }
    }

    /// Returns the size of the value, if anything is known of it.
    pub(super) fn known_size(&self) -> Option<Range> {
        self.computed
            .or_else(|| self.path.size())
            .or_else(|| self.of.is_scalar().then_some(Range::ONE))
            .or(self.bound)
    }

    /// Returns the size of the value; any if nothing is known of it.
    pub(super) fn size(&self) -> Range {
        self.known_size().unwrap_or(Range::ANY)
    }
}

impl Entries {
    /// Returns the entries of what is one or the other.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            in_list: self.in_list,
            key: self.key.or(other.key),
            value: self.value.or(other.value),
        }
    }
}
