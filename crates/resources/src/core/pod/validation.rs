//! Checks of pods and pod templates.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

mod claims;
mod container;
pub(crate) mod env;
mod host_namespaces;
pub(crate) mod mounts;
mod name_servers;
mod operating_system;
mod probes;
pub(crate) mod resources;
pub(crate) mod scheduling;
pub(crate) mod security;
mod windows;

use std::cell::Cell;
use std::collections::{BTreeSet, HashSet};

use ringwatch_apimachinery::error::ERROR_BYTES_MAX;
use ringwatch_apimachinery::validation::formats;
use ringwatch_apimachinery::validation::validate_annotations;
use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use serde_json::json;

use super::annotations::{self, MIRROR, is_mirror};
use super::profile_annotations;
pub(super) use super::validation::container::no_spaces_around_image;
use super::validation::container::{PodParts, containers, ephemeral_containers, init_containers};
use super::validation::resources::pod_resources;
use crate::validation::field::{Errors, Field};
use crate::validation::quantities;
use crate::{core::volume::validation, validation::labels};

const HOST_NAME_BYTES_MAX: usize = 64;

/// The claims that come with a template, of which each is a volume.
pub(crate) type TemplateClaims<'v> = HashSet<&'v str>;

/// Checks a Pod: its spec, with the rules for pods that do not apply to templates. Follows `ValidatePodCreate`.
pub(crate) fn pod(pod: &Field<'_, '_>, errors: &mut Errors) {
    let spec = pod.at("spec");
    annotations_of_pod(pod, errors);
    let kind = SpecOf::Pod {
        name: pod.at("metadata.name").text(),
        is_mirror: is_mirror(pod.value()),
    };
    self::spec(&spec, kind, errors);
    if spec.at("serviceAccountName").is_empty() {
        for volume in spec.items("volumes") {
            for source in volume.items("projected.sources") {
                let why = "must not be specified when serviceAccountName is not set";
                source.at("serviceAccountToken").must_be_unset(why, errors);
            }
        }
    }
    for list in ["containers", "initContainers"] {
        for container in spec.items(list) {
            no_spaces_around_image(&container, errors);
        }
    }
}

/// Checks that a new pod has nothing that can only be added later, such as ephemeral containers. Follows
/// `ValidatePodCreate`.
pub(crate) fn new_pod(pod: &Field<'_, '_>, errors: &mut Errors) {
    let spec = pod.at("spec");
    let added = spec.at("ephemeralContainers");
    if !added.is_empty() {
        errors.push(added.forbidden("cannot be set on create"));
    }
    if !spec.at("nodeName").is_empty() && !spec.at("schedulingGates").is_empty() {
        let why = "cannot be set until all schedulingGates have been cleared";
        errors.push(spec.at("nodeName").forbidden(why));
    }
    profile_annotations::check_seccomp_fields(pod, errors);
    profile_annotations::check_app_armor_fields(pod, errors);
}

/// Checks the annotations of a pod that mean something. Changes of pods have them checked once more.
pub(super) fn annotations_of_pod(pod: &Field<'_, '_>, errors: &mut Errors) {
    specific_annotations(pod, &pod.at("metadata.annotations").field(), errors);
}

/// Checks a pod template. Follows `ValidatePodTemplateSpec`.
pub(crate) fn template(template: &Field<'_, '_>, claims: &TemplateClaims<'_>, errors: &mut Errors) {
    template_metadata(template, errors);
    let spec = template.at("spec");
    self::spec(&spec, SpecOf::Template(claims), errors);
    profile_annotations::check_seccomp_fields(template, errors);
    profile_annotations::check_app_armor_fields(template, errors);
    let added = spec.at("ephemeralContainers");
    if !added.is_empty() {
        errors.push(added.forbidden("ephemeral containers not allowed in pod template"));
    }
}

/// Checks the labels and annotations of a pod template.
pub(crate) fn template_metadata(template: &Field<'_, '_>, errors: &mut Errors) {
    let labels = template.at("metadata.labels");
    let mut wrong = Errors::new();
    labels::labels(&labels, &mut wrong);
    // Kubernetes leaves the metadata out of the path.
    errors.extend(wrong.into_iter().map(|mut error| {
        error.field = template.at("labels").field();
        error
    }));
    let path = template.at("annotations").field();
    let given = template.at("metadata.annotations");
    errors.extend(validate_annotations(given.value(), &path));
    specific_annotations(template, &path, errors);
}

/// Checks the annotations of a pod or template that mean something, which errors name by `path`. Follows
/// `ValidatePodSpecificAnnotations`.
fn specific_annotations(pod: &Field<'_, '_>, path: &str, errors: &mut Errors) {
    let all = pod.at("metadata.annotations");
    if let Some(value) = all.value().get(MIRROR)
        && pod.at("spec.nodeName").is_empty()
    {
        let why = "must set spec.nodeName if mirror pod annotation is set";
        errors.push(FieldError::invalid(format!("{path}[{MIRROR}]"), value, why));
    }
    scheduling::annotated_tolerations(pod, path, errors);
    annotations::deletion_cost(pod, path, errors);
    profile_annotations::check(pod, path, errors);
}

