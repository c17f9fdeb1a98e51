//! The condition `Dangling` of FlowSchemas, which is true if the PriorityLevelConfiguration that they name does not
//! exist.

use std::collections::BTreeSet;

use jiff::Timestamp;
use ringwatch_apimachinery::accessor::format_time;
use ringwatch_apimachinery::conditions::put_condition;
use ringwatch_apimachinery::path::{list, text};
use serde_json::{Value, json};

/// The type of the condition.
const CONDITION: &str = "Dangling";

/// Returns a schema with the condition `Dangling` updated for these existing levels; `None` if it is up to date.
#[must_use]
pub fn with_dangling_condition(
    schema: &Value,
    levels: &BTreeSet<&str>,
    now: Timestamp,
) -> Option<Value> {
    let level = text(schema, "spec.priorityLevelConfiguration.name");
    let references =
        format!("This FlowSchema references the PriorityLevelConfiguration object named {level:?}");
    let (status, reason, message) = if levels.contains(level) {
        ("False", "Found", format!("{references} and it exists"))
    } else {
        let message = format!("{references} but there is no such object");
        ("True", "NotFound", message)
    };
    let mut conditions = list(schema, "status.conditions").iter();
    let known = conditions.find(|it| text(it, "type") == CONDITION);
    let is_current = known.is_some_and(|it| {
        let said = (text(it, "status"), text(it, "reason"), text(it, "message"));
        said == (status, reason, message.as_str())
    });
    if is_current {
        return None;
    }
    let mut next = schema.clone();
    put_condition(
        &mut next,
        json!({"type": CONDITION, "status": status, "lastTransitionTime": format_time(now),
            "reason": reason, "message": message}),
    );
    Some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_tells_whether_its_level_is_there() {
        let schema = json!({"spec": {"priorityLevelConfiguration": {"name": "a"}},
            "status": {"conditions": [{"type": "Other", "status": "True"}]}});
        let levels = BTreeSet::from(["a", "b"]);
        let now = Timestamp::from_second(0).expect("a time");
        let found = with_dangling_condition(&schema, &levels, now).expect("news");
        assert_eq!(
            found["status"]["conditions"][1],
            json!({"type": "Dangling", "status": "False", "lastTransitionTime": "1970-01-01T00:00:00Z", "reason": "Found",
                "message": "This FlowSchema references the PriorityLevelConfiguration object named \"a\" and it exists"})
        );
        assert_eq!(with_dangling_condition(&found, &levels, now), None);
        let later = Timestamp::from_second(60).expect("a time");
        let gone = with_dangling_condition(&found, &BTreeSet::new(), later).expect("news");
        assert_eq!(
            gone["status"]["conditions"][1],
            json!({"type": "Dangling", "status": "True", "lastTransitionTime": "1970-01-01T00:01:00Z", "reason": "NotFound",
                "message": "This FlowSchema references the PriorityLevelConfiguration object named \"a\" but there is no such object"})
        );
    }
}
