//! Logs, on standard error.
//!
//! Some lines are written because of what a client does that may be anybody. Of those only so many of a kind are
//! written a minute, and the next one says how many were left out: a log that somebody else can fill hides what
//! matters, and fills the disk.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ringwatch::clock::{Clock, Instant};
use ringwatch_server::flags::LogFormat;
use ringwatch_server::{CAUSED_BY_CLIENTS, LogLevelError};
use serde_json::json;
use tracing::callsite::Identifier;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{EnvFilter, reload};

use super::json_lines::JsonLines;

/// The most lines of one kind that are written in a period, where clients cause the lines.
const LINES_MAX: u32 = 10;
/// The length of the period in which at most `LINES_MAX` lines of a kind are written.
const PERIOD: Duration = Duration::from_secs(60);
/// The libraries whose lines clients cause, besides the crates of the server that do.
const LIBRARIES_OF_CLIENTS: [&str; 3] = ["h2", "hyper", "rustls"];

/// The log of this process, whose level can be changed.
pub(crate) struct Log {
    replace: Box<dyn Fn(EnvFilter) -> Result<(), reload::Error> + Send + Sync>,
    /// The directives in force.
    directives: Mutex<String>,
}

impl fmt::Debug for Log {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut log = formatter.debug_struct("Log");
        log.field("directives", &self.directives)
            .finish_non_exhaustive()
    }
}

impl Log {
    /// Returns the directives that say which lines are written.
    pub(crate) fn directives(&self) -> String {
        let directives = self.directives.lock();
        directives.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the directives, in the syntax of `RUST_LOG`.
    pub(crate) fn set(&self, directives: &str) -> Result<(), LogLevelError> {
        if directives.is_empty() {
            return Err(LogLevelError::Directives("no directives".to_owned()));
        }
        // A value that a span's field must have is compared as text: a pattern could take any time.
        let builder = EnvFilter::builder().with_regex(false);
        let filter = builder.parse(directives);
        let filter = filter.map_err(|error| LogLevelError::Directives(error.to_string()))?;
        // Two that come at once leave the words of the one that counts.
        let mut current = (self.directives.lock()).unwrap_or_else(PoisonError::into_inner);
        let replaced = (self.replace)(filter);
        replaced.map_err(|error| LogLevelError::Elsewhere(error.to_string()))?;
        directives.clone_into(&mut current);
        Ok(())
    }
}

/// Returns the directives of a level of `-v`.
pub(crate) fn directives(verbosity: u32) -> String {
    let ours = match verbosity {
        0 => "warn",
        1..=3 => "info",
        4 | 5 => "debug",
        _ => "trace",
    };
    // What libraries say is of interest only to who wants to see everything.
    let theirs = if verbosity > 6 { "debug" } else { "warn" };
    format!("{theirs},ringwatch={ours}")
}

/// Begins to log at a level of `-v`. A program that logs already keeps its way.
pub(crate) fn start(verbosity: u8, format: LogFormat) -> Log {
    let directives = directives(verbosity.into());
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(&directives))
        .with_writer(std::io::stderr)
        .with_ansi(false);
    let clock = Clock::real();
    let replace: Box<dyn Fn(EnvFilter) -> Result<(), reload::Error> + Send + Sync> = match format {
        LogFormat::Text => {
            let subscriber = subscriber
                .map_event_format(|inner| BoundedFormat::new(inner, format, clock))
                .with_filter_reloading();
            let handle = subscriber.reload_handle();
            let _ = subscriber.try_init();
            Box::new(move |filter| handle.reload(filter))
        }
        LogFormat::Json => {
            let subscriber = subscriber
                .event_format(BoundedFormat::new(
                    JsonLines::new(clock.clone()),
                    format,
                    clock,
                ))
                .with_filter_reloading();
            let handle = subscriber.reload_handle();
            let _ = subscriber.try_init();
            Box::new(move |filter| handle.reload(filter))
        }
    };
    Log {
        replace,
        directives: Mutex::new(directives),
    }
}

/// A format that leaves out lines that clients cause when there are too many of a kind.
#[derive(Debug)]
struct BoundedFormat<F> {
    inner: F,
    format: LogFormat,
    /// By the place in the program that writes them, so no more than there are such places.
    kinds: Mutex<HashMap<Identifier, LineKind>>,
    clock: Clock,
}

/// The lines of one kind.
#[derive(Clone, Copy, Debug)]
struct LineKind {
    /// The instant at which the period began.
    since: Instant,
    /// The number of lines that have been written in the period.
    written: u32,
    /// The number of lines that have been left out since the last that was written.
    left_out: u64,
}

