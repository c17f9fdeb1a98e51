//! The flags about the file that has flags as its fields (`crate::config::config_file`).

use std::path::PathBuf;

use clap::Args;

/// Flags about the configuration itself.
#[derive(Args, Clone, Debug)]
pub struct ConfigFlags {
    /// A configuration of apiVersion ringwatch.io/v1alpha1 with flags as fields: their names in camel case. Flags of
    /// the command line replace its fields. Paths in it are relative to the working directory, as those of flags.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Print the configuration that results from the file, the flags and the defaults, and end.
    #[arg(long)]
    pub print_config: bool,
}
