//! Checks of pods and pod templates.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

mod claims;
mod container;
pub(crate) mod env;
pub(crate) mod mounts;
mod operating_system;
mod probes;
pub(crate) mod resources;
pub(crate) mod scheduling;
pub(crate) mod security;
mod windows;

use std::collections::HashSet;

use ringwatch_apimachinery::validation::formats;
use ringwatch_apimachinery::validation::validate_annotations;
use ringwatch_apimachinery::{FieldError, FieldErrorKind};

use super::annotations::MIRROR;
use super::profile_annotations;
use super::validation::container::{
    PodParts, containers, ephemeral_containers, init_containers, no_spaces_around_image,
};
use super::validation::resources::pod_resources;
use crate::validation::field::{Errors, Field};
use crate::validation::quantities;
use crate::validation::values::ip;
use crate::{core::volume::validation, validation::labels};

/// Maximum numbers of name servers and of search domains of a pod.
const NAME_SERVERS_MAX: usize = 3;
const SEARCH_DOMAINS_MAX: usize = 32;
/// Maximum length of all search domains with spaces between them.
const SEARCH_CHARACTERS_MAX: usize = 2048;
const HOST_NAME_BYTES_MAX: usize = 64;

/// The claims that come with a template, of which each is a volume.
pub(crate) type TemplateClaims<'v> = HashSet<&'v str>;

/// Checks a Pod: its spec, with the rules for pods that do not apply to templates. Follows `ValidatePodCreate`.
pub(crate) fn pod(pod: &Field<'_, '_>, errors: &mut Errors) {
    let spec = pod.at("spec");
    annotations(pod, &pod.at("metadata.annotations").field(), errors);
    let kind = SpecOf::Pod(pod.at("metadata.name").text());
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
    // Changes cannot bring them in: neither the settings nor the namespaces of a pod change.
    security::host_settings(&spec, errors);
}

/// Checks a pod template. Follows `ValidatePodTemplateSpec`.
pub(crate) fn template(template: &Field<'_, '_>, claims: &TemplateClaims<'_>, errors: &mut Errors) {
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
    annotations(template, &path, errors);
    let spec = template.at("spec");
    self::spec(&spec, SpecOf::Template(claims), errors);
    profile_annotations::check_seccomp_fields(template, errors);
    let added = spec.at("ephemeralContainers");
    if !added.is_empty() {
        errors.push(added.forbidden("ephemeral containers not allowed in pod template"));
    }
}

/// Checks the annotations of a pod or template that mean something, which errors name by `path`. Follows
/// `ValidatePodSpecificAnnotations`.
fn annotations(pod: &Field<'_, '_>, path: &str, errors: &mut Errors) {
    let all = pod.at("metadata.annotations");
    if let Some(value) = all.value().get(MIRROR)
        && pod.at("spec.nodeName").is_empty()
    {
        let why = "must set spec.nodeName if mirror pod annotation is set";
        errors.push(FieldError::invalid(format!("{path}[{MIRROR}]"), value, why));
    }
    profile_annotations::check(pod, path, errors);
}

/// Checks a PodTemplate. Follows `ValidatePodTemplate`.
pub(crate) fn pod_template(object: &Field<'_, '_>, errors: &mut Errors) {
    template(&object.at("template"), &TemplateClaims::new(), errors);
}

/// The object whose spec is checked.
#[derive(Clone, Copy)]
enum SpecOf<'v> {
    /// A pod, with its name.
    Pod(&'v str),
    /// A template, with the claims that come with it.
    Template(&'v TemplateClaims<'v>),
}

/// Checks the spec of a pod or template.
fn spec(spec: &Field<'_, '_>, owner: SpecOf<'_>, errors: &mut Errors) {
    let none = TemplateClaims::new();
    let (pod_name, claims) = match owner {
        SpecOf::Pod(name) => (Some(name), &none),
        SpecOf::Template(claims) => (None, claims),
    };
    let of_pod = pod_name.is_some();
    let grace = spec.at("terminationGracePeriodSeconds").number();
    let volumes = validation::volumes(spec, pod_name, errors);
    let own_claims = claims::of_pod(spec, errors);
    let pod = PodParts {
        spec,
        volumes: &volumes,
        claims,
        own_claims: &own_claims,
        grace,
    };
    containers(pod, errors);
    init_containers(pod, errors);
    ephemeral_containers(pod, errors);
    pod_resources(spec, &own_claims, errors);
    spec.at("restartPolicy")
        .may_be_one_of(&["Always", "OnFailure", "Never"], errors);
    spec.at("dnsPolicy").may_be_one_of(
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
        errors,
    );
    labels::labels(&spec.at("nodeSelector"), errors);
    host_network(spec, of_pod, errors);
    security::of_pod(&spec.at("securityContext"), errors);
    let shared = spec.at("shareProcessNamespace");
    if shared.is_true() && spec.at("hostPID").is_true() {
        let blamed = spec.at("securityContext.shareProcessNamespace");
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.push(blamed.invalid_value(true, why));
    }
    scheduling::affinity(&spec.at("affinity"), errors);
    names_and_addresses(spec, errors);
    gates(spec, errors);
    scheduling::spread(spec, errors);
    scheduling::tolerations(&spec.at("tolerations"), errors);
    operating_system::host_processes(spec, errors);
    names(spec, errors);
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
    for (resource, quantity) in spec.members("overhead") {
        let mut wrong = Errors::new();
        quantities::container_name(resource, &quantity, &mut wrong);
        quantities::amount(resource, &quantity, &mut wrong);
        // Kubernetes takes it for limits.
        errors.extend(wrong.into_iter().map(|mut error| {
            error.field = format!("{}.limits[{resource}]", at.field());
            error
        }));
    }
}

