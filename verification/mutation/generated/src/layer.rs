//! A layer of tests: how cargo builds it, and what cargo says of that.

use std::ops::Range;
use std::path::PathBuf;
use std::process::Stdio;
use std::str::FromStr;

use ringwatch_mutate::Group;
use serde::Deserialize;
use tokio::process::Command;

use crate::MutantsError;
use crate::copy::Copy;

/// Tests that are built together, such as `unit=test --package ringwatch --lib`.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    pub(crate) name: String,
    arguments: Vec<String>,
}

impl FromStr for Layer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, command) = text.split_once('=').ok_or("it is not NAME=COMMAND")?;
        Ok(Self {
            name: name.to_owned(),
            arguments: command.split_whitespace().map(str::to_owned).collect(),
        })
    }
}

/// A program of tests, and the folder of its package, where cargo would run it.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) folder: PathBuf,
}

/// The outcome of a build: the programs that it made, or the errors of the compiler.
#[derive(Debug)]
pub(crate) enum Built {
    Programs(Vec<Program>),
    Refused(Vec<Refusal>),
}

/// An error of the compiler.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) said: String,
    /// The places of the error: files, relative to the root, and ranges of bytes. The most important come first.
    pub(crate) places: Vec<(String, Range<usize>)>,
}

/// A line of what cargo writes with `--message-format json`: an artifact, a message of the compiler, or something else.
#[derive(Deserialize)]
struct Line {
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    profile: Option<Profile>,
    message: Option<Diagnostic>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

#[derive(Deserialize)]
struct Diagnostic {
    level: String,
    rendered: Option<String>,
    spans: Vec<Span>,
    children: Vec<Self>,
}

#[derive(Deserialize)]
struct Span {
    file_name: String,
    byte_start: usize,
    byte_end: usize,
    is_primary: bool,
}

impl Layer {
    /// Builds the layer's programs in the copy.
    pub(crate) async fn build(&self, copy: &Copy) -> Result<Built, MutantsError> {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .args(&self.arguments)
            .args(["--no-run", "--offline", "--message-format", "json"])
            .current_dir(copy.root())
            .env("CARGO_TARGET_DIR", &copy.target)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let output = Group::start(&mut cargo)?.output().await?;
        let (mut programs, mut refusals) = (Vec::new(), Vec::new());
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let line: Line = serde_json::from_str(line).map_err(MutantsError::Cargo)?;
            let is_test = line.profile.is_some_and(|it| it.test);
            if let (Some(path), Some(manifest), true) =
                (line.executable, line.manifest_path, is_test)
            {
                let folder = manifest.parent().unwrap_or_else(|| copy.root()).to_owned();
                programs.push(Program { path, folder });
            }
            let error = line.message.filter(|it| it.level.starts_with("error"));
            refusals.extend(error.and_then(|it| refusal(it, copy)));
        }
        if output.status.success() {
            return Ok(Built::Programs(programs));
        }
        if refusals.is_empty() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(MutantsError::Compile(said));
        }
        Ok(Built::Refused(refusals))
    }
}

/// Returns an error with its places, unless it only counts the others.
fn refusal(message: Diagnostic, copy: &Copy) -> Option<Refusal> {
    let (mut spans, mut others): (Vec<Span>, Vec<Span>) =
        message.spans.into_iter().partition(|it| it.is_primary);
    if spans.is_empty() {
        return None;
    }
    spans.append(&mut others);
    spans.extend(message.children.into_iter().flat_map(|it| it.spans));
    let place = |it: Span| {
        let file = copy.relative(&it.file_name)?;
        Some((file, it.byte_start..it.byte_end))
    };
    Some(Refusal {
        said: message.rendered.unwrap_or_default(),
        places: spans.into_iter().filter_map(place).collect(),
    })
}
