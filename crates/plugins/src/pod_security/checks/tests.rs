//! Tests of the checks: pods that pass and fail each, made from a pod that passes all, and Kubernetes' own such pods.

mod fixtures;
mod recorded;

use serde_json::{Value, json};

use super::CHECKS;
use crate::pod_security::level::{Level, LevelVersion, StandardVersion};
use crate::pod_security::pod::CheckedPod;
use crate::pod_security::verdict::PodVerdict;

/// The newest minor version.
const MINOR: u64 = 36;

/// A member of a pod, by its JSON pointer, and the value that it gets; null removes it.
type Change = (&'static str, Value);

/// Returns a pod with an init container `a` and a container `b` that passes all checks.
fn minimal() -> Value {
    let container = |name: &str| {
        json!({"name": name, "image": "image", "securityContext": {
            "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}})
    };
    json!({"metadata": {"name": "pod"}, "spec": {
        "initContainers": [container("a")], "containers": [container("b")],
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}}}})
}

fn changed(changes: &[Change]) -> Value {
    let mut pod = minimal();
    for (pointer, value) in changes {
        let mut at = &mut pod;
        for step in pointer.split('/').skip(1) {
            // As in JSON pointers, since keys of annotations have slashes.
            let step = step.replace("~1", "/");
            at = match step.parse::<usize>() {
                Ok(index) => &mut at[index],
                Err(_) => &mut at[step],
            };
        }
        *at = value.clone();
    }
    pod
}

/// Returns the violations of a pod, in a line; empty if there are none.
fn details(at: &str, pod: &Value) -> String {
    let (level, version) = at.split_once(':').expect("a level and a version");
    let at = LevelVersion {
        level: Level::parse(level).expect("a level"),
        version: StandardVersion::parse(version).expect("a version"),
    };
    PodVerdict::new(at, CheckedPod::new(pod)).details()
}

#[test]
fn checks_stand_in_kubernetes_order() {
    for pair in CHECKS.windows(2) {
        let [first, second] = pair else {
            panic!("a pair")
        };
        assert!((first.level, first.id) < (second.level, second.id));
    }
    for check in &CHECKS {
        assert!(check.revisions.is_sorted_by(|a, b| a.since < b.since));
        let replaced = check
            .replaces
            .map(|id| CHECKS.iter().find(|it| it.id == id));
        if let Some(replaced) = replaced {
            assert_eq!(replaced.expect("a check").level, Level::Baseline);
            assert_eq!(check.level, Level::Restricted);
        }
    }
}

#[test]
fn the_minimal_pod_passes_everything() {
    let pod = minimal();
    for level in ["baseline", "restricted"] {
        for minor in 0..=MINOR {
            assert_eq!(details(&format!("{level}:v1.{minor}"), &pod), "");
        }
        assert_eq!(details(&format!("{level}:latest"), &pod), "");
    }
}

#[test]
fn a_plain_pod_violates_the_restricted_level_in_kube_apiservers_words() {
    let pod = json!({"metadata": {}, "spec": {"containers": [{"name": "a"}]}});
    assert_eq!(
        details("restricted:latest", &pod),
        "allowPrivilegeEscalation != false (container \"a\" must set securityContext.allowPrivilegeEscalation=false), \
         unrestricted capabilities (container \"a\" must set securityContext.capabilities.drop=[\"ALL\"]), \
         runAsNonRoot != true (pod or container \"a\" must set securityContext.runAsNonRoot=true), \
         seccompProfile (pod or container \"a\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \
         \"Localhost\")"
    );
    assert_eq!(details("baseline:latest", &pod), "");
    assert_eq!(details("privileged:latest", &pod), "");
}
