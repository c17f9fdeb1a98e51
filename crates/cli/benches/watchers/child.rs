//! A process of this very program in another role, by question and answer.

use std::env;
use std::marker::PhantomData;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::Failed;
use super::process::Cpu;

/// The argument by which the program knows that it is to watch.
pub(crate) const WATCHES: &str = "watching-clients";
/// The argument by which the program knows that it is the floor.
pub(crate) const IS_FLOOR: &str = "floor";
/// The argument by which the program knows that it is to become another one, which ends with its
/// parent: the process that the next argument names.
pub(crate) const BECOMES: &str = "become";

/// Becomes the program that the arguments name, which the kernel kills when its parent ends. The
/// other roles end with their input, but a server does not read any, and a bench that is killed
/// cannot end it. Returns only what went wrong.
pub(crate) fn become_other() -> Failed {
    let mut words = env::args_os().skip(2);
    let parent = words.next();
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return error.into();
    }
    // It may have ended before the kernel was asked.
    let present = getppid().map(|pid| Pid::as_raw(Some(pid)).to_string());
    if parent.is_none_or(|it| it.to_str() != present.as_deref()) {
        return "the process that wanted it has ended".into();
    }
    let Some(program) = words.next() else {
        return "no program is named".into();
    };
    std::process::Command::new(program)
        .args(words)
        .exec()
        .into()
}

/// A child that takes `Order`s and gives `Answer`s. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Role<Order, Answer> {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    /// The types of its orders and answers.
    language: PhantomData<(Order, Answer)>,
}

impl<Order: Serialize, Answer: DeserializeOwned> Role<Order, Answer> {
    /// Starts a child.
    pub(crate) fn start(role: &str) -> Result<Self, Failed> {
        let mut child = Command::new(env::current_exe()?)
            .arg(role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let input = child.stdin.take().ok_or("no input")?;
        let output = child.stdout.take().ok_or("no output")?;
        Ok(Self {
            child,
            input,
            output: BufReader::new(output).lines(),
            language: PhantomData,
        })
    }

    /// Asks and waits for the answer.
    pub(crate) async fn ask(&mut self, order: &Order) -> Result<Answer, Failed> {
        let mut line = serde_json::to_vec(order)?;
        line.push(b'\n');
        self.input.write_all(&line).await?;
        self.input.flush().await?;
        self.answer().await
    }

    /// Waits for the next answer.
    pub(crate) async fn answer(&mut self) -> Result<Answer, Failed> {
        let line = self.output.next_line().await?;
        Ok(serde_json::from_str(&line.ok_or("a child has ended")?)?)
    }

    /// Returns its processor time.
    pub(crate) fn cpu(&self) -> Cpu {
        Cpu::of(self.child.id().expect("a running child"))
    }
}
