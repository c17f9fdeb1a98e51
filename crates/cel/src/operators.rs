//! The operators of the language.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use kube_cel::cel::Value as CelValue;
use kube_cel::cel::common::ast::operators as op;
use kube_cel::cel::objects::Key;
use ringwatch_apimachinery::go_text;

use super::failure::{Failure, ValueResult, no_such_key};
use super::merged_lists::list_items;
use super::meter::{Extent, Meter, size};
use super::{arithmetic, conversions, equality, merged_lists, optional, type_values, wrong_data};

/// Evaluates `operand.name`: a member of a map or a message.
pub(super) fn member(operand: &CelValue, name: &str) -> ValueResult {
    let place = CelValue::from(name);
    if optional::is_optional(operand) {
        return optional_member(operand, &place);
    }
    if let CelValue::Map(map) = operand {
        let found = map.map.get(&Key::from(name));
        return found.cloned().ok_or_else(|| no_such_key(name));
    }
    at(operand, &place)
}

/// Evaluates `has(operand.name)`.
pub(super) fn has(operand: &CelValue, name: &str) -> Result<bool, Failure> {
    match operand {
        CelValue::Map(map) => match map.map.get(&Key::from(name)) {
            Some(found) if wrong_data::is_no_member(found) => Ok(false),
            Some(found) => wrong_data::failure_of(found).map_or(Ok(true), Err),
            None => Ok(false),
        },
        _ if optional::is_optional(operand) => match optional::of_value(operand)? {
            Some(inside) => has(inside, name),
            None => Ok(false),
        },
        other => Ok(find(other, &CelValue::from(name))?.is_some()),
    }
}

/// Adds an entry to a map that must not have it.
pub(super) fn insert(
    members: &mut HashMap<Key, CelValue>,
    key: Key,
    value: CelValue,
) -> Result<(), Failure> {
    if members.len() as u64 >= super::meter::PARTS_MAX {
        return Err(Failure::TooLarge);
    }
    match members.entry(key) {
        Entry::Occupied(there) => {
            let why = format!("insert failed: key {} already exists", there.key());
            Err(Failure::Other(why.into()))
        }
        Entry::Vacant(place) => {
            place.insert(value);
            Ok(())
        }
    }
}

/// Evaluates `left + right`, and names the operator if it is none for the first value.
pub(super) fn sum(left: CelValue, right: CelValue, meter: &mut Meter) -> ValueResult {
    let first = match &left {
        CelValue::Map(_) => CelValue::List(Arc::default()),
        other if list_items(other).is_some() => CelValue::List(Arc::default()),
        other => other.clone(),
    };
    let is_map = matches!(left, CelValue::Map(_));
    add(left, right, meter).map_err(|failure| match failure {
        Failure::NoOverload if is_map => Failure::NoOverloadOf(op::ADD.into()),
        Failure::NoOverload => no_operator(op::ADD, &first),
        failure => failure,
    })
}

/// Evaluates `left + right` of numbers, strings, bytes, lists, timestamps and durations.
fn add(left: CelValue, right: CelValue, meter: &mut Meter) -> ValueResult {
    match (&left, &right) {
        (CelValue::String(_) | CelValue::Bytes(_), _) => {
            meter.charge_text(size(&left) + size(&right))?;
        }
        (left, right) if is_list(left) && is_list(right) => {
            meter.charge(1 + merged_lists::lookups_of_sum(left, right) / 10)?;
            let (left, right) = (meter.charge_value(left)?, meter.charge_value(right)?);
            if left.parts + right.parts > super::meter::PARTS_MAX {
                return Err(Failure::TooLarge);
            }
        }
        _ => meter.charge(1)?,
    }
    let sum = match (left, right) {
        (CelValue::Bytes(left), CelValue::Bytes(right)) => {
            CelValue::Bytes([&left[..], &right[..]].concat().into())
        }
        (CelValue::String(mut left), CelValue::String(right)) => {
            Arc::make_mut(&mut left).push_str(&right);
            CelValue::String(left)
        }
        (left, right) if is_list(&left) => merged_lists::sum(left, &right)?,
        (left, right) => arithmetic::add(&left, &right)?,
    };
    Extent::measure(&sum)?;
    Ok(sum)
}

fn is_list(value: &CelValue) -> bool {
    list_items(value).is_some()
}

