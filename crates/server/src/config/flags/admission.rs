//! The flags of admission plugins.

use std::path::PathBuf;

use clap::Args;
use ringwatch_admission::{PluginSet, parse_plugin};
use ringwatch_plugins::DefaultTolerations;

/// Flags of admission.
#[derive(Args, Clone, Debug)]
pub struct AdmissionFlags {
    /// Admission plugins to enable, comma-separated. All supported ones are enabled by default but NodeRestriction,
    /// which is if Node is among the authorization modes; an unsupported one is refused. Their order does not matter.
    #[arg(long, value_name = "PLUGINS", value_delimiter = ',', value_parser = parse_plugin)]
    pub enable_admission_plugins: Vec<&'static str>,

    /// Admission plugins to disable, comma-separated.
    #[arg(long, value_name = "PLUGINS", value_delimiter = ',', value_parser = parse_plugin)]
    pub disable_admission_plugins: Vec<&'static str>,

    /// Admission plugins to run, comma-separated; all others are disabled. Deprecated: use --enable-admission-plugins
    /// or --disable-admission-plugins.
    #[arg(long, value_name = "PLUGINS", value_delimiter = ',', value_parser = parse_plugin)]
    pub admission_control: Vec<&'static str>,

    /// An AdmissionConfiguration with the configurations of admission plugins. Supported is that of PodSecurity.
    #[arg(long, value_name = "FILE")]
    pub admission_control_config_file: Option<PathBuf>,

    /// Time in seconds that pods stay on a node that is not ready, unless they say it themselves.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 300,
        allow_negative_numbers = true
    )]
    pub default_not_ready_toleration_seconds: i64,

    /// Time in seconds that pods stay on a node that cannot be reached, unless they say it themselves.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 300,
        allow_negative_numbers = true
    )]
    pub default_unreachable_toleration_seconds: i64,
}

impl AdmissionFlags {
    /// Checks that no plugin is both enabled and disabled, and that those that are enabled exist.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.admission_control.is_empty() {
            return PluginSet::check(
                &self.enable_admission_plugins,
                &self.disable_admission_plugins,
            );
        }
        if !self.enable_admission_plugins.is_empty() || !self.disable_admission_plugins.is_empty() {
            return Err(
                "admission-control and enable-admission-plugins/disable-admission-plugins flags are mutually exclusive"
                    .to_owned(),
            );
        }
        PluginSet::check(&self.admission_control, &[])
    }

    /// Returns the plugin that adds tolerations.
    #[must_use]
    pub fn tolerations(&self) -> DefaultTolerations {
        DefaultTolerations {
            not_ready_seconds: self.default_not_ready_toleration_seconds,
            unreachable_seconds: self.default_unreachable_toleration_seconds,
        }
    }

    /// Returns the enabled plugins.
    #[must_use]
    pub fn plugins(&self) -> PluginSet {
        if !self.admission_control.is_empty() {
            return PluginSet::only(&self.admission_control);
        }
        PluginSet::new(
            &self.enable_admission_plugins,
            &self.disable_admission_plugins,
        )
    }
}
