//! Errors in parts of expressions, before their places are known.

/// An error in a part of an expression.
#[derive(Clone, Debug)]
pub(super) struct PartError {
    pub(super) id: u64,
    /// Characters from the place of the part to that of the error.
    pub(super) shift: isize,
    pub(super) why: String,
}

impl PartError {
    /// Creates an error at the place of the part with this id.
    pub(super) fn at(id: u64, why: impl Into<String>) -> Self {
        Self {
            id,
            shift: 0,
            why: why.into(),
        }
    }

    /// Returns the error so many characters later.
    pub(super) fn shifted(self, shift: isize) -> Self {
        Self { shift, ..self }
    }
}
