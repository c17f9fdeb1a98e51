//! AppArmor profiles, in fields or in the annotations that came before them, may only be the runtime's default or ones
//! of the node.

use std::collections::BTreeSet;

use super::violation::{parts, plural, quoted};
use super::{PodCheck, Revision, Violation};
use crate::pod_security::level::Level;
use crate::pod_security::pod::{CheckedPod, SecurityScope, text};

pub(super) const CHECK: PodCheck = PodCheck {
    id: "appArmorProfile",
    level: Level::Baseline,
    replaces: None,
    revisions: &[Revision::since(0, check)],
};

/// The beginning of the keys of annotations; the container's name follows.
const ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";

fn check(pod: CheckedPod<'_>) -> Option<Violation> {
    let mut setters: Vec<SecurityScope<'_>> = Vec::new();
    let mut types = BTreeSet::new();
    for (part, profile) in pod.settings("appArmorProfile") {
        let named = text(&profile["type"]);
        if !matches!(named, "RuntimeDefault" | "Localhost") {
            setters.push(part);
            types.insert(named);
        }
    }
    let annotations: BTreeSet<String> = pod
        .annotations()
        .filter(|(key, value)| key.starts_with(ANNOTATION) && !is_allowed(value))
        .map(|(key, value)| format!("{key}={value:?}"))
        .collect();
    if setters.is_empty() && annotations.is_empty() {
        return None;
    }
    let mut who = vec![parts(&setters)];
    if !annotations.is_empty() {
        who.push(plural(annotations.len(), "annotation", "annotations").to_owned());
    }
    who.retain(|it| !it.is_empty());
    let values = types.iter().copied();
    let values: Vec<&str> = values
        .chain(annotations.iter().map(String::as_str))
        .collect();
    Some(Violation::new(
        plural(
            values.len(),
            "forbidden AppArmor profile",
            "forbidden AppArmor profiles",
        ),
        format!(
            "{} must not set AppArmor profile type to {}",
            who.join(" and "),
            quoted(values)
        ),
    ))
}

/// Returns true if an annotation may have this value.
fn is_allowed(profile: &str) -> bool {
    profile.is_empty() || profile == "runtime/default" || profile.starts_with("localhost/")
}
