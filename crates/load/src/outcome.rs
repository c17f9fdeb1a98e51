//! The outcome of a scenario. `--json` prints an [`ScenarioReport`]; tables, pages and comparisons show one and nothing
//! else, so that all of them agree.
//!
//! The hard part is honesty: a run that lost or repeated an event scores zero. [`ScenarioReport::new`]
//! sees to it, so that no scenario can forget.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The form of this file. It changes when old readers would misread a new one.
pub(crate) const FORMAT: u32 = 1;

/// The outcome of a scenario, with all that is needed to judge and repeat it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct ScenarioReport {
    /// The format of the file: [`FORMAT`] as it was when this was written.
    pub(crate) format: u32,
    /// The version of this program.
    pub(crate) ringwatch: String,
    pub(crate) scenario: String,
    /// The time at which the scenario began, in RFC 3339.
    pub(crate) started: String,
    /// Every parameter, the machine, the server's version and the transport.
    pub(crate) setting: BTreeMap<String, Value>,
    pub(crate) runs: Vec<Run>,
    /// Each figure of the runs: median and range, in the order in which they are read.
    pub(crate) summary: IndexMap<String, Figure>,
    /// The reasons to doubt the figures.
    pub(crate) warnings: Vec<String>,
    pub(crate) verdict: ScenarioVerdict,
}

/// A figure over all runs: median and range.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Figure {
    pub(crate) unit: String,
    pub(crate) better: Better,
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

/// The direction in which a figure improves.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Better {
    Lower,
    Higher,
    /// It says what was loaded, or how the client fared, and nothing good or bad of the server.
    Neither,
}

impl Better {
    /// Returns the word for the better values, `less` or `more`; `None` if neither are.
    pub(crate) fn word(self) -> Option<&'static str> {
        match self {
            Self::Lower => Some("less"),
            Self::Higher => Some("more"),
            Self::Neither => None,
        }
    }
}

/// One run of a scenario: its figures, its curves, and what was lost.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Run {
    /// The time that the run took, in seconds.
    pub(crate) seconds: f64,
    /// The number of events (or answers) that there had to be over all clients.
    pub(crate) expected: u64,
    /// The number of these events or answers that came.
    pub(crate) received: u64,
    pub(crate) figures: IndexMap<String, Sample>,
    pub(crate) latency: Option<Latency>,
    pub(crate) series: Vec<Second>,
    /// Events that were lost, came twice or were wrong. A run with any scores zero.
    pub(crate) faults: Vec<String>,
    /// The number of times that each rule of `verify` was broken. Other scenarios have none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) violations: BTreeMap<String, u64>,
}

/// A figure of one run.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Sample {
    pub(crate) unit: String,
    pub(crate) better: Better,
    pub(crate) value: f64,
}

/// A distribution of latencies, as points of a curve.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Latency {
    pub(crate) count: u64,
    /// Percentile and milliseconds, rising: enough points for a curve.
    pub(crate) percentiles: Vec<(f64, f64)>,
}

/// One second of a run, or the rest of one at its end.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Second {
    /// Its end, in seconds since the run began.
    pub(crate) at: f64,
    /// Writes (or requests) that were answered in it.
    pub(crate) sent: u64,
    /// Events (or answers) that were received in it.
    pub(crate) received: u64,
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    /// Processors that the server kept busy.
    pub(crate) server_cpu: Option<f64>,
    /// The server's resident memory in bytes.
    pub(crate) server_rss: Option<u64>,
    /// Processors that this program kept busy.
    pub(crate) client_cpu: f64,
}

/// The verdict on an outcome: failed if any run lost, repeated or reordered an event.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(tag = "is", rename_all = "lowercase")]
pub(crate) enum ScenarioVerdict {
    Passed,
    Failed { reasons: Vec<String> },
}

impl Run {
    /// Adds a figure that is better when it is lower.
    pub(crate) fn lower(&mut self, name: &str, unit: &str, value: f64) {
        self.add(name, unit, Better::Lower, value);
    }

    /// Adds a figure that is better when it is higher.
    pub(crate) fn higher(&mut self, name: &str, unit: &str, value: f64) {
        self.add(name, unit, Better::Higher, value);
    }

    /// Adds a figure of which no value is better than another.
    pub(crate) fn note(&mut self, name: &str, unit: &str, value: f64) {
        self.add(name, unit, Better::Neither, value);
    }

    /// Returns the value of the figure of this name, if the run has it.
    pub(crate) fn value(&self, name: &str) -> Option<f64> {
        self.figures.get(name).map(|sample| sample.value)
    }

    fn add(&mut self, name: &str, unit: &str, better: Better, value: f64) {
        let unit = unit.to_owned();
        let sample = Sample {
            unit,
            better,
            value,
        };
        self.figures.insert(name.to_owned(), sample);
    }

    /// Returns true if everything came, once and in order.
    pub(crate) fn is_whole(&self) -> bool {
        self.faults.is_empty() && self.received == self.expected
    }

