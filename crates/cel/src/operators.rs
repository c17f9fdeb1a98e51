//! The operators of the language.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use kube_cel::cel::Value as CelValue;
use kube_cel::cel::common::ast::operators as op;
use kube_cel::cel::objects::Key;

use super::failure::{Failure, ValueResult};
use super::meter::{Extent, Meter, size};
use super::optional;

pub(super) fn no_such_key(name: &str) -> Failure {
    Failure::Other(format!("no such key: {name}").into())
}

/// Evaluates `operand.name`: a member of a map or a message.
pub(super) fn member(operand: &CelValue, name: &str) -> ValueResult {
    if optional::is_optional(operand) {
        return optional_member(operand, &CelValue::from(name));
    }
    match operand {
        CelValue::Map(map) => {
            let found = map.map.get(&Key::from(name));
            found.cloned().ok_or_else(|| no_such_key(name))
        }
        _ => Err(Failure::NoOverload),
    }
}

/// Evaluates `has(operand.name)`.
pub(super) fn has(operand: &CelValue, name: &str) -> Result<bool, Failure> {
    match operand {
        CelValue::Map(map) => Ok(map.map.contains_key(&Key::from(name))),
        _ if optional::is_optional(operand) => match optional::of_value(operand)? {
            Some(inside) => has(inside, name),
            None => Ok(false),
        },
        _ => Err(Failure::NoOverload),
    }
}

