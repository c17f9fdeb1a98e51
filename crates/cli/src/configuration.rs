//! Command lines with a file of `--config`, and `ringwatch check-config`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgMatches, Args, Command};
use ringwatch_server::config_file::{self, ConfigFileError, ConfigKind};
use ringwatch_server::{check_config, flags};

/// Check a configuration and the files that it names: certificates and keys, and the configurations of encryption,
/// admission, authentication, authorization, tracing and audit. Nothing is changed. The exit code is 2 if the
/// configuration is wrong, 1 if a file is that it names, else 0.
#[derive(Args, Debug)]
pub(crate) struct CheckConfigFlags {
    /// The file, as --config takes it.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

impl CheckConfigFlags {
    /// Returns the command line that serves with the file alone, and the file's kind.
    pub(crate) fn line(&self) -> Result<(ConfigKind, Vec<OsString>), ConfigFileError> {
        let kind = config_file::kind_of(&self.file)?;
        let line = ["ringwatch", kind.subcommand(), "--config"].map(OsString::from);
        let line = line.into_iter().chain([self.file.clone().into_os_string()]);
        Ok((kind, line.collect()))
    }
}

/// Flags that a configuration makes.
pub(crate) enum ConfiguredFlags<'flags> {
    /// The flags of a server.
    Server(&'flags flags::ServeFlags),
    /// The flags of a relay.
    Relay(&'flags flags::RelayFlags),
}

impl ConfiguredFlags<'_> {
    /// Returns a line for each file that cannot be used.
    pub(crate) fn problems(&self) -> Vec<String> {
        let problems = match self {
            Self::Server(flags) => check_config::of_server(flags),
            Self::Relay(flags) => check_config::of_relay(flags),
        };
        problems.iter().map(ToString::to_string).collect()
    }

    /// Returns the configuration in YAML, if the flags ask for it rather than for a server.
    pub(crate) fn printed(
        &self,
        root: &Command,
        matches: &ArgMatches,
    ) -> Option<Result<String, String>> {
        let (kind, configuration) = match self {
            Self::Server(flags) => (ConfigKind::Server, &flags.configuration),
            Self::Relay(flags) => (ConfigKind::Relay, &flags.configuration),
        };
        let matches = matches.subcommand_matches(kind.subcommand())?;
        let effective = || config_file::effective(root, kind, matches);
        configuration.print_config.then(effective)
    }

    /// Checks combinations of flags; the error is a line for the user.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self {
            Self::Server(flags) => flags.check(),
            Self::Relay(flags) => flags.check(),
        }
    }
}