impl<F> BoundedFormat<F> {
    fn new(inner: F, format: LogFormat, clock: Clock) -> Self {
        Self {
            inner,
            format,
            kinds: Mutex::default(),
            clock,
        }
    }

    /// Returns how many lines like this one have been left out since the last; `None` if this one is left out as well.
    fn admit(&self, line: &Metadata<'_>) -> Option<u64> {
        let module = |name: &&str| {
            let rest = line.target().strip_prefix(*name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
        };
        let mut caused = LIBRARIES_OF_CLIENTS.iter().chain(&CAUSED_BY_CLIENTS);
        // Who asks for more detail than this wants all of it.
        if *line.level() > Level::INFO || !caused.any(module) {
            return Some(0);
        }
        let now = self.clock.now();
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = kinds.entry(line.callsite()).or_insert(LineKind {
            since: now,
            written: 0,
            left_out: 0,
        });
        if now.saturating_duration_since(kind.since) >= PERIOD {
            kind.since = now;
            kind.written = 0;
        }
        if kind.written == LINES_MAX {
            kind.left_out += 1;
            return None;
        }
        kind.written += 1;
        Some(std::mem::take(&mut kind.left_out))
    }
}

impl<S, N, F> FormatEvent<S, N> for BoundedFormat<F>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    N: for<'writer> FormatFields<'writer> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let Some(left_out) = self.admit(event.metadata()) else {
            return Ok(());
        };
        if left_out > 0 {
            let note = format!("{left_out} lines like the next one were left out");
            match self.format {
                LogFormat::Text => writeln!(writer, "({note})")?,
                LogFormat::Json => writeln!(writer, "{}", json!({"msg": note, "v": 0}))?,
            }
        }
        self.inner.format_event(context, writer, event)
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use tracing_subscriber::fmt::MakeWriter;

    use super::*;

    /// The lines that have been logged.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("a log").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for Log {
        type Writer = Self;

        fn make_writer(&self) -> Self {
            self.clone()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn lines_that_clients_cause_are_bounded_and_counted() {
        let log = Log::default();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(log.clone())
            .with_ansi(false)
            .map_event_format(|inner| BoundedFormat::new(inner, LogFormat::Text, Clock::real()))
            .finish();
        let _logging = tracing::subscriber::set_default(subscriber);
        let reset = || tracing::warn!(target: "h2::proto::streams", "refused");
        let token = || tracing::error!(target: "ringwatch_authentication::token_webhook", "unsure");
        let own = || tracing::warn!(target: "ringwatch::storage", "unreadable");
        for _ in 0..1_000 {
            reset();
            token();
            own();
        }
        tokio::time::advance(PERIOD).await;
        reset();
        let text = String::from_utf8(log.0.lock().expect("a log").clone()).expect("text");
        let lines = |word: &str| text.lines().filter(|line| line.ends_with(word)).count();
        assert_eq!(lines("refused"), LINES_MAX as usize + 1);
        assert_eq!(lines("unsure"), LINES_MAX as usize);
        assert_eq!(
            lines("unreadable"),
            1_000,
            "what clients do not cause is kept"
        );
        assert!(
            text.contains("\n(990 lines like the next one were left out)\n"),
            "{text}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn lines_of_json_have_kube_apiservers_members() {
        let log = Log::default();
        let clock = Clock::real();
        let format = BoundedFormat::new(JsonLines::new(clock.clone()), LogFormat::Json, clock);
        let subscriber = tracing_subscriber::fmt()
            .with_writer(log.clone())
            .event_format(format)
            .finish();
        let _logging = tracing::subscriber::set_default(subscriber);
        let error = io::Error::other("gone \"away\"");
        let read = || tracing::warn!(target: "h2", %error, count = 3, "cannot\nread");
        for _ in 0..=LINES_MAX {
            read();
        }
        tracing::error!("bad");
        tokio::time::advance(PERIOD).await;
        read();
        let text = String::from_utf8(log.0.lock().expect("a log").clone()).expect("text");
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        assert_eq!(lines.len(), LINES_MAX as usize + 3, "{text}");
        let first = &lines[0];
        assert_eq!(first["msg"], "cannot\nread");
        assert_eq!(first["err"], "gone \"away\"");
        assert_eq!((&first["count"], &first["v"]), (&3.into(), &0.into()));
        assert!(
            first["ts"].is_f64()
                && first["caller"]
                    .as_str()
                    .is_some_and(|it| it.starts_with("logging.rs:"))
        );
        assert!(lines[LINES_MAX as usize].get("v").is_none(), "{text}");
    }
}
