//! The warnings about labels of nodes that are deprecated.
//!
//! Follows pkg/api/node/util.go of Kubernetes 1.36.

use ringwatch_apimachinery::validation::formats;

use crate::validation::field::Field;

/// The deprecated labels of nodes, and what is said of each.
const OLD_LABELS: &[(&str, &str)] = &[
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "beta.kubernetes.io/arch",
        "deprecated since v1.14; use \"kubernetes.io/arch\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    (
        "beta.kubernetes.io/os",
        "deprecated since v1.14; use \"kubernetes.io/os\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "node-role.kubernetes.io/master",
        "use \"node-role.kubernetes.io/control-plane\" instead",
    ),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
];

/// Returns what is said of a label, if it is deprecated.
fn why(name: &str) -> Option<&'static str> {
    let found = OLD_LABELS.iter().find(|(old, _)| *old == name);
    found.map(|(_, why)| *why)
}

/// Adds the warning about a field that names a label, with the name.
pub(super) fn key(key: &Field<'_, '_>, warnings: &mut Vec<String>) {
    let why = why(key.text());
    warnings.extend(why.map(|why| format!("{}: {} is {why}", key.field(), key.text())));
}

/// Adds the warnings about the labels by which a pod selects nodes.
pub(super) fn of_pod(spec: &Field<'_, '_>, warnings: &mut Vec<String>) {
    for (name, label) in spec.members("nodeSelector") {
        warnings.extend(why(name).map(|why| format!("{}: {why}", label.field())));
    }
    let nodes = spec.at("affinity.nodeAffinity");
    for term in nodes.items("requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms") {
        self::term(&term, false, warnings);
    }
    for wish in nodes.items("preferredDuringSchedulingIgnoredDuringExecution") {
        term(&wish.at("preference"), true, warnings);
    }
}

/// Adds the warnings about a term of a node selector, and for terms that are not validated about their values. Follows
/// `GetWarningsForNodeSelectorTerm`.
pub(super) fn term(term: &Field<'_, '_>, with_values: bool, warnings: &mut Vec<String>) {
    for expression in term.items("matchExpressions") {
        key(&expression.at("key"), warnings);
        for value in expression.items("values").filter(|_| with_values) {
            let text = value.text();
            let wrong = formats::label_value(text).into_iter();
            warnings
                .extend(wrong.map(|why| format!("{}: {text} is invalid, {why}", value.field())));
        }
    }
}

/// Adds the warnings about a StorageClass. Follows `GetWarningsForStorageClass`.
pub(crate) fn storage_class(class: &Field<'_, '_>, warnings: &mut Vec<String>) {
    for term in class.items("allowedTopologies") {
        for expression in term.items("matchLabelExpressions") {
            let key = expression.at("key");
            warnings.extend(why(key.text()).map(|why| format!("{}: {why}", key.field())));
        }
    }
}

/// Adds the warnings about a CSIStorageCapacity. Follows `GetWarningsForCSIStorageCapacity`.
pub(crate) fn storage_capacity(capacity: &Field<'_, '_>, warnings: &mut Vec<String>) {
    let nodes = capacity.at("nodeTopology");
    for expression in nodes.items("matchExpressions") {
        key(&expression.at("key"), warnings);
    }
    let labels = nodes.at("matchLabels");
    for (name, _) in nodes.members("matchLabels") {
        warnings.extend(why(name).map(|why| format!("{}.{name}: {why}", labels.field())));
    }
}

/// Adds the warnings about a RuntimeClass. Follows `GetWarningsForRuntimeClass`.
pub(crate) fn runtime_class(class: &Field<'_, '_>, warnings: &mut Vec<String>) {
    let selector = class.at("scheduling.nodeSelector");
    for (name, _) in class.members("scheduling.nodeSelector") {
        warnings.extend(why(name).map(|why| format!("{}: {why}", selector.field())));
    }
}
