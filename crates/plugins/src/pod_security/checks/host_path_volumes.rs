//! Volumes may not be paths of the node.

use super::violation::{plural, quoted};
use super::{PodCheck, Revision, Violation};
use crate::pod_security::level::Level;
use crate::pod_security::pod::{CheckedPod, text};

pub(super) const ID: &str = "hostPathVolumes";

pub(super) const CHECK: PodCheck = PodCheck {
    id: ID,
    level: Level::Baseline,
    replaces: None,
    revisions: &[Revision::since(0, check)],
};

fn check(pod: CheckedPod<'_>) -> Option<Violation> {
    let bad: Vec<&str> = pod
        .volumes()
        .filter(|it| !it["hostPath"].is_null())
        .map(|it| text(&it["name"]))
        .collect();
    if bad.is_empty() {
        return None;
    }
    let word = plural(bad.len(), "volume", "volumes");
    Some(Violation::new(
        "hostPath volumes",
        format!("{word} {}", quoted(bad)),
    ))
}
