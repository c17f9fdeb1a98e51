//! The file of `--encryption-provider-config`: which types are encrypted, and how.
//!
//! The rule of a type is the one that names it, otherwise that of its group (`*.apps`, `*.` for the core group),
//! otherwise that of everything (`*.*`); without any its values are plain. A type that several entries name has the
//! providers of all, in their order. An entry that an earlier, wider one would hide is an error.
//!
//! Ported from `staging/src/k8s.io/apiserver/pkg/server/options/encryptionconfig/config.go` and
//! `pkg/apis/apiserver/validation/validation_encryption.go`, Kubernetes 1.36.

use std::collections::BTreeMap;
use std::future::pending;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::join_all;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::cipher::Cipher;
use super::kms::{KmsConfig, KmsProvider};
use super::providers::{NamedKey, Provider, Providers};
use crate::clock::Clock;
use crate::sync::Arc;

/// A configuration of the encryption of each type. By default none is encrypted.
#[derive(Debug, Default)]
pub struct EncryptionConfig {
    /// The providers by [`rule`].
    rules: BTreeMap<String, Providers>,
    /// The providers that encrypt with KMS plugins, in the order of the file.
    kms: Vec<Arc<KmsProvider>>,
}

/// An error in the file, with its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EncryptionConfigError(String);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ConfigurationFile {
    api_version: String,
    kind: String,
    #[serde(default)]
    resources: Vec<ResourceRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResourceRule {
    #[serde(default)]
    resources: Vec<String>,
    #[serde(default)]
    providers: Vec<ProviderRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProviderRule {
    identity: Option<BTreeMap<String, IgnoredAny>>,
    aesgcm: Option<Keys>,
    secretbox: Option<Keys>,
    aescbc: Option<Keys>,
    kms: Option<KmsConfig>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    #[serde(default)]
    keys: Vec<KeyEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyEntry {
    #[serde(default)]
    name: String,
    #[serde(default)]
    secret: String,
}

/// The star that stands for every group or every resource.
const ANY: &str = "*";

/// The names of internal data of kube-apiserver, which is never encrypted.
const WITHOUT_API: [&str; 3] = [
    "apiserveripinfo",
    "serviceipallocations",
    "servicenodeportallocations",
];

impl EncryptionConfig {
    /// Reads an `EncryptionConfiguration` in YAML or JSON.
    ///
    /// # Errors
    /// [`EncryptionConfigError`], which never contains a secret.
    pub fn parse(text: &str, clock: &Clock) -> Result<Self, EncryptionConfigError> {
        // The message of the YAML reader may quote the file, secrets included.
        let place = |error: serde_saphyr::Error| {
            let at = error.location().map(|at| format!(" at line {}", at.line()));
            EncryptionConfigError(format!(
                "it is not an EncryptionConfiguration{}",
                at.unwrap_or_default()
            ))
        };
        let file: ConfigurationFile = serde_saphyr::from_str(text).map_err(place)?;
        if file.api_version != "apiserver.config.k8s.io/v1"
            || file.kind != "EncryptionConfiguration"
        {
            return Err(EncryptionConfigError(format!(
                "expected apiVersion apiserver.config.k8s.io/v1 and kind EncryptionConfiguration, \
                 found {:?} and {:?}",
                file.api_version, file.kind
            )));
        }
        if file.resources.is_empty() {
            return Err(EncryptionConfigError(
                "resources: at least one is required".into(),
            ));
        }
        let mut reader = ConfigReader {
            clock,
            rules: BTreeMap::new(),
            kms: Vec::new(),
        };
        for (index, rule) in file.resources.iter().enumerate() {
            reader
                .add(rule)
                .map_err(|error| EncryptionConfigError(format!("resources[{index}].{error}")))?;
        }
        let rules = reader.rules.into_iter();
        let rules = rules.map(|(name, providers)| (name, Providers::new(providers)));
        Ok(Self {
            rules: rules.collect(),
            kms: reader.kms,
        })
    }

    /// Makes the configuration that encrypts all types with the keys of one plugin.
    #[cfg(test)]
    pub(super) fn of_kms(provider: Arc<KmsProvider>) -> Self {
        let providers = vec![Arc::new(Provider::Kms(Arc::clone(&provider)))];
        Self {
            rules: [(rule(ANY, ANY), Providers::new(providers))].into(),
            kms: vec![provider],
        }
    }

    /// Returns true if no type is or was encrypted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns true if values are encrypted with KMS plugins.
    #[must_use]
    pub fn uses_kms(&self) -> bool {
        !self.kms.is_empty()
    }

    /// Checks that all KMS plugins are healthy, one after the other. One that was asked a moment ago is not asked
    /// again.
    ///
    /// # Errors
    /// An explanation for the log.
    pub async fn check_kms(&self) -> Result<(), String> {
        let mut failed = Vec::new();
        for (index, provider) in self.kms.iter().enumerate() {
            if let Err(error) = provider.check().await {
                failed.push(format!("kms-provider-{index}: {error}"));
            }
        }
        if failed.is_empty() {
            Ok(())
        } else {
            Err(failed.join(", "))
        }
    }

    /// Keeps the keys of all KMS plugins confirmed. Never completes.
    pub(super) async fn poll_kms(&self) {
        join_all(self.kms.iter().map(|it| it.poll())).await;
        // Without plugins there is nothing to do.
        pending().await
    }

    /// Returns the longest time that it may take to check all KMS plugins.
    #[must_use]
    pub fn check_time_max(&self) -> Duration {
        self.kms.iter().map(|it| it.call_time_max()).sum()
    }

    /// Returns the names of the rules that may be a type's, the nearest first.
    pub(super) fn rules_of(resource: &str, group: &str) -> [String; 3] {
        [rule(resource, group), rule(ANY, group), rule(ANY, ANY)]
    }

    /// Returns the providers of the first of these rules that there is.
    pub(super) fn providers(&self, rules: &[String]) -> Providers {
        let found = rules.iter().find_map(|name| self.rules.get(name));
        found.cloned().unwrap_or_default()
    }
}

/// Returns the name of the rule of a resource and a group, either of which may be a star.
fn rule(resource: &str, group: &str) -> String {
    format!("{resource}.{group}")
}

/// A configuration while it is read.
struct ConfigReader<'a> {
    clock: &'a Clock,
    rules: BTreeMap<String, Vec<Arc<Provider>>>,
    kms: Vec<Arc<KmsProvider>>,
}

impl ConfigReader<'_> {
    /// Adds an entry of the file.
    ///
    /// # Errors
    /// The member that is wrong, and why.
    fn add(&mut self, entry: &ResourceRule) -> Result<(), String> {
        if entry.resources.is_empty() {
            return Err("resources: at least one is required".to_owned());
        }
        if entry.providers.is_empty() {
            return Err("providers: at least one is required".to_owned());
        }
        let mut named: Vec<(&str, &str)> = Vec::new();
        for (index, text) in entry.resources.iter().enumerate() {
            let at = |why: &str| format!("resources[{index}]: {text:?}: {why}");
            let name = name(text).map_err(at)?;
            check_beside(name, &named).map_err(at)?;
            self.check_masked(name).map_err(|why| at(&why))?;
            named.push(name);
        }
        let mut providers = Vec::new();
        for (index, provider) in entry.providers.iter().enumerate() {
            let provider = provider
                .read(self.clock)
                .map_err(|why| format!("providers[{index}]{why}"))?;
            if let Provider::Kms(kms) = &provider {
                if self.kms.iter().any(|other| other.prefix() == kms.prefix()) {
                    let why = "it is named twice; names must be unique";
                    return Err(format!("providers[{index}].kms.name: {why}"));
                }
                self.kms.push(Arc::clone(kms));
            }
            providers.push(Arc::new(provider));
        }
        for (resource, group) in named {
            let of_rule = self.rules.entry(rule(resource, group)).or_default();
            of_rule.extend(providers.iter().cloned());
        }
        Ok(())
    }

    /// Checks that an entry is not hidden by a wider one before it.
    fn check_masked(&self, (_, group): (&str, &str)) -> Result<(), String> {
        let wider = [rule(ANY, group), rule(ANY, ANY)];
        match wider.iter().find(|it| self.rules.contains_key(*it)) {
            Some(earlier) => Err(format!("it is masked by the earlier rule {earlier}")),
            None => Ok(()),
        }
    }
}