/// Returns the value of an operator; `None` if the function is no operator.
pub(super) fn operate(name: &str, values: &[CelValue], meter: &mut Meter) -> Option<ValueResult> {
    let outcome = match (name, values) {
        (op::EQUALS, [a, b]) => equal(a, b, meter).map(CelValue::Bool),
        (op::NOT_EQUALS, [a, b]) => match equal(a, b, meter) {
            Err(failure) if failure.is_final() => Err(failure),
            // Wrong data in a value makes it another one.
            outcome => Ok(CelValue::Bool(outcome != Ok(true))),
        },
        (op::LESS, [a, b]) => compare(a, b, meter, Ordering::is_lt),
        (op::LESS_EQUALS, [a, b]) => compare(a, b, meter, Ordering::is_le),
        (op::GREATER, [a, b]) => compare(a, b, meter, Ordering::is_gt),
        (op::GREATER_EQUALS, [a, b]) => compare(a, b, meter, Ordering::is_ge),
        (op::IN, [a, b]) => contains(a, b, meter),
        (op::INDEX, [a, b]) => index(a, b, meter),
        (op::OPT_INDEX | op::OPT_SELECT, [a, b]) => optional_index(a, b, meter),
        (op::SUBSTRACT, [a, b]) => meter.charge(1).and_then(|()| arithmetic::subtract(a, b)),
        (op::MULTIPLY, [a, b]) => meter.charge(1).and_then(|()| arithmetic::multiply(a, b)),
        (op::DIVIDE, [a, b]) => meter.charge(1).and_then(|()| arithmetic::divide(a, b)),
        (op::MODULO, [a, b]) => meter.charge(1).and_then(|()| arithmetic::modulo(a, b)),
        (op::LOGICAL_NOT, [it]) => meter.charge(1).and_then(|()| match it {
            CelValue::Bool(flag) => Ok(CelValue::Bool(!flag)),
            _ => Err(Failure::NoOverload),
        }),
        (op::NEGATE, [it]) => meter.charge(1).and_then(|()| arithmetic::negate(it)),
        _ => return None,
    };
    Some(outcome.map_err(|failure| match (failure, values) {
        (Failure::NoOverload, [first, ..]) => no_operator(name, first),
        (failure, _) => failure,
    }))
}

/// Returns the failure of an operator, which is named where the first value cannot have it: cel-go looks for the trait
/// of its type, and then for a method, which texts and times have.
fn no_operator(name: &str, first: &CelValue) -> Failure {
    use CelValue::{Bool, Bytes, Duration, Float, Int, List, String, Timestamp, UInt};
    let has_trait = match name {
        op::LESS | op::LESS_EQUALS | op::GREATER | op::GREATER_EQUALS => {
            matches!(first, Bool(_) | Bytes(_) | Float(_) | Int(_) | UInt(_))
        }
        op::ADD => matches!(first, Bytes(_) | Float(_) | Int(_) | UInt(_) | List(_)),
        op::SUBSTRACT | op::MULTIPLY | op::DIVIDE => matches!(first, Float(_) | Int(_) | UInt(_)),
        op::MODULO => matches!(first, Int(_) | UInt(_)),
        op::NEGATE => matches!(first, Bool(_)),
        _ => true,
    };
    if has_trait || matches!(first, String(_) | Timestamp(_) | Duration(_)) {
        return Failure::NoOverload;
    }
    Failure::NoOverloadOf(name.to_owned().into())
}

fn equal(a: &CelValue, b: &CelValue, meter: &mut Meter) -> Result<bool, Failure> {
    charge_equality(a, b, meter)?;
    equality::equal(a, b, meter)
}

/// Charges a comparison: of strings by the shorter one, of lists and maps by all parts of the smaller one.
fn charge_equality(a: &CelValue, b: &CelValue, meter: &mut Meter) -> Result<(), Failure> {
    charge_shorter(a, b, meter)?;
    if matches!(
        a,
        CelValue::List(_) | CelValue::Map(_) | CelValue::Opaque(_)
    ) {
        meter.charge(Extent::smaller_units(a, b)? / 10)?;
    }
    Ok(())
}

/// Charges a scan of the shorter of two values.
fn charge_shorter(a: &CelValue, b: &CelValue, meter: &mut Meter) -> Result<(), Failure> {
    let length = match (a, b) {
        // The characters of the longer text are counted only as far as it matters, since that is not charged.
        (CelValue::String(a), CelValue::String(b)) => {
            let most = a.len().min(b.len());
            let count = |text: &str| text.chars().take(most).count();
            count(a).min(count(b)) as u64
        }
        (CelValue::String(text), other) | (other, CelValue::String(text)) => {
            let most = usize::try_from(size(other)).unwrap_or(usize::MAX);
            text.chars().take(most).count() as u64
        }
        _ => size(a).min(size(b)),
    };
    meter.charge_text(length)
}

/// Charges the look at a key, which is as long as the client has made it.
fn charge_key(place: &CelValue, meter: &mut Meter) -> Result<(), Failure> {
    meter.charge(Extent::measure(place)?.units() / 10)
}

fn compare(
    a: &CelValue,
    b: &CelValue,
    meter: &mut Meter,
    holds: impl FnOnce(Ordering) -> bool,
) -> ValueResult {
    match (a, b) {
        (CelValue::String(_), CelValue::String(_)) | (CelValue::Bytes(_), CelValue::Bytes(_)) => {
            charge_shorter(a, b, meter)?;
        }
        _ => meter.charge(1)?,
    }
    Ok(CelValue::Bool(holds(order(a, b)?)))
}

