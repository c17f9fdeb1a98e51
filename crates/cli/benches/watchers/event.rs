//! The content of a bench's events, and how a client reads it without parsing all of it.
//!
//! Every write sets two annotations: `number`, which counts up by one with every write to the
//! object, and `at`, the time at which the write was due. So a client sees what it lost, got twice
//! or got in the wrong order, and how late an event is.

use std::cell::Cell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The annotations' lengths never change, so that all events are equally long.
const NUMBER_DIGITS: usize = 8;
const AT_DIGITS: usize = 19;

/// The merge patch that makes an object's next event.
pub(crate) fn patch(number: u64, at: SystemTime) -> String {
    format!(
        r#"{{"metadata":{{"annotations":{{"at":"{}","number":"{number:0NUMBER_DIGITS$}"}}}}}}"#,
        digits_of(at)
    )
}

/// A time in the form of the annotation `at`.
fn digits_of(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).expect("a time after 1970");
    format!("{:0AT_DIGITS$}", since.as_nanos())
}

/// A field whose value is digits in quotes, looked for first where it was found the last time.
#[derive(Debug)]
pub(crate) struct Field {
    marker: &'static [u8],
    last: Cell<usize>,
}

impl Field {
    /// The number; `None` if the line has no such field.
    pub(crate) fn read(&self, line: &[u8]) -> Option<u64> {
        let here = |at: usize| line.get(at..)?.strip_prefix(self.marker);
        let value = here(self.last.get()).or_else(|| {
            let mut windows = line.windows(self.marker.len());
            let at = windows.position(|window| window == self.marker)?;
            self.last.set(at);
            here(at)
        })?;
        let mut number = 0u64;
        for byte in value {
            match byte {
                b'0'..=b'9' => {
                    number = number
                        .checked_mul(10)?
                        .checked_add(u64::from(byte - b'0'))?
                }
                b'"' => return Some(number),
                _ => return None,
            }
        }
        None
    }

    /// Where the value stood when it was read last.
    fn value_at(&self) -> usize {
        self.last.get() + self.marker.len()
    }
}

/// The fields of an event's line.
#[derive(Debug)]
pub(crate) struct Fields {
    revision: Field,
    number: Field,
    at: Field,
}

/// The content of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    /// The object's version.
    pub(crate) revision: u64,
    /// The count of writes to the object.
    pub(crate) number: u64,
    /// When the write was due, since 1970.
    pub(crate) at: Duration,
}

impl Fields {
    /// Before the first line.
    pub(crate) fn new() -> Self {
        let field = |marker: &'static str| Field {
            marker: marker.as_bytes(),
            last: Cell::new(0),
        };
        Self {
            revision: field(r#""resourceVersion":""#),
            number: field(r#""number":""#),
            at: field(r#""at":""#),
        }
    }

    /// The version of an object or a list.
    pub(crate) fn revision(&self, object: &[u8]) -> Option<u64> {
        self.revision.read(object)
    }

    /// Reads a line; `None` if a field is missing.
    pub(crate) fn read(&self, line: &[u8]) -> Option<Read> {
        Some(Read {
            revision: self.revision.read(line)?,
            number: self.number.read(line)?,
            at: Duration::from_nanos(self.at.read(line)?),
        })
    }
}

/// A frame that the floor writes: the server's own, with other digits.
#[derive(Debug)]
pub(crate) struct Template {
    bytes: Vec<u8>,
    revision_at: usize,
    number_at: usize,
    time_at: usize,
}

/// The digits of a revision in the floor's frames. Longer than the server's, so some padding goes.
const REVISION_DIGITS: usize = 10;

impl Template {
    /// A chunk of HTTP/1.1 with the line of an event of this object, as long as the server's.
    pub(crate) fn new(object: &str) -> Self {
        let fields = Fields::new();
        let line = line(object);
        let revision = fields.read(line.as_bytes()).expect("an event").revision;
        let digits = revision.to_string();
        let longer = REVISION_DIGITS - digits.len();
        let line = line
            .replacen(
                &format!(r#""resourceVersion":"{digits}""#),
                &format!(r#""resourceVersion":"{revision:0REVISION_DIGITS$}""#),
                1,
            )
            .replacen(&"x".repeat(longer), "", 1);
        fields.read(line.as_bytes()).expect("an event");
        let head = format!("{:X}\r\n", line.len());
        let at = |field: &Field| head.len() + field.value_at();
        Self {
            revision_at: at(&fields.revision),
            number_at: at(&fields.number),
            time_at: at(&fields.at),
            bytes: format!("{head}{line}\r\n").into_bytes(),
        }
    }

    /// The frame of an event.
    pub(crate) fn frame(&mut self, revision: u64, number: u64, at: SystemTime) -> &[u8] {
        let revision = format!("{revision:0REVISION_DIGITS$}");
        let number = format!("{number:0NUMBER_DIGITS$}");
        for (text, at) in [
            (revision, self.revision_at),
            (number, self.number_at),
            (digits_of(at), self.time_at),
        ] {
            self.bytes[at..at + text.len()].copy_from_slice(text.as_bytes());
        }
        &self.bytes
    }
}

/// The line by which a watch tells that an object changed.
pub(crate) fn line(object: &str) -> String {
    format!("{{\"type\":\"MODIFIED\",\"object\":{object}}}\n")
}