/// Checks a name against those before it in the same list.
fn check_beside(name: (&str, &str), beside: &[(&str, &str)]) -> Result<(), &'static str> {
    if beside.contains(&name) {
        return Err("it is named twice");
    }
    let (resource, group) = name;
    let all = (ANY, ANY);
    let overlaps = |other: &(&str, &str)| {
        let same_group = other.1 == group && (other.0 == ANY || resource == ANY);
        *other == all || name == all || same_group
    };
    if beside.iter().any(overlaps) {
        return Err("it overlaps with another of the same list");
    }
    Ok(())
}

/// Splits `deployments.apps` into a resource and its group.
fn name(text: &str) -> Result<(&str, &str), &'static str> {
    if text.chars().any(char::is_uppercase) {
        return Err("resource name should not contain capital letters");
    }
    if text == ANY {
        return Err("use '*.' for the core group or '*.*' for everything");
    }
    if WITHOUT_API.contains(&text) {
        return Err("resources which do not have REST API/s cannot be encrypted");
    }
    let (resource, group) = text.split_once('.').unwrap_or((text, ""));
    match (resource, group) {
        (_, "events.k8s.io") => Err("these are stored as 'events'; name them so"),
        (_, "extensions") => Err("the group 'extensions' has been removed"),
        (ANY, ANY) => Ok((ANY, ANY)),
        (_, ANY) => Err("the same resource across groups is not supported"),
        found => Ok(found),
    }
}

