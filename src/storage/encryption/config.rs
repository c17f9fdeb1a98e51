//! The file of `--encryption-provider-config`: which types are encrypted, and how.
//!
//! The rule of a type is the one that names it, otherwise that of its group (`*.apps`, `*.` for the core group),
//! otherwise that of everything (`*.*`); without any its values are plain. A rule that an earlier, wider one would hide
//! is an error.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::join_all;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::cipher::Cipher;
use super::kms::{KmsConfig, KmsProvider};
use super::transformer::{NamedKey, Provider, Transformer};
use crate::clock::Clock;
use crate::sync::Arc;

/// The encryption of each type. By default none is encrypted.
///
/// ```
/// use ringwatch::clock::Clock;
/// use ringwatch::storage::encryption::EncryptionConfig;
///
/// let config = EncryptionConfig::parse(
///     "
/// kind: EncryptionConfiguration
/// apiVersion: apiserver.config.k8s.io/v1
/// resources:
/// - resources: [secrets]
///   providers:
///   - aesgcm:
///       keys: [{name: key1, secret: AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=}]
///   - identity: {}
/// ",
///     &Clock::real(),
/// )?;
/// let secrets = config.transformer("secrets", "");
/// let key = "/registry/secrets/default/a";
/// let stored = secrets.seal(b"{}"[..].into(), key)?;
/// assert!(stored.starts_with(b"k8s:enc:aesgcm:v1:key1:"));
/// assert_eq!(secrets.open(&stored, key)?, (b"{}"[..].into(), false));
///
/// assert!(config.transformer("pods", "").is_identity());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct EncryptionConfig {
    /// The transformers by resource and group, either of which may be a star.
    rules: BTreeMap<(String, String), Transformer>,
    /// The providers that encrypt with KMS plugins, in the order of the file.
    kms: Vec<Arc<KmsProvider>>,
}

/// An error in the file, with its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    api_version: String,
    kind: String,
    #[serde(default)]
    resources: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
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
    keys: Vec<Key>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Key {
    #[serde(default)]
    name: String,
    #[serde(default)]
    secret: String,
}

/// The star that stands for every group or every resource.
const ANY: &str = "*";

