//! Conditions in the status of objects, at most one of each type: `metav1.Condition` in Go.

use serde_json::Value;

use super::path::{list, set, text};

/// Writes a condition. Its time stays while its status does.
pub fn put_condition(object: &mut Value, mut condition: Value) {
    let mut conditions = list(object, "status.conditions").to_vec();
    let kind = text(&condition, "type").to_owned();
    match conditions.iter_mut().find(|it| text(it, "type") == kind) {
        Some(known) => {
            if text(known, "status") == text(&condition, "status") {
                set(
                    &mut condition,
                    "lastTransitionTime",
                    known["lastTransitionTime"].clone(),
                );
            }
            *known = condition;
        }
        None => conditions.push(condition),
    }
    set(object, "status.conditions", Value::Array(conditions));
}