impl ProviderRule {
    fn read(&self, clock: &Clock) -> Result<Provider, String> {
        let named = [
            self.identity.is_some(),
            self.aesgcm.is_some(),
            self.secretbox.is_some(),
            self.aescbc.is_some(),
            self.kms.is_some(),
        ];
        match named.into_iter().filter(|it| *it).count() {
            0 => {
                let why = ": it names no provider: identity, aesgcm, aescbc, secretbox or kms";
                return Err(why.to_owned());
            }
            1 => {}
            _ => return Err(": it names more than one provider; give each its own entry".into()),
        }
        if let Some(keys) = &self.aesgcm {
            return Ok(Provider::Encrypted {
                prefix: "k8s:enc:aesgcm:v1:",
                name: "AES",
                keys: keys.read("aesgcm", "16, 24 or 32", Cipher::aes_gcm)?,
            });
        }
        if let Some(keys) = &self.secretbox {
            return Ok(Provider::Encrypted {
                prefix: "k8s:enc:secretbox:v1:",
                name: "Secretbox",
                keys: keys.read("secretbox", "32", Cipher::secretbox)?,
            });
        }
        if let Some(keys) = &self.aescbc {
            return Ok(Provider::Encrypted {
                prefix: "k8s:enc:aescbc:v1:",
                name: "AES",
                keys: keys.read("aescbc", "16, 24 or 32", Cipher::aes_cbc)?,
            });
        }
        match &self.kms {
            Some(kms) => match kms.read(clock) {
                Ok(provider) => Ok(Provider::Kms(Arc::new(provider))),
                Err(why) => Err(format!(".kms.{why}")),
            },
            None => Ok(Provider::Identity),
        }
    }
}

impl Keys {
    fn read(
        &self,
        provider: &str,
        lengths: &str,
        cipher: impl Fn(&[u8]) -> Option<Cipher>,
    ) -> Result<Vec<NamedKey>, String> {
        if self.keys.is_empty() {
            return Err(format!(".{provider}.keys: at least one is required"));
        }
        let mut keys = Vec::new();
        for (index, key) in self.keys.iter().enumerate() {
            let wrong = |why: &str| Err(format!(".{provider}.keys[{index}].{why}"));
            if key.name.is_empty() {
                return wrong("name: it is missing");
            }
            if key.secret.is_empty() {
                return wrong("secret: it is missing");
            }
            let Ok(secret) = STANDARD.decode(&key.secret) else {
                return wrong("secret: it is not base64");
            };
            let Some(cipher) = cipher(&secret) else {
                let found = secret.len();
                return wrong(&format!(
                    "secret: it has {found} bytes instead of {lengths}"
                ));
            };
            keys.push(NamedKey {
                prefix: format!("{}:", key.name),
                cipher,
            });
        }
        Ok(keys)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::{Encryption, Transformer};
    use super::*;

    /// A key of 32 bytes.
    const SECRET: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";

    fn file(rules: &str) -> Result<EncryptionConfig, EncryptionConfigError> {
        let text = format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n{rules}"
        );
        EncryptionConfig::parse(&text, &Clock::real())
    }

