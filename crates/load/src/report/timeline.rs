//! The horizontal axis of time: all runs, one after the other.

use super::scale::{Tick, round_step};
use crate::outcome::{Run, ScenarioReport};
use crate::output::number::short;

/// The number of times that an axis names, roughly.
const TICKS: f64 = 8.0;

/// The axis on which the runs lie. Outcomes that stand side by side share it, so that their runs do too.
#[derive(Clone, Debug)]
pub(super) struct Timeline {
    /// The length of each run in seconds: that of the longest of the outcomes.
    lengths: Vec<f64>,
}

/// A run's part of the axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Slot {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) label: String,
    /// True if the run lost or repeated something.
    pub(super) is_lost: bool,
}

impl Timeline {
    pub(super) fn new(outcomes: &[&ScenarioReport]) -> Self {
        let runs = outcomes.iter().map(|outcome| outcome.runs.len()).max();
        let length = |number| {
            let runs = outcomes
                .iter()
                .filter_map(|outcome| outcome.runs.get(number));
            runs.map(seconds).fold(0.0, f64::max)
        };
        Self {
            lengths: (0..runs.unwrap_or_default()).map(length).collect(),
        }
    }

    /// Returns where a time of a run lies, from 0 to 1.
    pub(super) fn place(&self, run: usize, at: f64) -> f64 {
        let before: f64 = self.lengths.iter().take(run).sum();
        let total: f64 = self.lengths.iter().sum();
        if total > 0.0 {
            ((before + at) / total).clamp(0.0, 1.0)
        } else {
            0.0
        }
    }

    /// Returns the parts of the time axis, one for each run.
    pub(super) fn slots(&self, outcomes: &[&ScenarioReport]) -> Vec<Slot> {
        let slot = |(number, length): (usize, &f64)| {
            let mut runs = outcomes
                .iter()
                .filter_map(|outcome| outcome.runs.get(number));
            Slot {
                from: self.place(number, 0.0),
                to: self.place(number, *length),
                label: format!("run {}", number + 1),
                is_lost: runs.any(|run| !run.is_whole()),
            }
        };
        self.lengths.iter().enumerate().map(slot).collect()
    }

    /// Returns the times that are named: only those of a run that is alone. Several are named themselves.
    pub(super) fn ticks(&self) -> Vec<Tick> {
        let [length] = self.lengths.as_slice() else {
            return Vec::new();
        };
        if *length <= 0.0 {
            return Vec::new();
        }
        let step = round_step(length / TICKS);
        let ticks = (0..=(length / step) as u32).map(|number| f64::from(number) * step);
        let tick = |at| Tick {
            at: self.place(0, at),
            label: format!("{} s", short(at)),
        };
        ticks.map(tick).collect()
    }

    /// Returns how long the runs take, in words.
    pub(super) fn about(&self) -> String {
        let longest = self.lengths.iter().copied().fold(0.0, f64::max);
        match self.lengths.len() {
            0 | 1 => "one run".to_owned(),
            runs => format!(
                "{runs} runs, one after the other, {} s each",
                short(longest.round())
            ),
        }
    }
}

fn seconds(run: &Run) -> f64 {
    run.series
        .last()
        .map_or(run.seconds, |last| last.at.max(run.seconds))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn outcome(lengths: &[f64]) -> ScenarioReport {
        let run = |seconds: &f64| Run {
            seconds: *seconds,
            ..Run::default()
        };
        let runs = lengths.iter().map(run).collect();
        ScenarioReport::new("test", String::new(), BTreeMap::new(), runs, Vec::new())
    }

    #[test]
    fn runs_follow_each_other_and_lie_under_those_of_others() {
        let (left, right) = (outcome(&[10.0, 10.0]), outcome(&[20.0, 10.0, 10.0]));
        let both = [&left, &right];
        let timeline = Timeline::new(&both);
        assert_eq!(
            (timeline.place(0, 20.0), timeline.place(1, 0.0)),
            (0.5, 0.5)
        );
        let slots = timeline.slots(&both);
        let ends: Vec<(f64, f64)> = slots.iter().map(|slot| (slot.from, slot.to)).collect();
        assert_eq!(ends, [(0.0, 0.5), (0.5, 0.75), (0.75, 1.0)]);
        assert!(timeline.ticks().is_empty());
    }

    #[test]
    fn a_single_run_is_told_in_seconds() {
        let single = outcome(&[40.0]);
        let ticks = Timeline::new(&[&single]).ticks();
        let labels: Vec<String> = ticks.into_iter().map(|tick| tick.label).collect();
        assert_eq!(
            labels,
            [
                "0 s", "5 s", "10 s", "15 s", "20 s", "25 s", "30 s", "35 s", "40 s"
            ]
        );
    }
}
