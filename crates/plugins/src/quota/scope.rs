//! The scopes of a quota, which restrict the pods and the claims that it counts.

use indexmap::IndexSet;
use ringwatch_apimachinery::path::{get, list, text};
use ringwatch_resources::quality_class;
use serde_json::Value;

/// One scope or scope selector of a quota.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QuotaScope<'a> {
    name: &'a str,
    operator: &'a str,
    values: &'a [Value],
}

impl<'a> QuotaScope<'a> {
    /// Returns all scopes of a quota.
    pub(crate) fn all_of(quota: &'a Value) -> Vec<Self> {
        let plain = list(quota, "spec.scopes").iter().filter_map(Value::as_str);
        // A quota may name a scope many times.
        let plain: IndexSet<&str> = plain.collect();
        let plain = plain.into_iter().map(|name| Self {
            name,
            operator: "Exists",
            values: &[],
        });
        let expressions = list(quota, "spec.scopeSelector.matchExpressions").iter();
        let expressions = expressions.map(|expression| Self {
            name: text(expression, "scopeName"),
            operator: text(expression, "operator"),
            values: list(expression, "values"),
        });
        plain.chain(expressions).collect()
    }

    /// Returns true if a pod is in this scope.
    pub(crate) fn has_pod(&self, pod: &Value) -> bool {
        let best_effort = || quality_class(pod) == "BestEffort";
        match self.name {
            "Terminating" => ends(pod),
            "NotTerminating" => !ends(pod),
            "BestEffort" => best_effort(),
            "NotBestEffort" => !best_effort(),
            "PriorityClass" => self.has_class(text(pod, "spec.priorityClassName")),
            "CrossNamespacePodAffinity" => reaches_other_namespaces(pod),
            _ => false,
        }
    }

    /// Returns true if a PersistentVolumeClaim is of this scope: any of the VolumeAttributesClasses counts that it asks
    /// for, has, or is being given.
    pub(crate) fn has_claim(&self, claim: &Value) -> bool {
        let classes = [
            text(claim, "spec.volumeAttributesClassName"),
            text(claim, "status.currentVolumeAttributesClassName"),
            text(
                claim,
                "status.modifyVolumeStatus.targetVolumeAttributesClassName",
            ),
        ];
        let mut named = classes.iter().filter(|class| !class.is_empty()).peekable();
        self.name == "VolumeAttributesClass"
            && match named.peek() {
                None => self.has_class(""),
                Some(_) => named.any(|class| self.has_class(class)),
            }
    }

    fn has_class(&self, class: &str) -> bool {
        let listed = self.values.iter().any(|value| value == class);
        match self.operator {
            "Exists" => !class.is_empty(),
            "DoesNotExist" => class.is_empty(),
            "In" => !class.is_empty() && listed,
            "NotIn" => class.is_empty() || !listed,
            _ => false,
        }
    }
}

/// Returns true if a pod has a deadline.
pub(super) fn ends(pod: &Value) -> bool {
    get(pod, "spec.activeDeadlineSeconds").is_some_and(Value::is_number)
}

/// Returns true if a pod's affinity terms reach into other namespaces.
fn reaches_other_namespaces(pod: &Value) -> bool {
    let reaches = |term: &Value| {
        !list(term, "namespaces").is_empty()
            || term.get("namespaceSelector").is_some_and(Value::is_object)
    };
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let of = |which: &str| {
            list(
                pod,
                &format!("spec.affinity.{kind}.{which}DuringSchedulingIgnoredDuringExecution"),
            )
        };
        let preferred = of("preferred")
            .iter()
            .filter_map(|it| it.get("podAffinityTerm"));
        of("required").iter().chain(preferred).any(reaches)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_are_of_the_scopes_that_they_say() {
        let pod = |spec: Value| json!({"spec": spec});
        let plain = pod(json!({"containers": [{}]}));
        let ends = pod(
            json!({"activeDeadlineSeconds": 5, "priorityClassName": "high",
            "containers": [{"resources": {"requests": {"cpu": "1"}}}],
            "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                [{"namespaceSelector": {}}]}}}),
        );
        let class = |operator: &str, values: Value| {
            json!({"scopeSelector": {"matchExpressions":
                [{"scopeName": "PriorityClass", "operator": operator, "values": values}]}})
        };
        for (spec, of_plain, of_other) in [
            (json!({"scopes": ["Terminating"]}), false, true),
            (json!({"scopes": ["NotTerminating"]}), true, false),
            (json!({"scopes": ["BestEffort"]}), true, false),
            (json!({"scopes": ["NotBestEffort"]}), false, true),
            (
                json!({"scopes": ["CrossNamespacePodAffinity"]}),
                false,
                true,
            ),
            (json!({"scopes": ["PriorityClass"]}), false, true),
            (class("In", json!(["high"])), false, true),
            (class("In", json!(["low"])), false, false),
            (class("NotIn", json!(["high"])), true, false),
            (class("DoesNotExist", json!([])), true, false),
        ] {
            let quota = json!({"spec": spec});
            let scopes = QuotaScope::all_of(&quota);
            assert_eq!(scopes.len(), 1);
            let has = [scopes[0].has_pod(&plain), scopes[0].has_pod(&ends)];
            assert_eq!(has, [of_plain, of_other], "{quota}");
        }
    }

    #[test]
    fn claims_are_of_the_scopes_of_their_attributes() {
        let none = json!({"spec": {}});
        let asks = json!({"spec": {"volumeAttributesClassName": "gold"}});
        let changes = json!({"spec": {"volumeAttributesClassName": "tin"},
            "status": {"modifyVolumeStatus": {"targetVolumeAttributesClassName": "gold"}}});
        for (operator, values, expected) in [
            ("Exists", json!([]), [false, true, true]),
            ("DoesNotExist", json!([]), [true, false, false]),
            ("In", json!(["gold"]), [false, true, true]),
            ("In", json!(["tin"]), [false, false, true]),
            ("NotIn", json!(["gold"]), [true, false, true]),
        ] {
            let quota = json!({"spec": {"scopeSelector": {"matchExpressions":
                [{"scopeName": "VolumeAttributesClass", "operator": operator, "values": values}]}}});
            let scopes = QuotaScope::all_of(&quota);
            let has = [&none, &asks, &changes].map(|claim| scopes[0].has_claim(claim));
            assert_eq!(has, expected, "{quota}");
            assert!(!scopes[0].has_pod(&none));
        }
    }
}
