//! The protocol between the bench and its children: a line of JSON each way, on the child's standard input and output. A
//! child ends when its input does.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// An order for a client process.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) enum ClientOrder {
    /// Opens watches, which are a group from then on; answered by `Opened`.
    Open(Box<Opening>),
    /// Forgets what was counted so far; answered by `Done`.
    Begin,
    /// Waits until every watch of a group has had so many events since `Begin`; answered by
    /// `Collected`.
    Collect {
        group: usize,
        events: u64,
        seconds_max: u64,
    },
    /// Sets the mode of a group; answered by `Done`.
    Set { group: usize, mode: Mode },
    /// Waits until all watches of all groups are answered; answered by `Live`.
    AwaitLive { seconds_max: u64 },
}

/// How a group behaves.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) enum Mode {
    /// Reads whatever comes.
    Reads,
    /// Stays connected and reads nothing.
    Stalls,
    /// Has no connection.
    Away,
}

/// Watches to open.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Opening {
    pub(crate) address: SocketAddr,
    /// The authority of the server's certificate, in PEM.
    pub(crate) authority: String,
    pub(crate) protocol: Protocol,
    pub(crate) watches: usize,
    /// Path and query, without a resource version; `{}` stands for the watch's index.
    pub(crate) path: String,
    /// From which version the watches begin.
    pub(crate) revision: u64,
    /// The `number` of the first event.
    pub(crate) next: u64,
    /// True if a watch that ends is resumed where it ended; otherwise the end is a fault.
    pub(crate) resumes: bool,
    /// True if the connections buffer little, so that the server feels a client that stalls.
    pub(crate) small_buffers: bool,
}

/// How the watches are spoken.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) enum Protocol {
    /// A connection each.
    Http1,
    /// So many share a connection.
    Http2 { streams: usize },
}

/// A client process' answer.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) enum ClientAnswer {
    Done,
    Opened { group: usize },
    Collected(Collected),
    Live { live: usize },
    Failed(String),
}

/// The counts of a group's watches since `Begin`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Collected {
    pub(crate) delivered: u64,
    /// The bytes of all events' lines.
    pub(crate) bytes: u64,
    /// Everything that was lost, came twice, out of order, or otherwise wrong.
    pub(crate) faults: u64,
    /// The first few of them.
    pub(crate) first_faults: Vec<String>,
    /// How late events were, by their due time.
    pub(crate) delay: Delay,
    /// How often a watch ended and was begun again.
    pub(crate) resumed: u64,
    /// How often it was put off meanwhile: no connection, or a status that asks to retry.
    pub(crate) put_off: u64,
    /// How often it was told that its position is gone.
    pub(crate) gone: u64,
}

/// A distribution of delays, in microseconds.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Delay {
    pub(crate) p50: u32,
    pub(crate) p99: u32,
    pub(crate) max: u32,
}

impl Delay {
    /// Of delays in any order, which get sorted.
    pub(crate) fn of(delays: &mut [u32]) -> Self {
        delays.sort_unstable();
        let at = |percent: usize| {
            let last = delays.len().saturating_sub(1);
            let index = (delays.len() * percent / 100).min(last);
            delays.get(index).copied().unwrap_or_default()
        };
        Self {
            p50: at(50),
            p99: at(99),
            max: at(100),
        }
    }
}

/// An order for the floor.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) enum FloorOrder {
    /// Takes connections; answered by `Listening` at once and by `Done` when all have asked.
    Open {
        /// The server's certificate and its key, in PEM.
        certificate: String,
        key: String,
        connections: usize,
    },
    /// Writes events to all connections when they are due; answered by `Done`.
    Write {
        /// The object that the first frame is made of.
        object: String,
        first_number: u64,
        events: u64,
        interval_micros: u64,
    },
    /// Writes so many bytes to all connections and ends their answers; answered by `Done`.
    Copy { bytes: usize },
}

/// The floor's answer.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) enum FloorAnswer {
    Listening { address: SocketAddr },
    Done,
    Failed(String),
}
