//! Containers, init containers and ephemeral containers.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use std::cell::Cell;
use std::collections::BTreeSet;

use ringwatch_apimachinery::validation::formats;

use super::TemplateClaims;
use super::claims::{self, OwnClaims};
use super::mounts::mounts;
use super::probes::{no_probes, probes};
use super::{env, security};
use crate::core::volume::validation::Volumes;
use crate::validation::field::{Errors, Field};
use crate::validation::later_rules::RESTART_FOR_RESIZE;
use crate::validation::quantities;
use crate::validation::values::{PROTOCOLS, port_name};

/// Maximum numbers of the rules by which a container is restarted, and of the exit codes of each.
const RESTART_RULES_MAX: usize = 20;
const EXIT_CODES_MAX: usize = 255;
const NO_POLICY: &str = "must specify restartPolicy when restart rules are used";

/// The parts of a pod that the checks of its containers need.
#[derive(Clone, Copy)]
pub(super) struct PodParts<'a, 'v, 'p> {
    pub(super) spec: &'a Field<'v, 'p>,
    pub(super) volumes: &'a Volumes<'v, 'p>,
    pub(super) claims: &'a TemplateClaims<'a>,
    pub(super) own_claims: &'a OwnClaims<'v>,
    pub(super) grace: Option<i64>,
    /// The bytes that errors about privileges may still have, which show whole security contexts again and again.
    pub(super) privileges_room: &'a Cell<usize>,
}

/// Returns the containers of a pod's spec, in Kubernetes' order.
pub(super) fn all_containers<'v, 's>(
    spec: &'s Field<'v, '_>,
) -> impl Iterator<Item = Field<'v, 's>> {
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    lists.into_iter().flat_map(|list| spec.items(list))
}

/// Returns true if the users of a pod are those of the host.
pub(super) fn has_host_users(spec: &Field<'_, '_>) -> bool {
    let switch = spec.at("hostUsers");
    !switch.is_set() || switch.is_true()
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
        host_ports(&container, &container, &mut taken, errors);
    }
}

/// Checks the init containers of a pod, sidecars among them. Follows `validateInitContainers`.
pub(super) fn init_containers(pod: PodParts<'_, '_, '_>, errors: &mut Errors) {
    let mut names: BTreeSet<_> = names(pod.spec, "containers");
    for container in pod.spec.items("initContainers") {
        common(&container, pod, errors);
        let policy = container.at("restartPolicy");
        let name = container.at("name");
        init_restart_rules(&container, errors);
        if names.contains(name.text()) {
            errors.push(name.duplicate());
        } else if !name.is_empty() {
            names.insert(name.text());
        }
        // Kubernetes looks at a list of one container, and blames its first.
        let blamed = pod.spec.at("initContainers[0]");
        host_ports(&container, &blamed, &mut BTreeSet::new(), errors);
        if policy.text() == "Always" {
            probes(&container, pod.grace, errors);
        } else {
            no_probes(&container, errors);
            not_restarted_for_resize(&container, errors);
        }
    }
}

/// Checks that a resize does not restart an init container that is no sidecar.
fn not_restarted_for_resize(container: &Field<'_, '_>, errors: &mut Errors) {
    for policy in container.items("resizePolicy") {
        let restart = policy.at("restartPolicy");
        if restart.text() == "RestartContainer" {
            let why = "must not be set to 'RestartContainer' for non-sidecar initContainers";
            errors.push(restart.invalid(why).by_later_rule(RESTART_FOR_RESIZE));
        }
    }
}

/// Checks the ephemeral containers of a pod. Follows `validateEphemeralContainers`.
pub(super) fn ephemeral_containers(pod: PodParts<'_, '_, '_>, errors: &mut Errors) {
    const FORBIDDEN: &[&str] = &[
        "ports",
        "resources",
        "resizePolicy",
        "restartPolicy",
        "restartPolicyRules",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "lifecycle",
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
        for member in FORBIDDEN.iter().map(|member| container.at(member)) {
            // Resources are no pointer in Kubernetes, so that an empty object is none.
            let is_none = member.is_empty() && member.field().ends_with(".resources");
            if !is_none {
                member.must_be_unset(why, errors);
            }
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
pub(in crate::core::pod) fn no_spaces_around_image(container: &Field<'_, '_>, errors: &mut Errors) {
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
    let host_users = has_host_users(pod.spec);
    let context = container.at("securityContext");
    security::of_container(&context, host_users, pod.privileges_room, errors);
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

/// Checks that ports of the host belong to one container each. Errors blame the ports of `blamed`. Follows
/// `AccumulateUniqueHostPorts`.
fn host_ports(
    container: &Field<'_, '_>,
    blamed: &Field<'_, '_>,
    taken: &mut BTreeSet<String>,
    errors: &mut Errors,
) {
    for (index, port) in container.items("ports").enumerate() {
        let number = port.at("hostPort");
        if number.number().unwrap_or(0) == 0 {
            continue;
        }
        let protocol = port.at("protocol").text();
        let key = format!("{protocol}/{}/{}", port.at("hostIP").text(), number.value());
        if taken.contains(&key) {
            let path = format!("ports[{index}].hostPort");
            errors.push(blamed.at(&path).duplicate_of(&key));
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
            let why = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.push(list.invalid_value(restart.text(), why));
        }
    }
}

/// Checks the rules by which an init container is restarted by itself. Follows `validateInitContainerRestartPolicy`.
fn init_restart_rules(container: &Field<'_, '_>, errors: &mut Errors) {
    let policy = container.at("restartPolicy");
    if policy.is_set() {
        restart_rules(container, errors);
    } else if !container.at("restartPolicyRules").is_empty() {
        errors.push(policy.required(NO_POLICY));
    }
}

/// Checks the rules by which a container is restarted by itself. Follows `validateContainerRestartPolicy`.
fn restart_rules(container: &Field<'_, '_>, errors: &mut Errors) {
    const POLICIES: &[&str] = &["Always", "Never", "OnFailure"];
    const ACTIONS: &[&str] = &["Restart", "RestartAllContainers"];
    let policy = container.at("restartPolicy");
    policy.may_be_one_of(POLICIES, errors);
    let rules = container.at("restartPolicyRules");
    if !rules.is_empty() && !policy.is_set() {
        errors.push(policy.required(NO_POLICY));
    }
    if rules.len() > RESTART_RULES_MAX {
        errors.push(rules.too_many(rules.len(), RESTART_RULES_MAX));
    }
    for rule in container.items("restartPolicyRules") {
        let action = rule.at("action");
        if !ACTIONS.contains(&action.text()) {
            errors.push(action.unsupported(ACTIONS));
        }
        let codes = rule.at("exitCodes");
        if !codes.is_set() {
            errors.push(codes.required("must be specified"));
            continue;
        }
        let (operator, values) = (codes.at("operator"), codes.at("values"));
        if !matches!(operator.text(), "In" | "NotIn") {
            errors.push(operator.unsupported(&["In", "NotIn"]));
        }
        if values.len() > EXIT_CODES_MAX {
            errors.push(values.too_many(values.len(), EXIT_CODES_MAX));
        }
    }
}
