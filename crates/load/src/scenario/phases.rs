//! The common parts of scenarios that read: a run in phases, whose figures stand side by side.

use std::time::Duration;

use super::baseline::Baseline;
use crate::context::Context;
use crate::measure::{Latencies, too_busy};
use crate::outcome::{Run, Second};
use crate::requests::Answers;
use crate::units::{mebibytes, micros};

/// A run that is put together from phases.
#[derive(Debug, Default)]
pub(super) struct Phases {
    run: Run,
    baseline: Option<Baseline>,
    latencies: Latencies,
    client_cpu: Duration,
    server_rss: Option<u64>,
}

impl Phases {
    /// Returns a run before its first phase.
    pub(super) fn new(baseline: Option<Baseline>) -> Self {
        Self {
            baseline,
            ..Self::default()
        }
    }

    /// Returns the run, with what client and server used over all phases.
    pub(super) fn finish(self, context: &Context) -> Run {
        let mut run = self.run;
        let elapsed = Duration::from_secs_f64(run.seconds);
        add_client(&mut run, "client CPU", self.client_cpu, elapsed, context);
        if let Some(rss) = self.server_rss {
            run.lower("server memory", "MiB", mebibytes(rss));
        }
        run
    }

    /// Adds the figures of the floor, which did the same as the server in the phase of this name with so much processor
    /// time. `each` is the phase's.
    pub(super) fn add_floor(
        &mut self,
        name: &str,
        answers: Answers,
        cpu: Duration,
        each: (&str, f64),
    ) {
        let Answers {
            seen,
            asked,
            faults,
            recorded: _,
        } = answers;
        let run = &mut self.run;
        let (of, count) = each;
        let cpu = micros(cpu) / (count * asked.max(1) as f64);
        run.note(&format!("{name} floor CPU"), &format!("us per {of}"), cpu);
        for percentile in [50.0, 99.0] {
            if let Some(value) = seen.latencies.at(percentile) {
                run.note(&format!("{name} floor p{percentile}"), "ms", value);
            }
        }
        if let Some(server) = run.value(&format!("{name} server CPU")) {
            run.lower(
                &format!("{name} server CPU over floor"),
                "times",
                server / cpu,
            );
        }
        let faults = faults.into_iter();
        run.faults
            .extend(faults.map(|fault| format!("{name}, floor: {fault}")));
        if seen.received != asked {
            let received = seen.received;
            run.faults
                .push(format!("{name}, floor: {received} received of {asked}"));
        }
    }

    /// Adds a phase and its figures, which begin with its name. `writes` is how many of the baseline's writes were made
    /// in it. `each` says for how many of what the server's processor time is told, and how many of those an answer
    /// counts.
    pub(super) fn add(&mut self, name: &str, answers: Answers, writes: u64, each: (&str, f64)) {
        let Answers {
            seen,
            asked,
            faults,
            recorded: _,
        } = answers;
        let run = &mut self.run;
        for percentile in [50.0, 99.0] {
            if let Some(value) = seen.latencies.at(percentile) {
                run.lower(&format!("{name} p{percentile}"), "ms", value);
            }
        }
        let seconds = seen.elapsed.as_secs_f64();
        if let Some(busy) = Baseline::beyond(self.baseline, &seen, writes) {
            let (of, count) = each;
            let count = count * asked.max(1) as f64;
            run.lower(
                &format!("{name} server CPU"),
                &format!("us per {of}"),
                micros(busy) / count,
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
        self.client_cpu += seen.client_cpu;
        self.server_rss = self.server_rss.max(seen.server_rss);
    }
}

/// Adds how busy the client was, with a warning if that is what was measured.
pub(super) fn add_client(
    run: &mut Run,
    name: &str,
    cpu: Duration,
    elapsed: Duration,
    context: &Context,
) {
    let cores = cpu.as_secs_f64() / elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
    run.note(name, "cores", cores);
    if let Some(busy) = too_busy(cpu, elapsed) {
        context.warn(format!(
            "the client, which reads answers with one thread, was busy for {:.0} % of the time, so \
             latencies and rates are partly its own; ask for less at once",
            busy * 100.0
        ));
    }
}
