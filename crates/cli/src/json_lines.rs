//! Log lines as JSON objects, with the members that kube-apiserver writes with `--logging-format=json`: `ts` in
//! milliseconds, `caller`, `msg`, `v` (the level of `-v` at which a line is written; errors have none), and the fields
//! of the event.

use std::fmt;

use ringwatch::clock::Clock;
use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// The member of an event's text.
const MESSAGE: &str = "msg";
/// The member of an event's error.
const ERROR: &str = "err";

/// A format of one JSON object a line.
#[derive(Clone, Debug)]
pub(crate) struct JsonLines {
    clock: Clock,
}

impl JsonLines {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock }
    }
}

/// The fields of an event.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn insert(&mut self, field: &Field, value: Value) {
        let name = match field.name() {
            "message" => MESSAGE,
            "error" => ERROR,
            name => name,
        };
        self.0.insert(name.to_owned(), value);
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.insert(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.insert(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.insert(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.insert(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.insert(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.insert(field, value.into());
    }
}

/// Returns the `v` of a line: the level of `-v` from which on it is written. Errors have none.
fn verbosity(level: Level) -> Option<u8> {
    match level {
        Level::ERROR => None,
        Level::WARN => Some(0),
        Level::INFO => Some(1),
        Level::DEBUG => Some(4),
        Level::TRACE => Some(6),
    }
}

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    N: for<'writer> FormatFields<'writer> + 'static,
{
    fn format_event(
        &self,
        _context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        let mut fields = Fields::default();
        event.record(&mut fields);
        let Fields(mut line) = fields;
        let milliseconds = self.clock.wall().as_microsecond() as f64 / 1_000.0;
        line.insert("ts".to_owned(), milliseconds.into());
        let file = metadata.file().and_then(|path| path.rsplit('/').next());
        if let Some((file, number)) = file.zip(metadata.line()) {
            line.insert("caller".to_owned(), json!(format!("{file}:{number}")));
        }
        if let Some(verbosity) = verbosity(*metadata.level()) {
            line.insert("v".to_owned(), verbosity.into());
        }
        writeln!(writer, "{}", Value::Object(line))
    }
}
