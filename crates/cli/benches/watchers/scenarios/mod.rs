//! The scenarios.

mod consistent;
mod etcd_watches;
mod fanout;
mod idle;
mod list;
mod memory;
mod restart;
mod selective;
mod stalled;

use clap::ValueEnum;

use super::protocol::Protocol;
use super::{Failed, Settings};

/// How many watches share a connection over HTTP/2: the server's own limit.
const STREAMS: usize = 100;
/// Events that are still on their way after the last write must come within this time.
const LATE_SECONDS_MAX: u64 = 120;

/// A scenario.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Scenario {
    /// Every event goes to all watches, each on a connection of its own, beside the floor.
    Fanout,
    /// The same with 100 watches a connection.
    FanoutH2,
    /// Watches of etcd without a server, for comparison.
    Etcd,
    /// One client in ten stops reading.
    Stalled,
    /// Each event concerns one watch; 50 watches against 5,000.
    Selective,
    /// Consistent lists while others write.
    Consistent,
    /// The server is killed and comes back.
    Restart,
    /// Memory of watches without events.
    Idle,
    /// Lists of all pods, in protobuf and in JSON, beside the floor.
    List,
    /// Memory of pods.
    Memory,
}

impl Scenario {
    /// Measures and prints.
    pub(crate) async fn run(self, settings: &Settings) -> Result<(), Failed> {
        let http2 = Protocol::Http2 { streams: STREAMS };
        match self {
            Self::Fanout => fanout::run(settings, Protocol::Http1).await,
            Self::FanoutH2 => fanout::run(settings, http2).await,
            Self::Etcd => etcd_watches::run(settings).await,
            Self::Stalled => stalled::run(settings).await,
            Self::Selective => selective::run(settings).await,
            Self::Consistent => consistent::run(settings).await,
            Self::Restart => restart::run(settings).await,
            Self::Idle => idle::run(settings).await,
            Self::List => list::run(settings).await,
            Self::Memory => memory::run(settings).await,
        }
    }
}
