//! Containers, init containers and ephemeral containers.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use std::collections::BTreeSet;

use ringwatch_apimachinery::validation::formats;

use super::TemplateClaims;
use super::claims::{self, OwnClaims};
use super::mounts::mounts;
use super::probes::{no_probes, probes};
use super::{env, security};
use crate::core::volume::validation::Volumes;
use crate::validation::field::{Errors, Field};
use crate::validation::quantities;
use crate::validation::values::{PROTOCOLS, port_name};

/// The parts of a pod that the checks of its containers need.
#[derive(Clone, Copy)]
pub(super) struct PodParts<'a, 'v, 'p> {
    pub(super) spec: &'a Field<'v, 'p>,
    pub(super) volumes: &'a Volumes<'v, 'p>,
    pub(super) claims: &'a TemplateClaims<'a>,
    pub(super) own_claims: &'a OwnClaims<'v>,
    pub(super) grace: Option<i64>,
}

/// Returns the containers of a pod's spec, in Kubernetes' order.
pub(super) fn all_containers<'v, 's>(
    spec: &'s Field<'v, '_>,
) -> impl Iterator<Item = Field<'v, 's>> {
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    lists.into_iter().flat_map(|list| spec.items(list))
}

/// Checks the containers of a pod. Follows `validateContainers`.
pub(super) fn containers(pod: PodParts<'_, '_, '_>, errors: &mut Errors) {
    let list = pod.spec.at("containers");
    if list.is_empty() {
        errors.push(list.required(""));
    }
    let mut names = BTreeSet::new();
    for container in pod.spec.items("containers") {
        common(&container, pod, errors);
        let name = container.at("name");
        if !names.insert(name.text()) {
            errors.push(name.duplicate());
        }
        probes(&container, pod.grace, errors);
        restart_rules(&container, errors);
    }
    let mut taken = BTreeSet::new();
    for container in pod.spec.items("containers") {
        host_ports(&container, &mut taken, errors);
    }
}

/// Checks the init containers of a pod, sidecars among them. Follows `validateInitContainers`.
pub(super) fn init_containers(pod: PodParts<'_, '_, '_>, errors: &mut Errors) {
    let mut names: BTreeSet<_> = names(pod.spec, "containers");
    for container in pod.spec.items("initContainers") {
        common(&container, pod, errors);
        let policy = container.at("restartPolicy");
        let name = container.at("name");
        restart_rules(&container, errors);
        if names.contains(name.text()) {
            errors.push(name.duplicate());
        } else if !name.is_empty() {
            names.insert(name.text());
        }
        host_ports(&container, &mut BTreeSet::new(), errors);
        if policy.text() == "Always" {
            probes(&container, pod.grace, errors);
        } else {
            no_probes(&container, errors);
        }
    }
}

/// Checks the ephemeral containers of a pod. Follows `validateEphemeralContainers`.
pub(super) fn ephemeral_containers(pod: PodParts<'_, '_, '_>, errors: &mut Errors) {
    const FORBIDDEN: &[&str] = &[
        "ports",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "lifecycle",
        "resizePolicy",
        "restartPolicy",
        "restartPolicyRules",
    ];
    let why = "cannot be set for an Ephemeral Container";
    let mut others = names(pod.spec, "containers");
    others.extend(names(pod.spec, "initContainers"));
    let mut names = others.clone();
    for container in pod.spec.items("ephemeralContainers") {
        common(&container, pod, errors);
        no_spaces_around_image(&container, errors);
        let name = container.at("name");
        if !names.insert(name.text()) {
            errors.push(name.duplicate());
        }
        let target = container.at("targetContainerName");
        if !target.is_empty() && !others.contains(target.text()) {
            errors.push(target.not_found());
        }
        for member in FORBIDDEN {
            container.at(member).must_be_unset(why, errors);
        }
        let resources = container.at("resources");
        if !resources.is_empty() {
            errors.push(resources.forbidden(why));
        }
        for mount in container.items("volumeMounts") {
            for member in ["subPath", "subPathExpr"] {
                mount.at(member).must_be_unset(why, errors);
            }
        }
    }
}

/// Checks the image of a container of a pod, which unlike that of a template has no spaces around it. Follows
/// `validateContainerOnlyForPod`.
pub(super) fn no_spaces_around_image(container: &Field<'_, '_>, errors: &mut Errors) {
    let image = container.at("image");
    if image.text().trim() != image.text() {
        errors.push(image.invalid("must not have leading or trailing whitespace"));
    }
}

fn names<'v>(spec: &Field<'v, '_>, list: &str) -> BTreeSet<&'v str> {
    spec.items(list).map(|it| it.at("name").text()).collect()
}

