//! Shell completions and manual pages, generated from the flags.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_complete::Shell;

/// The name of the program in completions.
const PROGRAM: &str = "ringwatch";

/// Print the completions of a shell, to be loaded by it.
///
/// bash: ringwatch completion bash > /etc/bash_completion.d/ringwatch;
/// zsh: ringwatch completion zsh > "${fpath[1]}/_ringwatch";
/// fish: ringwatch completion fish > ~/.config/fish/completions/ringwatch.fish
#[derive(Args, Debug)]
pub(crate) struct CompletionFlags {
    /// The shell.
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Write a manual page for each subcommand into a directory.
#[derive(Args, Debug)]
pub(crate) struct ManPagesFlags {
    /// The directory, which is created if it does not exist. Pages of the same names in it are written over.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

impl CompletionFlags {
    /// Writes the completions.
    pub(crate) fn write(&self, mut root: Command, mut to: impl io::Write) -> io::Result<()> {
        // The generator panics where it cannot write, such as into a closed pipe.
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut root, PROGRAM, &mut text);
        to.write_all(&text)?;
        to.flush()
    }
}

impl ManPagesFlags {
    /// Writes the pages.
    pub(crate) fn write(&self, root: Command) -> io::Result<()> {
        write_pages(root, &self.directory)
    }
}

fn write_pages(root: Command, directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    clap_mangen::generate_to(root, directory)
}
