//! The functions of lists as sets. Follows the extension of cel-go for sets.

use kube_cel::cel::Value as CelValue;

use super::equality::contains;
use super::failure::ValueResult;

/// Calls a function of sets; `None` if it is none of them.
pub(super) fn call(name: &str, values: &[&CelValue]) -> Option<ValueResult> {
    let [CelValue::List(one), CelValue::List(other)] = values else {
        return None;
    };
    let has_all = |all: &[CelValue], some: &[CelValue]| some.iter().all(|it| contains(all, it));
    let holds = match name {
        "sets.contains" => has_all(one, other),
        "sets.equivalent" => has_all(one, other) && has_all(other, one),
        "sets.intersects" => one.iter().any(|it| contains(other, it)),
        _ => return None,
    };
    Some(Ok(CelValue::Bool(holds)))
}
