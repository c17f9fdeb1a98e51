//! A line on standard error that shows how far a copy is, on a terminal only.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The bytes that are copied, as a line. It goes when it is dropped.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Starts the line of a copy whose length is not known.
    pub(crate) fn start(what: &'static str) -> Self {
        let target = match std::io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        let template = "{prefix} {spinner} {bytes} in {elapsed}, {bytes_per_sec}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_prefix(what);
        Self(bar)
    }

    /// Adds bytes that are copied.
    pub(crate) fn add(&self, bytes: usize) {
        self.0.inc(bytes as u64);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
