//! `--runtime-config`: the built-in APIs that are served.
//!
//! Follows pkg/server/options/api_enablement.go and pkg/server/resourceconfig/helpers.go of k8s.io/apiserver 1.36.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use ringwatch_registry::Resource;
use ringwatch_resources::built_in;

use super::go_values::parse_bool;

const ALL: &str = "api/all";
const GA: &str = "api/ga";
const BETA: &str = "api/beta";
const ALPHA: &str = "api/alpha";
/// The keys that stand for many versions, in the order in which they apply.
const MATCHERS: [&str; 4] = [ALL, GA, BETA, ALPHA];

/// The versions that kube-apiserver can be told to serve, and this server has not.
const ELSEWHERE: [(&str, &str); 22] = [
    ("admissionregistration.k8s.io", "v1alpha1"),
    ("admissionregistration.k8s.io", "v1beta1"),
    ("authentication.k8s.io", "v1alpha1"),
    ("authentication.k8s.io", "v1beta1"),
    ("certificates.k8s.io", "v1alpha1"),
    ("certificates.k8s.io", "v1beta1"),
    ("coordination.k8s.io", "v1alpha2"),
    ("coordination.k8s.io", "v1beta1"),
    ("flowcontrol.apiserver.k8s.io", "v1beta1"),
    ("flowcontrol.apiserver.k8s.io", "v1beta2"),
    ("flowcontrol.apiserver.k8s.io", "v1beta3"),
    ("internal.apiserver.k8s.io", "v1alpha1"),
    ("networking.k8s.io", "v1beta1"),
    ("resource.k8s.io", "v1alpha3"),
    ("resource.k8s.io", "v1beta1"),
    ("resource.k8s.io", "v1beta2"),
    ("scheduling.k8s.io", "v1alpha2"),
    ("storage.k8s.io", "v1alpha1"),
    ("storage.k8s.io", "v1beta1"),
    ("storagemigration.k8s.io", "v1beta1"),
    ("apiextensions.k8s.io", "v1beta1"),
    ("apiregistration.k8s.io", "v1beta1"),
];

/// The flag about which APIs are served.
#[derive(Args, Clone, Debug)]
pub struct RuntimeConfigFlags {
    /// Built-in APIs to serve or not, as KEY=true or KEY=false, comma-separated. A key is GROUP/VERSION, such as
    /// apps/v1 or v1 for the core group; GROUP/VERSION/RESOURCE; or api/all, api/ga, api/beta and api/alpha. All
    /// versions here are of the form v1.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub runtime_config: Vec<String>,
}

impl RuntimeConfigFlags {
    /// Checks keys and values.
    ///
    /// # Errors
    /// A line for the user.
    pub fn check(&self) -> Result<(), String> {
        let pairs = self.pairs();
        if pairs.len() == 1 && pairs.get(ALL).is_some_and(|it| it == "false") {
            return Err(format!("invalid runtime-config with only {ALL}=false"));
        }
        let versions = known_versions();
        let mut unknown = BTreeSet::new();
        for key in pairs.keys().filter(|it| !MATCHERS.contains(&it.as_str())) {
            let KeyParts { group, version, .. } =
                split(key).ok_or_else(|| format!("runtime-config invalid key {key}"))?;
            if !versions.iter().any(|(known, _)| known == group) {
                unknown.insert(format!("{group}/{version}"));
            }
        }
        if !unknown.is_empty() {
            let unknown: Vec<_> = unknown.into_iter().collect();
            return Err(format!("unknown api groups {}", unknown.join(",")));
        }
        for key in MATCHERS {
            match pairs.get(key).map(String::as_str) {
                None | Some("true" | "false") => {}
                Some(value) => return Err(format!("invalid value {key}={value}")),
            }
        }
        for (key, value) in &pairs {
            if let Some(parts) = split(key).filter(|_| !MATCHERS.contains(&key.as_str())) {
                check_pair(key, value, &parts, &versions)?;
            }
        }
        Ok(())
    }

    /// Returns true if a resource is served: by the most specific key that is about it.
    #[must_use]
    pub fn serves(&self, resource: &Resource) -> bool {
        let pairs = self.pairs();
        let (group, version) = (
            &resource.group_version.group,
            &resource.group_version.version,
        );
        // As all versions here are of the form v1, keys of others say nothing about them.
        let keys = [
            format!("{group}/{version}/{}", resource.plural),
            format!("{group}/{version}"),
            GA.to_owned(),
            ALL.to_owned(),
        ];
        let said = keys.iter().find_map(|key| pairs.get(key));
        said.is_none_or(|value| is_enabled(value) != Some(false))
    }

    /// Returns the key that disables the API of FlowSchemas; `None` if it is served.
    pub(super) fn flow_control_off(&self) -> Option<&'static str> {
        let pairs = self.pairs();
        let keys = ["flowcontrol.apiserver.k8s.io/v1", GA, ALL];
        let said = keys.into_iter().find(|key| pairs.contains_key(*key));
        said.filter(|key| pairs.get(*key).map(|it| is_enabled(it)) == Some(Some(false)))
    }

    /// Returns the values by their keys, of which the last of each counts. Those of the core group are one key.
    fn pairs(&self) -> BTreeMap<String, String> {
        let mut pairs = BTreeMap::new();
        for text in &self.runtime_config {
            let (key, value) = text.split_once('=').unwrap_or((text, ""));
            let key = key.trim();
            if key.is_empty() || key == "api/legacy" {
                continue;
            }
            let core = key.strip_prefix("api/").unwrap_or(key);
            let key = if core == "v1" || core.starts_with("v1/") {
                "/v1"
            } else {
                key
            };
            pairs.insert(key.to_owned(), value.trim().to_owned());
        }
        pairs
    }
}

