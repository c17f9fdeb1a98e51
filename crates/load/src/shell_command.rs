//! A command that the user gave, run by a shell to its end.
//!
//! It may leave a server running behind it, which has what the command had open. So only the command
//! is waited for, and what it complains of goes where our own complaints go.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

/// A command must end within this time.
const COMMAND_MAX: Duration = Duration::from_secs(60);

/// Runs a command. One that takes too long is no longer waited for, and goes on: half a restart is
/// worse than a late one.
pub(crate) async fn run(command: &str) -> Result<(), String> {
    let failed = |why: String| format!("the command {command:?} {why}");
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| failed(format!("cannot be run: {error}")))?;
    let ended = tokio::time::timeout(COMMAND_MAX, child.wait()).await;
    let status = ended
        .map_err(|_| failed(format!("does not end within {COMMAND_MAX:?}")))?
        .map_err(|error| failed(format!("cannot be waited for: {error}")))?;
    if status.success() {
        Ok(())
    } else {
        Err(failed(format!("ended with {status}")))
    }
}

#[cfg(test)]
mod tests {
    use ringwatch_testing::eventually::{DEADLINE, eventually};

    use super::*;

    #[tokio::test]
    async fn a_command_that_fails_says_so() {
        assert_eq!(run("true").await, Ok(()));
        let why = run("exit 3").await.expect_err("a failure");
        assert_eq!(why, r#"the command "exit 3" ended with exit status: 3"#);
    }

    /// Processes that a restart command leaves running are not waited for.
    #[tokio::test]
    async fn what_a_command_leaves_running_is_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let end = folder.path().join("end");
        let command = format!(
            "{{ until [ -e {0} ]; do sleep 0.05; done; rm {0}; }} & true",
            end.display()
        );
        let ended = tokio::time::timeout(DEADLINE, run(&command)).await;
        std::fs::write(&end, "").expect("a file");
        assert_eq!(ended, Ok(Ok(())));
        eventually(DEADLINE, "what was left running has ended", async || {
            !end.exists()
        })
        .await;
    }
}
