//! PodSecurityConfiguration: the policy of namespaces without labels, and what is exempt.
//!
//! Ported from `admission/api/` of pod-security-admission, Kubernetes 1.36.

use std::collections::HashSet;

use ringwatch_apimachinery::validation::formats::{dns_label, dns_subdomain};
use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use serde::Deserialize;
use serde_json::Value;

use super::level::{Level, LevelVersion, StandardVersion};
use super::policy::Policy;

const GROUP: &str = "pod-security.admission.config.k8s.io";
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];
const KIND: &str = "PodSecurityConfiguration";

/// The policy of namespaces without labels, and what is exempt. By default everything is allowed, and nothing exempt.
#[derive(Clone, Debug, Default)]
pub struct PodSecurityConfiguration {
    pub(super) defaults: Policy,
    pub(super) exempt_users: HashSet<String>,
    pub(super) exempt_namespaces: HashSet<String>,
    pub(super) exempt_runtime_classes: HashSet<String>,
}

/// An error in a PodSecurityConfiguration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PodSecurityConfigurationError {
    /// The document is not of this kind.
    #[error("it is no {KIND} of {GROUP}, but {0}")]
    OtherKind(String),
    /// The document has unknown fields, or values of wrong types.
    #[error("{0}")]
    Malformed(String),
    /// A default is not a level or version.
    #[error("PodSecurity configuration error: {0}")]
    Defaults(String),
    /// An exemption is not a valid name, or stands twice.
    #[error("PodSecurity invalid: {}", FieldError::join(.0))]
    Exemptions(Vec<FieldError>),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ConfigurationDocument {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    defaults: Defaults,
    #[serde(default)]
    exemptions: Exemptions,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct Defaults {
    enforce: String,
    enforce_version: String,
    audit: String,
    audit_version: String,
    warn: String,
    warn_version: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Exemptions {
    usernames: Vec<String>,
    namespaces: Vec<String>,
    runtime_classes: Vec<String>,
}

impl PodSecurityConfiguration {
    /// Reads the configuration.
    ///
    /// # Errors
    /// [`PodSecurityConfigurationError`]
    pub fn read(document: &Value) -> Result<Self, PodSecurityConfigurationError> {
        let document = ConfigurationDocument::deserialize(document)
            .map_err(|error| PodSecurityConfigurationError::Malformed(error.to_string()))?;
        let version = document.api_version.strip_prefix(GROUP);
        let version = version.and_then(|it| it.strip_prefix('/'));
        if document.kind != KIND || !version.is_some_and(|it| VERSIONS.contains(&it)) {
            let found = format!("{}, Kind={}", document.api_version, document.kind);
            return Err(PodSecurityConfigurationError::OtherKind(found));
        }
        let defaults = document.defaults.read()?;
        let mut errors = Vec::new();
        let exempt = document.exemptions;
        let configuration = Self {
            defaults,
            exempt_namespaces: names("namespaces", exempt.namespaces, dns_label, &mut errors),
            exempt_runtime_classes: names(
                "runtimeClasses",
                exempt.runtime_classes,
                dns_subdomain,
                &mut errors,
            ),
            exempt_users: names("usernames", exempt.usernames, user_name, &mut errors),
        };
        if errors.is_empty() {
            Ok(configuration)
        } else {
            Err(PodSecurityConfigurationError::Exemptions(errors))
        }
    }
}

impl Defaults {
    fn read(self) -> Result<Policy, PodSecurityConfigurationError> {
        let mut policy = Policy::default();
        let mut errors = Vec::new();
        for (name, level, version, into) in [
            (
                "enforce",
                self.enforce,
                self.enforce_version,
                &mut policy.enforce,
            ),
            ("audit", self.audit, self.audit_version, &mut policy.audit),
            ("warn", self.warn, self.warn_version, &mut policy.warn),
        ] {
            match mode(name, &level, &version) {
                Ok(read) => *into = read,
                Err(error) => errors.extend(error),
            }
        }
        match &errors[..] {
            [] => Ok(policy),
            [one] => Err(PodSecurityConfigurationError::Defaults(one.clone())),
            several => {
                let listed = format!("[{}]", several.join(", "));
                Err(PodSecurityConfigurationError::Defaults(listed))
            }
        }
    }
}

/// Reads the level and version of a mode, either of which may be empty for the default.
fn mode(name: &str, level: &str, version: &str) -> Result<LevelVersion, Vec<String>> {
    let default = LevelVersion::PRIVILEGED;
    let level = match level {
        "" => Ok(default.level),
        level => Level::parse(level).map_err(|why| format!("{name}: {why}")),
    };
    let version = match version {
        "" => Ok(default.version),
        version => StandardVersion::parse(version).map_err(|why| format!("{name}-version: {why}")),
    };
    match (level, version) {
        (Ok(level), Ok(version)) => Ok(LevelVersion { level, version }),
        (level, version) => Err([level.err(), version.err()].into_iter().flatten().collect()),
    }
}

/// Collects distinct names that follow a rule.
fn names(
    field: &str,
    listed: Vec<String>,
    rule: fn(&str) -> Vec<String>,
    errors: &mut Vec<FieldError>,
) -> HashSet<String> {
    let mut names = HashSet::new();
    for (place, name) in listed.into_iter().enumerate() {
        let at = format!("exemptions.{field}[{place}]");
        let shown = Value::from(name.as_str());
        let faults = rule(&name);
        if !faults.is_empty() {
            errors.push(FieldError::invalid(at, &shown, faults.join(", ")));
        } else if !names.insert(name) {
            let twice = FieldError::new(FieldErrorKind::Duplicate, at, shown.to_string());
            errors.push(twice);
        }
    }
    names
}

fn user_name(name: &str) -> Vec<String> {
    let fault = name
        .is_empty()
        .then(|| "username must not be empty".to_owned());
    fault.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(defaults: Value, exemptions: Value) -> Value {
        json!({"apiVersion": format!("{GROUP}/v1"), "kind": KIND,
            "defaults": defaults, "exemptions": exemptions})
    }

    #[test]
    fn what_is_not_set_is_allowed() {
        let read = |document: &Value| PodSecurityConfiguration::read(document).expect("valid");
        let plain = read(&json!({"apiVersion": format!("{GROUP}/v1beta1"), "kind": KIND}));
        assert_eq!(plain.defaults, Policy::default());
        let set = read(&document(
            json!({"enforce": "baseline", "audit-version": "v1.30", "warn": "restricted"}),
            json!({"namespaces": ["kube-system"], "usernames": ["a b"]}),
        ));
        let policy = set.defaults;
        let modes = [policy.enforce, policy.audit, policy.warn].map(|it| it.to_string());
        assert_eq!(
            modes,
            ["baseline:latest", "privileged:v1.30", "restricted:latest"]
        );
        assert!(set.exempt_namespaces.contains("kube-system"));
        assert!(set.exempt_users.contains("a b"));
    }

    #[test]
    fn mistakes_are_named_in_kube_apiservers_words() {
        for (document, expected) in [
            (
                json!({"apiVersion": "v1", "kind": "Pod"}),
                "it is no PodSecurityConfiguration of pod-security.admission.config.k8s.io, but v1, Kind=Pod",
            ),
            (
                document(json!({"enforce": "none", "warn-version": "v2"}), json!({})),
                "PodSecurity configuration error: [enforce: must be one of privileged, baseline, restricted, \
                 warn-version: must be \"latest\" or \"v1.x\"]",
            ),
            (
                document(json!({"audit": "Baseline"}), json!({})),
                "PodSecurity configuration error: audit: must be one of privileged, baseline, restricted",
            ),
            (
                document(json!({}), json!({"namespaces": ["a", "a"]})),
                "PodSecurity invalid: exemptions.namespaces[1]: Duplicate value: \"a\"",
            ),
            (
                document(json!({}), json!({"usernames": [""]})),
                "PodSecurity invalid: exemptions.usernames[0]: Invalid value: \"\": username must not be empty",
            ),
        ] {
            let error = PodSecurityConfiguration::read(&document).expect_err(expected);
            assert_eq!(error.to_string(), expected);
        }
        for (document, words) in [
            (
                document(json!({"enforced": "x"}), json!({})),
                "unknown field `enforced`",
            ),
            (
                document(json!({}), json!({"users": []})),
                "unknown field `users`",
            ),
            (
                document(json!({"enforce": 1}), json!({})),
                "expected a string",
            ),
            (
                document(json!({}), json!({"runtimeClasses": ["A", "b.c"]})),
                "exemptions.runtimeClasses[0]: Invalid value: \"A\": a lowercase RFC 1123 subdomain",
            ),
            (
                document(json!({}), json!({"namespaces": ["b.c"]})),
                "exemptions.namespaces[0]: Invalid value: \"b.c\": must not contain dots",
            ),
        ] {
            let error = PodSecurityConfiguration::read(&document).expect_err(words);
            assert!(error.to_string().contains(words), "{words}: {error}");
        }
    }
}
