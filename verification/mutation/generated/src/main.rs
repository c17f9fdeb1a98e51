//! Tries all mutants that cargo-mutants lists, without a build for each: a copy of the checkout has all of them in it
//! ("mutant schemata"), and an environment variable switches one on.
//!
//! 1. `list` asks cargo-mutants for the mutants, `sites` finds their places, and `rewrite` puts a switch at each.
//! 2. `switched` builds a layer of tests and leaves out the mutants that do not compile.
//! 3. `tests` runs each test once in a process of its own without a mutant, to see which mutants it reaches.
//! 4. `trial` runs for each mutant the tests that reach it, the fastest first, until one fails or does not end. Mutants
//!    that are left go to the next layer.
//! 5. Where the compiler computes nothing can be switched: such mutants are built one by one.
//! 6. `report` prints the score by folder and those that were missed.
//!
//! An operator is replaced in the tree, not in the text: `a + b - c` becomes `(a + b) * c`.
#![allow(
    clippy::disallowed_methods,
    reason = "a command of its own, which waits for the processes that it starts"
)]

mod copy;
mod lanes;
mod layer;
mod list;
mod report;
mod rewrite;
mod sites;
mod switched;
mod tests;
mod trial;

use std::path::{self, Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use copy::Copy;
use layer::Layer;
use list::Mutant;
use report::{Argued, Outcome};
use switched::Switched;
use trial::Trial;

/// Tries all mutants that cargo-mutants lists in one build, and prints the share that tests catch.
///
/// It is run in the root of a workspace.
#[derive(Debug, Parser)]
#[command(name = "mutants")]
struct Arguments {
    /// Tries only the mutants whose name contains one of these.
    filters: Vec<String>,
    /// A folder whose mutants are tried and counted. May be given again.
    #[arg(long = "folder", value_name = "FOLDER", required = true)]
    folders: Vec<String>,
    /// The first file of a crate in which files of the folders are modules. May be given again.
    #[arg(long = "crate", value_name = "FILE", required = true)]
    crates: Vec<String>,
    /// Tests and the cargo command that builds them, such as `unit=test --lib`. May be given again; what one misses is
    /// left to the next.
    #[arg(long = "layer", value_name = "NAME=COMMAND", required = true)]
    layers: Vec<Layer>,
    /// A list of the mutants that need not be caught, with the reasons.
    #[arg(long, value_name = "FILE")]
    argued: Option<PathBuf>,
}

/// A run of the tool that could not say which mutants are caught.
#[derive(Debug, thiserror::Error)]
enum MutantsError {
    /// A file could not be read or written, or a command not be run.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// cargo-mutants is missing; install it.
    #[error("cannot run cargo-mutants: {0}")]
    NoLister(io::Error),
    /// cargo-mutants could not list the mutants.
    #[error("cargo-mutants lists no mutants: {0}")]
    List(String),
    /// There is no mutant; give another filter or folder.
    #[error("no mutant has such a name")]
    NoMutants,
    /// The files of the checkout are not known.
    #[error("git does not list the files: {0}")]
    Git(String),
    /// A source is not Rust.
    #[error("{0}: {1}")]
    Parse(String, syn::Error),
    /// cargo wrote another form of messages.
    #[error("cannot read what cargo says: {0}")]
    Cargo(serde_json::Error),
    /// The copy does not compile, and no mutant is the reason.
    #[error("the copy does not compile:\n{0}")]
    Compile(String),
    /// After so many builds the compiler still refuses mutants.
    #[error("the copy does not compile after {0} builds")]
    Rounds(usize),
    /// The list of argued mutants is not what it should be; correct it.
    #[error("the list of argued mutants: {0}")]
    Argued(toml::de::Error),
    /// An argued mutant lacks its reason; give one.
    #[error("no reason is given for {0}")]
    NoReason(String),
    /// The outcomes could not be written.
    #[error("cannot write the outcomes: {0}")]
    Outcomes(serde_json::Error),
    /// A signal ended the run.
    #[error("interrupted")]
    Interrupted,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Tries the mutants, until a signal says otherwise: what was started is in process groups of its own, which
/// the terminal does not interrupt, so they are ended here.
async fn run(arguments: Arguments) -> Result<bool, MutantsError> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        good = try_all(&arguments) => good,
        _ = interrupt.recv() => Err(MutantsError::Interrupted),
        _ = terminate.recv() => Err(MutantsError::Interrupted),
    }
}

/// Tries the mutants, prints the report, and returns true if it is good.
async fn try_all(arguments: &Arguments) -> Result<bool, MutantsError> {
    let root = path::absolute(".")?;
    let argued = match &arguments.argued {
        Some(file) => Argued::read(file)?,
        None => Argued::default(),
    };
    let mutants = list::read(&root, &arguments.folders, &arguments.filters).await?;
    let copy = Copy::new(&root)?;
    for first in &arguments.crates {
        copy.add_switches(first, mutants.len())?;
    }
    let (mut switched, left_out) = Switched::new(&copy, &mutants)?;
    let mut trial = Trial::new(&copy, &mutants);
    trial.note(&left_out);
    for (index, layer) in arguments.layers.iter().enumerate() {
        let mut of_layer = switched.clone();
        let (programs, left_out) = of_layer.build(layer).await?;
        let (tests, failed) = tests::record(&programs, &copy).await?;
        eprintln!("{}: {} tests", layer.name, tests.len());
        trial.note_failed(failed);
        if index == 0 {
            // What the first layer refuses, no other can have. What another refuses, only that cannot try.
            trial.note(&left_out);
            switched = of_layer.clone();
        }
        trial.run_layer(layer, tests, of_layer.without()).await?;
    }
    trial.run_fixed(&switched).await?;
    let (outcomes, flaky) = trial.end();
    let is_good = tell(arguments, &root, &mutants, outcomes, &argued)?;
    for test in &flaky {
        println!("fails without a mutant: {test}");
    }
    Ok(is_good && flaky.is_empty())
}

/// Prints the report, writes the outcomes beside the copy, and returns true if the report is good.
fn tell(
    arguments: &Arguments,
    root: &Path,
    mutants: &[Mutant],
    outcomes: Vec<Outcome>,
    argued: &Argued,
) -> Result<bool, MutantsError> {
    let named: Vec<_> = mutants.iter().map(|it| &it.name).zip(&outcomes).collect();
    let json = serde_json::to_vec_pretty(&named).map_err(MutantsError::Outcomes)?;
    fs::write(root.join("target/mutants/switched/outcomes.json"), json)?;
    let all = mutants.iter().zip(outcomes);
    let tried: Vec<_> = all.filter(|(mutant, _)| mutant.is_chosen).collect();
    let layers: Vec<String> = arguments.layers.iter().map(|it| it.name.clone()).collect();
    let tried_all = arguments.filters.is_empty();
    let report = report::report(&tried, &arguments.folders, &layers, argued, tried_all);
    print!("{}", report.text);
    Ok(report.is_good)
}
