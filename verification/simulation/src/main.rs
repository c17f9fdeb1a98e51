//! `simulate [SEED] [MINUTES | --seeds N]`: runs simulations from consecutive seeds, and shrinks the first that fails.
#![allow(
    clippy::disallowed_methods,
    reason = "it measures its own time, which is not simulated"
)]

use std::collections::BTreeSet;
use std::num::ParseIntError;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::{Duration, Instant};

use clap::Parser;
use ringwatch_simulation::{Outcome, Plan, Processes, run, shrink};
use tracing_subscriber::EnvFilter;

/// Simulates the whole server with its disk or etcd, its network and its clients, and checks what the clients are told.
///
/// RUST_LOG=info shows the faults as they come, and what the servers log.
#[derive(Debug, Parser)]
#[command(name = "simulate")]
struct Arguments {
    /// The first seed; by default one that nobody has tried.
    seed: Option<u64>,

    /// The time to go on with the seeds after the first, in minutes. Without it, only the one seed is run.
    minutes: Option<f64>,

    /// Run so many seeds, whatever time it takes.
    #[arg(long, value_name = "N", conflicts_with = "minutes")]
    seeds: Option<u64>,

    /// The numbers of the faults that come, with commas between them; by default all.
    #[arg(long, value_name = "NUMBERS")]
    keep: Option<Numbers>,

    /// The seconds that clients write, instead of the plan's.
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,

    /// Print the outcome alone, in JSON.
    #[arg(long, hide = true)]
    json: bool,
}

/// Numbers with commas between them, or none.
#[derive(Clone, Debug)]
struct Numbers(BTreeSet<usize>);

impl FromStr for Numbers {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        let numbers = text.split(',').filter(|it| !it.is_empty());
        numbers.map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("off"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .without_time()
        .init();
    let plan = |seed| {
        let mut plan = Plan::new(seed);
        if let Some(keep) = &arguments.keep {
            plan.keep(&keep.0);
        }
        if let Some(seconds) = arguments.seconds {
            plan.shorten(Duration::from_secs(seconds));
        }
        plan
    };
    let first = arguments.seed.unwrap_or_else(rand::random);
    if arguments.json {
        println!("{}", run(&plan(first)).to_json());
        return ExitCode::SUCCESS;
    }
    let length = match (arguments.minutes, arguments.seeds) {
        (Some(minutes), _) => Length::Time(Duration::from_secs_f64(minutes * 60.0)),
        (None, seeds) => Length::Seeds(seeds.unwrap_or(1)),
    };
    match try_seeds(first, length, &plan) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The length of a search: a number of seeds, or a time.
#[derive(Clone, Copy, Debug)]
enum Length {
    Seeds(u64),
    Time(Duration),
}

/// Runs consecutive seeds, as many at once as there are processors.
fn try_seeds(first: u64, length: Length, plan: &dyn Fn(u64) -> Plan) -> Result<(), String> {
    let begun = Instant::now();
    let goes_on = |seed: u64| match length {
        Length::Seeds(count) => seed.wrapping_sub(first) < count,
        Length::Time(length) => seed == first || begun.elapsed() < length,
    };
    let mut processes = Processes::new();
    let mut total = Total::default();
    let mut seed = first;
    loop {
        while processes.have_room() && goes_on(seed) {
            processes.start(plan(seed))?;
            seed = seed.wrapping_add(1);
        }
        let Some((plan, outcome)) = processes.outcome()? else {
            println!("{total}");
            return Ok(());
        };
        total.add(&plan, &outcome);
        println!("{plan}: {outcome}");
        if !outcome.faults.is_empty() {
            drop(processes);
            report(plan, outcome)?;
            return Err(total.to_string());
        }
    }
}

/// Shrinks a plan that failed, and prints what it shows and how to see it again.
fn report(plan: Plan, outcome: Outcome) -> Result<(), String> {
    let (plan, outcome) = shrink(plan, outcome, |smaller| {
        println!("shrinking: {smaller}");
    })?;
    println!("\n{plan}");
    for fault in plan.faults() {
        println!("  {fault}");
    }
    for fault in &outcome.faults {
        println!("{fault}");
    }
    println!("again: {}", plan.command());
    Ok(())
}

/// The sums over all runs.
#[derive(Debug, Default)]
struct Total {
    runs: u32,
    crashes: usize,
    acknowledged: usize,
    events: usize,
    simulated: Duration,
}

impl Total {
    fn add(&mut self, plan: &Plan, outcome: &Outcome) {
        self.runs += 1;
        self.crashes += outcome.crashes;
        self.acknowledged += outcome.acknowledged;
        self.events += outcome.events;
        self.simulated += plan.duration();
    }
}

impl std::fmt::Display for Total {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            runs,
            crashes,
            acknowledged,
            events,
            simulated,
        } = self;
        let seconds = simulated.as_secs();
        write!(
            f,
            "{runs} seeds, {seconds} simulated seconds, {crashes} crashes, {acknowledged} acknowledged writes, \
             {events} events checked"
        )
    }
}
