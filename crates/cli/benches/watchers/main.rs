//! A real server's clients: ten thousand watches over TLS, stalled clients, selective watches, consistent lists, restarts,
//! lists and memory of many pods.
//!
//! ```text
//!  this process ----- writes on a schedule ----> ringwatch serve (a process)
//!    |  orders, answers                             |  TLS
//!    +------------> watching clients (a process) <--+
//!    +------------> the floor (a process) ---- TLS ---> watching clients (another)
//! ```
//!
//! Server, clients and floor are processes of their own, so the kernel tells their processor time
//! apart. The server is the real binary. Completeness comes first: every watch must get every event
//! once and in order, or the run scores zero.
//!
//! `cargo bench --package ringwatch-cli --bench watchers -- fanout stalled` measures; see PERF.md. Without `--bench`, as
//! under `cargo test`, every scenario runs small and only its completeness is looked at.
#![allow(
    clippy::disallowed_methods,
    reason = "a bench is the composition root of what it measures, and needs real time"
)]

mod api;
mod child;
mod chunks;
mod client;
mod clients;
mod event;
mod figures;
mod floor;
mod group;
mod http1;
mod http2;
mod objects;
mod process;
mod protocol;
mod scenarios;
mod server;
mod stored;
mod tls;
mod writer;

use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use scenarios::Scenario;

/// Whatever keeps a scenario from its figures.
type Failed = Box<dyn std::error::Error + Send + Sync>;

/// The scenarios to run, and their size.
#[derive(Debug, Parser)]
struct Settings {
    /// The scenarios; all of them if none is named.
    #[arg(value_enum)]
    scenarios: Vec<Scenario>,
    /// How many watches, in the place of the scenario's own number.
    #[arg(long)]
    watchers: Option<usize>,
    /// How many writes a second.
    #[arg(long)]
    rate: Option<u64>,
    /// How many objects are stored, in the place of the scenario's own number.
    #[arg(long)]
    objects: Option<usize>,
    /// How long a run takes.
    #[arg(long)]
    seconds: Option<u64>,
    /// How many runs.
    #[arg(long)]
    runs: Option<usize>,
    /// A command that runs the server, such as `valgrind --tool=callgrind`.
    #[arg(long, value_delimiter = ' ', allow_hyphen_values = true)]
    under: Vec<String>,
    /// Measure. Given by `cargo bench`.
    #[arg(long)]
    bench: bool,
    /// Run small. Wins over `--bench`.
    #[arg(long)]
    test: bool,
}

impl Settings {
    /// Returns true if only completeness is checked.
    fn small(&self) -> bool {
        self.test || !self.bench
    }

    fn pick<T>(&self, named: Option<T>, full: T, small: T) -> T {
        named.unwrap_or_else(|| if self.small() { small } else { full })
    }

    /// How many watches: what was named, else one of the scenario's two numbers.
    fn watchers(&self, full: usize, small: usize) -> usize {
        self.pick(self.watchers, full, small)
    }

    fn objects(&self, full: usize, small: usize) -> usize {
        self.pick(self.objects, full, small)
    }

    fn rate(&self, full: u64, small: u64) -> u64 {
        self.pick(self.rate, full, small)
    }

    fn seconds(&self, full: u64, small: u64) -> u64 {
        self.pick(self.seconds, full, small)
    }

    fn runs(&self, full: usize, small: usize) -> usize {
        self.pick(self.runs, full, small)
    }
}

fn main() -> ExitCode {
    raise_limit_of_open_files();
    match std::env::args().nth(1).as_deref() {
        Some(child::WATCHES) => {
            client::run();
            return ExitCode::SUCCESS;
        }
        Some(child::IS_FLOOR) => {
            floor::run();
            return ExitCode::SUCCESS;
        }
        Some(child::BECOMES) => {
            eprintln!("{}", child::become_other());
            return ExitCode::FAILURE;
        }
        _ => {}
    }
    let settings = Settings::parse();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut scenarios = settings.scenarios.clone();
    if scenarios.is_empty() {
        scenarios = Scenario::value_variants().to_vec();
    }
    let mut code = ExitCode::SUCCESS;
    for scenario in scenarios {
        if let Err(error) = runtime.block_on(scenario.run(&settings)) {
            println!("{scenario:?} scores zero: {error}");
            code = ExitCode::FAILURE;
        }
    }
    code
}

/// Every connection is an open file, at both of its ends. Children have the limit from us.
fn raise_limit_of_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        eprintln!("cannot raise the limit of open files: {error}");
    }
}
