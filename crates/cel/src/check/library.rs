//! Estimates the functions that Kubernetes and cel-go's extensions add to the language.
//!
//! Follows `EstimateCallCost` of Kubernetes' library, and those of cel-go's extensions
//! for sets and lists.

use kube_cel::cel::common::ast::operators as op;

use super::call::{CallCost, FunctionCall};
use super::part_estimate::PartEstimate;
use super::ranges::{PATTERN_FACTOR, Range, WALK_FACTOR};
use crate::macros::SORT_BY_KEYS;
use crate::types::Type;

/// An authorization check: an expression affords two.
const CHECK_COST: u64 = 350_000;

/// The cost of a call and of the list that it makes.
const MADE_COST: u64 = 11;

/// Bytes of an address, of either family.
const ADDRESS: Range = Range { min: 4, max: 16 };

/// The factor of the cost of a walk through a string that builds another one.
const REBUILD_FACTOR: f64 = 0.2;

/// Characters of the pattern of a named format.
const FORMAT_PATTERN_LENGTH: f64 = 128.0;

/// Maximum size of a named format.
const FORMAT_SIZE_MAX: u64 = 64;

/// The costs of a selector of labels or fields: of its list, and of each requirement; the shortest has two characters.
const SELECTOR_COST: u64 = 10;
const REQUIREMENT_COST: f64 = 50.0;
const REQUIREMENTS_OF_CHARACTER: f64 = 0.5;

/// Estimates a function of a library; `None` for others.
pub(super) fn estimate(call: &FunctionCall<'_, '_>) -> Option<CallCost> {
    of_texts(call)
        .or_else(|| of_lists(call))
        .or_else(|| making_lists(call))
        .or_else(|| of_addresses(call))
        .or_else(|| of_objects(call))
}

fn of_texts(call: &FunctionCall<'_, '_>) -> Option<CallCost> {
    let target = call.target.map(PartEstimate::size);
    let sizes: Vec<Range> = call.arguments.iter().map(PartEstimate::size).collect();
    Some(match (call.name, target, sizes.as_slice()) {
        ("url" | "jsonpatch.escapeKey", _, [text]) => (text.walk(), Some(*text)),
        ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(text), _) => {
            (text.walk(), Some(text))
        }
        ("replace", Some(text), [old, new, ..]) => {
            let made = replaced(text, *old, *new);
            (text.scaled(REBUILD_FACTOR), Some(made))
        }
        ("split", Some(text), _) => {
            // At most each character is an item.
            let limit = call.arguments.get(1).and_then(|limit| limit.whole);
            let most = limit.map_or(text.max, i64::cast_unsigned);
            (text.scaled(REBUILD_FACTOR), Some(Range::up_to(most)))
        }
        ("find" | "findAll", Some(text), [pattern, ..]) => {
            (text.search(*pattern), Some(Range::up_to(text.max)))
        }
        ("quantity" | "isQuantity" | "semver" | "isSemver", _, [text, ..]) => (text.walk(), None),
        ("validate", _, [text, ..]) => {
            let pattern = FORMAT_PATTERN_LENGTH * PATTERN_FACTOR;
            (text.walk().scaled(pattern), None)
        }
        _ => return None,
    })
}

fn of_lists(call: &FunctionCall<'_, '_>) -> Option<CallCost> {
    let sizes: Vec<Range> = call.arguments.iter().map(PartEstimate::size).collect();
    Some(match (call.name, call.target, sizes.as_slice()) {
        ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(target), _) => {
            (among(target), None)
        }
        ("join", Some(list), separator) => {
            let made = joined(list, separator.first());
            (made.walk(), Some(made))
        }
        ("sets.contains" | "sets.intersects", _, [left, right]) => {
            (left.times(*right).scaled(1.0).plus(Range::ONE), None)
        }
        ("sets.equivalent", _, [left, right]) => {
            (left.times(*right).scaled(2.0).plus(Range::ONE), None)
        }
        _ => return None,
    })
}

/// Estimates the functions that make a list, whose size is that of the work: of what is compared in some.
fn making_lists(call: &FunctionCall<'_, '_>) -> Option<CallCost> {
    let target = call.target.map(PartEstimate::size);
    let whole = |index: usize, other: u64| {
        let whole = call.arguments[index].whole;
        whole.map_or(other, |it| u64::try_from(it).unwrap_or_default())
    };
    let (size, factor) = match (call.name, target, call.arguments) {
        ("slice", Some(size), [_, _]) => {
            let length = whole(1, size.max).wrapping_sub(whole(0, 0));
            (Range::exactly(length), 1.0)
        }
        ("flatten", Some(size), []) => (size, 1.0),
        ("flatten", Some(size), [_]) => (size, float(whole(0, u64::MAX))),
        ("lists.range", None, [_]) => (Range::exactly(whole(0, u64::MAX)), 1.0),
        ("reverse", Some(size), []) => (size, 1.0),
        ("distinct", Some(size), []) => (size.times(size), 2.0),
        ("sort", Some(size), []) => (size.times(size), sorting(&call.takes[0])),
        (SORT_BY_KEYS, Some(_), [keys]) => {
            let size = keys.size();
            (size.times(size), sorting(&call.takes[1]))
        }
        _ => return None,
    };
    Some((
        size.scaled(factor).plus(Range::exactly(MADE_COST)),
        Some(size),
    ))
}

