//! The log backend: writes events to a file or to standard output, a line for each.

use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use ringwatch::clock::Clock;
use tokio_util::sync::CancellationToken;

use super::batches::{BatchOptions, Batches};
use super::queue::{EventQueue, QueueOptions, QueuedEvent, queue};
use super::rotation::{Housekeeping, RotatedFile, Rotation};
use super::truncation::{Truncation, fitting};
use crate::event::AuditEvent;
use crate::metrics::Metrics;
use crate::rendering;

/// The plugin that is counted with events that could not be written.
const LOG: &str = "log";

/// The access to the folder that is made for the log.
const FOLDER_MODE: u32 = 0o700;

/// The form of the lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// An event in JSON.
    #[default]
    Json,
    /// A text with the most important parts.
    Legacy,
}

/// The output to which the lines go: standard output or a file.
#[derive(Debug)]
pub struct LogFile(LogOutput);

#[derive(Debug)]
enum LogOutput {
    Standard(io::Stdout),
    File(RotatedFile),
}

impl LogFile {
    /// Writes to standard output.
    #[must_use]
    pub fn standard_output() -> Self {
        Self(LogOutput::Standard(io::stdout()))
    }

    /// Writes to a file, which is made with its folder if it is not there. With a rotation there is a second value,
    /// which removes and compresses old files, and has to be run.
    ///
    /// # Errors
    /// The file cannot be made or opened.
    pub fn open(
        path: &Path,
        rotation: Option<Rotation>,
        clock: Clock,
    ) -> io::Result<(Self, Option<Housekeeping>)> {
        if let Some(folder) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
            let mut builder = std::fs::DirBuilder::new();
            builder.recursive(true).mode(FOLDER_MODE).create(folder)?;
        }
        let (file, housekeeping) = RotatedFile::open(path, rotation, clock)?;
        Ok((Self(LogOutput::File(file)), housekeeping))
    }
}

impl Write for LogFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.write_all(line)?;
        Ok(line.len())
    }

    fn write_all(&mut self, line: &[u8]) -> io::Result<()> {
        match &mut self.0 {
            LogOutput::Standard(output) => {
                output.write_all(line)?;
                output.flush()
            }
            LogOutput::File(file) => file.write_line(line),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The options of a log.
#[derive(Debug)]
pub struct LogOptions {
    /// The form of the lines.
    pub format: LogFormat,
    /// The queue before it.
    pub queue: QueueOptions,
    /// The options of the batches in which events are gathered.
    pub batches: BatchOptions,
    /// The bounds of events; `None` for none.
    pub truncation: Option<Truncation>,
}

/// Writes the events of a queue. It blocks in writes, so it needs a thread of its own.
#[derive(Debug)]
pub struct LogWriter<W = LogFile> {
    batches: Batches,
    output: W,
    format: LogFormat,
    truncation: Option<Truncation>,
    metrics: Metrics,
    /// True if the last write failed.
    is_failing: bool,
}

impl<W: Write> LogWriter<W> {
    /// Creates a log and its queue. After `end` is cancelled no more events are accepted.
    pub fn new(
        output: W,
        options: LogOptions,
        metrics: Metrics,
        end: CancellationToken,
        clock: Clock,
    ) -> (EventQueue, Self) {
        let (queue, receiver) = queue(options.queue);
        let writer = Self {
            batches: Batches::new(receiver, options.batches, end, clock),
            output,
            format: options.format,
            truncation: options.truncation,
            metrics,
            is_failing: false,
        };
        (queue, writer)
    }

    /// Writes events until the end has come and the queue is empty.
    pub async fn run(mut self) {
        while let Some(batch) = self.batches.next().await {
            for queued in batch {
                let is_written = self.write(&queued);
                queued.settle(is_written);
            }
        }
    }

    /// Writes an event; returns false if that failed.
    fn write(&mut self, queued: &QueuedEvent) -> bool {
        let Some(mut line) = self.line(&queued.held.event) else {
            // It is too large, which refuses no request.
            return true;
        };
        line.push(b'\n');
        match self.output.write_all(&line) {
            Ok(()) => {
                if std::mem::take(&mut self.is_failing) {
                    tracing::info!("audit events are written again");
                }
                true
            }
            Err(error) => {
                if !std::mem::replace(&mut self.is_failing, true) {
                    tracing::error!(%error, "cannot write audit events");
                }
                self.metrics.errors(LOG, 1);
                false
            }
        }
    }

    fn line(&self, event: &AuditEvent) -> Option<Vec<u8>> {
        let bounds = self.truncation.as_ref();
        match self.format {
            LogFormat::Legacy if bounds.is_none() => Some(rendering::legacy(event).into_bytes()),
            LogFormat::Legacy => {
                let fitting = fitting(event, bounds, false, LOG, &self.metrics)?;
                Some(rendering::legacy(&fitting.event).into_bytes())
            }
            LogFormat::Json => Some(fitting(event, bounds, false, LOG, &self.metrics)?.json),
        }
    }
}
