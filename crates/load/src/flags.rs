//! The command line of `ringwatch load`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use ringwatch_apimachinery::duration;
use serde::{Serialize, Serializer};

use super::client::{Encoding, HttpVersion};
use super::compare;
use super::scenario::{
    burst, fanout, get, idle, list, restart, resume, selective, slow, storm, write,
};
use super::target::TargetFlags;
use super::verify;

/// More runs than anybody waits for.
const RUNS_MAX: u32 = 1_000;

/// Load a Kubernetes API server, and check that every watcher gets every event once and in order.
///
/// Everything happens in a namespace of its own, which is deleted at the end. Figures are the median
/// and the range of several runs. A run that lost or repeated an event scores zero, and the exit code
/// is 1.
#[derive(Args, Clone, Debug)]
#[command(next_line_help = true)]
pub struct LoadFlags {
    #[command(flatten)]
    pub(crate) target: TargetFlags,

    #[command(flatten)]
    pub(crate) run: RunFlags,

    #[command(subcommand)]
    pub(crate) action: Action,
}

/// The subcommand: a scenario, or the comparison or report of outcomes.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Action {
    #[command(flatten)]
    Scenario(Scenario),
    Compare(compare::Flags),
    Show(compare::ShowFlags),
}

/// Flags of all scenarios.
#[derive(Args, Clone, Debug, Serialize)]
pub(crate) struct RunFlags {
    /// Number of runs; the figures are their median and range. The default depends on the scenario, as those of --duration
    /// and --warm-up do.
    #[arg(long, global = true, value_name = "N", help_heading = "Run",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(RUNS_MAX)))]
    #[serde(skip)]
    pub(crate) runs: Option<u32>,

    /// Duration of a run.
    #[arg(long, global = true, value_name = "DURATION", help_heading = "Run",
          value_parser = some_time)]
    #[serde(skip)]
    pub(crate) duration: Option<Duration>,

    /// Time for which the server is loaded before anything is measured.
    #[arg(long, global = true, value_name = "DURATION", help_heading = "Run",
          value_parser = duration::parse)]
    #[serde(skip)]
    pub(crate) warm_up: Option<Duration>,

    /// HTTP version of watches and requests: 1 or 2.
    #[arg(
        long,
        global = true,
        value_name = "VERSION",
        default_value = "1",
        hide_possible_values = true,
        help_heading = "Run"
    )]
    pub(crate) http: HttpVersion,

    /// Watchers that share a connection over HTTP/2.
    #[arg(long, global = true, value_name = "N", default_value_t = 100, help_heading = "Run",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) streams: u32,

    /// Encoding of objects: json or protobuf.
    #[arg(
        long,
        global = true,
        value_name = "FORM",
        default_value = "json",
        hide_possible_values = true,
        help_heading = "Run"
    )]
    pub(crate) encoding: Encoding,

    /// Threads that read watches. More of them take processors from a server on this machine.
    #[arg(long, global = true, value_name = "N", default_value_t = 1, help_heading = "Run",
          value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: u32,

    /// Process ID of a server on this machine, whose processor time and memory are measured. Without it they are read from
    /// /metrics.
    #[arg(long, global = true, value_name = "PID", help_heading = "Run")]
    #[serde(skip)]
    pub(crate) pid: Option<u32>,

    /// Namespace to create, and to delete at the end. It must not exist. The default is a new name.
    #[arg(long, global = true, value_name = "NAME", help_heading = "Run")]
    #[serde(skip)]
    pub(crate) namespace: Option<String>,

    /// Time after which to give up and clean up.
    #[arg(long, global = true, value_name = "DURATION", default_value = "15m",
          help_heading = "Run", value_parser = some_time)]
    #[serde(serialize_with = "seconds")]
    pub(crate) time_limit: Duration,

    /// Print the outcome as JSON instead of a table.
    #[arg(long, global = true, help_heading = "Output")]
    #[serde(skip)]
    pub(crate) json: bool,

    /// Also write the outcome as JSON to this file.
    #[arg(long, global = true, value_name = "FILE", help_heading = "Output")]
    #[serde(skip)]
    pub(crate) save: Option<PathBuf>,

    /// Also write a page with the figures and their curves to this file: one HTML file that needs no network.
    #[arg(long, global = true, value_name = "FILE", help_heading = "Output")]
    #[serde(skip)]
    pub(crate) report: Option<PathBuf>,
}

/// A scenario.
#[derive(Clone, Debug, Serialize, Subcommand)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scenario {
    Fanout(fanout::Flags),
    Burst(burst::Flags),
    Idle(idle::Flags),
    Write(write::Flags),
    List(list::Flags),
    Get(get::Flags),
    Selective(selective::Flags),
    Slow(slow::Flags),
    Resume(resume::Flags),
    Storm(storm::Flags),
    Restart(restart::Flags),
    Verify(verify::Flags),
}

impl Scenario {
    /// Returns its name on the command line.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Fanout(_) => "fanout",
            Self::Burst(_) => "burst",
            Self::Idle(_) => "idle",
            Self::Write(_) => "write",
            Self::List(_) => "list",
            Self::Get(_) => "get",
            Self::Selective(_) => "selective",
            Self::Slow(_) => "slow",
            Self::Resume(_) => "resume",
            Self::Storm(_) => "storm",
            Self::Restart(_) => "restart",
            Self::Verify(_) => "verify",
        }
    }
}

fn some_time(text: &str) -> Result<Duration, String> {
    match duration::parse(text)? {
        Duration::ZERO => Err("no time at all".to_owned()),
        some => Ok(some),
    }
}

/// A rate: events in a second.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| format!("{text:?} is no number"))?;
    if rate.is_finite() && (0.001..=1e6).contains(&rate) {
        Ok(rate)
    } else {
        Err("a rate lies between 0.001 and 1000000".to_owned())
    }
}

pub(crate) fn seconds<S: Serializer>(
    duration: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}
