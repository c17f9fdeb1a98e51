//! Reads the file of `--admission-control-config-file`: the configurations of admission plugins.
//!
//! A configuration stands in the file itself or in one of its own. As in kube-apiserver, the first entry of a plugin
//! counts, and entries of plugins that are not enabled, or that do not exist, are ignored: `NewFromPlugins` of
//! Kubernetes 1.36 (apiserver/pkg/admission/plugins.go) asks for the configurations of enabled plugins alone.

use std::path::{Path, PathBuf};

use ringwatch_admission::{PluginSet, parse_plugin};
use ringwatch_plugins::PodSecurityConfiguration;
use ringwatch_tls::error::StartError;
use ringwatch_tls::pem;
use serde::Deserialize;
use serde_json::Value;

use super::flags::AdmissionFlags;

/// The API versions of the file.
const VERSIONS: [&str; 2] = ["apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1"];
const KIND: &str = "AdmissionConfiguration";
const FLAG: &str = "--admission-control-config-file";

/// The advice for a file that cannot be used.
const ADVICE: &str = "see AdmissionConfiguration in Kubernetes' documentation";

/// Plugins of this server whose configuration is not supported, each with the reason. kube-apiserver has others with a
/// configuration, which are off by default there and cannot be enabled here.
const UNSUPPORTED: [(&str, &str); 5] = [
    (
        "MutatingAdmissionWebhook",
        "webhooks are called without credentials of a kubeconfig",
    ),
    (
        "ValidatingAdmissionWebhook",
        "webhooks are called without credentials of a kubeconfig",
    ),
    (
        "MutatingAdmissionPolicy",
        "policies are read from the API alone",
    ),
    (
        "ValidatingAdmissionPolicy",
        "policies are read from the API alone",
    ),
    (
        "ResourceQuota",
        "resources cannot be limited where no quota names them",
    ),
];

/// The configurations of admission plugins.
#[derive(Clone, Debug, Default)]
pub(crate) struct AdmissionConfig {
    /// The configuration of PodSecurity.
    pub(crate) pod_security: PodSecurityConfiguration,
}

/// An error in the file or in one that it names.
#[derive(Debug, thiserror::Error)]
enum ConfigError {
    #[error("{0}")]
    Malformed(String),
    #[error("it is no {KIND} of apiserver.config.k8s.io, but {api_version}, Kind={kind}")]
    OtherKind { api_version: String, kind: String },
    #[error("cannot read {}, the configuration of {plugin}: {error}", path.display())]
    Unreadable {
        plugin: String,
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("the configuration of {plugin} is wrong: {why}")]
    Plugin { plugin: String, why: String },
    #[error("a configuration of {plugin} is not supported, since {why}")]
    Unsupported { plugin: String, why: &'static str },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "apiVersion", default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    plugins: Vec<PluginFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PluginFile {
    #[serde(default)]
    name: String,
    #[serde(default)]
    path: PathBuf,
    configuration: Option<Value>,
}

impl AdmissionConfig {
    /// Reads the file that the flags name.
    ///
    /// # Errors
    /// A file cannot be read or understood, or configures a plugin whose configuration is not supported.
    pub(crate) fn load(flags: &AdmissionFlags) -> Result<Self, StartError> {
        if !flags.admission_control.is_empty() {
            tracing::warn!(
                "--admission-control is deprecated; use --enable-admission-plugins or --disable-admission-plugins"
            );
        }
        let Some(path) = &flags.admission_control_config_file else {
            return Ok(Self::default());
        };
        let text = pem::read(path, FLAG)?;
        Self::parse(&text, path, &flags.plugins()).map_err(|why| {
            let what = format!("use the admission configuration {}", path.display());
            StartError::new(what, why, ADVICE)
        })
    }

    /// Reads the text of the file at a path, as far as it concerns these plugins.
    fn parse(text: &str, path: &Path, plugins: &PluginSet) -> Result<Self, ConfigError> {
        let file: File = serde_saphyr::from_str(text)
            .map_err(|error| ConfigError::Malformed(error.to_string()))?;
        if file.kind != KIND || !VERSIONS.contains(&file.api_version.as_str()) {
            return Err(ConfigError::OtherKind {
                api_version: file.api_version,
                kind: file.kind,
            });
        }
        let folder = path.parent().unwrap_or_else(|| Path::new(""));
        for plugin in &file.plugins {
            plugin.check_supported(plugins)?;
        }
        let mut config = Self::default();
        let mut configured = file.plugins.iter();
        let pod_security = configured.find(|it| it.name == "PodSecurity");
        if let Some(entry) = pod_security.filter(|it| plugins.has(&it.name))
            && let Some(document) = entry.document(folder)?
        {
            config.pod_security = PodSecurityConfiguration::read(&document)
                .map_err(|error| entry.wrong(error.to_string()))?;
        }
        Ok(config)
    }
}

impl PluginFile {
    /// Checks that the plugin can be configured here, or need not be since it is not enabled.
    fn check_supported(&self, plugins: &PluginSet) -> Result<(), ConfigError> {
        if !plugins.has(&self.name) {
            let why = match parse_plugin(&self.name) {
                Ok(_) => "is not enabled",
                Err(_) => "does not exist",
            };
            let plugin = &self.name;
            tracing::warn!(plugin, "{FLAG} configures an admission plugin that {why}");
            return Ok(());
        }
        let is_configured = self.configuration.is_some() || !self.path.as_os_str().is_empty();
        let unsupported = UNSUPPORTED.iter().find(|(name, _)| *name == self.name);
        match unsupported {
            Some((_, why)) if is_configured => {
                let plugin = self.name.clone();
                Err(ConfigError::Unsupported { plugin, why })
            }
            _ => Ok(()),
        }
    }

