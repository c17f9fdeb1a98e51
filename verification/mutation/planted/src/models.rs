//! Runs of the models in a copy, as process groups that are ended when their time is over.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use ringwatch_mutate::{Ended, Group};
use tokio::process::Command;
use tokio::time::timeout;

use crate::MutateError;

/// The most time that the models of one copy may take to compile: longer than any machine needs.
const BUILD_TIME_MAX: Duration = Duration::from_secs(3_600);

/// Compiles the models of a copy.
pub(crate) async fn build(copy: &Path, test: &[String], what: &str) -> Result<(), MutateError> {
    let mut cargo = cargo(copy, test);
    cargo.arg("--no-run").stderr(Stdio::piped());
    let group = Group::start(&mut cargo)?;
    let output = timeout(BUILD_TIME_MAX, group.output()).await;
    let output = output.map_err(|_| io::Error::other("cargo does not come to an end"))??;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let what = what.to_owned();
    Err(MutateError::Compile { what, said })
}

/// Runs a copy's models, or those whose names begin with `some`.
pub(crate) async fn run(
    copy: &Path,
    test: &[String],
    some: Option<&str>,
    limit: Duration,
) -> io::Result<Ended> {
    let mut cargo = cargo(copy, test);
    cargo.arg("--").args(some).stderr(Stdio::null());
    Group::start(&mut cargo)?.end_within(limit).await
}

fn cargo(copy: &Path, test: &[String]) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .args(test)
        .arg("--offline")
        .current_dir(copy)
        .env("CARGO_TARGET_DIR", copy.join("target"))
        .env("MODELS_END_AT_FAILURE", "1")
        .env_remove("RUSTFLAGS")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    cargo
}