    const KMS: &str = "- resources: [secrets]\n  providers:\n  \
        - kms: {apiVersion: v2, name: x, endpoint: \"unix:///a\", timeout: 1m30s}\n";

    #[test]
    fn plugins_have_names_of_their_own() {
        let twice = "  - kms: {apiVersion: v2, name: x, endpoint: \"unix:///b\"}\n";
        let error = file(&[KMS, twice].concat()).expect_err("twice").to_string();
        let expected =
            "resources[0].providers[1].kms.name: it is named twice; names must be unique";
        assert_eq!(error, expected);
        let error = file(&KMS.replace("x,", "\"a:b\",")).expect_err("a colon");
        assert!(
            error.to_string().contains("providers[0].kms.name: invalid"),
            "{error}"
        );
    }

    #[test]
    fn plugins_are_not_connected_to_before_they_are_asked() {
        let config = file(KMS).expect("a configuration");
        assert!(config.uses_kms());
        assert_eq!(config.check_time_max(), Duration::from_secs(90));
        let secrets = of_type(config, "secrets", "");
        let error = secrets.seal(Bytes::from_static(b"plain"), "/k");
        let error = error.expect_err("no plugin has answered").to_string();
        assert!(error.contains("its plugin has not answered yet"), "{error}");
    }

    fn aesgcm(name: &str, resources: &str) -> String {
        format!(
            "- resources: [{resources}]\n  providers:\n  - aesgcm:\n      keys:\n      - name: {name}\n        \
             secret: {SECRET}\n  - identity: {{}}\n"
        )
    }

    fn of_type(config: EncryptionConfig, resource: &str, group: &str) -> Transformer {
        Encryption::new(config).transformer(resource, group)
    }

    /// Returns the name of the key by which values of a type are encrypted, or the value if it is plain.
    fn written(rules: &str, resource: &str, group: &str) -> String {
        let config = file(rules).expect("a configuration");
        let transformer = of_type(config, resource, group);
        let stored = transformer.seal(Bytes::from_static(b"plain"), "/k");
        let stored = String::from_utf8_lossy(&stored.expect("stored")).into_owned();
        let name = stored.strip_prefix("k8s:enc:aesgcm:v1:").map(str::to_owned);
        let key = name.and_then(|it| it.split_once(':').map(|(key, _)| key.to_owned()));
        key.unwrap_or(stored)
    }

    #[test]
    fn the_nearest_rule_counts() {
        let rules = [
            aesgcm("one", "secrets, deployments.apps"),
            aesgcm("two", "\"*.apps\""),
            aesgcm("three", "\"*.\""),
            aesgcm("four", "\"*.*\""),
        ];
        for (resource, group, key) in [
            ("secrets", "", "one"),
            ("deployments", "apps", "one"),
            ("daemonsets", "apps", "two"),
            ("configmaps", "", "three"),
            ("jobs", "batch", "four"),
        ] {
            assert_eq!(written(&rules.concat(), resource, group), key, "{resource}");
        }
        assert_eq!(
            written(&aesgcm("one", "secrets"), "configmaps", ""),
            "plain"
        );
    }

    /// As in kube-apiserver, where the later entry can only be used for reading.
    #[test]
    fn a_type_that_is_named_again_has_more_providers() {
        let old = aesgcm("two", "secrets, configmaps");
        let rules = [
            aesgcm("one", "secrets"),
            old.clone(),
            aesgcm("three", "\"*.\""),
        ];
        let rules = rules.concat();
        assert_eq!(written(&rules, "secrets", ""), "one");
        assert_eq!(written(&rules, "configmaps", ""), "two");
        assert_eq!(written(&rules, "pods", ""), "three");
        let plain = Bytes::from_static(b"plain");
        let before = of_type(file(&old).expect("a configuration"), "secrets", "");
        let stored = before.seal(plain.clone(), "/k").expect("stored");
        let config = file(&rules).expect("a configuration");
        let secrets = of_type(config, "secrets", "");
        assert_eq!(secrets.open(&stored, "/k"), Ok((plain, true)));
    }

