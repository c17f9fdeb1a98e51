//! The policy of a namespace: a level for each mode, by the namespace's labels and the server's defaults.
//!
//! Ported from `PolicyToEvaluate` in `api/helpers.go` of pod-security-admission, Kubernetes 1.36.

use ringwatch_apimachinery::FieldError;

use super::level::{Level, LevelVersion, StandardVersion};

/// The beginning of the labels, and of the keys of audit annotations.
pub(super) const PREFIX: &str = "pod-security.kubernetes.io/";

/// A level for each mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Policy {
    /// Pods that violate this one are refused.
    pub(super) enforce: LevelVersion,
    /// Violations of this one are annotated in the audit log.
    pub(super) audit: LevelVersion,
    /// Clients are warned of violations of this one.
    pub(super) warn: LevelVersion,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            enforce: LevelVersion::PRIVILEGED,
            audit: LevelVersion::PRIVILEGED,
            warn: LevelVersion::PRIVILEGED,
        }
    }
}

/// The labels of a namespace, by key.
pub(super) type LabelOf<'a> = &'a dyn Fn(&str) -> Option<&'a str>;

impl Policy {
    /// Returns the policy by these labels, and the errors of labels that are not valid. In their place stands the
    /// newest version of the restricted level when it is enforced, and otherwise the privileged level.
    pub(super) fn by_labels(label: LabelOf<'_>, defaults: &Self) -> (Self, Vec<FieldError>) {
        let mut policy = *defaults;
        let mut labels = NamespaceLabels {
            label,
            errors: Vec::new(),
        };
        let enforced = labels.level("enforce", Level::Restricted, &mut policy.enforce);
        labels.version("enforce-version", &mut policy.enforce);
        labels.level("audit", Level::Privileged, &mut policy.audit);
        labels.version("audit-version", &mut policy.audit);
        let warned = labels.level("warn", Level::Privileged, &mut policy.warn);
        let warned_in = labels.version("warn-version", &mut policy.warn);
        // A client that is not told otherwise is warned of what will be refused.
        let is_stricter = policy.enforce.level > policy.warn.level;
        if warned == Label::Absent && enforced == Label::Valid && is_stricter {
            policy.warn.level = policy.enforce.level;
            if warned_in == Label::Absent {
                policy.warn.version = policy.enforce.version;
            }
        }
        (policy, labels.errors)
    }

    /// Returns true if no mode has a level that forbids anything.
    pub(super) fn is_privileged(&self) -> bool {
        let levels = [self.enforce, self.audit, self.warn].map(|it| it.level);
        levels == [Level::Privileged; 3]
    }

    /// Returns true if both policies mean the same.
    pub(super) fn is_equivalent(&self, other: &Self) -> bool {
        self.enforce.is_equivalent(other.enforce)
            && self.audit.is_equivalent(other.audit)
            && self.warn.is_equivalent(other.warn)
    }
}

/// A label as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Label {
    Absent,
    Valid,
    Invalid,
}

/// The labels of a namespace while they are read.
struct NamespaceLabels<'a> {
    label: LabelOf<'a>,
    errors: Vec<FieldError>,
}

impl NamespaceLabels<'_> {
    fn level(&mut self, name: &str, otherwise: Level, into: &mut LevelVersion) -> Label {
        self.read(name, Level::parse, otherwise, &mut into.level)
    }

    fn version(&mut self, name: &str, into: &mut LevelVersion) -> Label {
        self.read(
            name,
            StandardVersion::parse,
            StandardVersion::Latest,
            &mut into.version,
        )
    }

    fn read<T>(
        &mut self,
        name: &str,
        parse: fn(&str) -> Result<T, &'static str>,
        otherwise: T,
        into: &mut T,
    ) -> Label {
        let key = format!("{PREFIX}{name}");
        let Some(text) = (self.label)(&key) else {
            return Label::Absent;
        };
        match parse(text) {
            Ok(value) => {
                *into = value;
                Label::Valid
            }
            Err(why) => {
                *into = otherwise;
                let field = format!("metadata.labels[{key}]");
                self.errors
                    .push(FieldError::invalid(field, &text.into(), why));
                Label::Invalid
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(labels: &[(&str, &str)], defaults: &Policy) -> ([String; 3], Vec<String>) {
        let find = |key: &str| {
            let name = key.strip_prefix(PREFIX).expect("a label of this plugin");
            let found = labels.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| *value)
        };
        let (policy, errors) = Policy::by_labels(&find, defaults);
        let modes = [policy.enforce, policy.audit, policy.warn];
        let lines = errors
            .iter()
            .map(|it| format!("{} {}", it.field, it.message()));
        (modes.map(|it| it.to_string()), lines.collect())
    }

    #[test]
    fn labels_replace_defaults() {
        let defaults = Policy {
            enforce: LevelVersion {
                level: Level::Baseline,
                version: StandardVersion::Minor(22),
            },
            ..Policy::default()
        };
        for (labels, expected) in [
            (
                &[][..],
                ["baseline:v1.22", "privileged:latest", "privileged:latest"],
            ),
            // Warnings follow an enforced level that is stricter.
            (
                &[("enforce", "restricted")],
                ["restricted:v1.22", "privileged:latest", "restricted:v1.22"],
            ),
            (
                &[("enforce", "restricted"), ("warn-version", "v1.24")],
                ["restricted:v1.22", "privileged:latest", "restricted:v1.24"],
            ),
            (
                &[("enforce", "restricted"), ("warn", "privileged")],
                ["restricted:v1.22", "privileged:latest", "privileged:latest"],
            ),
            (
                &[("enforce-version", "latest"), ("audit", "restricted")],
                ["baseline:latest", "restricted:latest", "privileged:latest"],
            ),
        ] {
            let (modes, errors) = read(labels, &defaults);
            assert_eq!((modes, errors), (expected.map(str::to_owned), Vec::new()));
        }
    }

    #[test]
    fn labels_that_are_wrong_enforce_most_and_tell_least() {
        let (modes, errors) = read(
            &[
                ("enforce", "none"),
                ("enforce-version", "1.22"),
                ("audit", ""),
                ("warn", "Baseline"),
                ("warn-version", "v1.x"),
            ],
            &Policy::default(),
        );
        assert_eq!(
            modes,
            [
                "restricted:latest",
                "privileged:latest",
                "privileged:latest"
            ]
        );
        let (level, version) = (
            "must be one of privileged, baseline, restricted",
            "must be \"latest\" or \"v1.x\"",
        );
        let line = |name: &str, value: &str, why: &str| {
            format!("metadata.labels[{PREFIX}{name}] Invalid value: {value:?}: {why}")
        };
        assert_eq!(
            errors,
            [
                line("enforce", "none", level),
                line("enforce-version", "1.22", version),
                line("audit", "", level),
                line("warn", "Baseline", level),
                line("warn-version", "v1.x", version),
            ]
        );
    }
}
