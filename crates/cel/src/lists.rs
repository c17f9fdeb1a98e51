//! Functions that make lists of lists: `slice`, `flatten`, `reverse`, `distinct`, `sort`, `sortBy` and `lists.range`.
//!
//! Follows the extension of cel-go in its third version, and its costs.

use std::cmp::Ordering;
use std::mem::discriminant;
use std::sync::Arc;

use kube_cel::cel::Value as CelValue;

use super::failure::{Failure, ValueResult};
use super::macros::SORT_BY_KEYS;
use super::merged_lists::list_items;
use super::meter::{Extent, Meter, PARTS_MAX};
use super::operators::order;
use super::{arithmetic, equality, wrong_data};

/// The cost of a call and of the list that it makes.
const MADE_COST: u64 = 11;

/// Returns the functions of lists; `None` if it is none of them.
pub(super) fn call(
    meter: &mut Meter,
    name: &str,
    target: Option<&CelValue>,
    arguments: &[CelValue],
) -> Option<ValueResult> {
    let items = match target {
        Some(CelValue::List(items)) => items.as_slice(),
        None => &[],
        Some(_) => return None,
    };
    let made = match (name, target, arguments) {
        ("slice", Some(_), [CelValue::Int(start), CelValue::Int(end)]) => {
            slice(meter, items, *start, *end)
        }
        ("flatten", Some(_), []) => flatten(meter, items, 1),
        ("flatten", Some(_), [CelValue::Int(depth)]) => flatten(meter, items, *depth),
        ("reverse", Some(_), []) => {
            let cost = meter.charge(items.len() as u64 + MADE_COST);
            cost.map(|()| items.iter().rev().cloned().collect())
        }
        ("distinct", Some(_), []) => distinct(meter, items),
        ("sort", Some(_), []) => sort(meter, items, items),
        (SORT_BY_KEYS, Some(_), [CelValue::List(keys)]) => sort(meter, items, keys),
        ("lists.range", None, [CelValue::Int(count)]) => range(meter, *count),
        _ => return None,
    };
    Some(made.and_then(|items| {
        let list = CelValue::List(Arc::new(items));
        meter.charge_value(&list)?;
        Ok(list)
    }))
}

type BuiltList = Result<Vec<CelValue>, Failure>;

fn wrong(why: String) -> Failure {
    Failure::Other(why.into())
}

fn slice(meter: &mut Meter, items: &[CelValue], start: i64, end: i64) -> BuiltList {
    let cannot = |why: &str| wrong(format!("cannot slice({start}, {end}), {why}"));
    let (Ok(from), Ok(to)) = (usize::try_from(start), usize::try_from(end)) else {
        return Err(cannot("negative indexes not supported"));
    };
    if from > to {
        return Err(cannot(
            "start index must be less than or equal to end index",
        ));
    }
    let Some(part) = items.get(from..to) else {
        return Err(cannot(&format!("list is length {}", items.len())));
    };
    meter.charge(part.len() as u64 + MADE_COST)?;
    Ok(part.to_vec())
}

fn flatten(meter: &mut Meter, items: &[CelValue], depth: i64) -> BuiltList {
    let Ok(depth) = u64::try_from(depth) else {
        return Err(wrong("level must be non-negative".to_owned()));
    };
    let cost = depth.saturating_mul(items.len() as u64);
    meter.charge(cost.saturating_add(MADE_COST))?;
    let mut made = Vec::new();
    append(meter, items, depth, &mut made)?;
    Ok(made)
}

/// Appends the items of a list, those of lists in it up to a depth in their place.
fn append(
    meter: &mut Meter,
    items: &[CelValue],
    depth: u64,
    made: &mut Vec<CelValue>,
) -> Result<(), Failure> {
    // A list that has nothing is walked to all the same.
    meter.charge(1 + items.len() as u64 / 10)?;
    for item in items {
        match item {
            inner if depth > 0 && list_items(inner).is_some() => {
                let inner = list_items(inner).map_or(&[][..], |items| items.as_slice());
                append(meter, inner, depth - 1, made)?;
            }
            _ if made.len() as u64 >= PARTS_MAX => return Err(Failure::TooLarge),
            other => made.push(other.clone()),
        }
    }
    Ok(())
}

/// Charges a comparison of all items with each other: kube-apiserver's cost, or more where items are large.
fn charge_comparisons(meter: &mut Meter, items: &[CelValue]) -> Result<(), Failure> {
    let count = items.len() as u64;
    let squared = count.saturating_mul(count);
    let is_text = matches!(
        items.first(),
        Some(CelValue::String(_) | CelValue::Bytes(_))
    );
    let walks = if is_text { squared / 10 } else { 0 };
    let cost = squared.saturating_mul(2).saturating_add(walks);
    let mut units: u64 = 0;
    for item in items {
        units += Extent::measure(item)?.units();
    }
    let work = units.saturating_mul(count) / 10;
    meter.charge(cost.max(work).saturating_add(MADE_COST))
}