    #[test]
    fn json_is_read_as_well() {
        let json = format!(
            r#"{{"kind":"EncryptionConfiguration","apiVersion":"apiserver.config.k8s.io/v1",
            "resources":[{{"resources":["secrets"],"providers":[{{"secretbox":{{"keys":[
            {{"name":"a","secret":"{SECRET}"}}]}}}}]}}]}}"#
        );
        let config = EncryptionConfig::parse(&json, &Clock::real()).expect("a configuration");
        let encryption = Encryption::new(config);
        for (group, encrypted) in [("", true), ("apps", false)] {
            let secrets = encryption.transformer("secrets", group);
            let stored = secrets.seal(Bytes::from_static(b"plain"), "/k");
            let stored = stored.expect("stored");
            assert_eq!(stored.starts_with(b"k8s:enc:secretbox:v1:a:"), encrypted);
        }
    }

    #[test]
    fn names_that_hide_or_mean_nothing_are_refused() {
        for (rules, words) in [
            (aesgcm("a", "Secrets"), "capital letters"),
            (aesgcm("a", "\"*\""), "use '*.'"),
            (aesgcm("a", "\"secrets.*\""), "across groups"),
            (aesgcm("a", "events.events.k8s.io"), "stored as 'events'"),
            (aesgcm("a", "secrets, secrets"), "named twice"),
            (aesgcm("a", "secrets, \"*.\""), "overlaps"),
            (aesgcm("a", "\"*.*\", secrets"), "overlaps"),
            (
                [aesgcm("a", "\"*.\""), aesgcm("b", "secrets")].concat(),
                "resources[1].resources[0]: \"secrets\": it is masked by the earlier rule *.",
            ),
            (
                [aesgcm("a", "\"*.*\""), aesgcm("b", "\"*.apps\"")].concat(),
                "resources[1].resources[0]: \"*.apps\": it is masked by the earlier rule *.*",
            ),
            (
                [aesgcm("a", "\"*.apps\""), aesgcm("b", "\"*.apps\"")].concat(),
                "it is masked by the earlier rule *.apps",
            ),
            (
                aesgcm("a", "serviceipallocations"),
                "do not have REST API/s",
            ),
        ] {
            let error = file(&rules).expect_err(words).to_string();
            assert!(error.contains(words), "{words}: {error}");
        }
    }

    #[test]
    fn mistakes_are_named_with_their_place_and_no_secret() {
        let provider = |text: &str| format!("- resources: [secrets]\n  providers:\n  - {text}\n");
        let key = |secret: &str| {
            provider(&format!(
                "aesgcm: {{keys: [{{name: a, secret: \"{secret}\"}}]}}"
            ))
        };
        for (rules, words) in [
            (" []".to_owned(), "resources: at least one"),
            (
                "- providers: [identity: {}]".to_owned(),
                "resources[0].resources: at least one",
            ),
            (
                "- resources: [secrets]".to_owned(),
                "resources[0].providers: at least one",
            ),
            (provider("{}"), "providers[0]: it names no provider"),
            (
                provider("{identity: {}, kms: {}}"),
                "more than one provider",
            ),
            (
                provider("aescbc: {keys: []}"),
                "providers[0].aescbc.keys: at least one",
            ),
            (
                provider("aesgcm: {keys: []}"),
                "providers[0].aesgcm.keys: at least one",
            ),
            (
                provider("secretbox: {keys: [{secret: x}]}"),
                "secretbox.keys[0].name: it is missing",
            ),
            (key(""), "aesgcm.keys[0].secret: it is missing"),
            (key("c2VjcmV0!"), "it is not base64"),
            (key("c2VjcmV0"), "it has 6 bytes instead of 16, 24 or 32"),
            (
                provider("aesgcm: {keyz: []}"),
                "it is not an EncryptionConfiguration at line",
            ),
        ] {
            let error = file(&rules).expect_err(words).to_string();
            assert!(error.contains(words), "{words}: {error}");
            assert!(!error.contains("c2VjcmV0"), "{error}");
        }
        let other =
            EncryptionConfig::parse("apiVersion: v1\nkind: Pod\nresources: []\n", &Clock::real());
        let error = other.expect_err("another kind").to_string();
        assert!(error.contains("found \"v1\" and \"Pod\""), "{error}");
        EncryptionConfig::parse("", &Clock::real()).expect_err("an empty file");
    }
}
