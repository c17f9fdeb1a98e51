//! The functions of lists as sets. Follows the extension of cel-go for sets.

use kube_cel::cel::Value as CelValue;

use super::equality::contains;
use super::failure::{Failure, ValueResult};

/// Calls a function of sets; `None` if it is none of them.
pub(super) fn call(name: &str, values: &[&CelValue]) -> Option<ValueResult> {
    let [CelValue::List(one), CelValue::List(other)] = values else {
        return None;
    };
    let holds = match name {
        "sets.contains" => has_all(one, other),
        "sets.equivalent" => match has_all(one, other) {
            Ok(true) => has_all(other, one),
            outcome => outcome,
        },
        "sets.intersects" => has_any(other, one),
        _ => return None,
    };
    Some(holds.map(CelValue::Bool))
}

fn has_all(all: &[CelValue], some: &[CelValue]) -> Result<bool, Failure> {
    for item in some {
        if !contains(all, item)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn has_any(all: &[CelValue], some: &[CelValue]) -> Result<bool, Failure> {
    for item in some {
        if contains(all, item)? {
            return Ok(true);
        }
    }
    Ok(false)
}
