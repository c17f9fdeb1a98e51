//! A line on standard error that shows how far a command is, on a terminal only.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ringwatch::storage::backend::copy::{CopyPhase, CopyProgress};

/// The bytes that are copied, as a line. It goes when it is dropped.
#[derive(Debug)]
pub(crate) struct CopyLine(ProgressBar);

impl CopyLine {
    /// Starts the line of a copy whose length is not known.
    pub(crate) fn start(what: &'static str) -> Self {
        let bar = bar();
        let template = "{prefix} {spinner} {bytes} in {elapsed}, {bytes_per_sec}";
        style(&bar, template);
        bar.set_prefix(what);
        Self(bar)
    }

    /// Adds bytes that are copied.
    pub(crate) fn add(&self, bytes: usize) {
        self.0.inc(bytes as u64);
    }
}

impl Drop for CopyLine {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// The phases of a copy of a store, as a line with a bar. It goes when it is dropped.
#[derive(Debug)]
pub(crate) struct CopyBar(ProgressBar);

impl CopyBar {
    /// Creates the line, which is shown from the first phase on.
    pub(crate) fn new() -> Self {
        let bar = bar();
        let template =
            "{prefix} {bar:30} {human_pos} of {human_len} in {elapsed}, {per_sec}, {eta} left";
        style(&bar, template);
        Self(bar)
    }
}

impl CopyProgress for CopyBar {
    fn begin(&self, phase: CopyPhase, steps: u64) {
        self.0.reset();
        self.0.set_length(steps);
        self.0.set_prefix(match phase {
            CopyPhase::Raise => "raise the revision",
            CopyPhase::Copy => "copy keys",
            CopyPhase::Verify => "verify keys",
        });
    }

    fn advance(&self, steps: u64) {
        self.0.inc(steps);
    }
}

impl Drop for CopyBar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Returns a line whose length is not known, which is hidden unless standard error is a terminal.
fn bar() -> ProgressBar {
    let target = match std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    };
    ProgressBar::with_draw_target(None, target)
}

fn style(bar: &ProgressBar, template: &str) {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
}