fn names(spec: &Field<'_, '_>, errors: &mut Errors) {
    if spec.at("hostUsers").is_set() && !spec.at("hostUsers").is_true() {
        for (member, blamed) in [
            ("hostNetwork", "hostNetwork"),
            ("hostPID", "HostPID"),
            ("hostIPC", "HostIPC"),
        ] {
            if spec.at(member).is_true() {
                errors.push(
                    spec.at(blamed)
                        .forbidden("when `pod.Spec.HostUsers` is false"),
                );
            }
        }
    }
    host_name(spec, errors);
    for member in ["serviceAccountName", "nodeName"] {
        spec.at(member).may_conform(formats::dns_subdomain, errors);
    }
    spec.at("activeDeadlineSeconds")
        .must_be_between(1, i64::from(i32::MAX), errors);
    for member in ["hostname", "subdomain"] {
        spec.at(member).may_conform(formats::dns_label, errors);
    }
    spec.at("priorityClassName")
        .may_conform(formats::dns_subdomain, errors);
    if spec.at("runtimeClassName").is_set() {
        spec.at("runtimeClassName")
            .must_conform(formats::dns_subdomain, errors);
    }
    spec.at("preemptionPolicy")
        .may_be_one_of(&["PreemptLowerPriority", "Never"], errors);
    overhead(spec, errors);
    operating_system::operating_system(spec, errors);
}

/// Checks that ports of pods in the host's network are the same on the host.
fn host_network(spec: &Field<'_, '_>, of_pod: bool, errors: &mut Errors) {
    if !spec.at("hostNetwork").is_true() {
        return;
    }
    for container in spec.items("containers") {
        for port in container.items("ports") {
            let on_host = port.at("hostPort");
            let number = on_host.number().unwrap_or(0);
            if (of_pod || number != 0) && Some(number) != port.at("containerPort").number() {
                let why = "must match `containerPort` when `hostNetwork` is true";
                errors.push(on_host.invalid_value(number, why));
            }
        }
    }
}

fn names_and_addresses(spec: &Field<'_, '_>, errors: &mut Errors) {
    let config = spec.at("dnsConfig");
    let servers = config.at("nameservers");
    if spec.at("dnsPolicy").text() == "None" {
        if !config.is_set() {
            let why = "must provide `dnsConfig` when `dnsPolicy` is None";
            errors.push(config.required(why));
        } else if servers.is_empty() {
            let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            errors.push(servers.required(why));
        }
    }
    if servers.len() > NAME_SERVERS_MAX {
        let why = format!("must not have more than {NAME_SERVERS_MAX} nameservers");
        errors.push(servers.invalid(why));
    }
    for server in servers.items("") {
        server.must_conform(ip, errors);
    }
    let domains = config.at("searches");
    if domains.len() > SEARCH_DOMAINS_MAX {
        let why = format!("must not have more than {SEARCH_DOMAINS_MAX} search paths");
        errors.push(domains.invalid(why));
    }
    let characters: usize = domains.items("").map(|it| it.text().len() + 1).sum();
    if characters > SEARCH_CHARACTERS_MAX + 1 {
        let why = format!(
            "must not have more than {SEARCH_CHARACTERS_MAX} characters (including spaces) in the search list"
        );
        errors.push(domains.invalid(why));
    }
    for domain in domains.items("").filter(|it| it.text() != ".") {
        let text = domain.text();
        let text = text.strip_suffix('.').unwrap_or(text);
        let wrong = search_domain(text).into_iter();
        errors.extend(wrong.map(|why| domain.invalid_value(text, why)));
    }
    for option in config.items("options") {
        if option.at("name").is_empty() {
            errors.push(option.required("must not be empty"));
        }
    }
    for alias in spec.items("hostAliases") {
        alias.at("ip").must_conform(ip, errors);
        for name in alias.items("hostnames") {
            name.must_conform(formats::dns_subdomain, errors);
        }
    }
}

/// Returns the errors in a domain in which names are looked up; it may have underscores.
fn search_domain(text: &str) -> Vec<String> {
    const BYTES_MAX: usize = 253;
    let word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_part = |part: &str| {
        let bytes = part.strip_prefix('_').unwrap_or(part).as_bytes();
        let ends = [bytes.first(), bytes.last()];
        ends.iter().all(|it| it.is_some_and(|byte| word(*byte)))
            && bytes.iter().all(|byte| word(*byte) || b"-_".contains(byte))
    };
    let mut wrong = formats::too_long(text, BYTES_MAX);
    if !text.split('.').all(is_part) {
        wrong.push(formats::mismatch(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character",
            r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*",
            &["example.com"],
        ));
    }
    wrong
}

/// Checks readiness gates and scheduling gates.
fn gates(spec: &Field<'_, '_>, errors: &mut Errors) {
    for gate in spec.items("readinessGates") {
        gate.at("conditionType")
            .must_conform(formats::label_key, errors);
    }
    let mut seen = std::collections::BTreeSet::new();
    for gate in spec.items("schedulingGates") {
        let name = gate.at("name").text();
        let wrong = formats::label_key(name).into_iter();
        errors.extend(wrong.map(|why| gate.invalid_value(name, why)));
        if !seen.insert(name) {
            errors.push(gate.duplicate_of(name));
        }
    }
}
