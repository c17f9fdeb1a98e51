//! The warnings about an object that is accepted: deprecated fields, and fields that hide others.

pub(crate) mod node_labels;
mod overlapping_paths;
mod ports;

use std::collections::BTreeSet;

use ringwatch_apimachinery::validation::formats;

use super::profile_annotations;
use crate::validation::address_warnings;
use crate::validation::field::Field;

/// The annotations of pods that do nothing any more.
const OLD_ANNOTATIONS: &[(&str, &str)] = &[
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];
/// The sources of volumes that are on their way out.
const OLD_VOLUMES: &[(&str, &str)] = &[
    (
        "photonPersistentDisk",
        "deprecated in v1.11, non-functional in v1.16+",
    ),
    (
        "gitRepo",
        "deprecated in v1.11, and disabled by default in v1.33+",
    ),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];
/// The resources of pods that are whole bytes.
const MEASURED_IN_BYTES: [&str; 2] = ["memory", "ephemeral-storage"];
const OLD_STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const OLD_MOUNT_OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";
const OLD_MOUNTABLE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";

/// Adds the warnings about a Pod.
pub(crate) fn pod(object: &Field<'_, '_>, warnings: &mut Vec<String>) {
    let wrong = formats::dns_label(object.at("metadata.name").text());
    if !wrong.is_empty() {
        warnings.push(format!(
            "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [{}]",
            wrong.join(" ")
        ));
    }
    pods(object, false, warnings);
}

/// Adds the warnings about an object with a pod template.
pub(crate) fn template(object: &Field<'_, '_>, warnings: &mut Vec<String>) {
    templates(&object.at("spec.template"), warnings);
}

/// Adds the warning about the name of a new object with which those of its pods begin.
pub(crate) fn name_of_pods(object: &Field<'_, '_>, warnings: &mut Vec<String>) {
    let wrong = formats::dns_label(object.at("metadata.name").text());
    if !wrong.is_empty() {
        warnings.push(format!(
            "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: [{}]",
            wrong.join(" ")
        ));
    }
}

/// Adds the warnings about a PodTemplate.
pub(crate) fn pod_template(object: &Field<'_, '_>, warnings: &mut Vec<String>) {
    templates(&object.at("template"), warnings);
}

/// Adds the warnings about the addresses in the status of a Pod.
pub(super) fn addresses_of_status(pod: &Field<'_, '_>, warnings: &mut Vec<String>) {
    for list in ["status.podIPs", "status.hostIPs"] {
        for item in pod.items(list) {
            address_warnings::ip(&item.at("ip"), warnings);
        }
    }
}

/// Adds the warnings about a template of pods. Follows `GetWarningsForPodTemplate`.
pub(crate) fn templates(template: &Field<'_, '_>, warnings: &mut Vec<String>) {
    pods(template, true, warnings);
}

/// Adds the warnings about a pod or a template of pods.
fn pods(pod: &Field<'_, '_>, is_template: bool, warnings: &mut Vec<String>) {
    let spec = pod.at("spec");
    node_labels::of_pod(&spec, warnings);
    for constraint in spec.items("topologySpreadConstraints") {
        node_labels::key(&constraint.at("topologyKey"), warnings);
        selects_nothing(&constraint, warnings);
    }
    for (annotation, why) in OLD_ANNOTATIONS {
        if pod
            .at("metadata.annotations")
            .value()
            .get(annotation)
            .is_some()
        {
            let field = pod.at("metadata.annotations").field();
            warnings.push(format!("{field}[{annotation}]: {why}"));
        }
    }
    for volume in spec.items("volumes") {
        for (source, why) in OLD_VOLUMES {
            if volume.at(member_of(source)).is_set() {
                warnings.push(format!("{}: {why}", volume.at(source).field()));
            }
        }
        claim_spec(&volume.at("ephemeral.volumeClaimTemplate.spec"), warnings);
    }
    overlapping_paths::of_volumes(&spec, warnings);
    repeated(&spec, "hostAliases", "ip", warnings);
    repeated(&spec, "imagePullSecrets", "name", warnings);
    for secret in spec.items("imagePullSecrets") {
        if secret.at("name").is_empty() {
            warnings.push(format!(
                "{}: invalid empty name \"\"",
                secret.at("name").field()
            ));
        }
    }
    for resource in MEASURED_IN_BYTES {
        fraction(&spec, "overhead", resource, warnings);
    }
    profile_annotations::warn_of_pod_seccomp(pod, warnings);
    containers(pod, is_template, warnings);
    ports::defined_twice(&spec, warnings);
    ports::named_twice(&spec, warnings);
    let grace = spec.at("terminationGracePeriodSeconds");
    if grace.number().is_some_and(|seconds| seconds < 0) {
        let why = "must be >= 0; negative values are invalid and will be treated as 1";
        warnings.push(format!("{}: {why}", grace.field()));
    }
    let affinity = spec.at("affinity");
    for pods in ["podAffinity", "podAntiAffinity"].map(|pods| affinity.at(pods)) {
        for term in pods.items("requiredDuringSchedulingIgnoredDuringExecution") {
            selects_nothing(&term, warnings);
        }
        for wish in pods.items("preferredDuringSchedulingIgnoredDuringExecution") {
            selects_nothing(&wish.at("podAffinityTerm"), warnings);
        }
    }
    for nameserver in spec.items("dnsConfig.nameservers") {
        address_warnings::ip(&nameserver, warnings);
    }
    for alias in spec.items("hostAliases") {
        address_warnings::ip(&alias.at("ip"), warnings);
    }
}

