//! Equality of values, and the lookup of keys, in which numbers of different types may be equal.

use kube_cel::cel::Value as CelValue;
use kube_cel::cel::objects::{Key, Map};

use super::failure::Failure;
use super::optional;

/// The first number that is too large for an integer, as a double.
pub(super) const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

/// Returns true if two values are equal.
pub(super) fn equal(one: &CelValue, other: &CelValue) -> bool {
    match (one, other) {
        (CelValue::List(one), CelValue::List(other)) => {
            let mut pairs = one.iter().zip(other.iter());
            one.len() == other.len() && pairs.all(|(one, other)| equal(one, other))
        }
        (CelValue::Map(one), CelValue::Map(other)) => {
            let mut members = one.map.iter();
            one.map.len() == other.map.len()
                && members.all(|(key, one)| other.get(key).is_some_and(|it| equal(one, it)))
        }
        (CelValue::Opaque(_), CelValue::Opaque(_)) => {
            match (optional::of_value(one), optional::of_value(other)) {
                (Ok(Some(one)), Ok(Some(other))) => equal(one, other),
                (Ok(one), Ok(other)) => one.is_none() && other.is_none(),
                _ => one == other,
            }
        }
        _ => one == other,
    }
}

/// Returns true if a list has an item.
pub(super) fn contains(items: &[CelValue], item: &CelValue) -> bool {
    items.iter().any(|it| equal(it, item))
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
    if let CelValue::Float(number) = place {
        return map.get(&Key::Int(whole(*number)?));
    }
    map.get(&key(place).ok()?)
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
