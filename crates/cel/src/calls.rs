//! Calls functions, and charges the cost of each call.
//!
//! Costs are kube-apiserver's. Where a result can be larger than the arguments, its size is computed and charged before
//! the function is called.

use kube_cel::cel::Value as CelValue;

use super::failure::{Failure, ValueResult};
use super::functions::in_library;
use super::merged_lists::make_plain;
use super::meter::{Extent, Meter, PARTS_MAX, size};
use super::optional;
use super::scope::Scope;
use super::signatures::is_function;
use super::{
    authorizer, conversions, formats, lists, overloads, patterns, quantities, sets, strings, times,
    type_values, urls,
};

/// Bytes that are charged for a number in a string, with quotes and commas around it.
const NUMBER_BYTES: u64 = 80;

/// Calls a function on values.
pub(super) fn call(
    scope: &Scope,
    meter: &mut Meter,
    name: &str,
    mut target: Option<CelValue>,
    mut arguments: Vec<CelValue>,
) -> ValueResult {
    if let Some(made) = optional::call(name, target.as_ref(), &arguments) {
        // Each can hold another one: what is too deep is found here.
        if let Ok(made) = &made {
            meter.charge_value(made)?;
        }
        meter.charge(1)?;
        return made.map_err(|failure| match failure {
            Failure::NoOverload => overloads::none(name, target.iter().chain(&arguments)),
            failure => failure,
        });
    }
    if let Some(target) = &target
        && let Some(made) =
            authorizer::call(scope.authorizer.as_ref(), meter, name, target, &arguments)
    {
        return made;
    }
    // To all other functions sets and lists with keys are lists as others are.
    if name != "dyn" {
        target.iter_mut().chain(&mut arguments).for_each(make_plain);
    }
    let values: Vec<&CelValue> = target.iter().chain(&arguments).collect();
    if let Some(failure) = overloads::none_for(name, target.is_some(), &values) {
        return Err(failure);
    }
    if let Some(made) = lists::call(meter, name, target.as_ref(), &arguments) {
        return made;
    }
    of_values(scope, meter, name, target.as_ref(), &arguments)
}

/// Calls a function that has an overload for its values.
fn of_values(
    scope: &Scope,
    meter: &mut Meter,
    name: &str,
    target: Option<&CelValue>,
    arguments: &[CelValue],
) -> ValueResult {
    let values: Vec<&CelValue> = target.into_iter().chain(arguments).collect();
    match (name, values.as_slice()) {
        (
            "size",
            [
                it @ (CelValue::String(_)
                | CelValue::Bytes(_)
                | CelValue::List(_)
                | CelValue::Map(_)),
            ],
        ) => {
            meter.charge(1)?;
            if let CelValue::String(text) = it {
                meter.charge_bytes(text.len())?;
            }
            Ok(CelValue::Int(i64::try_from(size(it)).unwrap_or(i64::MAX)))
        }
        ("bool" | "string", [CelValue::Bool(_)]) | ("bool", [CelValue::String(_)]) => {
            meter.charge(1)?;
            conversions::call(name, &values).unwrap_or(Err(Failure::NoOverload))
        }
        ("type", [it]) => {
            meter.charge(1)?;
            Ok(type_values::of(it))
        }
        ("dyn", [it]) => {
            meter.charge(1)?;
            Ok((*it).clone())
        }
        ("optional.unwrap" | "unwrapOpt", [CelValue::List(items)]) => {
            meter.charge(1 + items.len() as u64 / 10)?;
            optional::unwrapped(items)
        }
        ("contains", [CelValue::String(text), CelValue::String(part)]) => {
            let cost = tenth(text.len()).saturating_mul(tenth(part.len()).max(1));
            meter.charge(cost)?;
            Ok(CelValue::Bool(text.contains(part.as_str())))
        }
        (
            "matches" | "find" | "findAll",
            [
                CelValue::String(text),
                CelValue::String(pattern),
                limit @ ..,
            ],
        ) => patterns::call(
            &scope.patterns,
            meter,
            name,
            text,
            pattern,
            limit.first().copied(),
        ),
        _ if !is_function(name) => Err(Failure::Other(format!("no such function: {name}").into())),
        _ => {
            charge(meter, name, &values)?;
            let made = by_us(name, &values, meter);
            let result =
                made.unwrap_or_else(|| by_library(name, target.cloned(), arguments.to_vec()))?;
            meter.charge_value(&result)?;
            Ok(result)
        }
    }
}

fn tenth(length: usize) -> u64 {
    (length as u64).div_ceil(10)
}

