//! Reads a policy: strictly first, and where that fails leniently, with a warning.
//!
//! `LoadPolicyFromFile` of Kubernetes 1.36 (`audit/policy/reader.go`), with its error texts.

use std::path::Path;

use ringwatch_apimachinery::FieldError;
use serde_json::Value;

use super::file::{GroupResourcesFile, PolicyFile, RuleFile};
use super::{GroupResources, Policy, PolicyRule, validation};

/// The group and version of policies.
const API_VERSION: &str = "audit.k8s.io/v1";
/// The kind of policies, and the other kinds of the version.
const KIND: &str = "Policy";
const OTHER_KINDS: [&str; 3] = ["Event", "EventList", "PolicyList"];

/// The reason why a policy cannot be used. Correct the file, and start again.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The content is no policy.
    #[error("failed decoding: {0}")]
    Undecoded(String),
    /// Fields have values that they cannot have.
    #[error("{}", FieldError::join(.0))]
    Invalid(Vec<FieldError>),
    /// There are no rules.
    #[error("loaded illegal policy with 0 rules")]
    WithoutRules,
}

impl Policy {
    /// Reads the policy in a file. One with unknown or duplicate fields is used, with a warning.
    ///
    /// # Errors
    /// The file cannot be read, or a [`PolicyError`] with the path behind it.
    pub fn read(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|why| format!("failed to read file path \"{shown}\": {why}"))?;
        Self::parse(&text).map_err(|error| format!("{error}: from file {shown}"))
    }

    /// Reads a policy in YAML or JSON; see [`Self::read`].
    ///
    /// # Errors
    /// [`PolicyError`]
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let undecoded = |error: &dyn std::fmt::Display| PolicyError::Undecoded(error.to_string());
        let mut complaints = Vec::new();
        let value: Value = match serde_saphyr::from_str(text) {
            Ok(value) => value,
            Err(strict) => {
                let lenient = serde_saphyr::options! {
                    duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
                };
                let value = serde_saphyr::from_str_with_options(text, lenient);
                let value = value.map_err(|error| undecoded(&error))?;
                complaints.push(strict.to_string());
                value
            }
        };
        let file: PolicyFile = serde_json::from_value(value).map_err(|error| undecoded(&error))?;
        check_type(&file, text)?;
        complaints.extend(file.unknown_fields());
        if !complaints.is_empty() {
            let error = complaints.join(", ");
            tracing::warn!(
                "Audit policy contains errors, falling back to lenient decoding: strict decoding error: {error}"
            );
        }
        let errors = validation::validate(file.rules.as_deref(), file.omit_stages.as_deref());
        if !errors.is_empty() {
            return Err(PolicyError::Invalid(errors));
        }
        let rules = file.rules.unwrap_or_default();
        if rules.is_empty() {
            return Err(PolicyError::WithoutRules);
        }
        Ok(Self {
            rules: rules.into_iter().map(PolicyRule::from).collect(),
            omit_stages: validation::stages(file.omit_stages.as_deref()),
            omit_managed_fields: file.omit_managed_fields,
        })
    }
}

/// Checks kind and version, with the errors of a decoder that knows the types of the group alone.
fn check_type(file: &PolicyFile, text: &str) -> Result<(), PolicyError> {
    let (kind, version) = (file.kind.as_str(), file.api_version.as_str());
    let why = match (kind, version) {
        (KIND, API_VERSION) => return Ok(()),
        ("", _) => format!("Object 'Kind' is missing in '{}'", text.trim_end()),
        (_, "") => format!("Object 'apiVersion' is missing in '{}'", text.trim_end()),
        (kind, API_VERSION) if OTHER_KINDS.contains(&kind) => {
            format!("converting (v1.{kind}) to (audit.Policy): unknown conversion")
        }
        _ => format!("no kind {kind:?} is registered for version {version:?} of audit policies"),
    };
    Err(PolicyError::Undecoded(why))
}

impl From<RuleFile> for PolicyRule {
    fn from(file: RuleFile) -> Self {
        let resources = file.resources.unwrap_or_default().into_iter();
        Self {
            level: validation::level(&file.level).unwrap_or_default(),
            users: file.users.unwrap_or_default(),
            user_groups: file.user_groups.unwrap_or_default(),
            verbs: file.verbs.unwrap_or_default(),
            resources: resources.map(GroupResources::from).collect(),
            namespaces: file.namespaces.unwrap_or_default(),
            non_resource_urls: file.non_resource_urls.unwrap_or_default(),
            omit_stages: validation::stages(file.omit_stages.as_deref()),
            omit_managed_fields: file.omit_managed_fields,
        }
    }
}

impl From<GroupResourcesFile> for GroupResources {
    fn from(file: GroupResourcesFile) -> Self {
        Self {
            group: file.group,
            resources: file.resources.unwrap_or_default(),
            names: file.resource_names.unwrap_or_default(),
        }
    }
}
