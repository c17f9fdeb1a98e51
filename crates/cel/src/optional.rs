//! Values that may be absent.

use std::sync::Arc;

use kube_cel::cel::Value as CelValue;
use kube_cel::cel::objects::{Opaque, OptionalValue};

use super::arithmetic;
use super::failure::Failure;
use super::merged_lists::list_items;

/// Returns the optional value without a value.
pub fn none() -> CelValue {
    CelValue::Opaque(Arc::new(OptionalValue::none()))
}

/// Returns an optional value with a value.
pub fn some(value: CelValue) -> CelValue {
    CelValue::Opaque(Arc::new(OptionalValue::of(value)))
}

/// Returns the content of an optional value.
pub(super) fn inside(opaque: &dyn Opaque) -> Option<&CelValue> {
    opaque.downcast_ref::<OptionalValue>()?.value()
}

/// Returns true if a value is an optional.
pub(super) fn is_optional(value: &CelValue) -> bool {
    matches!(value, CelValue::Opaque(it) if it.downcast_ref::<OptionalValue>().is_some())
}

/// Returns true if a value is an optional without content.
pub(super) fn is_absent(value: &CelValue) -> bool {
    matches!(of_value(value), Ok(None))
}

/// Returns the content of a value that must be an optional.
pub(super) fn of_value(value: &CelValue) -> Result<Option<&CelValue>, Failure> {
    match value {
        CelValue::Opaque(opaque) if is_optional(value) => Ok(inside(opaque.as_ref())),
        _ => Err(Failure::NoOverload),
    }
}

/// Returns true for what a value of a type is unless it is set; the first second of the year 1 for times.
fn is_zero(value: &CelValue) -> bool {
    match value {
        CelValue::Timestamp(time) => arithmetic::is_first_second(*time),
        other => other.is_zero(),
    }
}

fn of_item(item: Option<&CelValue>) -> CelValue {
    item.map_or_else(none, |item| some(item.clone()))
}

/// Returns the contents of those optionals that have any.
pub(super) fn unwrapped(items: &[CelValue]) -> Result<CelValue, Failure> {
    let inside = items.iter().filter_map(|it| of_value(it).transpose());
    let inside: Result<Vec<CelValue>, Failure> = inside.map(|it| it.cloned()).collect();
    Ok(CelValue::List(inside?.into()))
}

/// Returns the functions of optional values; `None` if it is none of them.
pub(super) fn call(
    name: &str,
    target: Option<&CelValue>,
    arguments: &[CelValue],
) -> Option<Result<CelValue, Failure>> {
    let made = match (name, target, arguments) {
        ("optional.none", None, []) => Ok(none()),
        ("optional.of", None, [value]) => Ok(some(value.clone())),
        ("optional.ofNonZeroValue", None, [value]) if is_zero(value) => Ok(none()),
        ("optional.ofNonZeroValue", None, [value]) => Ok(some(value.clone())),
        ("first", Some(list), []) => Ok(of_item(list_items(list)?.first())),
        ("last", Some(list), []) => Ok(of_item(list_items(list)?.last())),
        ("hasValue", Some(target), []) => {
            of_value(target).map(|inside| CelValue::Bool(inside.is_some()))
        }
        ("value", Some(target), []) => of_value(target).and_then(|inside| {
            let none = || Failure::Other("optional.none() dereference".into());
            inside.cloned().ok_or_else(none)
        }),
        _ => return None,
    };
    Some(made)
}