fn distinct(meter: &mut Meter, items: &[CelValue]) -> BuiltList {
    charge_comparisons(meter, items)?;
    let mut made: Vec<CelValue> = Vec::new();
    for item in items {
        if !equality::contains(&made, item, meter).unwrap_or_default() {
            made.push(item.clone());
        }
    }
    Ok(made)
}

/// Sorts items by keys, of which each has one. Keys that are equal stay in their order.
fn sort(meter: &mut Meter, items: &[CelValue], keys: &[CelValue]) -> BuiltList {
    if items.len() != keys.len() {
        return Err(wrong(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} elements respectively",
            items.len(),
            keys.len()
        )));
    }
    charge_comparisons(meter, keys)?;
    let Some(first) = keys.first() else {
        return Ok(Vec::new());
    };
    if !is_comparable(first) {
        return Err(wrong("list elements must be comparable".to_owned()));
    }
    if keys
        .iter()
        .any(|it| discriminant(it) != discriminant(first))
    {
        return Err(wrong("list elements must have the same type".to_owned()));
    }
    let mut sorted: Vec<(&CelValue, &CelValue)> = keys.iter().zip(items).collect();
    sorted.sort_by(|(a, _), (b, _)| match (a, b) {
        // No number comes last, so that the order is one.
        (CelValue::Float(a), CelValue::Float(b)) => a
            .partial_cmp(b)
            .unwrap_or_else(|| a.is_nan().cmp(&b.is_nan())),
        (a, b) => order(a, b).unwrap_or(Ordering::Equal),
    });
    Ok(sorted.into_iter().map(|(_, item)| item.clone()).collect())
}

fn range(meter: &mut Meter, count: i64) -> BuiltList {
    let length = u64::try_from(count).unwrap_or_default();
    meter.charge(length.saturating_add(MADE_COST))?;
    if length > PARTS_MAX {
        return Err(Failure::TooLarge);
    }
    Ok((0..count).map(CelValue::Int).collect())
}

fn is_comparable(value: &CelValue) -> bool {
    matches!(
        value,
        CelValue::Int(_)
            | CelValue::UInt(_)
            | CelValue::Float(_)
            | CelValue::Bool(_)
            | CelValue::Duration(_)
            | CelValue::Timestamp(_)
            | CelValue::String(_)
            | CelValue::Bytes(_)
    )
}

/// Calls a function of Kubernetes' own about the items of a list; `None` if it is none of them. Follows
/// `library/lists.go`.
pub(super) fn of_items(name: &str, values: &[&CelValue], meter: &mut Meter) -> Option<ValueResult> {
    let [CelValue::List(items), rest @ ..] = values else {
        return None;
    };
    let place = |found: Option<usize>| {
        let found = found.and_then(|it| i64::try_from(it).ok());
        Ok(CelValue::Int(found.unwrap_or(-1)))
    };
    let mut is_item = |it: &CelValue, item: &CelValue| equality::equal(it, item, meter) == Ok(true);
    let outcome = match (name, rest) {
        ("isSorted", []) => is_sorted(items),
        ("sum", []) => sum(items),
        ("min", []) => extreme(name, items, Ordering::Greater),
        ("max", []) => extreme(name, items, Ordering::Less),
        ("indexOf", [item]) => place(items.iter().position(|it| is_item(it, item))),
        ("lastIndexOf", [item]) => place(items.iter().rposition(|it| is_item(it, item))),
        _ => return None,
    };
    Some(outcome.map_err(|failure| wrong_data::failure_in(items).unwrap_or(failure)))
}

fn is_sorted(items: &[CelValue]) -> ValueResult {
    if !items.iter().all(is_comparable) {
        return Err(Failure::NoOverload);
    }
    let mut pairs = items.windows(2);
    let in_order = pairs.all(|pair| order(&pair[0], &pair[1]) != Ok(Ordering::Greater));
    Ok(CelValue::Bool(in_order))
}

/// Returns the sum of numbers or durations; the integer 0 for none.
fn sum(items: &[CelValue]) -> ValueResult {
    let Some((first, rest)) = items.split_first() else {
        return Ok(CelValue::Int(0));
    };
    let mut sum = first.clone();
    for item in rest {
        sum = arithmetic::add(&sum, item)?;
    }
    Ok(sum)
}

/// Returns the item that no other one precedes, or follows: one is replaced by the next where that is its order.
fn extreme(name: &str, items: &[CelValue], replaced: Ordering) -> ValueResult {
    let mut best: Option<&CelValue> = None;
    for item in items {
        if !is_comparable(item) {
            return Err(Failure::NoOverload);
        }
        if best.is_none_or(|best| order(best, item) == Ok(replaced)) {
            best = Some(item);
        }
    }
    let none = || wrong(format!("{name} called on empty list"));
    best.cloned().ok_or_else(none)
}