    /// Returns the plugin's configuration, which is here or in a file of its own; `None` if there is none.
    fn document(&self, folder: &Path) -> Result<Option<Value>, ConfigError> {
        if let Some(document) = &self.configuration {
            return Ok(Some(document.clone()));
        }
        if self.path.as_os_str().is_empty() {
            return Ok(None);
        }
        let path = folder.join(&self.path);
        let text = std::fs::read_to_string(&path).map_err(|error| ConfigError::Unreadable {
            plugin: self.name.clone(),
            path,
            error,
        })?;
        if text.is_empty() {
            return Ok(None);
        }
        let document = serde_saphyr::from_str(&text);
        document
            .map(Some)
            .map_err(|error| self.wrong(error.to_string()))
    }

    fn wrong(&self, why: String) -> ConfigError {
        let plugin = self.name.clone();
        ConfigError::Plugin { plugin, why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n";
    const POD_SECURITY: &str =
        "apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration";

    fn parse(plugins: &str, disabled: &[&'static str]) -> Result<AdmissionConfig, String> {
        let set = PluginSet::new(&[], disabled);
        let path = Path::new("/nowhere/admission.yaml");
        AdmissionConfig::parse(&format!("{HEAD}{plugins}"), path, &set)
            .map_err(|error| error.to_string())
    }

    fn enforced(config: &AdmissionConfig) -> String {
        format!("{:?}", config.pod_security)
    }

    #[test]
    fn configurations_stand_in_the_file_or_beside_it() {
        let defaults = |level: &str| format!("{{{POD_SECURITY}, defaults: {{enforce: {level}}}}}");
        let inline = format!(
            "- {{name: Nope, configuration: {{a: 1}}}}\n- {{name: LimitRanger, path: not-read}}\n\
             - {{name: PodSecurity, path: not-read, configuration: {}}}\n\
             - {{name: PodSecurity, configuration: {{wrong: true}}}}\n",
            defaults("baseline")
        );
        let config = parse(&inline, &[]).expect("valid");
        assert!(enforced(&config).contains("Baseline"));

        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("pod-security.yaml");
        std::fs::write(&file, defaults("restricted")).expect("a file");
        let beside = format!("{HEAD}- {{name: PodSecurity, path: pod-security.yaml}}\n");
        let set = PluginSet::default();
        let config = AdmissionConfig::parse(&beside, &folder.path().join("a.yaml"), &set);
        assert!(enforced(&config.expect("valid")).contains("Restricted"));
        std::fs::write(&file, "").expect("a file");
        let config = AdmissionConfig::parse(&beside, &folder.path().join("a.yaml"), &set);
        assert!(!enforced(&config.expect("empty")).contains("Restricted"));

        parse("- {name: PodSecurity}\n", &[]).expect("nothing to read");
        parse("- {name: ResourceQuota}\n", &[]).expect("nothing to read");
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        for (plugins, words) in [
            ("- {name: x, pathh: y}\n", "unknown field"),
            (
                "- {name: PodSecurity, path: gone.yaml}\n",
                "cannot read /nowhere/gone.yaml, the configuration of PodSecurity",
            ),
            (
                "- {name: PodSecurity, configuration: {kind: Pod, apiVersion: v1}}\n",
                "the configuration of PodSecurity is wrong: it is no PodSecurityConfiguration",
            ),
            (
                "- {name: ResourceQuota, path: x}\n",
                "a configuration of ResourceQuota is not supported, since resources",
            ),
            (
                "- {name: ValidatingAdmissionWebhook, configuration: {kubeConfigFile: /x}}\n",
                "not supported, since webhooks",
            ),
        ] {
            let error = parse(plugins, &[]).expect_err(words);
            assert!(error.contains(words), "{words}: {error}");
        }
        let other = "apiVersion: v1\nkind: Pod\n";
        let error = AdmissionConfig::parse(other, Path::new("x"), &PluginSet::default());
        let error = error.expect_err("another kind").to_string();
        assert!(error.contains("but v1, Kind=Pod"), "{error}");
    }

    #[test]
    fn plugins_that_are_not_enabled_are_not_configured() {
        for absent in [
            "EventRateLimit",
            "ImagePolicyWebhook",
            "PodNodeSelector",
            "PodTolerationRestriction",
            "NoSuchPlugin",
        ] {
            let entry = format!("- {{name: {absent}, path: gone}}\n");
            parse(&entry, &[]).expect("off, as by default in kube-apiserver");
        }
        let plugins = "- {name: PodSecurity, path: gone}\n- {name: ResourceQuota, path: gone}\n";
        parse(plugins, &["PodSecurity", "ResourceQuota"]).expect("nothing is read");
    }
}
