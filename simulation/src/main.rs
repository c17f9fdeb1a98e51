//! `simulate [SEED] [--minutes N]`: runs simulations from consecutive seeds, and shrinks the first that fails.

use std::collections::BTreeSet;
use std::num::ParseIntError;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::{Duration, Instant};

use clap::Parser;
use ringwatch_simulation::{Outcome, Plan, run, shrink};
use tracing_subscriber::EnvFilter;

/// Simulates the whole server with its disk or etcd, its network and its clients, and checks what the clients are told.
#[derive(Debug, Parser)]
#[command(name = "simulate")]
struct Arguments {
    /// The first seed; by default one that nobody has tried.
    seed: Option<u64>,

    /// How long to go on with further seeds. Without it, only the seed is run.
    #[arg(long, value_name = "N")]
    minutes: Option<f64>,

    /// The faults of the plan that are injected, by their numbers; all by default.
    #[arg(long, value_name = "NUMBERS")]
    keep: Option<Numbers>,

    /// The seconds that clients write, in the place of the plan's.
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,
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
    let begun = Instant::now();
    let length = Duration::from_secs_f64(arguments.minutes.unwrap_or(0.0) * 60.0);
    let mut seed = arguments.seed.unwrap_or_else(rand::random);
    let mut total = Total::default();
    loop {
        let mut plan = Plan::new(seed);
        if let Some(keep) = &arguments.keep {
            plan.keep(&keep.0);
        }
        if let Some(seconds) = arguments.seconds {
            plan.shorten(Duration::from_secs(seconds));
        }
        let outcome = run(&plan);
        total.add(&plan, &outcome);
        println!("{plan}: {outcome}");
        if !outcome.faults.is_empty() {
            report(plan, outcome);
            println!("{total}");
            return ExitCode::FAILURE;
        }
        if begun.elapsed() >= length {
            println!("{total}");
            return ExitCode::SUCCESS;
        }
        seed = seed.wrapping_add(1);
    }
}

/// Shrinks a plan that failed, and prints what it shows and how to see it again.
fn report(plan: Plan, outcome: Outcome) {
    let (plan, outcome) = shrink(plan, outcome, |smaller| {
        println!("shrinking: {smaller}");
    });
    println!("\n{plan}");
    for fault in plan.faults() {
        println!("  {fault}");
    }
    for fault in &outcome.faults {
        println!("{fault}");
    }
    println!("again: {}", plan.command());
}

/// What all runs held together.
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
