//! What the scenarios that ask have in common: a run in phases, whose figures stand side by side.

use crate::load::measure::Latencies;
use crate::load::outcome::{Run, Second};
use crate::load::requests::Answers;

const MICROS: f64 = 1e6;

/// A run that is put together from phases.
#[derive(Debug, Default)]
pub(super) struct Phases {
    pub(super) run: Run,
    /// Processors that the server keeps busy with nothing to do.
    pub(super) idle: f64,
    /// Those of all phases.
    pub(super) latencies: Latencies,
}

impl Phases {
    /// Adds a phase and its figures, which begin with its name. `each` says for how many of what the
    /// server's processor time is told, and how many of those an answer counts.
    pub(super) fn add(&mut self, name: &str, answers: Answers, each: (&str, f64)) {
        let Answers {
            seen,
            asked,
            faults,
        } = answers;
        let run = &mut self.run;
        for percentile in [50.0, 99.0] {
            if let Some(value) = seen.latencies.at(percentile) {
                run.lower(&format!("{name} p{percentile}"), "ms", value);
            }
        }
        let seconds = seen.elapsed.as_secs_f64();
        if let Some(cpu) = seen.server_cpu {
            let busy = (cpu.as_secs_f64() - self.idle * seconds).max(0.0);
            let (of, count) = each;
            let count = count * asked.max(1) as f64;
            run.lower(
                &format!("{name} server CPU"),
                &format!("us per {of}"),
                busy * MICROS / count,
            );
        }
        run.faults
            .extend(faults.into_iter().map(|fault| format!("{name}: {fault}")));
        run.expected += asked;
        run.received += seen.received;
        self.latencies.add(&seen.latencies);
        run.latency = self.latencies.curve();
        // The phases of a run follow each other.
        let before = run.seconds;
        run.series
            .extend(seen.series.into_iter().map(|second| Second {
                at: before + second.at,
                ..second
            }));
        run.seconds += seconds;
    }
}