#[allow(clippy::cast_precision_loss)]
fn float(number: u64) -> f64 {
    number as f64
}

/// Returns the factor of the cost of sorting by such keys.
fn sorting(keys: &Type) -> f64 {
    match keys {
        Type::List(of) if matches!(**of, Type::String | Type::Bytes) => 2.0 + WALK_FACTOR,
        _ => 2.0,
    }
}

fn of_addresses(call: &FunctionCall<'_, '_>) -> Option<CallCost> {
    let first = call.arguments.first().map(PartEstimate::size);
    let cost = match (call.name, first) {
        ("cidr" | "isIP" | "isCIDR" | "ip", Some(text)) => text.walk(),
        ("ip.isCanonical", Some(text)) => text.scaled(REBUILD_FACTOR),
        ("containsIP" | "containsCIDR", Some(other)) => {
            let mut cost = ADDRESS.plus(ADDRESS).walk();
            if call.name == "containsCIDR" {
                cost = cost.plus(ADDRESS.walk()).plus(Range::ONE);
            }
            if call.takes.get(1) == Some(&Type::String) {
                cost = cost.plus(other.walk());
            }
            cost
        }
        _ => return None,
    };
    Some((cost, None))
}

/// Estimates authorization, and comparisons of values of the library's own types.
fn of_objects(call: &FunctionCall<'_, '_>) -> Option<CallCost> {
    let cost = match (call.name, call.arguments) {
        ("check", _) => Range::exactly(CHECK_COST),
        ("fieldSelector" | "labelSelector", [text]) => {
            let length = text.size();
            let requirements = length.scaled(REQUIREMENTS_OF_CHARACTER);
            Range::exactly(SELECTOR_COST)
                .plus(length.walk())
                .plus(requirements.scaled(REQUIREMENT_COST))
        }
        (op::EQUALS, [left, right]) if left.of == right.of => match &left.of {
            Type::Opaque(name) if &**name == "kubernetes.NamedFormat" => {
                up_from_one(FORMAT_SIZE_MAX)
            }
            Type::Opaque(name) if &**name == "kubernetes.URL" => {
                up_from_one(right.known_size().map_or(1, |it| it.max))
            }
            Type::Opaque(_) => Range::ONE,
            _ => return None,
        },
        _ => return None,
    };
    Some((cost, None))
}

fn up_from_one(max: u64) -> Range {
    Range { min: 1, max }.walk()
}

/// Estimates a comparison with all items of a list, or a scan of a string.
fn among(target: &PartEstimate<'_>) -> Range {
    let Some((of, items)) = items_of(target) else {
        return target.size().walk();
    };
    let mut each = Range::ONE;
    if matches!(of, Type::String | Type::Bytes) {
        each = each.plus(items.walk());
    }
    target.size().times(each)
}

/// Returns the type of the items of a list, and how large these are if its declaration says so.
fn items_of<'p>(list: &'p PartEstimate<'_>) -> Option<(&'p Type, Range)> {
    let Type::List(of) = &list.of else {
        return None;
    };
    Some((of, list.path.items_size().unwrap_or(Range::ANY)))
}

/// Estimates the result of a replacement of all occurrences.
fn replaced(size: Range, old: Range, new: Range) -> Range {
    let (mut count, mut kept) = (Range::NOTHING, Range::NOTHING);
    if old.min == 0 {
        count.max = size.max.saturating_add(1);
        kept.max = size.max;
    } else if new.max <= old.min {
        kept.max = size.max;
    } else {
        count.max = size.max.div_ceil(old.min);
    }
    if old.max == 0 {
        count.min = size.min.saturating_add(1);
        kept.min = size.min;
    } else if old.max <= new.min {
        kept.min = size.min;
    } else {
        count.min = size.min.div_ceil(old.max);
    }
    count.times(new).plus(kept)
}

/// Estimates the text that the items of a list make, with separators between them.
fn joined(list: &PartEstimate<'_>, separator: Option<&Range>) -> Range {
    let size = list.size();
    let items = items_of(list).map_or(Range::NOTHING, |(_, items)| size.times(items));
    let Some(separator) = separator else {
        return items;
    };
    let between = Range {
        min: size.min.saturating_sub(1),
        max: size.max.saturating_sub(1),
    };
    items.plus(separator.times(between))
}
