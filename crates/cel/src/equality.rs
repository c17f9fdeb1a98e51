//! Equality of values, and the lookup of keys, in which numbers of different types may be equal.

use kube_cel::cel::Value as CelValue;
use kube_cel::cel::objects::{Key, Map};

use super::failure::Failure;
use super::merged_lists::equal_in_order;
use super::{merged_lists, optional, wrong_data};

/// The first number that is too large for an integer, as a double.
pub(super) const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

/// Returns true if two values are equal. Parts of the first one that are wrong data fail, unless parts before them
/// differ.
pub(super) fn equal(one: &CelValue, other: &CelValue) -> Result<bool, Failure> {
    match (one, other) {
        (CelValue::List(one), CelValue::List(other)) => equal_in_order(one, other, equal),
        (CelValue::Map(one), CelValue::Map(other)) if one.map.len() == other.map.len() => {
            for (key, one) in one.map.iter() {
                let one = Some(one).filter(|it| !wrong_data::is_no_member(it));
                let other = other.get(key);
                match (one, other.filter(|it| !wrong_data::is_no_member(it))) {
                    (None, None) => {}
                    (Some(one), Some(other)) if equal(one, other)? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
        (CelValue::Map(_), CelValue::Map(_)) => Ok(false),
        (CelValue::List(one), CelValue::Opaque(_)) => match merged_lists::list_items(other) {
            Some(other) => equal_in_order(one, other, equal),
            None => Ok(false),
        },
        (CelValue::Opaque(_), _) => {
            if let Some(outcome) = merged_lists::equals(one, other, equal) {
                return outcome;
            }
            if let Some(failure) = wrong_data::failure_of(one) {
                return Err(failure);
            }
            match (optional::of_value(one), optional::of_value(other)) {
                (Ok(Some(one)), Ok(Some(other))) => equal(one, other),
                (Ok(one), Ok(other)) => Ok(one.is_none() && other.is_none()),
                _ => Ok(one == other),
            }
        }
        _ => Ok(one == other),
    }
}

/// Returns true if a list has an item. Items that are wrong data fail, unless another one is equal.
pub(super) fn contains(items: &[CelValue], item: &CelValue) -> Result<bool, Failure> {
    let mut failure = None;
    for it in items {
        // An item that is a set or has keys is on the left, as of a list that the expression writes out.
        let outcome = merged_lists::equals(item, it, equal).unwrap_or_else(|| equal(it, item));
        match outcome {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(failure) if failure.is_final() => return Err(failure),
            Err(found) => failure = failure.or(Some(found)),
        }
    }
    failure.map_or(Ok(false), Err)
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

/// Returns the value of a key; `None` also for values that cannot be keys.
pub(super) fn lookup<'m>(map: &'m Map, place: &CelValue) -> Option<&'m CelValue> {
    let found = match place {
        CelValue::Float(number) => map.get(&Key::Int(whole(*number)?)),
        _ => map.get(&key(place).ok()?),
    };
    found.filter(|it| !wrong_data::is_no_member(it))
}

/// Returns a double as an integer if it is one.
#[allow(
    clippy::cast_possible_truncation,
    clippy::float_cmp,
    reason = "it is within the range and has no fraction"
)]
pub(super) fn whole(number: f64) -> Option<i64> {
    let fits = number > -TWO_TO_63 && number < TWO_TO_63 && number.trunc() == number;
    fits.then_some(number as i64)
}