/// Charges a call of a function of the library.
fn charge(meter: &mut Meter, name: &str, values: &[&CelValue]) -> Result<(), Failure> {
    let mut all = Extent::default();
    for value in values {
        let extent = Extent::measure(value)?;
        all.parts += extent.parts;
        all.bytes += extent.bytes;
    }
    let first = values.first().map_or(0, |it| size(it));
    let text = first.div_ceil(10);
    let cost = match (name, values) {
        ("indexOf" | "lastIndexOf", [CelValue::String(_), part, ..]) => {
            text.saturating_mul(size(part).div_ceil(10).max(1))
        }
        ("indexOf" | "lastIndexOf", [CelValue::List(items), item]) => {
            let looks = Extent::measure(item)?
                .units()
                .saturating_mul(items.len() as u64);
            (all.parts + all.bytes / 10).max(looks / 10)
        }
        ("isSorted" | "sum" | "max" | "min", _) => all.parts + all.bytes / 10,
        (
            "replace",
            [
                CelValue::String(it),
                CelValue::String(old),
                CelValue::String(new),
                ..,
            ],
        ) => {
            let places = it.matches(old.as_str()).count() as u64;
            2 * text + places.saturating_mul(new.len() as u64) / 10
        }
        ("split", [CelValue::String(it), CelValue::String(separator), ..]) => {
            let parts = it.matches(separator.as_str()).count() as u64 + 1;
            if parts > PARTS_MAX {
                return Err(Failure::TooLarge);
            }
            2 * text + parts / 10
        }
        ("join", [CelValue::List(items), rest @ ..]) => {
            let separator = rest.first().map_or(0, |it| size(it));
            let separators = separator.saturating_mul(items.len() as u64);
            all.bytes.saturating_add(separators).div_ceil(5)
        }
        ("format", [CelValue::String(format), ..]) => {
            let digits = precisions(format);
            let bytes = all.parts * NUMBER_BYTES + 2 * all.bytes;
            bytes.saturating_add(digits).div_ceil(10)
        }
        ("strings.quote" | "base64.encode" | "base64.decode" | "string" | "bytes", _)
        | ("url" | "isURL" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "charAt", _)
        | ("startsWith" | "endsWith" | "cidr" | "isIP" | "isCIDR" | "ip" | "quantity", _)
        | ("isQuantity" | "semver" | "isSemver" | "jsonpatch.escapeKey", _) => text.max(1),
        ("validate", [format, text]) => formats::cost(format, size(text)),
        ("ip.isCanonical", _) => 2 * text,
        ("sets.contains" | "sets.equivalent" | "sets.intersects", [_, other]) => {
            let pairs = first.saturating_mul(size(other));
            let ways = if name == "sets.equivalent" { 2 } else { 1 };
            let work = all.units().saturating_mul(all.parts) / 10;
            work.max(pairs.saturating_mul(ways)).saturating_add(1)
        }
        _ => 1,
    };
    // Values are copied into the library and out of it.
    meter.charge(cost.max(all.units() / 10))
}

/// Returns the total number of decimal places that a format string asks for.
fn precisions(format: &str) -> u64 {
    let mut sum: u64 = 0;
    for conversion in format.split("%.").skip(1) {
        let digits: String = conversion
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        sum = sum.saturating_add(
            digits
                .parse()
                .unwrap_or_else(|_| u64::from(!digits.is_empty()) * u64::MAX),
        );
    }
    sum
}

/// Calls a function that we have; `None` if it is the library's.
fn by_us(name: &str, values: &[&CelValue], meter: &mut Meter) -> Option<ValueResult> {
    strings::call(name, values)
        .or_else(|| conversions::call(name, values))
        .or_else(|| times::call(name, values))
        .or_else(|| quantities::call(name, values))
        .or_else(|| sets::call(name, values, meter))
        .or_else(|| lists::of_items(name, values, meter))
        .or_else(|| urls::call(name, values))
        .or_else(|| formats::call(name, values))
}

/// Calls a function of the library, which takes and refuses texts as Go does if it converts them.
fn by_library(name: &str, target: Option<CelValue>, arguments: Vec<CelValue>) -> ValueResult {
    let values: Vec<CelValue> = target.iter().chain(&arguments).cloned().collect();
    let values: Vec<&CelValue> = values.iter().collect();
    if let Some(made) = conversions::of_go(name, &values) {
        return made;
    }
    let arguments = conversions::spelled(name, arguments);
    in_library(name, target, arguments)
}

/// Converts a string by a conversion function; `None` if it cannot be converted.
pub fn convert(name: &str, text: &str) -> Option<CelValue> {
    let text = CelValue::from(text);
    let made = by_us(name, &[&text], &mut Meter::new());
    let made = made.unwrap_or_else(|| by_library(name, None, vec![text.clone()]));
    made.ok()
}
