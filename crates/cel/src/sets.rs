//! The functions of lists as sets. Follows the extension of cel-go for sets.

use kube_cel::cel::Value as CelValue;

use super::equality::contains;
use super::failure::{Failure, ValueResult};
use super::meter::Meter;

/// Calls a function of sets; `None` if it is none of them.
pub(super) fn call(name: &str, values: &[&CelValue], meter: &mut Meter) -> Option<ValueResult> {
    let [CelValue::List(one), CelValue::List(other)] = values else {
        return None;
    };
    let holds = match name {
        "sets.contains" => has_all(one, other, meter),
        "sets.equivalent" => match has_all(one, other, meter) {
            Ok(true) => has_all(other, one, meter),
            outcome => outcome,
        },
        "sets.intersects" => has_any(other, one, meter),
        _ => return None,
    };
    Some(holds.map(CelValue::Bool))
}

fn has_all(all: &[CelValue], some: &[CelValue], meter: &mut Meter) -> Result<bool, Failure> {
    for item in some {
        if !contains(all, item, meter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn has_any(all: &[CelValue], some: &[CelValue], meter: &mut Meter) -> Result<bool, Failure> {
    for item in some {
        if contains(all, item, meter)? {
            return Ok(true);
        }
    }
    Ok(false)
}
