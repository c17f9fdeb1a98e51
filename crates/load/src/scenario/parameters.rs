//! Parameters that several scenarios share.

use clap::Args;
use serde::Serialize;

use crate::flags::rate;

/// The flags of watchers.
#[derive(Args, Clone, Debug, Serialize)]
pub(crate) struct WatcherFlags {
    /// Number of watchers.
    #[arg(long, value_name = "N", default_value_t = 1_000,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) watchers: u32,
}

/// The flags of watchers of objects that are written to at a steady rate.
#[derive(Args, Clone, Debug, Serialize)]
pub(crate) struct SteadyFlags {
    #[command(flatten)]
    #[serde(flatten)]
    pub(super) watchers: WatcherFlags,

    /// Writes per second.
    #[arg(long, value_name = "RATE", default_value = "20", value_parser = rate)]
    pub(super) rate: f64,

    #[command(flatten)]
    #[serde(flatten)]
    pub(super) writes: WriteFlags,
}

/// The flag of the floor.
#[derive(Args, Clone, Copy, Debug, Serialize)]
pub(crate) struct FloorFlags {
    /// Follow each run with the same one against a floor that this program starts: a bare TLS server that only writes
    /// the same bytes, to watches that share connections as the server's do, or as the answer to each request. Its
    /// processor time and latency stand beside the server's, with the ratio. Lists are answered over HTTP/1.1.
    #[arg(long)]
    pub(super) floor: bool,
}

/// The flag of the size of objects.
#[derive(Args, Clone, Debug, Serialize)]
pub(crate) struct SizeFlags {
    /// Size of objects on the wire in bytes, with all that the server adds to them. Objects with nothing but their
    /// metadata are the smallest.
    #[arg(long, value_name = "BYTES", default_value_t = Self::DEFAULT.size,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) size: u32,
}

/// The flag of writers.
#[derive(Args, Clone, Debug, Serialize)]
pub(crate) struct WriteFlags {
    /// Connections that write, each to an object of its own.
    #[arg(long, value_name = "N", default_value_t = 4,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) writers: u32,

    #[command(flatten)]
    #[serde(flatten)]
    pub(super) size: SizeFlags,
}

/// The flags of objects that are read.
#[derive(Args, Clone, Debug, Serialize)]
pub(crate) struct ObjectFlags {
    /// Number of objects.
    #[arg(long, value_name = "N", default_value_t = 5_000,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) objects: u32,

    #[command(flatten)]
    #[serde(flatten)]
    pub(super) size: SizeFlags,
}

impl SizeFlags {
    /// The size where there is no flag.
    pub(super) const DEFAULT: Self = Self { size: 1_024 };
}
