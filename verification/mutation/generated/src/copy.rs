//! The copy of the checkout that is built with switches.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use crate::MutantsError;

/// A copy of all files that git knows or would add, as a workspace of its own.
#[derive(Debug)]
pub(crate) struct Copy {
    root: PathBuf,
    /// The folder in which cargo builds the copy.
    pub(crate) target: PathBuf,
    /// The folder in which the copy's tests put temporary files.
    pub(crate) temporary: PathBuf,
}

/// The module of the switches, without the number of mutants.
const SWITCH: &str = include_str!("switch.rs.in");

/// Put in front of a crate, whose lines keep their numbers: lints are no tests, so they need not catch a mutant.
const ALLOWED: &str = "#![allow(warnings, arithmetic_overflow, unconditional_panic)] ";

impl Copy {
    /// Copies the checkout at `from` anew.
    pub(crate) fn new(from: &Path) -> Result<Self, MutantsError> {
        let folder = from.join("target/mutants/switched");
        let copy = Self {
            root: folder.join("copy"),
            target: folder.join("target"),
            temporary: folder.join("tmp"),
        };
        for old in [&copy.root, &copy.temporary] {
            if old.exists() {
                fs::remove_dir_all(old)?;
            }
        }
        let mut git = Command::new("git");
        git.args(["ls-files", "-z", "--cached", "--others"]);
        let listed = git.arg("--exclude-standard").current_dir(from).output()?;
        if !listed.status.success() {
            let said = String::from_utf8_lossy(&listed.stderr).into_owned();
            return Err(MutantsError::Git(said));
        }
        let files = String::from_utf8_lossy(&listed.stdout).into_owned();
        for file in files.split_terminator('\0') {
            let (from, to) = (from.join(file), copy.root.join(file));
            // A file that was deleted but for git is listed as well.
            if from.is_file() {
                fs::create_dir_all(to.parent().unwrap_or(&copy.root))?;
                fs::copy(from, to)?;
            }
        }
        Ok(copy)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Adds the module of the switches to a crate, given its first file, for so many mutants.
    pub(crate) fn add_switches(&self, first: &str, mutants: usize) -> io::Result<()> {
        let file = self.root.join(first);
        let text = fs::read_to_string(&file)?;
        fs::write(&file, format!("{ALLOWED}{text}\npub mod mutants;\n"))?;
        let numbers = (mutants + 1).to_string();
        let module = SWITCH.replace("NUMBER_END", &numbers);
        fs::write(file.with_file_name("mutants.rs"), module)
    }

    /// Writes a file, unless it has that text already: cargo goes by the times of files.
    pub(crate) fn write(&self, file: &str, text: &str) -> io::Result<()> {
        let path = self.root.join(file);
        if fs::read_to_string(&path)? == text {
            return Ok(());
        }
        fs::write(path, text)
    }

    /// Returns a path that the compiler names, relative to the root of the workspace.
    pub(crate) fn relative(&self, named: &str) -> Option<String> {
        let path = self.root.join(named).canonicalize().ok()?;
        let root = self.root.canonicalize().ok()?;
        let relative = path.strip_prefix(root).ok()?;
        relative.to_str().map(str::to_owned)
    }
}
