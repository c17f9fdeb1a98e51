//! A line with live rates while something runs, on a terminal only.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::load::time::{Instant, now};

/// How often the line moves by itself, so that a wait is seen to be one.
const TICK: Duration = Duration::from_millis(250);

/// Where the progress of a step is shown.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    started: Instant,
}

impl Progress {
    /// A step of so many events or answers; 0 if nobody knows. Its line goes when it is dropped.
    pub(crate) fn start(what: &str, expected: u64) -> Self {
        let target = if std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = if expected > 0 {
            ProgressBar::with_draw_target(Some(expected), target)
        } else {
            ProgressBar::with_draw_target(None, target)
        };
        let template = if expected > 0 {
            "{prefix:<12} [{bar:24}] {percent:>3}%  {elapsed}  {msg}"
        } else {
            "{prefix:<12} {spinner}  {elapsed}  {msg}"
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(what.to_owned());
        bar.enable_steady_tick(TICK);
        Self {
            bar,
            started: now(),
        }
    }

    /// Shows how far it is, and how fast it goes.
    pub(crate) fn show(&self, sent: u64, received: u64) {
        self.bar.set_position(received);
        let seconds = self.started.elapsed().as_secs_f64().max(f64::MIN_POSITIVE);
        let rate = |count: u64| count as f64 / seconds;
        self.bar.set_message(format!(
            "{:.0} requests/s, {:.0} received/s",
            rate(sent),
            rate(received)
        ));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
