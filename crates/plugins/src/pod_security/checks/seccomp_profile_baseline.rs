//! Seccomp profiles may only be the runtime's default or ones of the node: those in annotations until 1.18, those in
//! fields since 1.19.

use std::collections::BTreeSet;

use super::violation::{parts, plural, quoted};
use super::{PodCheck, Revision, Violation};
use crate::pod_security::level::Level;
use crate::pod_security::pod::{CheckedPod, SecurityScope, text};

pub(super) const ID: &str = "seccompProfile_baseline";

pub(super) const CHECK: PodCheck = PodCheck {
    id: ID,
    level: Level::Baseline,
    replaces: None,
    revisions: &[
        Revision::since(0, check_annotations),
        Revision::since(19, forbidden_types),
    ],
};

/// The reason of every violation by a seccomp profile.
pub(super) const REASON: &str = "seccompProfile";

const POD_ANNOTATION: &str = "seccomp.security.alpha.kubernetes.io/pod";
/// The beginning of the keys of annotations about containers, whose names follow.
const CONTAINER_ANNOTATION: &str = "container.seccomp.security.alpha.kubernetes.io/";

/// Returns true if a profile of this type may be used.
pub(super) fn is_allowed(kind: &str) -> bool {
    matches!(kind, "Localhost" | "RuntimeDefault")
}

/// Returns the violation by profiles whose types are forbidden.
pub(super) fn forbidden_types(pod: CheckedPod<'_>) -> Option<Violation> {
    let mut setters: Vec<SecurityScope<'_>> = Vec::new();
    let mut types = BTreeSet::new();
    for (part, profile) in pod.settings("seccompProfile") {
        let named = text(&profile["type"]);
        if !is_allowed(named) {
            setters.push(part);
            types.insert(named);
        }
    }
    if setters.is_empty() {
        return None;
    }
    Some(Violation::new(
        REASON,
        format!(
            "{} must not set securityContext.seccompProfile.type to {}",
            parts(&setters),
            quoted(types)
        ),
    ))
}

fn check_annotations(pod: CheckedPod<'_>) -> Option<Violation> {
    let containers = pod.containers();
    let keys = containers.map(|it| format!("{CONTAINER_ANNOTATION}{}", it.name()));
    let keys = std::iter::once(POD_ANNOTATION.to_owned()).chain(keys);
    let forbidden: BTreeSet<String> = keys
        .filter_map(|key| {
            let value = pod.annotation(&key)?;
            (!is_allowed_annotation(value)).then(|| format!("{key}={value:?}"))
        })
        .collect();
    if forbidden.is_empty() {
        return None;
    }
    let word = plural(forbidden.len(), "annotation", "annotations");
    let listed: Vec<String> = forbidden.into_iter().collect();
    Some(Violation::new(
        REASON,
        format!("forbidden {word} {}", listed.join(", ")),
    ))
}

fn is_allowed_annotation(value: &str) -> bool {
    matches!(value, "runtime/default" | "docker/default") || value.starts_with("localhost/")
}
