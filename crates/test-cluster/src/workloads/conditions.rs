//! The conditions in a status, as controllers set and remove them.
//!
//! Source of the semantics: `SetDeploymentCondition` of `pkg/controller/deployment/util/deployment_util.go`.

use serde_json::{Map, Value};

const CONDITIONS: &str = "conditions";

/// Returns the condition of this type.
pub(super) fn get<'a>(status: &'a Map<String, Value>, kind: &str) -> Option<&'a Value> {
    let mut conditions = status.get(CONDITIONS)?.as_array()?.iter();
    conditions.find(|it| it["type"] == kind)
}

/// Sets a condition, after the others. One with the same status and reason stays as it is, and the time of the last
/// transition stays if the status does.
pub(super) fn set(status: &mut Map<String, Value>, mut condition: Value) {
    let kind = condition["type"].as_str().unwrap_or_default().to_owned();
    if let Some(old) = get(status, &kind)
        && old["status"] == condition["status"]
    {
        if old["reason"] == condition["reason"] {
            return;
        }
        condition["lastTransitionTime"] = old["lastTransitionTime"].clone();
    }
    remove(status, &kind);
    match status.get_mut(CONDITIONS).and_then(Value::as_array_mut) {
        Some(conditions) => conditions.push(condition),
        None => drop(status.insert(CONDITIONS.to_owned(), vec![condition].into())),
    }
}

/// Removes the condition of this type.
pub(super) fn remove(status: &mut Map<String, Value>, kind: &str) {
    let conditions = status.get_mut(CONDITIONS).and_then(Value::as_array_mut);
    let Some(conditions) = conditions else { return };
    conditions.retain(|it| it["type"] != kind);
    if conditions.is_empty() {
        status.remove(CONDITIONS);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn condition(kind: &str, status: &str, reason: &str, time: &str) -> Value {
        json!({"type": kind, "status": status, "reason": reason, "lastTransitionTime": time})
    }

    #[test]
    fn the_time_of_a_condition_is_that_of_the_change_of_its_status() {
        let mut status = Map::new();
        set(&mut status, condition("A", "True", "R", "1"));
        set(&mut status, condition("B", "True", "R", "1"));
        set(&mut status, condition("A", "True", "R", "2"));
        assert_eq!(
            get(&status, "A").map(|it| &it["lastTransitionTime"]),
            Some(&json!("1"))
        );
        set(&mut status, condition("A", "True", "S", "3"));
        set(&mut status, condition("B", "False", "R", "3"));
        let expected = json!([
            condition("A", "True", "S", "1"),
            condition("B", "False", "R", "3")
        ]);
        assert_eq!(status["conditions"], expected);
        remove(&mut status, "A");
        remove(&mut status, "B");
        assert!(status.is_empty());
    }
}