/// Adds the warnings about each container of a pod or a template of pods.
fn containers(pod: &Field<'_, '_>, is_template: bool, warnings: &mut Vec<String>) {
    let spec = pod.at("spec");
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in spec.items(list) {
            profile_annotations::warn_of_seccomp(pod, &container, warnings);
            // For pods, annotations become fields, with a warning of their own.
            if is_template {
                profile_annotations::warn_of_app_armor(pod, &container, warnings);
            }
            for resource in MEASURED_IN_BYTES {
                fraction(&container, "resources.limits", resource, warnings);
                fraction(&container, "resources.requests", resource, warnings);
            }
            hidden_variables(&container, warnings);
        }
    }
}

/// Says that an element has the same member as one before.
fn repeated(spec: &Field<'_, '_>, list: &str, member: &str, warnings: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for item in spec.items(list) {
        let it = item.at(member);
        if !seen.insert(it.text()) {
            warnings.push(format!(
                "{}: duplicate {member} {:?}",
                it.field(),
                it.text()
            ));
        }
    }
}

fn selects_nothing(term: &Field<'_, '_>, warnings: &mut Vec<String>) {
    let selector = term.at("labelSelector");
    if !selector.is_set() {
        let field = selector.field();
        warnings.push(format!(
            "{field}: a null labelSelector results in matching no pod"
        ));
    }
}

/// Adds a warning if the quantity of a resource in a list, if there is one, has a fraction of a byte.
fn fraction(at: &Field<'_, '_>, list: &str, resource: &str, warnings: &mut Vec<String>) {
    let quantities = at.members(list).filter(|(name, _)| *name == resource);
    for (_, quantity) in quantities {
        if quantity.quantity().is_some_and(|it| !it.is_whole()) {
            warnings.push(format!(
                "{}: fractional byte value {:?} is invalid, must be an integer",
                quantity.field(),
                quantity.canonical_quantity()
            ));
        }
    }
}

/// Adds warnings about variables that hide earlier ones of the same name, unless they refer to them.
fn hidden_variables(container: &Field<'_, '_>, warnings: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for variable in container.items("env") {
        let (name, value) = (variable.at("name").text(), variable.at("value").text());
        let reference = format!("$({name})");
        let builds_on = value.contains(&reference) && value != reference;
        if !seen.insert(name) && (variable.at("valueFrom").is_set() || !builds_on) {
            let field = variable.field();
            warnings.push(format!(
                "{field}: hides previous definition of {name:?}, which may be dropped when using apply"
            ));
        }
    }
}

/// Adds the warnings about a PersistentVolumeClaim.
pub(crate) fn claim(object: &Field<'_, '_>, warnings: &mut Vec<String>) {
    old_storage_class(object, warnings);
    claim_spec(&object.at("spec"), warnings);
}

/// Adds the warnings about the spec of a claim. Follows `GetWarningsForPersistentVolumeClaimSpec`.
pub(crate) fn claim_spec(spec: &Field<'_, '_>, warnings: &mut Vec<String>) {
    for list in ["resources.requests", "resources.limits"] {
        fraction(spec, list, "storage", warnings);
    }
}

/// Adds the warnings about a PersistentVolume.
pub(crate) fn volume(object: &Field<'_, '_>, warnings: &mut Vec<String>) {
    old_storage_class(object, warnings);
    if has_annotation(object, OLD_MOUNT_OPTIONS) {
        warnings.push(format!(
            "metadata.annotations[{OLD_MOUNT_OPTIONS}]: deprecated since v1.31; use \"mountOptions\" attribute instead"
        ));
    }
    let policy = object.at("spec.persistentVolumeReclaimPolicy");
    if policy.text() == "Recycle" {
        let why = "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.";
        warnings.push(format!("{}: {why}", policy.field()));
    }
    for term in object.items("spec.nodeAffinity.required.nodeSelectorTerms") {
        node_labels::term(&term, false, warnings);
    }
    // Kubernetes tells of these alone, in another order than of those of pods.
    for source in [
        "cephfs",
        "photonPersistentDisk",
        "scaleIO",
        "storageOS",
        "glusterfs",
        "rbd",
    ] {
        let member = member_of(source);
        let old = OLD_VOLUMES.iter().find(|(of, _)| *of == source);
        if let Some((_, why)) = old.filter(|_| object.at("spec").at(member).is_set()) {
            warnings.push(format!("spec.{source}: {why}"));
        }
    }
}

