//! Lists and maps that an expression writes out, whose parts must all be of one type.

use super::unify::Bindings;
use crate::part_error::PartError;
use crate::types::Type;

/// The items of a list, or the keys or the values of a map, with their types.
pub(super) struct Aggregate {
    pub(super) parts: Vec<(u64, Type)>,
    /// True if errors tell of one part alone.
    pub(super) is_list: bool,
}

impl Aggregate {
    /// Returns the errors about parts that are not of the type of the first one, such as `dyn` beside a text. Follows
    /// `ValidateHomogeneousAggregateLiterals`.
    pub(super) fn errors(&self, bindings: &Bindings) -> Vec<PartError> {
        let types = self.parts.iter();
        let mut types = types.map(|(id, of)| (*id, bindings.resolve_or_dyn(of)));
        let Some((_, first)) = types.next() else {
            return Vec::new();
        };
        let errors = types.filter(|(_, of)| *of != first).map(|(id, of)| {
            let why = format!("expected type '{first}' but found '{of}'");
            PartError::at(id, why)
        });
        let most = if self.is_list { 1 } else { usize::MAX };
        errors.take(most).collect()
    }
}
