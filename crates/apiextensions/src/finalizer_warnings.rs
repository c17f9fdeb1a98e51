//! Warnings about the finalizers of custom resources.

use std::collections::HashSet;

use ringwatch_apimachinery::path::list;
use ringwatch_apimachinery::validation::formats::label_key;
use serde_json::Value;

/// Finalizers without a domain that Kubernetes itself has.
const STANDARD: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];

/// Returns the warnings about finalizers that an object has and the older one has not, in the order of their names.
///
/// Follows `validateKubeFinalizerName`, which for custom resources only warns: other writers may choose the same short
/// name.
pub(super) fn warnings_about_finalizers(object: &Value, old: Option<&Value>) -> Vec<String> {
    let before = old.map_or(&[][..], |old| list(old, "metadata.finalizers"));
    let before: HashSet<&Value> = before.iter().collect();
    let finalizers = list(object, "metadata.finalizers").iter();
    let added = finalizers.filter(|it| !before.contains(it));
    let mut added: Vec<&str> = added.filter_map(Value::as_str).collect();
    added.sort_unstable();
    added.dedup();
    added.into_iter().flat_map(warnings).collect()
}

fn warnings(finalizer: &str) -> Vec<String> {
    let mut whys = label_key(finalizer);
    if !finalizer.contains('/') && !STANDARD.contains(&finalizer) {
        let path = if finalizer.contains('.') {
            " including a path (/)"
        } else {
            ""
        };
        whys.push(format!(
            "prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers"
        ));
    }
    let warning = |why| format!("metadata.finalizers: {finalizer:?}: {why}");
    whys.into_iter().map(warning).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn short_names_of_new_finalizers_are_warned_about() {
        let with = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}});
        let object = with(json!([
            "short",
            "a.example.com",
            "example.com/a",
            "orphan",
            "short"
        ]));
        let prefer = "prefer a domain-qualified finalizer name";
        let avoid = "to avoid accidental conflicts with other finalizer writers";
        let dotted = format!(
            "metadata.finalizers: \"a.example.com\": {prefer} including a path (/) {avoid}"
        );
        let short = format!("metadata.finalizers: \"short\": {prefer} {avoid}");
        let found = warnings_about_finalizers(&object, None);
        assert_eq!(found, [dotted.clone(), short]);
        let old = with(json!(["short"]));
        assert_eq!(warnings_about_finalizers(&object, Some(&old)), [dotted]);
        assert!(warnings_about_finalizers(&json!({"metadata": {}}), None).is_empty());
    }
}
