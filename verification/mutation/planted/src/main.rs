//! Applies each mutation of a member's `mutations.toml` to a copy of what it checks and expects a
//! model to fail.
//!
//! Each copy is a workspace of its own under the target folder. First the models must pass there
//! unchanged. A mutation that does not compile, or whose place is not found, is an error: it would
//! prove nothing. One under which the models do not end in time counts as caught, and is named as such:
//! a lost wake-up shows as a hang.
//!
//! The environment is passed on to the models, but for `RUSTFLAGS` and `CARGO_TARGET_DIR`. So loom's
//! variables (`LOOM_MAX_PREEMPTIONS`, `LOOM_MAX_BRANCHES`, `LOOM_MAX_DURATION`, …), `SHUTTLE_RANDOM_SEED`
//! and `NEW_SEEDS_SECONDS` hold for every run; `MODELS_END_AT_FAILURE` is set.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a command of its own, which waits for the processes that it starts"
)]

mod lane;
mod list;
mod models;
mod subject;

use std::num::NonZero;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Duration;
use std::{io, path, thread};

use clap::Parser;
use futures::future::try_join_all;
use tokio::signal::unix::{SignalKind, signal};

use lane::{Lane, Tally};
use list::Mutation;
use subject::{CopyError, Subject};

/// The time that the models may take with a mutation, if the command line does not say it and the factor below does not
/// give more.
const MUTANT_TIME_MAX: Duration = Duration::from_secs(600);

/// The multiple of the unchanged models' time that a mutation may take at least, if the command line does not say it.
/// The unchanged ones have the machine for themselves.
const MUTANT_TIME_FACTOR: u32 = 6;

/// The most time that the unchanged models may take, if the command line does not say it.
const UNCHANGED_TIME_MAX: Duration = Duration::from_secs(3_600);

/// Applies each mutation of a member's mutations.toml to a copy and expects a model to fail.
///
/// It is run in the root of a workspace.
#[derive(Debug, Parser)]
#[command(name = "mutate")]
struct Arguments {
    /// Tries only the mutations whose name contains this.
    filter: Option<String>,
    /// The folder of the workspace member that holds the models and mutations.toml.
    #[arg(long)]
    member: String,
    /// A file or folder outside the member that it includes by path. May be given again.
    #[arg(long = "source", value_name = "PATH")]
    sources: Vec<String>,
    /// The number of seconds that the models may take with a mutation before it counts as caught by time-out; else 600,
    /// or six times as long as they take without any, if that is longer.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: Option<u64>,
    /// The arguments with which cargo runs the models, such as `test --release --lib`.
    #[arg(last = true, required = true, value_name = "CARGO COMMAND")]
    test: Vec<String>,
}

/// A run of the tool that could not say which mutations are caught.
#[derive(Debug, thiserror::Error)]
enum MutateError {
    /// A file could not be read or written, or cargo not be run.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The member could not be copied.
    #[error("{0}")]
    Copy(#[from] CopyError),
    /// The list is not what it should be; correct it.
    #[error("{file}: {message}")]
    List { file: String, message: String },
    /// No mutation has such a name; give another filter.
    #[error("no mutation's name contains {0:?}")]
    NothingMatches(String),
    /// The place of a mutation is missing or ambiguous; correct its `from`.
    #[error("{name}: its place is found {count} times, and must be once")]
    Place { name: String, count: usize },
    /// The models do not compile; with a mutation, correct its `to`.
    #[error("{what} does not compile:\n{said}")]
    Compile { what: String, said: String },
    /// The models fail unchanged; mend them first.
    #[error("the models fail without any mutation")]
    Unchanged,
    /// The unchanged models take longer than a mutation may; give more seconds.
    #[error("the models do not end within {0:?} without any mutation; give more by --seconds")]
    UnchangedTooLong(Duration),
    /// A signal ended the run.
    #[error("interrupted")]
    Interrupted,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(0) => ExitCode::SUCCESS,
        Ok(survivors) => {
            eprintln!("{survivors} mutations went unnoticed");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Tries the mutations, until a signal says otherwise: what was started is in process groups of its own, which
/// the terminal does not interrupt, so they are ended here.
async fn run(arguments: Arguments) -> Result<usize, MutateError> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        survivors = try_all(arguments) => survivors,
        _ = interrupt.recv() => Err(MutateError::Interrupted),
        _ = terminate.recv() => Err(MutateError::Interrupted),
    }
}

/// Tries the mutations and counts those that went unnoticed.
async fn try_all(arguments: Arguments) -> Result<usize, MutateError> {
    let root = path::absolute(".")?;
    let chosen = arguments.filter.is_some();
    let mutations = list::read(&root.join(&arguments.member).join("mutations.toml"))?;
    let mutations = list::choose(mutations, arguments.filter)?;
    let subject = Subject::new(&root, arguments.member, arguments.sources, arguments.test)?;
    let lanes = thread::available_parallelism().map_or(1, NonZero::get);
    let lanes: Result<Vec<Lane<'_>>, MutateError> = (0..lanes.min(mutations.len()))
        .map(|number| Lane::new(&subject, number))
        .collect();
    let lanes = lanes?;
    let given = arguments.seconds.map(Duration::from_secs);
    let first = likeliest(&mutations, chosen);
    let took = lanes[0]
        .unchanged(&first, given.unwrap_or(UNCHANGED_TIME_MAX))
        .await?;
    let limit = given.unwrap_or_else(|| MUTANT_TIME_MAX.max(took * MUTANT_TIME_FACTOR));
    let todo = Mutex::new(mutations.iter());
    let tallies = try_join_all(lanes.iter().map(|lane| lane.work_off(&todo, limit))).await?;
    let tally = tallies.into_iter().fold(Tally::default(), Tally::and);
    println!(
        "{} of {} refused",
        mutations.len() - tally.survivors,
        mutations.len()
    );
    for name in &tally.timed_out {
        println!("caught by time-out after {limit:?}: {name}");
    }
    Ok(tally.survivors)
}

/// Returns the models that must pass unchanged: all, or those where the chosen mutations are looked for first.
fn likeliest(mutations: &[Mutation], chosen: bool) -> Vec<Option<String>> {
    if !chosen {
        return vec![None];
    }
    let mut models: Vec<_> = mutations.iter().map(Mutation::model).collect();
    models.sort();
    models.dedup();
    models
}