impl EncryptionConfig {
    /// Reads an `EncryptionConfiguration` in YAML or JSON.
    ///
    /// # Errors
    /// [`ConfigError`], which never contains a secret.
    pub fn parse(text: &str, clock: &Clock) -> Result<Self, ConfigError> {
        // The message of the YAML reader may quote the file, secrets included.
        let place = |error: serde_saphyr::Error| {
            let at = error.location().map(|at| format!(" at line {}", at.line()));
            ConfigError(format!(
                "it is not an EncryptionConfiguration{}",
                at.unwrap_or_default()
            ))
        };
        let file: File = serde_saphyr::from_str(text).map_err(place)?;
        if file.api_version != "apiserver.config.k8s.io/v1"
            || file.kind != "EncryptionConfiguration"
        {
            return Err(ConfigError(format!(
                "expected apiVersion apiserver.config.k8s.io/v1 and kind EncryptionConfiguration, \
                 found {:?} and {:?}",
                file.api_version, file.kind
            )));
        }
        if file.resources.is_empty() {
            return Err(ConfigError("resources: at least one is required".into()));
        }
        let mut config = Self::default();
        for (index, rule) in file.resources.iter().enumerate() {
            config
                .add(rule, clock)
                .map_err(|error| ConfigError(format!("resources[{index}].{error}")))?;
        }
        Ok(config)
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

    /// Checks that all KMS plugins are healthy, one after the other. One that was asked a moment ago is not asked again.
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

    /// Keeps the keys of all KMS plugins confirmed, until it is dropped. Without this, nothing is encrypted with them after
    /// some minutes.
    pub async fn poll_kms(self) {
        join_all(self.kms.iter().map(|it| it.poll())).await;
    }

    /// Returns the transformer of a type's values.
    #[must_use]
    pub fn transformer(&self, resource: &str, group: &str) -> Transformer {
        let rule =
            |resource: &str, group: &str| self.rules.get(&(resource.to_owned(), group.to_owned()));
        let found = rule(resource, group)
            .or_else(|| rule(ANY, group))
            .or_else(|| rule(ANY, ANY));
        found.cloned().unwrap_or_default()
    }

    fn add(&mut self, rule: &Rule, clock: &Clock) -> Result<(), String> {
        if rule.resources.is_empty() {
            return Err("resources: at least one is required".to_owned());
        }
        if rule.providers.is_empty() {
            return Err("providers: at least one is required".to_owned());
        }
        let mut named = Vec::new();
        for (index, text) in rule.resources.iter().enumerate() {
            let at = |why: String| format!("resources[{index}]: {text:?}: {why}");
            let name = name(text).map_err(|why| at(why.to_owned()))?;
            self.check_hidden(&name, &named).map_err(at)?;
            named.push(name);
        }
        let mut providers = Vec::new();
        for (index, provider) in rule.providers.iter().enumerate() {
            let provider = provider
                .read(clock)
                .map_err(|why| format!("providers[{index}]{why}"))?;
            if let Provider::Kms(kms) = &provider {
                if self.kms.iter().any(|other| other.prefix() == kms.prefix()) {
                    let why = "it is named twice; names must be unique";
                    return Err(format!("providers[{index}].kms.name: {why}"));
                }
                self.kms.push(Arc::clone(kms));
            }
            providers.push(provider);
        }
        let transformer = Transformer::new(providers);
        for name in named {
            self.rules.insert(name, transformer.clone());
        }
        Ok(())
    }

    /// Checks that an entry is not hidden by one before it in the same list or the file.
    fn check_hidden(
        &self,
        name: &(String, String),
        beside: &[(String, String)],
    ) -> Result<(), String> {
        if self.rules.contains_key(name) || beside.contains(name) {
            return Err("it is named twice".to_owned());
        }
        let (resource, group) = name;
        let wider = [
            (ANY.to_owned(), group.clone()),
            (ANY.to_owned(), ANY.to_owned()),
        ];
        if let Some((any, group)) = wider.iter().find(|it| self.rules.contains_key(it)) {
            return Err(format!("it is masked by the earlier rule {any}.{group}"));
        }
        let overlaps = |other: &(String, String)| {
            let all = |it: &(String, String)| it.0 == ANY && it.1 == ANY;
            let same_group = other.1 == *group && (other.0 == ANY || resource == ANY);
            all(other) || all(name) || same_group
        };
        if beside.iter().any(overlaps) {
            return Err("it overlaps with another of the same list".to_owned());
        }
        Ok(())
    }
}

/// Splits `deployments.apps` into a resource and its group.
fn name(text: &str) -> Result<(String, String), &'static str> {
    if text.chars().any(char::is_uppercase) {
        return Err("resource name should not contain capital letters");
    }
    if text == ANY {
        return Err("use '*.' for the core group or '*.*' for everything");
    }
    let (resource, group) = text.split_once('.').unwrap_or((text, ""));
    match (resource, group) {
        ("", _) => Err("the resource is missing"),
        (_, "events.k8s.io") => Err("these are stored as 'events'; name them so"),
        (_, "extensions") => Err("the group 'extensions' has been removed"),
        (ANY, ANY) => Ok((ANY.to_owned(), ANY.to_owned())),
        (_, ANY) => Err("the same resource across groups is not supported"),
        _ => Ok((resource.to_owned(), group.to_owned())),
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

    use super::*;

    /// A key of 32 bytes.
    const SECRET: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";

    fn file(rules: &str) -> Result<EncryptionConfig, ConfigError> {
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
        let secrets = config.transformer("secrets", "");
        assert!(!secrets.is_identity());
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

    fn written(config: &EncryptionConfig, resource: &str, group: &str) -> String {
        let transformer = config.transformer(resource, group);
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
        let config = file(&rules.concat()).expect("a configuration");
        for (resource, group, key) in [
            ("secrets", "", "one"),
            ("deployments", "apps", "one"),
            ("daemonsets", "apps", "two"),
            ("configmaps", "", "three"),
            ("jobs", "batch", "four"),
        ] {
            assert_eq!(written(&config, resource, group), key, "{resource}");
        }
        let config = file(&aesgcm("one", "secrets")).expect("a configuration");
        assert_eq!(written(&config, "configmaps", ""), "plain");
        assert_eq!(
            written(&EncryptionConfig::default(), "secrets", ""),
            "plain"
        );
    }

    #[test]
    fn json_is_read_as_well() {
        let json = format!(
            r#"{{"kind":"EncryptionConfiguration","apiVersion":"apiserver.config.k8s.io/v1",
            "resources":[{{"resources":["secrets"],"providers":[{{"secretbox":{{"keys":[
            {{"name":"a","secret":"{SECRET}"}}]}}}}]}}]}}"#
        );
        let config = EncryptionConfig::parse(&json, &Clock::real()).expect("a configuration");
        assert!(!config.transformer("secrets", "").is_identity());
        assert!(config.transformer("secrets", "apps").is_identity());
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
