//! The conditions of a namespace that is being deleted.

use std::collections::BTreeMap;

use ringwatch_apimachinery::path;
use serde_json::{Value, json};

use super::contents::RemainingContents;

/// A condition's type, and its reason and message while nothing is wrong.
type ConditionDefault = (&'static str, &'static str, &'static str);

/// The conditions, in the order in which they are written, as kube-controller-manager words them.
const DEFAULTS: [ConditionDefault; 5] = [
    (
        DISCOVERY,
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        FAILURE,
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    (
        REMAINING,
        "ContentRemoved",
        "All content successfully removed",
    ),
    (
        FINALIZERS,
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    ),
];

const DISCOVERY: &str = "NamespaceDeletionDiscoveryFailure";
const FAILURE: &str = "NamespaceDeletionContentFailure";
const REMAINING: &str = "NamespaceContentRemaining";
const FINALIZERS: &str = "NamespaceFinalizersRemaining";

/// Writes into a namespace's status what is left in it. Returns true if that changes a condition.
pub(super) fn write(namespace: &mut Value, left: &RemainingContents, now: &str) -> bool {
    let mut conditions = path::list(namespace, "status.conditions").to_vec();
    let mut changed = false;
    for (name, reason, message) in DEFAULTS {
        let found = unusual(name, left);
        let status = if found.is_some() { "True" } else { "False" };
        let (reason, message) = found.unwrap_or_else(|| (reason, message.to_owned()));
        let next = json!({"type": name, "status": status, "reason": reason, "message": message});
        let old = conditions.iter_mut().find(|it| it["type"] == name);
        let differs = |old: &Value| {
            let members = ["status", "reason", "message"];
            members.iter().any(|member| old[member] != next[member])
        };
        match old {
            Some(old) if !differs(old) => continue,
            Some(old) => {
                let same = old["status"] == status;
                let since = if same {
                    old["lastTransitionTime"].clone()
                } else {
                    now.into()
                };
                *old = next;
                old["lastTransitionTime"] = since;
            }
            None => {
                let mut next = next;
                next["lastTransitionTime"] = now.into();
                conditions.push(next);
            }
        }
        changed = true;
    }
    if changed {
        path::set(namespace, "status.conditions", conditions.into());
    }
    changed
}

/// Returns the reason and the message of a condition that is true.
fn unusual(name: &str, left: &RemainingContents) -> Option<(&'static str, String)> {
    match name {
        DISCOVERY if !left.unserved.is_empty() => {
            let unserved = left.unserved.join(", ");
            let message = format!("Discovery failed for some groups: {unserved} not served yet");
            Some(("DiscoveryFailed", message))
        }
        FAILURE if !left.errors.is_empty() => {
            let mut errors = left.errors.clone();
            errors.sort();
            let count = errors.len();
            let message = format!(
                "Failed to delete all resource types, {count} remaining: {}",
                errors.join(", ")
            );
            Some(("ContentDeletionFailed", message))
        }
        REMAINING if !left.objects.is_empty() => {
            let objects = counted(&left.objects, "has", "resource instances");
            let message = format!("Some resources are remaining: {objects}");
            Some(("SomeResourcesRemain", message))
        }
        FINALIZERS if !left.finalizers.is_empty() => {
            let finalizers = counted(&left.finalizers, "in", "resource instances");
            let message =
                format!("Some content in the namespace has finalizers remaining: {finalizers}");
            Some(("SomeFinalizersRemain", message))
        }
        _ => None,
    }
}

/// Writes names with their counts, such as `pods. has 2 resource instances`.
fn counted(counts: &BTreeMap<String, usize>, verb: &str, what: &str) -> String {
    let parts = counts.iter();
    let mut parts: Vec<_> = parts
        .map(|(name, count)| format!("{name} {verb} {count} {what}"))
        .collect();
    parts.sort();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEN: &str = "2026-01-02T03:04:05Z";
    const NOW: &str = "2026-01-02T03:04:06Z";

    fn condition<'a>(namespace: &'a Value, name: &str) -> &'a Value {
        let conditions = path::list(namespace, "status.conditions");
        let found = conditions.iter().find(|it| it["type"] == name);
        found.expect("each condition is there")
    }

    fn left(objects: &[(&str, usize)], finalizers: &[(&str, usize)]) -> RemainingContents {
        let owned = |it: &[(&str, usize)]| {
            let it = it.iter();
            it.map(|(name, count)| ((*name).to_owned(), *count))
                .collect()
        };
        RemainingContents {
            objects: owned(objects),
            finalizers: owned(finalizers),
            ..RemainingContents::default()
        }
    }

    #[test]
    fn conditions_say_what_is_left_and_since_when() {
        let mut namespace = json!({"status": {"phase": "Terminating"}});
        let some = left(&[("widgets.example.com", 1), ("pods.", 2)], &[("a/b", 3)]);
        assert!(write(&mut namespace, &some, THEN));
        let types: Vec<_> = path::list(&namespace, "status.conditions")
            .iter()
            .map(|it| it["type"].as_str().expect("a type"))
            .collect();
        assert_eq!(types, DEFAULTS.map(|(name, ..)| name));
        assert_eq!(
            condition(&namespace, REMAINING),
            &json!({
                "type": REMAINING,
                "status": "True",
                "reason": "SomeResourcesRemain",
                "message": "Some resources are remaining: pods. has 2 resource instances, \
                            widgets.example.com has 1 resource instances",
                "lastTransitionTime": THEN,
            })
        );
        assert_eq!(
            condition(&namespace, FINALIZERS)["message"],
            "Some content in the namespace has finalizers remaining: a/b in 3 resource instances"
        );
        assert!(!write(&mut namespace, &some, NOW), "nothing has changed");

        let fewer = left(&[("pods.", 1)], &[]);
        assert!(write(&mut namespace, &fewer, NOW));
        assert_eq!(condition(&namespace, REMAINING)["lastTransitionTime"], THEN);
        let finalizers = condition(&namespace, FINALIZERS);
        assert_eq!(finalizers["status"], "False");
        assert_eq!(finalizers["reason"], "ContentHasNoFinalizers");
        assert_eq!(finalizers["lastTransitionTime"], NOW);
    }

    #[test]
    fn what_is_not_served_yet_is_told() {
        let mut namespace = json!({});
        let unserved = RemainingContents {
            unserved: vec!["gears.example.com".to_owned()],
            ..RemainingContents::default()
        };
        assert!(!unserved.is_nothing() && write(&mut namespace, &unserved, NOW));
        let discovery = condition(&namespace, DISCOVERY);
        assert_eq!(discovery["reason"], "DiscoveryFailed");
        let message = "Discovery failed for some groups: gears.example.com not served yet";
        assert_eq!(discovery["message"], message);
    }

    #[test]
    fn errors_are_told() {
        let mut namespace = json!({});
        let failed = RemainingContents {
            errors: vec!["b failed".to_owned(), "a failed".to_owned()],
            ..RemainingContents::default()
        };
        assert!(write(&mut namespace, &failed, NOW));
        let failure = condition(&namespace, FAILURE);
        assert_eq!(failure["reason"], "ContentDeletionFailed");
        assert_eq!(
            failure["message"],
            "Failed to delete all resource types, 2 remaining: a failed, b failed"
        );
    }
}
