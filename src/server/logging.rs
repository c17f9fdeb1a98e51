//! Logs, on standard error.

use tracing_subscriber::EnvFilter;

/// Begins to log at a level of `-v`. A program that logs already keeps its way.
pub fn start(verbosity: u8) {
    let ours = match verbosity {
        0 => "warn",
        1..=3 => "info",
        4 | 5 => "debug",
        _ => "trace",
    };
    // What libraries say is of interest only to who wants to see everything.
    let theirs = if verbosity > 6 { "debug" } else { "warn" };
    let filter = EnvFilter::new(format!("{theirs},ringwatch={ours}"));
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .try_init();
}
