//! A process of this very program in another role, by question and answer.

use std::marker::PhantomData;
use std::process::Stdio;

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

/// A child that takes `Order`s and gives `Answer`s. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Role<Order, Answer> {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    /// What it understands and says.
    language: PhantomData<(Order, Answer)>,
}

impl<Order: Serialize, Answer: DeserializeOwned> Role<Order, Answer> {
    /// Starts a child.
    pub(crate) fn start(role: &str) -> Result<Self, Failed> {
        let mut child = Command::new(std::env::current_exe()?)
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

    /// Its processor time.
    pub(crate) fn cpu(&self) -> Cpu {
        Cpu::of(self.child.id().expect("a running child"))
    }
}
