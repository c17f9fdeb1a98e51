//! `matchLabelKeys` and `mismatchLabelKeys` of a pod: the values of its labels under these keys are merged into its
//! selectors when it is created.

use ringwatch_apimachinery::path::{get, get_mut, list, set};
use serde_json::{Value, json};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Adds expressions with the values of the labels that `matchLabelKeys` and `mismatchLabelKeys` name to the label
/// selectors beside them, in affinity terms and topology spread constraints.
pub(super) fn merge(pod: &mut Value) {
    let Some(labels) = get(pod, "metadata.labels").cloned() else {
        return;
    };
    for affinity in ["podAffinity", "podAntiAffinity"] {
        let path = format!("spec.affinity.{affinity}");
        for term in items(pod, &format!("{path}.{REQUIRED}")) {
            merge_term(term, &labels);
        }
        for wish in items(pod, &format!("{path}.{PREFERRED}")) {
            if let Some(term) = wish.get_mut("podAffinityTerm") {
                merge_term(term, &labels);
            }
        }
    }
    for constraint in items(pod, "spec.topologySpreadConstraints") {
        merge_term(constraint, &labels);
    }
}

fn items<'a>(object: &'a mut Value, path: &str) -> impl Iterator<Item = &'a mut Value> + use<'a> {
    let items = get_mut(object, path).and_then(Value::as_array_mut);
    items.into_iter().flatten()
}

fn merge_term(term: &mut Value, labels: &Value) {
    const EXPRESSIONS: &str = "labelSelector.matchExpressions";
    let added = [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")]
        .into_iter()
        .flat_map(|(keys, operator)| list(term, keys).iter().map(move |key| (key, operator)))
        .filter_map(|(key, operator)| {
            let value = labels.get(key.as_str()?)?;
            Some(json!({"key": key, "operator": operator, "values": [value]}))
        });
    let added: Vec<_> = added.collect();
    if added.is_empty() || get(term, "labelSelector").is_none_or(Value::is_null) {
        return;
    }
    let expressions = [list(term, EXPRESSIONS), &added].concat();
    set(term, EXPRESSIONS, Value::Array(expressions));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_get_the_values_of_labels() {
        let term = json!({"labelSelector": {"matchLabels": {"app": "a"}}, "matchLabelKeys": ["hash", "absent"],
            "mismatchLabelKeys": ["tenant"]});
        let spread = json!({"labelSelector": {}, "matchLabelKeys": ["hash"]});
        let alone = json!({"matchLabelKeys": ["hash"]});
        let mut pod = json!({"metadata": {"labels": {"app": "a", "hash": "h", "tenant": "t"}},
            "spec": {"affinity": {"podAntiAffinity": {
                PREFERRED: [{"podAffinityTerm": term}], REQUIRED: [term]}},
                "topologySpreadConstraints": [spread, alone]}});
        merge(&mut pod);
        let hash = json!({"key": "hash", "operator": "In", "values": ["h"]});
        let tenant = json!({"key": "tenant", "operator": "NotIn", "values": ["t"]});
        let mut merged = term;
        merged["labelSelector"]["matchExpressions"] = json!([hash, tenant]);
        let anti = &pod["spec"]["affinity"]["podAntiAffinity"];
        assert_eq!(anti[REQUIRED][0], merged);
        assert_eq!(anti[PREFERRED][0]["podAffinityTerm"], merged);
        let constraints = &pod["spec"]["topologySpreadConstraints"];
        let selector = &constraints[0]["labelSelector"];
        assert_eq!(selector, &json!({"matchExpressions": [hash]}));
        assert_eq!(constraints[1], alone);
    }
}