fn common(container: &Field<'_, '_>, pod: PodParts<'_, '_, '_>, errors: &mut Errors) {
    let name = container.at("name");
    name.must_be_set_and_conform(formats::dns_label, errors);
    container.at("image").must_be_set(errors);
    let policies = ["File", "FallbackToLogsOnError"];
    container
        .at("terminationMessagePolicy")
        .may_be_one_of(&policies, errors);
    ports(container, errors);
    env::variables(container, errors);
    mounts(container, pod.volumes, pod.claims, errors);
    let policies = ["Always", "IfNotPresent", "Never"];
    container
        .at("imagePullPolicy")
        .may_be_one_of(&policies, errors);
    quantities::requirements(
        &container.at("resources"),
        quantities::container_name,
        errors,
    );
    claims::used(pod.own_claims, &container.at("resources"), errors);
    resize_policy(container, pod.spec, errors);
    let host_users = pod.spec.at("hostUsers");
    let host_users = !host_users.is_set() || host_users.is_true();
    security::of_container(&container.at("securityContext"), host_users, errors);
}

fn ports(container: &Field<'_, '_>, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for port in container.items("ports") {
        let name = port.at("name");
        if !name.is_empty() {
            let wrong = port_name(name.text());
            if wrong.is_empty() && !names.insert(name.text()) {
                errors.push(name.duplicate());
            }
            errors.extend(wrong.into_iter().map(|why| name.invalid(why)));
        }
        let number = port.at("containerPort");
        if number.number().unwrap_or(0) == 0 {
            errors.push(number.required(""));
        } else {
            number.must_be_a_port(errors);
        }
        let on_host = port.at("hostPort");
        if on_host.number().unwrap_or(0) != 0 {
            on_host.must_be_a_port(errors);
        }
        port.at("protocol").may_be_one_of(PROTOCOLS, errors);
    }
}

/// Ports of the host belong to one container each.
fn host_ports(container: &Field<'_, '_>, taken: &mut BTreeSet<String>, errors: &mut Errors) {
    for port in container.items("ports") {
        let number = port.at("hostPort");
        if number.number().unwrap_or(0) == 0 {
            continue;
        }
        let protocol = port.at("protocol").text();
        let key = format!("{protocol}/{}/{}", port.at("hostIP").text(), number.value());
        if taken.contains(&key) {
            errors.push(number.duplicate_of(&key));
        }
        taken.insert(key);
    }
}

fn resize_policy(container: &Field<'_, '_>, spec: &Field<'_, '_>, errors: &mut Errors) {
    let list = container.at("resizePolicy");
    let mut seen = BTreeSet::new();
    for policy in container.items("resizePolicy") {
        let (resource, restart) = (policy.at("resourceName"), policy.at("restartPolicy"));
        let blame = |it: &Field<'_, '_>, words: &[&str], errors: &mut Errors| {
            let mut found = Errors::new();
            it.must_be_one_of(words, &mut found);
            // The list is blamed, not its element.
            errors.extend(found.into_iter().map(|mut error| {
                error.field = list.field();
                error
            }));
        };
        if !seen.insert(resource.text()) {
            errors.push(policy.duplicate_of(resource.text()));
        }
        blame(&resource, &["cpu", "memory"], errors);
        blame(&restart, &["NotRequired", "RestartContainer"], errors);
        if spec.at("restartPolicy").text() == "Never" && restart.text() != "NotRequired" {
            let why = "must be 'NotRequired' when `restartPolicy` is 'Never'";
            errors.push(list.invalid_value(restart.text(), why));
        }
    }
}

/// Checks the rules by which a container is restarted by itself.
fn restart_rules(container: &Field<'_, '_>, errors: &mut Errors) {
    const POLICIES: &[&str] = &["Always", "Never", "OnFailure"];
    let policy = container.at("restartPolicy");
    policy.may_be_one_of(POLICIES, errors);
    let rules = container.at("restartPolicyRules");
    if !rules.is_empty() && !policy.is_set() {
        errors.push(policy.required("must specify restartPolicy when restart rules are used"));
    }
    for rule in container.items("restartPolicyRules") {
        let actions = ["Restart", "RestartAllContainers"];
        rule.at("action").must_be_one_of(&actions, errors);
        if rule.at("exitCodes").is_set() {
            let operator = rule.at("exitCodes.operator");
            if !matches!(operator.text(), "In" | "NotIn") {
                errors.push(operator.unsupported(&["In", "NotIn"]));
            }
        } else {
            errors.push(rule.at("exitCodes").required("must be specified"));
        }
    }
}