/// Checks a key of a known group, and its value.
fn check_pair(
    key: &str,
    value: &str,
    parts: &KeyParts<'_>,
    versions: &BTreeSet<(String, String)>,
) -> Result<(), String> {
    let (group, version) = (parts.group, parts.version);
    let is_known = versions.contains(&(group.to_owned(), version.to_owned()));
    if !is_known {
        return Err(format!(
            "group version {group}/{version} that has not been registered"
        ));
    }
    let Some(enabled) = is_enabled(value) else {
        return Err(format!(
            "invalid value of {key}: {value}, err: strconv.ParseBool: parsing {value:?}: invalid syntax"
        ));
    };
    let resource = parts.resource;
    if let Some(resource) = resource.filter(|it| it.to_lowercase() != **it) {
        return Err(format!(
            "invalid key {key}: group/version/resource and resource is always lowercase plural, not {resource:?}"
        ));
    }
    if enabled && ELSEWHERE.contains(&(group, version)) {
        return Err(format!(
            "--runtime-config={key}: this server does not have {group}/{version}, but only versions of the form v1"
        ));
    }
    Ok(())
}

/// Returns the groups and versions that kube-apiserver knows.
fn known_versions() -> BTreeSet<(String, String)> {
    let here = built_in().into_iter().map(|resource| {
        let it = &resource.group_version;
        (it.group.clone(), it.version.clone())
    });
    let elsewhere = ELSEWHERE.iter();
    let elsewhere = elsewhere.map(|(group, version)| ((*group).to_owned(), (*version).to_owned()));
    here.chain(elsewhere).collect()
}

/// The parts of a key.
struct KeyParts<'k> {
    group: &'k str,
    version: &'k str,
    resource: Option<&'k str>,
}

/// Splits a key into its parts.
fn split(key: &str) -> Option<KeyParts<'_>> {
    let mut parts = key.split('/');
    let split = KeyParts {
        group: parts.next()?,
        version: parts.next()?,
        resource: parts.next(),
    };
    parts.next().is_none().then_some(split)
}

/// Parses the value of a key; an empty one is true.
fn is_enabled(value: &str) -> Option<bool> {
    if value.is_empty() {
        return Some(true);
    }
    parse_bool(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(text: &str) -> RuntimeConfigFlags {
        let parts = text.split(',').map(str::to_owned);
        RuntimeConfigFlags {
            runtime_config: parts.collect(),
        }
    }

    #[test]
    fn the_most_specific_key_decides() {
        let served = |text: &str| -> BTreeSet<String> {
            let flags = flags(text);
            assert_eq!(flags.check(), Ok(()), "{text}");
            let all = built_in().into_iter();
            let served = all.filter(|it| flags.serves(it));
            served.map(|it| it.qualified_name()).collect()
        };
        let all = built_in().len();
        let count = |text: &str| {
            let flags = flags(text);
            built_in().iter().filter(|it| flags.serves(it)).count()
        };
        assert_eq!(count("api/all=true,apps/v1"), all);
        assert!(!served("apps/v1=false").contains("deployments.apps"));
        assert!(served("apps/v1=false").contains("pods"));
        let one = served("apps/v1=false,apps/v1/deployments=true");
        assert!(one.contains("deployments.apps") && !one.contains("replicasets.apps"));
        assert!(!served("batch/v1/jobs=false").contains("jobs.batch"));
        assert_eq!(count("batch/v1/jobs=false"), all - 1);
        let core = served("api/ga=false,api/v1=true");
        assert!(core.contains("pods") && !core.contains("deployments.apps"));
        assert_eq!(count("api/all=false,api/ga=true,api/beta=true"), all);
        assert_eq!(count("storage.k8s.io/v1beta1=false,api/legacy=x"), all);
        assert_eq!(count("v1/pods=false"), count("/v1=false"));
    }

    #[test]
    fn wrong_keys_and_values_are_refused() {
        for (text, why) in [
            (
                "api/all=false",
                "invalid runtime-config with only api/all=false",
            ),
            ("apps=true", "runtime-config invalid key apps"),
            ("a/b/c/d=true", "runtime-config invalid key a/b/c/d"),
            ("y/v1=true,x/v1=false", "unknown api groups x/v1,y/v1"),
            ("api/ga=1", "invalid value api/ga=1"),
            (
                "apps/v2=true",
                "group version apps/v2 that has not been registered",
            ),
            (
                "apps/v1=yes",
                "invalid value of apps/v1: yes, err: strconv.ParseBool: parsing \"yes\": invalid syntax",
            ),
            (
                "apps/v1/Deployments",
                "invalid key apps/v1/Deployments: group/version/resource and resource is always lowercase plural, not \"Deployments\"",
            ),
            (
                "storage.k8s.io/v1beta1=true",
                "--runtime-config=storage.k8s.io/v1beta1: this server does not have storage.k8s.io/v1beta1, but only versions of the form v1",
            ),
        ] {
            assert_eq!(flags(text).check(), Err(why.to_owned()), "{text}");
        }
    }
}
