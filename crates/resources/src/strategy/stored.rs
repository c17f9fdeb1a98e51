//! Recognition of objects in the store that have only one of two fields with the same meaning, such as
//! `serviceAccountName` without the deprecated `serviceAccount`. kube-apiserver always serves both.
//!
//! Such objects are given their defaults when they are read, which fill in the other field. Objects that are
//! stored as JSON are served as they are, as docs/compatibility.md says.

use std::collections::BTreeSet;

use ringwatch::codec::StoredFields;
use ringwatch::meta::Object;

/// Annotation with the number of the template's generation.
pub(crate) const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Label of a namespace with its own name, by which selectors can find it.
pub(crate) const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// A function that returns true if an object lacks a field that its defaults fill in.
pub(super) type LacksDefaults = fn(&Object) -> bool;

/// Returns true if a pod lacks a name of its service account, its single address, or requests for limited resources.
pub(crate) fn pod(object: &Object) -> bool {
    let Some(pod) = StoredFields::new(object) else {
        return false;
    };
    let alone = pod.text("status.podIP");
    alone != pod.text("status.podIPs.ip")
        || accounts_differ(pod, "spec")
        || ["spec.containers.resources", "spec.initContainers.resources"]
            .iter()
            .flat_map(|path| pod.messages(path))
            .any(limits_without_requests)
}

/// Returns true if the pod template of a PodTemplate lacks a name of its service account.
pub(crate) fn template(object: &Object) -> bool {
    accounts_differ_at(object, "template.spec")
}

/// Returns true if the pod template of a controller lacks a name of its service account.
pub(crate) fn spec_template(object: &Object) -> bool {
    accounts_differ_at(object, "spec.template.spec")
}

/// Returns true if the pod template of a cron job lacks a name of its service account.
pub(crate) fn job_template(object: &Object) -> bool {
    accounts_differ_at(object, "spec.jobTemplate.spec.template.spec")
}

/// Returns true if a daemon set lacks a name of its service account or the annotation with its template generation.
pub(crate) fn daemon_set(object: &Object) -> bool {
    let counted = StoredFields::new(object).is_none_or(|it| {
        let annotations = it.keys("metadata.annotations");
        annotations.contains(&TEMPLATE_GENERATION.as_bytes())
    });
    !counted || spec_template(object)
}

/// Returns true if `spec.podCIDR` of a node does not go with its `spec.podCIDRs`.
pub(crate) fn node(object: &Object) -> bool {
    StoredFields::new(object).is_some_and(|it| it.text("spec.podCIDR") != it.text("spec.podCIDRs"))
}

/// Returns true if a namespace lacks the label with its name.
pub(crate) fn namespace(object: &Object) -> bool {
    let labels = object.attributes().labels();
    labels.get(NAME_LABEL) != Some(object.name()) && StoredFields::new(object).is_some()
}

/// Returns true if a secret has `stringData`, which should only occur in requests.
pub(crate) fn secret(object: &Object) -> bool {
    StoredFields::new(object).is_some_and(|it| !it.keys("stringData").is_empty())
}

fn accounts_differ_at(object: &Object, spec: &str) -> bool {
    StoredFields::new(object).is_some_and(|it| accounts_differ(it, spec))
}

/// Returns true if `serviceAccount` and `serviceAccountName` of a pod's spec differ.
fn accounts_differ(object: StoredFields<'_>, spec: &str) -> bool {
    let specs = object.messages(spec);
    specs
        .iter()
        .any(|it| it.text("serviceAccount") != it.text("serviceAccountName"))
}

/// Returns true if a resource has a limit and no request.
fn limits_without_requests(resources: StoredFields<'_>) -> bool {
    let requests: BTreeSet<&[u8]> = resources.keys("requests").into_iter().collect();
    let limits = resources.keys("limits");
    limits.iter().any(|key| !requests.contains(key))
}

#[cfg(test)]
mod tests {
    use ringwatch::codec;
    use ringwatch::meta::Object;
    use ringwatch_registry::ServedBy;
    use serde_json::{Value, json};

    use crate::built_in;

    /// Returns a kind, and an object of it with a field of which kube-apiserver would have written another as well.
    fn lacking() -> Vec<(&'static str, Value)> {
        let spec = json!({"serviceAccountName": "a"});
        let template = json!({"template": {"spec": spec}});
        let limits = json!({"containers": [{"name": "c", "resources": {"limits": {"cpu": "0"}}}]});
        vec![
            ("Pod", json!({"spec": spec})),
            ("Pod", json!({"status": {"podIP": "10.0.0.1"}})),
            ("Pod", json!({"status": {"podIPs": [{"ip": "10.0.0.1"}]}})),
            ("Pod", json!({"spec": limits})),
            ("PodTemplate", template.clone()),
            ("ReplicationController", json!({"spec": template})),
            ("Deployment", json!({"spec": template})),
            ("ReplicaSet", json!({"spec": template})),
            ("StatefulSet", json!({"spec": template})),
            ("DaemonSet", json!({"spec": template})),
            ("DaemonSet", json!({})),
            ("Job", json!({"spec": template})),
            (
                "CronJob",
                json!({"spec": {"jobTemplate": {"spec": template}}}),
            ),
            ("Node", json!({"spec": {"podCIDR": "10.0.0.0/24"}})),
            ("Node", json!({"spec": {"podCIDRs": ["10.0.0.0/24"]}})),
            ("Namespace", json!({})),
            ("Secret", json!({"stringData": {"a": "b"}})),
        ]
    }

    fn stored(object: &Value) -> Object {
        let bytes = codec::encode_value(object).expect("a kind");
        codec::object(&bytes, 1, &Default::default()).expect("an object")
    }

    #[test]
    fn what_defaults_bring_together_is_not_looked_at_again() {
        let resources = built_in();
        for (kind, mut object) in lacking() {
            let resource = resources.iter().find(|it| it.kind == kind);
            let resource = resource.expect(kind);
            object["kind"] = kind.into();
            object["apiVersion"] = resource.storage_version.to_string().into();
            object["metadata"] = json!({"name": "n"});
            let strategy = &resource.strategy;
            assert!(strategy.lacks_defaults(&stored(&object)), "{object}");
            strategy.default(&mut object);
            assert!(!strategy.lacks_defaults(&stored(&object)), "{object}");
        }
    }

    #[test]
    fn json_is_as_it_was_written() {
        for resource in built_in().iter().filter(|it| it.served == ServedBy::Store) {
            let object = json!({"kind": resource.storage_kind, "metadata": {"name": "n"},
                "apiVersion": resource.storage_version.to_string()});
            let object = Object::from_value(&object, 1, &Default::default()).expect("an object");
            assert!(
                !resource.strategy.lacks_defaults(&object),
                "{}",
                resource.kind
            );
        }
    }
}