/// Checks a PodTemplate. Follows `ValidatePodTemplate`.
pub(crate) fn pod_template(object: &Field<'_, '_>, errors: &mut Errors) {
    template(&object.at("template"), &TemplateClaims::new(), errors);
}

/// The object whose spec is checked.
#[derive(Clone, Copy)]
enum SpecOf<'v> {
    /// A pod.
    Pod {
        name: &'v str,
        /// True if it stands for a static pod of a node.
        is_mirror: bool,
    },
    /// A template, with the claims that come with it.
    Template(&'v TemplateClaims<'v>),
}

/// Checks the spec of a pod or template.
fn spec(spec: &Field<'_, '_>, owner: SpecOf<'_>, errors: &mut Errors) {
    let none = TemplateClaims::new();
    let (pod_name, is_mirror, claims) = match owner {
        SpecOf::Pod { name, is_mirror } => (Some(name), is_mirror, &none),
        SpecOf::Template(claims) => (None, false, claims),
    };
    let of_pod = pod_name.is_some();
    let grace = spec.at("terminationGracePeriodSeconds").number();
    let volumes = validation::volumes(spec, pod_name, errors);
    let own_claims = claims::of_pod(spec, is_mirror, errors);
    let pod = PodParts {
        spec,
        volumes: &volumes,
        claims,
        own_claims: &own_claims,
        grace,
        privileges_room: &Cell::new(ERROR_BYTES_MAX),
    };
    containers(pod, errors);
    init_containers(pod, errors);
    ephemeral_containers(pod, errors);
    pod_resources(spec, &own_claims, errors);
    host_namespaces::host_network(spec, of_pod, errors);
    spec.at("restartPolicy")
        .may_be_one_of(&["Always", "OnFailure", "Never"], errors);
    spec.at("dnsPolicy").may_be_one_of(
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
        errors,
    );
    labels::labels(&spec.at("nodeSelector"), errors);
    security::of_pod(spec, errors);
    scheduling::affinity(&spec.at("affinity"), errors);
    name_servers::name_servers(spec, errors);
    gates(spec, errors);
    scheduling::spread(spec, errors);
    operating_system::host_processes(spec, errors);
    host_namespaces::host_users(spec, errors);
    host_name(spec, errors);
    names(spec, errors);
    overhead(spec, errors);
    operating_system::operating_system(spec, errors);
    env::files(spec, errors);
}

/// Checks the name of the host that a pod sees. Follows `validatePodHostName`.
fn host_name(spec: &Field<'_, '_>, errors: &mut Errors) {
    let name = spec.at("hostnameOverride");
    if !name.is_set() {
        return;
    }
    for other in ["setHostnameAsFQDN", "hostNetwork"] {
        if spec.at(other).is_true() {
            let why = format!("may not be specified when {other} is true");
            errors.push(name.forbidden(why));
        }
    }
    if name.text().len() > HOST_NAME_BYTES_MAX {
        let why = format!("may not be more than {HOST_NAME_BYTES_MAX} bytes");
        errors.push(FieldError::new(FieldErrorKind::TooLong, name.field(), why));
    }
    name.must_conform(formats::dns_subdomain, errors);
}

/// Checks what a pod takes beside its containers. Follows `validateOverhead`.
fn overhead(spec: &Field<'_, '_>, errors: &mut Errors) {
    let at = spec.at("overhead");
    if at.is_set() {
        // Kubernetes takes it for limits.
        let (limits, path) = (json!({"limits": at.value()}), at.field());
        let limits = Field::named(&limits, &path);
        quantities::requirements(&limits, quantities::container_name, errors);
    }
}

/// Checks the names in the spec of a pod, and what else stands beside them.
fn names(spec: &Field<'_, '_>, errors: &mut Errors) {
    for member in ["serviceAccountName", "nodeName"] {
        spec.at(member).may_conform(formats::dns_subdomain, errors);
    }
    spec.at("activeDeadlineSeconds")
        .must_be_between(1, i64::from(i32::MAX), errors);
    for member in ["hostname", "subdomain"] {
        spec.at(member).may_conform(formats::dns_label, errors);
    }
    scheduling::tolerations(&spec.at("tolerations"), errors);
    name_servers::host_aliases(spec, errors);
    spec.at("priorityClassName")
        .may_conform(formats::dns_subdomain, errors);
    if spec.at("runtimeClassName").is_set() {
        spec.at("runtimeClassName")
            .must_conform(formats::dns_subdomain, errors);
    }
    let preemption = spec.at("preemptionPolicy");
    if preemption.is_set() {
        preemption.must_be_one_of(&["PreemptLowerPriority", "Never"], errors);
    }
}

/// Checks readiness gates and scheduling gates.
fn gates(spec: &Field<'_, '_>, errors: &mut Errors) {
    for gate in spec.items("readinessGates") {
        gate.at("conditionType")
            .must_conform(formats::label_key, errors);
    }
    let mut seen = BTreeSet::new();
    for gate in spec.items("schedulingGates") {
        let name = gate.at("name").text();
        let wrong = formats::label_key(name).into_iter();
        errors.extend(wrong.map(|why| gate.invalid_value(name, why)));
        if !seen.insert(name) {
            errors.push(gate.duplicate_of(name));
        }
    }
}
