//! The result of all checks of a pod at one level.

use std::collections::HashMap;

use super::checks::{Violation, violations};
use super::level::LevelVersion;
use super::pod::CheckedPod;

/// The violations of a pod at one level; the pod is allowed if there are none.
#[derive(Clone, Debug, Default)]
pub(super) struct PodVerdict(Vec<Violation>);

impl PodVerdict {
    /// Checks a pod.
    pub(super) fn new(at: LevelVersion, pod: CheckedPod<'_>) -> Self {
        Self(violations(at.level, at.version, pod))
    }

    /// Returns true if nothing is violated.
    pub(super) fn is_allowed(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the short reasons, in one line.
    pub(super) fn reasons(&self) -> String {
        let reasons: Vec<&str> = self.0.iter().map(|it| it.reason).collect();
        reasons.join(", ")
    }

    /// Returns the reasons with the parts of the pod that violate them, in one line.
    pub(super) fn details(&self) -> String {
        let line = |it: &Violation| format!("{} ({})", it.reason, it.detail);
        let lines: Vec<String> = self.0.iter().map(line).collect();
        lines.join(", ")
    }
}

/// The verdicts on one pod, each made once.
#[derive(Debug)]
pub(super) struct Verdicts<'a> {
    pod: CheckedPod<'a>,
    known: HashMap<LevelVersion, PodVerdict>,
}

impl<'a> Verdicts<'a> {
    /// Makes the verdicts on a pod, of which none is known yet.
    pub(super) fn new(pod: CheckedPod<'a>) -> Self {
        Self {
            pod,
            known: HashMap::new(),
        }
    }

    /// Returns the verdict at a level.
    pub(super) fn at(&mut self, at: LevelVersion) -> &PodVerdict {
        let pod = self.pod;
        self.known
            .entry(at)
            .or_insert_with(|| PodVerdict::new(at, pod))
    }
}
