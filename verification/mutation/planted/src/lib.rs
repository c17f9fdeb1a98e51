//! Process groups, as `mutate` and `mutants` run tests: what a mutation makes hang is ended with all that it started.
#![allow(
    clippy::disallowed_methods,
    reason = "for commands of their own, which wait for the processes that they start"
)]

use std::io;
use std::process::{ExitStatus, Output};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::process::{Child, Command};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Maximum time that a group gets to end by itself before it is killed. nextest gives its tests, each of which is a
/// process group of its own, ten seconds.
const END_TIME_MAX: Duration = Duration::from_secs(15);

/// The outcome of a run of tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All passed.
    Passed,
    /// One failed.
    Failed,
    /// They did not end in time.
    TimedOut,
}

/// A process group that was started here. It does not outlive this.
#[derive(Debug)]
pub struct Group {
    child: Option<Child>,
    id: Option<Pid>,
}

impl Group {
    /// Starts a command as the first process of a group of its own.
    ///
    /// # Errors
    /// The command cannot be started.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let child = command.process_group(0).spawn()?;
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Ok(Self {
            child: Some(child),
            id: id.and_then(Pid::from_raw),
        })
    }

    /// Waits for the end of the first process and returns what it wrote to its pipes.
    ///
    /// # Errors
    /// A pipe cannot be read, or the process not be waited for.
    pub async fn output(mut self) -> io::Result<Output> {
        let child = self.child.take().ok_or(io::ErrorKind::NotFound)?;
        let output = child.wait_with_output().await?;
        // From now on the number may be another's.
        self.id = None;
        Ok(output)
    }

    /// Waits for the end of the first process and leaves it to [`Self::end`] to reap it.
    ///
    /// # Errors
    /// The process cannot be waited for.
    pub async fn exited(&self) -> io::Result<()> {
        let Some(id) = self.id else { return Ok(()) };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        spawn_blocking(move || waitid(WaitId::Pid(id), options)).await??;
        Ok(())
    }

    /// Ends the group when its first process has ended or the time is over, and returns how the run ended.
    ///
    /// # Errors
    /// The process cannot be waited for.
    pub async fn end_within(self, limit: Duration) -> io::Result<Ended> {
        let ended = timeout(limit, self.exited()).await;
        let status = self.end().await?;
        let Ok(ended) = ended else {
            return Ok(Ended::TimedOut);
        };
        ended?;
        Ok(if status.success() {
            Ended::Passed
        } else {
            Ended::Failed
        })
    }

    /// Asks the group to end, so that it ends what it has started itself, then kills what is left of it, and returns
    /// how its first process ended.
    ///
    /// That process is reaped last: as long as it is not, no other group can have its number.
    ///
    /// # Errors
    /// The process cannot be waited for.
    pub async fn end(mut self) -> io::Result<ExitStatus> {
        self.send(Signal::TERM);
        // Either way the rest is killed.
        let _ = timeout(END_TIME_MAX, self.exited()).await;
        self.send(Signal::KILL);
        let child = self.child.as_mut().ok_or(io::ErrorKind::NotFound)?;
        let status = child.wait().await?;
        self.id = None;
        Ok(status)
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
