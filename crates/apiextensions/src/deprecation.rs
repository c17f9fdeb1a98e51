//! The warnings that users of deprecated versions get.

use ringwatch_apimachinery::path::{get, list, text};
use ringwatch_apimachinery::version_order;
use serde_json::Value;

/// Returns the warning of a version; `None` if it is not deprecated.
pub(super) fn warning(definition: &Value, version: &Value) -> Option<String> {
    if !is(version, "deprecated") {
        return None;
    }
    if let Some(given) = get(version, "deprecationWarning").and_then(Value::as_str) {
        return Some(given.to_owned());
    }
    let (group, kind) = (
        text(definition, "spec.group"),
        text(definition, "spec.names.kind"),
    );
    let name = text(version, "name");
    let others = list(definition, "spec.versions").iter();
    let newer = others
        .filter(|it| is(it, "served") && !is(it, "deprecated"))
        .map(|it| text(it, "name"))
        .filter(|other| version_order(other) > version_order(name))
        .max_by_key(|other| version_order(other));
    let instead = newer.map_or_else(String::new, |it| format!("; use {group}/{it} {kind}"));
    Some(format!("{group}/{name} {kind} is deprecated{instead}"))
}

fn is(version: &Value, what: &str) -> bool {
    version.get(what) == Some(&Value::Bool(true))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whoever_uses_what_is_deprecated_is_told_what_to_use() {
        let version = |name: &str, deprecated: bool| json!({"name": name, "served": true, "deprecated": deprecated});
        let old = version("v1beta1", true);
        let definition = json!({"spec": {"group": "example.com", "names": {"kind": "Gear"},
            "versions": [old, version("v1alpha7", false), version("v1", false), version("v2", false),
                version("v10beta1", false)]}});
        assert_eq!(
            warning(&definition, &old).as_deref(),
            Some("example.com/v1beta1 Gear is deprecated; use example.com/v2 Gear")
        );
        assert_eq!(warning(&definition, &version("v1", false)), None);
        let last = version("v3", true);
        assert_eq!(
            warning(&definition, &last).as_deref(),
            Some("example.com/v3 Gear is deprecated")
        );
        let mut version = last.clone();
        version["deprecationWarning"] = json!("Gears are out.");
        assert_eq!(
            warning(&definition, &version).as_deref(),
            Some("Gears are out.")
        );
    }
}
