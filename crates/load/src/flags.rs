//! The flags that all scenarios share, and how values of flags are read.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use ringwatch_apimachinery::duration;
use serde::{Serialize, Serializer};

use crate::client::{Encoding, HttpVersion};

/// More runs than anybody waits for.
const RUNS_MAX: u32 = 1_000;

/// Flags of all scenarios.
#[derive(Args, Clone, Debug, Serialize)]
pub(crate) struct RunFlags {
    /// Number of runs; the figures are their median and range. The default depends on the scenario, as those of
    /// --duration and --warm-up do.
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

    /// Process ID of a server on this machine, whose processor time and memory are measured. Without it they are read
    /// from /metrics.
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

    /// Also write the outcome as JSON to this file, in place of what is in it.
    #[arg(long, global = true, value_name = "FILE", help_heading = "Output")]
    #[serde(skip)]
    pub(crate) save: Option<PathBuf>,

    /// Also write a page with the figures and their curves to this file, in place of what is in it: one HTML file that
    /// needs no network.
    #[arg(long, global = true, value_name = "FILE", help_heading = "Output")]
    #[serde(skip)]
    pub(crate) report: Option<PathBuf>,
}

fn some_time(text: &str) -> Result<Duration, String> {
    match duration::parse(text)? {
        Duration::ZERO => Err("no time at all".to_owned()),
        some => Ok(some),
    }
}

/// Parses a rate, in events per second, from 0.001 to a million.
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
