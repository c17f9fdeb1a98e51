//! A policy as its file has it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

/// Fields that a type does not have.
type Unknown = BTreeMap<String, IgnoredAny>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PolicyFile {
    #[serde(default)]
    pub(super) api_version: String,
    #[serde(default)]
    pub(super) kind: String,
    #[serde(default, rename = "metadata")]
    _metadata: Option<Value>,
    pub(super) rules: Option<Vec<RuleFile>>,
    pub(super) omit_stages: Option<Vec<String>>,
    #[serde(default)]
    pub(super) omit_managed_fields: bool,
    #[serde(flatten)]
    unknown: Unknown,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RuleFile {
    #[serde(default)]
    pub(super) level: String,
    pub(super) users: Option<Vec<String>>,
    pub(super) user_groups: Option<Vec<String>>,
    pub(super) verbs: Option<Vec<String>>,
    pub(super) resources: Option<Vec<GroupResourcesFile>>,
    pub(super) namespaces: Option<Vec<String>>,
    #[serde(rename = "nonResourceURLs")]
    pub(super) non_resource_urls: Option<Vec<String>>,
    pub(super) omit_stages: Option<Vec<String>>,
    pub(super) omit_managed_fields: Option<bool>,
    #[serde(flatten)]
    unknown: Unknown,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GroupResourcesFile {
    #[serde(default)]
    pub(super) group: String,
    pub(super) resources: Option<Vec<String>>,
    pub(super) resource_names: Option<Vec<String>>,
    #[serde(flatten)]
    unknown: Unknown,
}

impl PolicyFile {
    /// Returns a line for each field that no type has.
    pub(super) fn unknown_fields(&self) -> Vec<String> {
        let told = |at: String, unknown: &Unknown| -> Vec<String> {
            let fields = unknown.keys();
            fields
                .map(|it| format!("unknown field \"{at}{it}\""))
                .collect()
        };
        let mut found = told(String::new(), &self.unknown);
        for (place, rule) in self.rules.iter().flatten().enumerate() {
            found.extend(told(format!("rules[{place}]."), &rule.unknown));
            for (inner, resources) in rule.resources.iter().flatten().enumerate() {
                let at = format!("rules[{place}].resources[{inner}].");
                found.extend(told(at, &resources.unknown));
            }
        }
        found
    }
}
