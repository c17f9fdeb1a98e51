//! Equality of values, and the lookup of keys, in which numbers of different types may be equal.

use kube_cel::cel::Value as CelValue;
use kube_cel::cel::objects::{Key, Map};

use super::failure::Failure;
use super::merged_lists::equal_in_order;
use super::meter::{Extent, Meter};
use super::{merged_lists, optional, wrong_data};

/// The first number that is too large for an integer, as a double.
pub(super) const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

/// Returns true if two values are equal. Parts of the first one that are wrong data fail, unless parts before them
/// differ.
pub(super) fn equal(one: &CelValue, other: &CelValue, meter: &mut Meter) -> Result<bool, Failure> {
    match (one, other) {
        (CelValue::List(one), CelValue::List(other)) => {
            equal_in_order(one, other, &mut |one, other| equal(one, other, meter))
        }
        (CelValue::Map(one), CelValue::Map(other)) if one.map.len() == other.map.len() => {
            for (key, one) in one.map.iter() {
                let one = Some(one).filter(|it| !wrong_data::is_no_member(it));
                let other = other.get(key);
                match (one, other.filter(|it| !wrong_data::is_no_member(it))) {
                    (None, None) => {}
                    (Some(one), Some(other)) if equal(one, other, meter)? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
        (CelValue::Map(_), CelValue::Map(_)) => Ok(false),
        (CelValue::List(one), CelValue::Opaque(_)) => match merged_lists::list_items(other) {
            Some(other) => equal_in_order(one, other, &mut |one, other| equal(one, other, meter)),
            None => Ok(false),
        },
        (CelValue::Opaque(_), _) => {
            if let Some(outcome) = equal_merged(one, other, meter) {
                return outcome;
            }
            if let Some(failure) = wrong_data::failure_of(one) {
                return Err(failure);
            }
            match (optional::of_value(one), optional::of_value(other)) {
                (Ok(Some(one)), Ok(Some(other))) => equal(one, other, meter),
                (Ok(one), Ok(other)) => Ok(one.is_none() && other.is_none()),
                _ => Ok(one == other),
            }
        }
        _ => Ok(one == other),
    }
}

/// Returns true if a list that is no plain one equals another value; `None` if it is none. The smaller one of the
/// values was charged before; where items are looked up, the larger one is walked through too.
fn equal_merged(
    one: &CelValue,
    other: &CelValue,
    meter: &mut Meter,
) -> Option<Result<bool, Failure>> {
    if merged_lists::are_looked_up(one, other)
        && let Err(failure) = charge_larger(one, other, meter)
    {
        return Some(Err(failure));
    }
    merged_lists::equals(one, other, &mut |one, other| equal(one, other, meter))
}

fn charge_larger(one: &CelValue, other: &CelValue, meter: &mut Meter) -> Result<(), Failure> {
    let [one, other] = [one, other].map(|it| Extent::measure(it).map(Extent::units));
    meter.charge(one?.abs_diff(other?) / 10)
}

/// Returns true if a list has an item. Items that are wrong data fail, unless another one is equal.
pub(super) fn contains(
    items: &[CelValue],
    item: &CelValue,
    meter: &mut Meter,
) -> Result<bool, Failure> {
    let mut failure = None;
    for it in items {
        // An item that is a set or has keys is on the left, as of a list that the expression writes out.
        let outcome = equal_merged(item, it, meter).unwrap_or_else(|| equal(it, item, meter));
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