/// Returns the member that a source is, of which Kubernetes writes one otherwise in its warnings.
fn member_of(source: &str) -> &str {
    if source == "storageOS" {
        "storageos"
    } else {
        source
    }
}

fn old_storage_class(object: &Field<'_, '_>, warnings: &mut Vec<String>) {
    if has_annotation(object, OLD_STORAGE_CLASS) {
        warnings.push(format!(
            "metadata.annotations[{OLD_STORAGE_CLASS}]: deprecated since v1.8; use \"storageClassName\" attribute instead"
        ));
    }
}

/// Returns true if a ServiceAccount has the annotation by which its pods mounted no secrets but its own.
pub(crate) fn names_secrets_to_mount(object: &Field<'_, '_>) -> bool {
    has_annotation(object, OLD_MOUNTABLE_SECRETS)
}

/// Adds the warnings about a ServiceAccount.
pub(crate) fn service_account(object: &Field<'_, '_>, warnings: &mut Vec<String>) {
    if names_secrets_to_mount(object) {
        warnings.push(format!(
            "metadata.annotations[{OLD_MOUNTABLE_SECRETS}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
        ));
    }
}

fn has_annotation(object: &Field<'_, '_>, name: &str) -> bool {
    object
        .at("metadata.annotations")
        .value()
        .get(name)
        .is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn warnings_of(warn: crate::validation::Warn, object: &Value) -> Vec<String> {
        let mut warnings = Vec::new();
        warn(&Field::root(object), &mut warnings);
        warnings
    }

    #[test]
    fn what_hides_something_else_is_told() {
        let object = json!({"metadata": {"name": "d.e", "annotations": {}}, "spec": {"template": {"spec": {
            "nodeSelector": {"beta.kubernetes.io/os": "linux"},
            "terminationGracePeriodSeconds": -1,
            "volumes": [{"name": "v", "gitRepo": {}}],
            "containers": [{"name": "c",
                "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}, {"name": "A", "value": "$(A)3"}],
                "ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 80, "protocol": "TCP"}],
                "resources": {"limits": {"memory": "100m"}}}]}}}});
        assert_eq!(
            warnings_of(
                |object, warnings| {
                    name_of_pods(object, warnings);
                    template(object, warnings);
                },
                &object
            ),
            [
                "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]",
                "spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \"kubernetes.io/os\" instead",
                "spec.template.spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
                "spec.template.spec.containers[0].resources.limits[memory]: fractional byte value \"100m\" is invalid, must be an integer",
                "spec.template.spec.containers[0].env[1]: hides previous definition of \"A\", which may be dropped when using apply",
                "spec.template.spec.containers[0].ports[1]: duplicate port definition with spec.template.spec.containers[0].ports[0]",
                "spec.template.spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1",
            ]
        );
    }

    #[test]
    fn addresses_that_are_not_canonical_are_told() {
        let told = |field: &str| {
            format!(
                "{field}: IPv6 address \"FD00::1\" should be in RFC 5952 canonical format (\"fd00::1\")"
            )
        };
        let pod = json!({"spec": {"dnsConfig": {"nameservers": ["10.0.0.1", "FD00::1"]},
            "hostAliases": [{"ip": "FD00::1"}]}});
        let fields = ["spec.dnsConfig.nameservers[1]", "spec.hostAliases[0].ip"];
        assert_eq!(
            warnings_of(pod_template, &json!({"template": pod})).len(),
            2
        );
        let mut warnings = Vec::new();
        pods(&Field::root(&pod), false, &mut warnings);
        assert_eq!(warnings, fields.map(told));
        let status =
            json!({"status": {"podIPs": [{"ip": "FD00::1"}], "hostIPs": [{"ip": "FD00::1"}]}});
        let mut warnings = Vec::new();
        addresses_of_status(&Field::root(&status), &mut warnings);
        assert_eq!(
            warnings,
            ["status.podIPs[0].ip", "status.hostIPs[0].ip"].map(told)
        );
    }

    #[test]
    fn what_is_deprecated_is_told() {
        let volume = json!({"spec": {"persistentVolumeReclaimPolicy": "Recycle"}});
        assert_eq!(warnings_of(super::volume, &volume).len(), 1);
    }
}
