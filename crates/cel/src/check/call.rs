//! A function call whose cost is estimated.

use super::part_estimate::PartEstimate;
use super::ranges::Range;
use crate::types::Type;

/// A call of one overload of a function.
pub(super) struct FunctionCall<'c, 'a> {
    pub(super) name: &'c str,
    /// The types that the overload takes, that of the receiver first if there is one.
    pub(super) takes: &'c [Type],
    pub(super) target: Option<&'c PartEstimate<'a>>,
    pub(super) arguments: &'c [PartEstimate<'a>],
}

/// The cost of a function, arguments excluded, and the size of its result.
pub(super) type CallCost = (Range, Option<Range>);
