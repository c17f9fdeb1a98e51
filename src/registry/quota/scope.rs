//! Of which pods a quota counts.

use indexmap::IndexSet;
use serde_json::Value;

use crate::registry::resources::path::{get, list, text};
use crate::registry::resources::quality_class;

/// One condition of a quota.
#[derive(Clone, Copy, Debug)]
pub(in crate::registry) struct Scope<'a> {
    name: &'a str,
    operator: &'a str,
    values: &'a [Value],
}

impl<'a> Scope<'a> {
    /// All conditions of a quota.
    pub(in crate::registry) fn all_of(quota: &'a Value) -> Vec<Self> {
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

    /// Whether a pod is of this scope.
    pub(in crate::registry) fn has_pod(&self, pod: &Value) -> bool {
        let ends = get(pod, "spec.activeDeadlineSeconds").is_some_and(Value::is_number);
        let best_effort = || quality_class(pod) == "BestEffort";
        match self.name {
            "Terminating" => ends,
            "NotTerminating" => !ends,
            "BestEffort" => best_effort(),
            "NotBestEffort" => !best_effort(),
            "PriorityClass" => self.has_class(text(pod, "spec.priorityClassName")),
            "CrossNamespacePodAffinity" => reaches_other_namespaces(pod),
            _ => false,
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

/// Whether a pod wants to be near or far from pods of other namespaces.
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
            let scopes = Scope::all_of(&quota);
            assert_eq!(scopes.len(), 1);
            let has = [scopes[0].has_pod(&plain), scopes[0].has_pod(&ends)];
            assert_eq!(has, [of_plain, of_other], "{quota}");
        }
    }
}
