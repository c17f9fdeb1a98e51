//! Estimates the maximum cost of function calls and the size of their results.

use kube_cel::cel::common::ast::operators as op;

use super::estimate::PartEstimate;
use super::ranges::Range;
use crate::types::Type;

/// An authorization check: an expression affords two.
const CHECK_COST: u64 = 350_000;

/// Bytes of an address, of either family.
const ADDRESS: Range = Range { min: 4, max: 16 };

/// The estimate of a call, arguments included.
pub(super) struct Estimate {
    pub(super) cost: Range,
    pub(super) size: Option<Range>,
}

/// Estimates the cost and the size of the result of a call.
pub(super) fn estimate(
    name: &str,
    target: Option<&PartEstimate<'_>>,
    arguments: &[PartEstimate<'_>],
    gives: &Type,
) -> Estimate {
    let all = arguments
        .iter()
        .fold(Range::NOTHING, |sum, it| sum.plus(it.cost));
    match (name, arguments) {
        (op::LOGICAL_OR | op::LOGICAL_AND, [left, _]) => {
            return Estimate {
                cost: Range {
                    min: left.cost.min,
                    max: all.max,
                },
                size: None,
            };
        }
        (op::CONDITIONAL, [condition, yes, no]) => {
            return Estimate {
                cost: condition.cost.plus(yes.cost.or(no.cost)),
                size: Some(yes.size().or(no.size())),
            };
        }
        _ => {}
    }
    let own =
        in_library(name, target, arguments).or_else(|| in_language(name, target, arguments, gives));
    let (cost, size) = own.unwrap_or((Range::ONE, None));
    Estimate {
        cost: all.plus(cost),
        size,
    }
}

type Own = (Range, Option<Range>);

fn in_library(
    name: &str,
    target: Option<&PartEstimate<'_>>,
    arguments: &[PartEstimate<'_>],
) -> Option<Own> {
    let first = || arguments.first().map_or(Range::ANY, PartEstimate::size);
    let of_target = target.map(PartEstimate::size);
    Some(match (name, of_target) {
        ("check", _) => (Range::exactly(CHECK_COST), None),
        ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(size)) => {
            (among(target?, size), None)
        }
        ("url", _) => (first().walk(), None),
        ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(size)) => {
            (size.walk(), Some(size))
        }
        ("replace", Some(size)) => {
            let made = replaced(
                size,
                first(),
                arguments.get(1).map_or(Range::ANY, PartEstimate::size),
            );
            (size.hundredths(20), Some(made))
        }
        ("split", Some(size)) => (size.hundredths(20), Some(Range::up_to(size.max))),
        ("join", Some(size)) => {
            let made = glued(target?, size, arguments.first());
            (made.walk(), Some(made))
        }
        ("find" | "findAll", Some(size)) => {
            let cost = size.plus(Range::ONE).walk().times(first().hundredths(25));
            (cost, Some(Range::up_to(size.max)))
        }
        ("containsIP" | "containsCIDR", Some(_)) => {
            let mut cost = ADDRESS.plus(ADDRESS).walk();
            if name == "containsCIDR" {
                cost = cost.plus(ADDRESS.walk()).plus(Range::ONE);
            }
            if arguments.first()?.of == Type::String {
                cost = cost.plus(first().walk());
            }
            (cost, None)
        }
        _ => return None,
    })
}

/// Estimates a comparison with all items of a list, or a scan of a string.
fn among(target: &PartEstimate<'_>, size: Range) -> Range {
    let Type::List(of) = &target.of else {
        return size.walk();
    };
    let mut each = Range::ONE;
    if matches!(**of, Type::String | Type::Bytes) {
        each = each.plus(items_of(target).walk());
    }
    size.times(each)
}

/// Returns how large the items of a list are, if its declaration says so.
fn items_of(list: &PartEstimate<'_>) -> Range {
    let declared = list.declared.and_then(|it| it.inside());
    declared.map_or(Range::ANY, |it| Range::up_to(it.max))
}

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

fn glued(list: &PartEstimate<'_>, size: Range, separator: Option<&PartEstimate<'_>>) -> Range {
    let items = size.times(items_of(list));
    let Some(separator) = separator else {
        return items;
    };
    let between = Range {
        min: size.min.saturating_sub(1),
        max: size.max.saturating_sub(1),
    };
    items.plus(separator.size().times(between))
}

fn in_language(
    name: &str,
    target: Option<&PartEstimate<'_>>,
    arguments: &[PartEstimate<'_>],
    gives: &Type,
) -> Option<Own> {
    let of_target = target.map(PartEstimate::size);
    let sizes: Vec<Range> = arguments.iter().map(PartEstimate::size).collect();
    Some(match (name, of_target, sizes.as_slice()) {
        ("format", Some(format), [values]) => (format.walk(), Some(format.plus(*values))),
        ("bytes", None, [text]) if arguments[0].of == Type::String => {
            let made = Range {
                min: text.min,
                max: text.max.saturating_mul(4),
            };
            (text.walk(), Some(made))
        }
        ("string", None, [bytes]) if arguments[0].of == Type::Bytes => {
            let made = Range {
                min: bytes.min / 4,
                max: bytes.max,
            };
            (bytes.walk(), Some(made))
        }
        ("quote", None, [text]) => {
            let made = Range {
                min: text.min.saturating_add(2),
                max: text.max.saturating_mul(2).saturating_add(2),
            };
            (text.walk(), Some(made))
        }
        ("startsWith" | "endsWith", Some(_), [part]) => (part.walk(), None),
        (op::IN, _, [_, all]) if matches!(arguments[1].of, Type::List(_)) => (*all, None),
        ("matches", Some(text), [pattern]) => {
            let walk = text.plus(Range::ONE).walk();
            (walk.times(pattern.hundredths(25)), None)
        }
        ("contains", Some(text), [part]) => (text.walk().times(part.walk()), None),
        (op::ADD, _, [left, right]) => {
            let sum = left.plus(*right);
            match gives {
                Type::List(_) => (Range::ONE, Some(sum)),
                Type::String | Type::Bytes | Type::Dyn => (sum.walk(), Some(sum)),
                _ => (Range::ONE, None),
            }
        }
        (op::EQUALS | op::NOT_EQUALS, _, [left, right]) => (shorter(*left, *right), None),
        (op::LESS | op::LESS_EQUALS | op::GREATER | op::GREATER_EQUALS, _, [left, right])
            if matches!(arguments[0].of, Type::String | Type::Bytes) =>
        {
            (shorter(*left, *right), None)
        }
        _ => return None,
    })
}

/// Estimates a comparison of two values, which takes as long as the shorter one.
fn shorter(left: Range, right: Range) -> Range {
    let max = left.max.min(right.max);
    let both = Range {
        min: u64::from(max > 0),
        max,
    };
    both.walk()
}
