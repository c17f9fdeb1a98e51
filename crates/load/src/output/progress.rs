//! A line with live rates while something runs, on a terminal only.

use std::cell::Cell;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::number::count;
use crate::time::{Instant, now};

/// The time after which the line moves by itself, so that a wait is seen to be one.
const TICK: Duration = Duration::from_millis(250);
/// The time over which rates are taken.
const RATE_TIME: Duration = Duration::from_secs(1);

/// The line that shows the progress of a step.
#[derive(Debug)]
pub(crate) struct ProgressLine {
    bar: ProgressBar,
    /// The instant at which rates were shown last, and the numbers of what had been sent and received then.
    shown: Cell<(Instant, u64, u64)>,
}

impl ProgressLine {
    /// Starts the line of a step of so many events or answers; 0 if nobody knows how many. The line goes when it is
    /// dropped.
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
            "{prefix:<12} [{bar:24}] {percent:>3} %  {elapsed:>4}  {msg}"
        } else {
            "{prefix:<12} {spinner}  {elapsed:>4}  {msg}"
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(what.to_owned());
        bar.enable_steady_tick(TICK);
        Self {
            bar,
            shown: Cell::new((now(), 0, 0)),
        }
    }

    /// Shows how far it is, and how fast it goes.
    pub(crate) fn show(&self, sent: u64, received: u64) {
        self.bar.set_position(received);
        let (at, sent_before, received_before) = self.shown.get();
        let time = at.elapsed();
        if time < RATE_TIME {
            return;
        }
        self.shown.set((now(), sent, received));
        let rate = |now: u64, before: u64| {
            let more = now.saturating_sub(before) as f64;
            count((more / time.as_secs_f64()).round() as u64)
        };
        // Nothing is sent or received while all is idle or only connects.
        self.bar.set_message(match (sent, received) {
            (0, 0) => String::new(),
            _ => format!(
                "{} sent/s, {} received/s",
                rate(sent, sent_before),
                rate(received, received_before)
            ),
        });
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
