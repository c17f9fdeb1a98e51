//! Runs of plans in processes of their own, since what a process keeps for all its threads would let one run change the
//! next; and one that hangs is ended.

use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::plan::Plan;
use crate::run::Outcome;

/// A run that takes longer has hung: its time does not pass.
const RUN_MAX: Duration = Duration::from_secs(300);
/// The pause between two looks at the processes.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The runs that go on, in the order of their start.
#[derive(Debug)]
pub struct Processes {
    running: Vec<Running>,
    running_max: usize,
}

#[derive(Debug)]
struct Running {
    plan: Plan,
    child: Child,
    /// Reads what the process says, so that a long outcome does not hold it up.
    said: Option<JoinHandle<io::Result<String>>>,
    begun: Instant,
}

impl Default for Processes {
    fn default() -> Self {
        Self::new()
    }
}

impl Processes {
    /// Returns room for a run on each processor.
    #[must_use]
    pub fn new() -> Self {
        Self {
            running: Vec::new(),
            running_max: thread::available_parallelism().map_or(1, usize::from),
        }
    }

    /// Returns true if another run can be started.
    #[must_use]
    pub fn have_room(&self) -> bool {
        self.running.len() < self.running_max
    }

    /// Starts this program with a plan.
    ///
    /// # Errors
    /// The system starts no process.
    pub fn start(&mut self, plan: Plan) -> Result<(), String> {
        let failed = |error: io::Error| format!("cannot start a process: {error}");
        let program = std::env::current_exe().map_err(failed)?;
        let mut command = Command::new(program);
        command.args(plan.arguments()).arg("--json");
        let running = Running::begin(plan, &mut command).map_err(failed)?;
        self.running.push(running);
        Ok(())
    }

    /// Waits for the run that was started first, and returns its outcome; `None` if there is none.
    ///
    /// # Errors
    /// The system does not tell how the process ended.
    pub fn outcome(&mut self) -> Result<Option<(Plan, Outcome)>, String> {
        if self.running.is_empty() {
            return Ok(None);
        }
        let mut first = self.running.remove(0);
        let outcome = first.outcome()?;
        Ok(Some((first.plan.clone(), outcome)))
    }
}

impl Running {
    /// Starts a process that writes the outcome of a plan.
    fn begin(plan: Plan, command: &mut Command) -> io::Result<Self> {
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut output = child.stdout.take();
        let said = thread::spawn(move || {
            let mut said = String::new();
            if let Some(output) = &mut output {
                output.read_to_string(&mut said)?;
            }
            Ok(said)
        });
        Ok(Self {
            plan,
            child,
            said: Some(said),
            begun: Instant::now(),
        })
    }

    fn outcome(&mut self) -> Result<Outcome, String> {
        let failed = |error: io::Error| format!("a process is lost: {error}");
        while self.child.try_wait().map_err(failed)?.is_none() {
            if self.begun.elapsed() >= RUN_MAX {
                return Ok(Outcome::failed(format!(
                    "the run hangs: it takes more than {RUN_MAX:?}"
                )));
            }
            thread::sleep(LOOK_EVERY);
        }
        let said = self.said.take().map(JoinHandle::join);
        let said = said.and_then(Result::ok).transpose().map_err(failed)?;
        Ok(said
            .and_then(|said| Outcome::from_json(&said))
            .unwrap_or_else(|| Outcome::failed("the process ended without an outcome".to_owned())))
    }
}

/// Ends a process whose outcome nobody waits for.
impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already, or ends now.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pipe holds less, so somebody has to read while the process still writes.
    #[test]
    fn a_long_outcome_does_not_hold_up_its_process() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("outcome");
        let long = Outcome::failed("x".repeat(1 << 20));
        std::fs::write(&file, long.to_json()).expect("written");
        let running = Running::begin(Plan::new(1), Command::new("cat").arg(&file));
        let outcome = running.and_then(|mut it| it.outcome().map_err(io::Error::other));
        assert_eq!(outcome.expect("a process").faults, long.faults);
    }
}
