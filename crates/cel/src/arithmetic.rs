//! Sums, differences, products and quotients, with the errors of those that their types have no room for.
//!
//! Follows `overflow.go` of cel-go.

use std::ops::RangeInclusive;

use chrono::{DateTime, FixedOffset, TimeDelta};
use kube_cel::cel::Value as CelValue;

use super::failure::{Failure, ValueResult};

/// The first second of the year 1, and the last one of the year 9999: `minUnixTime` and `maxUnixTime` of cel-go.
const SECONDS: RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// The error of an integer beyond 64 bits.
pub(super) const INT_OVERFLOW: &str = "integer overflow";

/// The error of an unsigned integer below zero or beyond 64 bits.
pub(super) const UINT_OVERFLOW: &str = "unsigned integer overflow";

const TIME_OVERFLOW: &str = "timestamp overflow";

/// Returns true if there is a time so many seconds after the beginning of 1970.
pub(super) fn is_time(seconds: i64) -> bool {
    SECONDS.contains(&seconds)
}

/// Returns true for the first moment that a time may be.
pub(super) fn is_first_second(time: DateTime<FixedOffset>) -> bool {
    time.timestamp() == *SECONDS.start() && time.timestamp_subsec_nanos() == 0
}

fn int(result: Option<i64>) -> ValueResult {
    let result = result.map(CelValue::Int);
    result.ok_or_else(|| Failure::Other(INT_OVERFLOW.into()))
}

fn uint(result: Option<u64>) -> ValueResult {
    let result = result.map(CelValue::UInt);
    result.ok_or_else(|| Failure::Other(UINT_OVERFLOW.into()))
}

fn duration(result: Option<TimeDelta>) -> ValueResult {
    let result = result.filter(|it| it.num_nanoseconds().is_some());
    let result = result.map(CelValue::Duration);
    result.ok_or_else(|| Failure::Other(INT_OVERFLOW.into()))
}

/// Returns a time as a value, unless it is beyond the years that times may have.
pub(super) fn time(result: Option<DateTime<FixedOffset>>) -> ValueResult {
    let result = result.filter(|it| is_time(it.timestamp()));
    let result = result.map(CelValue::Timestamp);
    result.ok_or_else(|| Failure::Other(TIME_OVERFLOW.into()))
}

/// Evaluates `left + right` of numbers, times and durations.
pub(super) fn add(left: &CelValue, right: &CelValue) -> ValueResult {
    match (left, right) {
        (CelValue::Int(a), CelValue::Int(b)) => int(a.checked_add(*b)),
        (CelValue::UInt(a), CelValue::UInt(b)) => uint(a.checked_add(*b)),
        (CelValue::Float(a), CelValue::Float(b)) => Ok(CelValue::Float(a + b)),
        (CelValue::Duration(a), CelValue::Duration(b)) => duration(a.checked_add(b)),
        (CelValue::Timestamp(at), CelValue::Duration(more))
        | (CelValue::Duration(more), CelValue::Timestamp(at)) => time(at.checked_add_signed(*more)),
        _ => Err(Failure::NoOverload),
    }
}

/// Evaluates `left - right`.
pub(super) fn subtract(left: &CelValue, right: &CelValue) -> ValueResult {
    match (left, right) {
        (CelValue::Int(a), CelValue::Int(b)) => int(a.checked_sub(*b)),
        (CelValue::UInt(a), CelValue::UInt(b)) => uint(a.checked_sub(*b)),
        (CelValue::Float(a), CelValue::Float(b)) => Ok(CelValue::Float(a - b)),
        (CelValue::Duration(a), CelValue::Duration(b)) => duration(a.checked_sub(b)),
        (CelValue::Timestamp(a), CelValue::Timestamp(b)) => {
            duration(Some(a.signed_duration_since(b)))
        }
        (CelValue::Timestamp(at), CelValue::Duration(less)) => time(at.checked_sub_signed(*less)),
        _ => Err(Failure::NoOverload),
    }
}

/// Evaluates `left * right`.
pub(super) fn multiply(left: &CelValue, right: &CelValue) -> ValueResult {
    match (left, right) {
        (CelValue::Int(a), CelValue::Int(b)) => int(a.checked_mul(*b)),
        (CelValue::UInt(a), CelValue::UInt(b)) => uint(a.checked_mul(*b)),
        (CelValue::Float(a), CelValue::Float(b)) => Ok(CelValue::Float(a * b)),
        _ => Err(Failure::NoOverload),
    }
}

/// Evaluates `left / right`.
pub(super) fn divide(left: &CelValue, right: &CelValue) -> ValueResult {
    match (left, right) {
        (CelValue::Int(_), CelValue::Int(0)) | (CelValue::UInt(_), CelValue::UInt(0)) => {
            Err(Failure::Other("division by zero".into()))
        }
        (CelValue::Int(a), CelValue::Int(b)) => int(a.checked_div(*b)),
        (CelValue::UInt(a), CelValue::UInt(b)) => uint(a.checked_div(*b)),
        (CelValue::Float(a), CelValue::Float(b)) => Ok(CelValue::Float(a / b)),
        _ => Err(Failure::NoOverload),
    }
}

/// Evaluates `left % right`.
pub(super) fn modulo(left: &CelValue, right: &CelValue) -> ValueResult {
    match (left, right) {
        (CelValue::Int(_), CelValue::Int(0)) | (CelValue::UInt(_), CelValue::UInt(0)) => {
            Err(Failure::Other("modulus by zero".into()))
        }
        (CelValue::Int(a), CelValue::Int(b)) => int(a.checked_rem(*b)),
        (CelValue::UInt(a), CelValue::UInt(b)) => uint(a.checked_rem(*b)),
        _ => Err(Failure::NoOverload),
    }
}

/// Evaluates `-it`.
pub(super) fn negate(it: &CelValue) -> ValueResult {
    match it {
        CelValue::Int(it) => int(it.checked_neg()),
        CelValue::Float(it) => Ok(CelValue::Float(-it)),
        CelValue::Duration(it) => duration(TimeDelta::zero().checked_sub(it)),
        _ => Err(Failure::NoOverload),
    }
}