    /// Returns the reasons why the run is not whole, each as a line that names the run by its number.
    fn reasons(&self, number: usize) -> Vec<String> {
        let mut reasons: Vec<String> = Vec::new();
        if self.received != self.expected {
            let (received, expected) = (self.received, self.expected);
            reasons.push(format!("run {number}: {received} received of {expected}"));
        }
        let faults = self.faults.iter();
        reasons.extend(faults.map(|fault| format!("run {number}: {fault}")));
        reasons
    }

    /// Sets all figures to zero, since those of a run that is not whole are worth nothing.
    fn score_zero(&mut self) {
        for sample in self.figures.values_mut() {
            sample.value = 0.0;
        }
        self.latency = None;
    }
}

impl ScenarioReport {
    /// Returns the outcome of these runs. One that is not whole fails it and scores zero.
    pub(crate) fn new(
        scenario: &str,
        started: String,
        setting: BTreeMap<String, Value>,
        mut runs: Vec<Run>,
        warnings: Vec<String>,
    ) -> Self {
        let mut reasons = Vec::new();
        for (run, number) in runs.iter_mut().zip(1..) {
            if !run.is_whole() {
                reasons.extend(run.reasons(number));
                run.score_zero();
            }
        }
        if runs.is_empty() {
            reasons.push("nothing was run".to_owned());
        }
        let verdict = if reasons.is_empty() {
            ScenarioVerdict::Passed
        } else {
            ScenarioVerdict::Failed { reasons }
        };
        Self {
            format: FORMAT,
            ringwatch: env!("CARGO_PKG_VERSION").to_owned(),
            scenario: scenario.to_owned(),
            started,
            setting,
            summary: summary(&runs),
            runs,
            warnings,
            verdict,
        }
    }

    /// Returns true if the verdict is that it passed.
    pub(crate) fn has_passed(&self) -> bool {
        self.verdict == ScenarioVerdict::Passed
    }
}

/// Returns median and range of every figure that any run has.
fn summary(runs: &[Run]) -> IndexMap<String, Figure> {
    let mut values: IndexMap<&String, (&Sample, Vec<f64>)> = IndexMap::new();
    for (name, sample) in runs.iter().flat_map(|run| &run.figures) {
        let (_, values) = values.entry(name).or_insert((sample, Vec::new()));
        values.push(sample.value);
    }
    let figure = |(name, (sample, mut values)): (&String, (&Sample, Vec<f64>))| {
        values.sort_by(f64::total_cmp);
        let figure = Figure {
            unit: sample.unit.clone(),
            better: sample.better,
            median: median(&values),
            min: values.first().copied().unwrap_or_default(),
            max: values.last().copied().unwrap_or_default(),
        };
        (name.clone(), figure)
    };
    values.into_iter().map(figure).collect()
}

/// Returns the middle of sorted values; between the two in the middle of an even number of them.
fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        length if length % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(value: f64, expected: u64, received: u64) -> Run {
        let mut run = Run {
            expected,
            received,
            latency: Some(Latency::default()),
            ..Run::default()
        };
        run.lower("p99", "ms", value);
        run
    }

    fn outcome(runs: Vec<Run>) -> ScenarioReport {
        ScenarioReport::new("test", String::new(), BTreeMap::new(), runs, Vec::new())
    }

    #[test]
    fn whole_runs_give_median_and_range() {
        let outcome = outcome(vec![run(3.0, 5, 5), run(1.0, 5, 5), run(2.5, 5, 5)]);
        assert!(outcome.has_passed());
        let figure = &outcome.summary["p99"];
        assert_eq!((figure.median, figure.min, figure.max), (2.5, 1.0, 3.0));
        let even = median(&[1.0, 2.0, 4.0, 9.0]);
        assert!((even - 3.0).abs() < f64::EPSILON);
    }

    #[test]
    fn a_run_that_lost_an_event_scores_zero() {
        let outcome = outcome(vec![run(3.0, 5, 4), run(1.0, 5, 5)]);
        assert_eq!(outcome.runs[0].figures["p99"].value, 0.0);
        assert_eq!(outcome.runs[0].latency, None);
        assert_eq!(outcome.runs[1].figures["p99"].value, 1.0);
        let reasons = vec!["run 1: 4 received of 5".to_owned()];
        assert_eq!(outcome.verdict, ScenarioVerdict::Failed { reasons });
    }

    #[test]
    fn a_run_with_a_fault_scores_zero_though_the_count_is_right() {
        let mut faulty = run(3.0, 5, 5);
        faulty.faults.push("watch 1: event 2 twice".to_owned());
        let outcome = outcome(vec![faulty]);
        assert_eq!(outcome.summary["p99"].median, 0.0);
        let reasons = vec!["run 1: watch 1: event 2 twice".to_owned()];
        assert_eq!(outcome.verdict, ScenarioVerdict::Failed { reasons });
    }

    #[test]
    fn nothing_run_is_no_success() {
        assert!(!outcome(Vec::new()).has_passed());
    }

    #[test]
    fn what_is_written_is_read_again() {
        let before = outcome(vec![run(3.0, 5, 4)]);
        let text = serde_json::to_string(&before).expect("JSON");
        let after: ScenarioReport = serde_json::from_str(&text).expect("an outcome");
        assert_eq!(after, before);
    }
}
