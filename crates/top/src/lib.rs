//! `ringwatch top`: what an API server does now, in a terminal: its types, watchers, requests and priority levels.
//!
//! ```text
//!   /debug/ui/stream (ringwatch) --+
//!                                  +--> Documents --> State --> sections --> screen, or plain text
//!   /metrics (any API server) -----+
//! ```
//!
//! It is a pure client. A server without `/debug/ui/stream` is read by its metrics, which tell less; what they do not
//! tell is shown as `-`. What the server tells is not decided here, but in `ringwatch-observe` and `ringwatch-server`.

mod documents;
mod exposition;
mod metrics;
mod plain;
mod screen;
mod sections;
mod terminal;

use std::io::{IsTerminal, Write};

use clap::Args;
use ringwatch::clock::Clock;
use ringwatch_load::{Remote, RemoteError, RemoteFlags};
use thiserror::Error;
use tokio::runtime::Builder;

use self::documents::Documents;

/// Show what an API server does now: its types, watchers, requests and priority levels.
///
/// A ringwatch tells all of it to whoever may get /debug/ui/stream. Of another API server it is shown what /metrics
/// tells.
#[derive(Args, Clone, Debug)]
pub struct TopFlags {
    #[command(flatten)]
    remote: RemoteFlags,

    /// Print it once as plain text and end, instead of following it. Takes as long as two documents, whose difference
    /// makes rates.
    #[arg(long)]
    once: bool,
}

/// The reason why nothing is shown, as one line for the user.
#[derive(Debug, Error)]
pub enum TopError {
    /// The server is not known.
    #[error(transparent)]
    Target(#[from] RemoteError),
    /// The server does not answer.
    #[error("cannot read {path} of {address}: {error}")]
    Read {
        /// The path that was asked for.
        path: &'static str,
        /// The host and port of the server.
        address: String,
        /// The reason.
        error: RemoteError,
    },
    /// The server answers something else.
    #[error(
        "{address} answers something else at {path} than this version of ringwatch top reads: {why}"
    )]
    Unknown {
        /// The path that was asked for.
        path: &'static str,
        /// The host and port of the server.
        address: String,
        /// The reason.
        why: String,
    },
    /// The output is a file or a pipe.
    #[error("standard output is no terminal; print it once with --once")]
    NoTerminal,
    /// The terminal, or the output, cannot be written.
    #[error("cannot write to standard output: {0}")]
    Output(#[from] std::io::Error),
}

/// Shows what a server does, once or until the user quits.
///
/// # Errors
/// One line that says what is wrong and what to do.
pub fn run(flags: &TopFlags) -> Result<(), TopError> {
    if !flags.once && !std::io::stdout().is_terminal() {
        return Err(TopError::NoTerminal);
    }
    let clock = Clock::real();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let remote = runtime.block_on(Remote::find(&flags.remote))?;
    let address = remote.address().to_owned();
    let documents = runtime.block_on(Documents::open(remote, clock.clone()))?;
    if flags.once {
        let (documents, before) = runtime.block_on(documents.next());
        let before = before?;
        // Rates are made of two.
        let (_, state) = runtime.block_on(documents.next());
        let text = plain::text(&address, &state?, Some(&before));
        return Ok(std::io::stdout().write_all(text.as_bytes())?);
    }
    let details = runtime.block_on(Remote::find(&flags.remote))?;
    terminal::follow(&runtime, documents, details, &clock)
}
