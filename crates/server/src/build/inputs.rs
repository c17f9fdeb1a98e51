//! The inputs of a server besides the files that its flags name.

use std::net::SocketAddr;
use std::sync::Arc;

use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch_filters::threads::RuntimeHandles;

use super::backend::{OpenBackend, OpenOverride};
use crate::config::flags::ServeFlags;
use crate::debug::ProcessControls;
use crate::shutdown::Steps;

/// The flags of a server, and the parts that are there before it is built.
pub(crate) struct ServerInputs<'server> {
    /// The operator's flags.
    pub(crate) flags: &'server ServeFlags,
    /// The store of the objects.
    pub(crate) backend: &'server OpenBackend,
    /// The stores of some resources alone.
    pub(crate) overrides: &'server [OpenOverride],
    /// The memory budget.
    pub(crate) ledger: Ledger,
    /// The address at which the server listens.
    pub(crate) address: SocketAddr,
    /// Maximum number of bytes of the cache of encoded objects.
    pub(crate) encodings_bytes_max: usize,
    /// The steps of a shutdown.
    pub(crate) steps: &'server Steps,
    /// The profiles and the log level of the process.
    pub(crate) controls: Option<&'server Arc<dyn ProcessControls>>,
    /// The runtimes of the threads beside those that serve.
    pub(crate) runtimes: &'server RuntimeHandles,
    /// The time.
    pub(crate) clock: Clock,
}