/// Returns the value as the key of a map.
pub(super) fn key(value: &CelValue) -> Result<Key, Failure> {
    match value {
        CelValue::Int(it) => Ok(Key::Int(*it)),
        CelValue::UInt(it) => Ok(Key::Uint(*it)),
        CelValue::Bool(it) => Ok(Key::Bool(*it)),
        CelValue::String(it) => Ok(Key::String(it.clone())),
        _ => Err(Failure::NoOverload),
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

/// Evaluates `left + right` of numbers, strings, bytes, lists, timestamps and durations.
pub(super) fn add(left: CelValue, right: CelValue, meter: &mut Meter) -> ValueResult {
    match (&left, &right) {
        (CelValue::String(_) | CelValue::Bytes(_), _) => {
            meter.charge_text(size(&left) + size(&right))?;
        }
        (CelValue::List(_), CelValue::List(_)) => {
            meter.charge(1)?;
            let (left, right) = (meter.charge_value(&left)?, meter.charge_value(&right)?);
            if left.parts + right.parts > super::meter::PARTS_MAX {
                return Err(Failure::TooLarge);
            }
        }
        _ => meter.charge(1)?,
    }
    if let (CelValue::Bytes(left), CelValue::Bytes(right)) = (&left, &right) {
        return Ok(CelValue::Bytes([&left[..], &right[..]].concat().into()));
    }
    let sum = (left + right)?;
    Extent::measure(&sum)?;
    Ok(sum)
}

/// Returns the value of an operator; `None` if the function is no operator.
pub(super) fn operate(name: &str, values: &[CelValue], meter: &mut Meter) -> Option<ValueResult> {
    let outcome = match (name, values) {
        (op::EQUALS, [a, b]) => equal(a, b, meter).map(CelValue::Bool),
        (op::NOT_EQUALS, [a, b]) => equal(a, b, meter).map(|it| CelValue::Bool(!it)),
        (op::LESS, [a, b]) => compare(a, b, meter, Ordering::is_lt),
        (op::LESS_EQUALS, [a, b]) => compare(a, b, meter, Ordering::is_le),
        (op::GREATER, [a, b]) => compare(a, b, meter, Ordering::is_gt),
        (op::GREATER_EQUALS, [a, b]) => compare(a, b, meter, Ordering::is_ge),
        (op::IN, [a, b]) => contains(a, b, meter),
        (op::INDEX, [a, b]) => index(a, b, meter),
        (op::OPT_INDEX | op::OPT_SELECT, [a, b]) => optional_index(a, b, meter),
        (op::SUBSTRACT, [a, b]) => arithmetic(meter, || a.clone() - b.clone()),
        (op::MULTIPLY, [a, b]) => arithmetic(meter, || a.clone() * b.clone()),
        (op::DIVIDE, [a, b]) => arithmetic(meter, || a.clone() / b.clone()),
        (op::MODULO, [a, b]) => arithmetic(meter, || a.clone() % b.clone()),
        (op::LOGICAL_NOT, [it]) => meter.charge(1).and_then(|()| match it {
            CelValue::Bool(flag) => Ok(CelValue::Bool(!flag)),
            _ => Err(Failure::NoOverload),
        }),
        (op::NEGATE, [it]) => meter.charge(1).and_then(|()| match it {
            CelValue::Int(it) => {
                let overflow = || Failure::Other("integer overflow".into());
                it.checked_neg().map(CelValue::Int).ok_or_else(overflow)
            }
            CelValue::Float(it) => Ok(CelValue::Float(-it)),
            _ => Err(Failure::NoOverload),
        }),
        _ => return None,
    };
    Some(outcome)
}

fn arithmetic(
    meter: &mut Meter,
    run: impl FnOnce() -> Result<CelValue, kube_cel::cel::ExecutionError>,
) -> ValueResult {
    meter.charge(1)?;
    Ok(run()?)
}

/// Charges a comparison: of strings by the shorter one, of lists and maps by all parts of the smaller one.
fn equal(a: &CelValue, b: &CelValue, meter: &mut Meter) -> Result<bool, Failure> {
    meter.charge_text(size(a).min(size(b)))?;
    if matches!(
        a,
        CelValue::List(_) | CelValue::Map(_) | CelValue::Opaque(_)
    ) {
        let smaller = Extent::measure(a)?.units().min(Extent::measure(b)?.units());
        meter.charge(smaller / 10)?;
    }
    Ok(a == b)
}

fn compare(
    a: &CelValue,
    b: &CelValue,
    meter: &mut Meter,
    holds: impl FnOnce(Ordering) -> bool,
) -> ValueResult {
    let order = match (a, b) {
        (CelValue::String(_), CelValue::String(_)) => {
            meter.charge_text(size(a).min(size(b)))?;
            a.partial_cmp(b)
        }
        (CelValue::Bytes(left), CelValue::Bytes(right)) => {
            meter.charge_text(size(a).min(size(b)))?;
            Some(left.cmp(right))
        }
        (CelValue::Null, _) => None,
        _ => {
            meter.charge(1)?;
            if let (CelValue::Float(left), CelValue::Float(right)) = (a, b)
                && left.partial_cmp(right).is_none()
            {
                return Ok(CelValue::Bool(false));
            }
            a.partial_cmp(b)
        }
    };
    let order = order.ok_or(Failure::NoOverload)?;
    Ok(CelValue::Bool(holds(order)))
}

fn contains(item: &CelValue, all: &CelValue, meter: &mut Meter) -> ValueResult {
    let found = match all {
        CelValue::List(items) => {
            meter.charge(items.len() as u64)?;
            let weight = Extent::measure(item)?.units();
            meter.charge(weight.saturating_mul(items.len() as u64) / 10)?;
            items.contains(item)
        }
        CelValue::Map(map) => {
            meter.charge(1)?;
            key(item).is_ok_and(|key| map.get(&key).is_some())
        }
        _ => return Err(Failure::NoOverload),
    };
    Ok(CelValue::Bool(found))
}

fn index(all: &CelValue, place: &CelValue, meter: &mut Meter) -> ValueResult {
    meter.charge(1)?;
    if optional::is_optional(all) {
        return optional_member(all, place);
    }
    at(all, place)
}

fn at(all: &CelValue, place: &CelValue) -> ValueResult {
    match all {
        CelValue::List(items) => {
            let index = match place {
                CelValue::Int(it) => *it,
                CelValue::UInt(it) => i64::try_from(*it).unwrap_or(i64::MAX),
                _ => return Err(Failure::NoOverload),
            };
            let found = usize::try_from(index)
                .ok()
                .and_then(|index| items.get(index));
            let outside = || Failure::Other(format!("index out of bounds: {index}").into());
            found.cloned().ok_or_else(outside)
        }
        CelValue::Map(map) => {
            let key = key(place)?;
            let found = map.get(&key);
            found.cloned().ok_or_else(|| no_such_key(&key.to_string()))
        }
        _ => Err(Failure::NoOverload),
    }
}

/// Evaluates `all[?place]` and `all.?place`, whose value is an optional.
fn optional_index(all: &CelValue, place: &CelValue, meter: &mut Meter) -> ValueResult {
    meter.charge(1)?;
    if optional::is_optional(all) {
        return optional_member(all, place);
    }
    match at(all, place) {
        Ok(found) => Ok(optional::some(found)),
        Err(Failure::Other(_)) => Ok(optional::none()),
        Err(error) => Err(error),
    }
}

/// Evaluates the selection of a member of an optional value, which is an optional again.
fn optional_member(operand: &CelValue, place: &CelValue) -> ValueResult {
    let Some(inside) = optional::of_value(operand)? else {
        return Ok(optional::none());
    };
    match at(inside, place) {
        Ok(found) => Ok(optional::some(found)),
        Err(Failure::Other(_)) => Ok(optional::none()),
        Err(error) => Err(error),
    }
}
