//! The life of a process that serves: its threads, the signals that end it, and the steps of its end.

use ringwatch_filters::Drain;
use ringwatch_filters::threads::{RuntimeHandles, Threads};
use ringwatch_http::open_files;
use ringwatch_tls::error::StartError;

use crate::config::flags::ServingFlags;
use crate::shutdown::{Signals, Steps};

/// Runs a server on threads of its own until it ends; the signals are those that are to end it.
///
/// # Errors
/// The system allows no more threads or no handlers of signals; else what the server says.
pub(crate) fn run(
    server: impl AsyncFnOnce(RuntimeHandles, &mut Signals) -> Result<(), StartError>,
) -> Result<(), StartError> {
    open_files::raise_limit();
    let threads = Threads::start()?;
    let result = threads.serving.block_on(async {
        let mut signals = Signals::new().map_err(|error| {
            StartError::new(
                "take over SIGTERM and SIGINT",
                error,
                "run it where signals can be handled",
            )
        })?;
        server(threads.handles(), &mut signals).await
    });
    threads.end();
    result
}

/// Ends a server in order, unless a signal comes meanwhile.
///
/// # Errors
/// A signal has come.
pub(crate) async fn end(
    in_order: impl Future<Output = ()>,
    signals: &mut Signals,
) -> Result<(), StartError> {
    tokio::select! {
        () = in_order => Ok(()),
        () = signals.next() => Err(StartError::new(
            "end in order",
            "a second signal came",
            "what was in progress has been cut off",
        )),
    }
}

/// Returns the steps of an end that drains as flags say.
pub(crate) fn steps(flags: &ServingFlags) -> Steps {
    Steps {
        drain: Drain::new(
            flags.shutdown_send_retry_after,
            flags.shutdown_watch_termination_grace_period,
        ),
        ..Steps::default()
    }
}