/// Returns the order of two values of types that have one: numbers of all types have one together.
pub(super) fn order(a: &CelValue, b: &CelValue) -> Result<Ordering, Failure> {
    let is_unordered = |it: &CelValue| matches!(it, CelValue::Float(number) if number.is_nan());
    let is_number = |it: &CelValue| {
        matches!(
            it,
            CelValue::Int(_) | CelValue::UInt(_) | CelValue::Float(_)
        )
    };
    match (a, b) {
        (CelValue::Bytes(a), CelValue::Bytes(b)) => Ok(a.cmp(b)),
        (CelValue::Null, _) => Err(Failure::NoOverload),
        _ if is_number(a) && is_number(b) && (is_unordered(a) || is_unordered(b)) => {
            Err(Failure::Other("NaN values cannot be ordered".into()))
        }
        _ => a.partial_cmp(b).ok_or(Failure::NoOverload),
    }
}

fn contains(item: &CelValue, all: &CelValue, meter: &mut Meter) -> ValueResult {
    let found = match (all, list_items(all)) {
        // What is looked for is not looked at.
        (_, Some(items)) if items.is_empty() => false,
        (_, Some(items)) => {
            meter.charge(items.len() as u64)?;
            let weight = Extent::measure(item)?.units();
            meter.charge(weight.saturating_mul(items.len() as u64) / 10)?;
            equality::contains(items, item, meter)?
        }
        (CelValue::Map(map), None) => {
            meter.charge(1)?;
            charge_key(item, meter)?;
            equality::lookup(map, item).is_some()
        }
        _ => return Err(Failure::NoOverload),
    };
    Ok(CelValue::Bool(found))
}

fn index(all: &CelValue, place: &CelValue, meter: &mut Meter) -> ValueResult {
    meter.charge(1)?;
    charge_key(place, meter)?;
    if optional::is_optional(all) {
        return optional_member(all, place);
    }
    at(all, place)
}

/// Returns what there is at a place of a list or a map; nothing in values that have no places.
fn find<'v>(all: &'v CelValue, place: &CelValue) -> Result<Option<&'v CelValue>, Failure> {
    match (all, list_items(all)) {
        (_, Some(items)) => {
            let index = usize::try_from(index_of(place)?);
            Ok(index.ok().and_then(|index| items.get(index)))
        }
        (CelValue::Map(map), None) => {
            let is_key = matches!(place, CelValue::Float(_)) || equality::key(place).is_ok();
            is_key
                .then(|| equality::lookup(map, place))
                .ok_or(Failure::NoOverload)
        }
        _ => Ok(None),
    }
}

/// Returns an index of a list as an integer. Follows `IndexOrError` of cel-go.
fn index_of(place: &CelValue) -> Result<i64, Failure> {
    let unsupported =
        |what: String| Failure::Other(format!("unsupported index {what} in list").into());
    match place {
        CelValue::Int(it) => Ok(*it),
        CelValue::UInt(it) => i64::try_from(*it).map_err(|_| unsupported(format!("value {it}"))),
        CelValue::Float(it) => {
            let value = || unsupported(format!("value {}", go_text::float(*it)));
            equality::whole(*it).ok_or_else(value)
        }
        other => Err(unsupported(format!(
            "type '{}'",
            type_values::name_of(other)
        ))),
    }
}

fn at(all: &CelValue, place: &CelValue) -> ValueResult {
    if let Some(found) = find(all, place)? {
        return Ok(found.clone());
    }
    let shown = conversions::as_text(place).unwrap_or_default();
    Err(match all {
        all if is_list(all) => Failure::Other(format!("index out of bounds: {shown}").into()),
        _ => no_such_key(&shown),
    })
}

/// Evaluates `all[?place]` and `all.?place`, whose value is an optional.
fn optional_index(all: &CelValue, place: &CelValue, meter: &mut Meter) -> ValueResult {
    meter.charge(1)?;
    charge_key(place, meter)?;
    if optional::is_optional(all) {
        return optional_member(all, place);
    }
    as_optional(find(all, place)?)
}

/// Returns what was found, if anything, as an optional value.
fn as_optional(found: Option<&CelValue>) -> ValueResult {
    match found.map(|found| (found, wrong_data::failure_of(found))) {
        None => Ok(optional::none()),
        Some((found, None)) => Ok(optional::some(found.clone())),
        Some((_, Some(failure))) => Err(failure),
    }
}

/// Evaluates the selection of a member of an optional value, which is an optional again.
fn optional_member(operand: &CelValue, place: &CelValue) -> ValueResult {
    let Some(inside) = optional::of_value(operand)? else {
        return Ok(optional::none());
    };
    as_optional(find(inside, place)?)
}
