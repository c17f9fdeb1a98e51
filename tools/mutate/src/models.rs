//! Runs of the models in a copy, as process groups that are ended when their time is over.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::process::{Child, Command};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::MutateError;

/// How long the models of one copy may take to compile: longer than any machine needs.
const BUILD_TIME_MAX: Duration = Duration::from_secs(3_600);

/// Maximum time that a group gets to end by itself before it is killed. nextest gives its tests, each of which is a
/// process group of its own, ten seconds.
const END_TIME_MAX: Duration = Duration::from_secs(15);

/// How a run of models ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Passed,
    Failed,
    /// It did not end in time.
    TimedOut,
}

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
    let mut group = Group::start(&mut cargo)?;
    let Ok(status) = timeout(limit, group.wait()).await else {
        group.end().await?;
        return Ok(Ended::TimedOut);
    };
    let status = status?;
    Ok(if status.success() {
        Ended::Passed
    } else {
        Ended::Failed
    })
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
        .stdout(Stdio::null())
        .process_group(0);
    cargo
}

/// A process group that was started here. It does not outlive this.
struct Group {
    child: Option<Child>,
    id: Option<Pid>,
}

impl Group {
    fn start(command: &mut Command) -> io::Result<Self> {
        let child = command.spawn()?;
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Ok(Self {
            child: Some(child),
            id: id.and_then(Pid::from_raw),
        })
    }

    async fn wait(&mut self) -> io::Result<ExitStatus> {
        let child = self.child.as_mut().ok_or(io::ErrorKind::NotFound)?;
        let status = child.wait().await?;
        // From now on the number may be another's.
        self.id = None;
        Ok(status)
    }

    async fn output(mut self) -> io::Result<Output> {
        let child = self.child.take().ok_or(io::ErrorKind::NotFound)?;
        let output = child.wait_with_output().await?;
        self.id = None;
        Ok(output)
    }

    /// Asks the group to end, so that it ends what it has started itself, then kills what is left of it.
    ///
    /// The group's first process is reaped last: as long as it is not, no other group can have its number.
    async fn end(mut self) -> io::Result<()> {
        self.send(Signal::TERM);
        if let Some(id) = self.id {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            let first = spawn_blocking(move || waitid(WaitId::Pid(id), options));
            // Either way the rest is killed.
            let _ = timeout(END_TIME_MAX, first).await;
        }
        self.send(Signal::KILL);
        self.wait().await.map(drop)
    }

    fn send(&self, signal: Signal) {
        if let Some(id) = self.id {
            // A group that is gone needs no signal.
            let _ = kill_process_group(id, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.send(Signal::TERM);
    }
}
