//! The charts of a page. One outcome has a curve for each quantity, two have a curve each.

use super::chart::{Chart, Curve, Point};
use super::scale::{Percentiles, Scale};
use super::timeline::Timeline;
use crate::outcome::{Latency, Run, ScenarioReport, Second};
use crate::output::number::short;
use crate::units::mebibytes;

/// The text in place of a curve that was not measured.
const NOT_MEASURED: &str = "not measured";

/// Asking for metrics all the time would load the server, so they tell a run's sum and no curve.
const WITH_PID: &str = "over time with --pid alone";

/// A shorter time, as the rest of a run may be, tells no rate: one event more would double it.
const RATE_SECONDS_MIN: f64 = 0.5;

/// An outcome and what it is called.
pub(super) type NamedReport<'a> = (&'a str, &'a ScenarioReport);

/// A quantity of a second. The second may be shorter or longer than one: its length comes along.
type Quantity = fn(&Second, f64) -> Option<f64>;

/// A chart of quantities over the time of the runs.
struct OverTime {
    id: &'static str,
    title: &'static str,
    unit: &'static str,
    /// True if it is filled below, as amounts are.
    is_amount: bool,
    quantities: &'static [(&'static str, Quantity)],
    /// The text in place of a missing curve.
    absent: &'static str,
}

const LATENCY: OverTime = OverTime {
    id: "latency-over-time",
    title: "Latency over time",
    unit: "ms",
    is_amount: false,
    quantities: &[("p50", |it, _| it.p50_ms), ("p99", |it, _| it.p99_ms)],
    absent: NOT_MEASURED,
};

const RECEIVED: OverTime = OverTime {
    id: "received",
    title: "Received",
    unit: "events or answers a second",
    is_amount: true,
    quantities: &[("received", |it, length| {
        rate(it.received as f64 / length, length)
    })],
    absent: NOT_MEASURED,
};

const SENT: OverTime = OverTime {
    id: "sent",
    title: "Sent",
    unit: "writes or requests a second",
    is_amount: true,
    quantities: &[("sent", |it, length| rate(it.sent as f64 / length, length))],
    absent: NOT_MEASURED,
};

const PROCESSORS: OverTime = OverTime {
    id: "cpu",
    title: "CPU",
    unit: "processors kept busy",
    is_amount: false,
    quantities: &[
        ("server", |it, length| rate(it.server_cpu?, length)),
        ("client", |it, length| rate(it.client_cpu, length)),
    ],
    absent: WITH_PID,
};

const MEMORY: OverTime = OverTime {
    id: "memory",
    title: "Server memory",
    unit: "MiB resident",
    is_amount: true,
    quantities: &[("server", |it, _| it.server_rss.map(mebibytes))],
    absent: WITH_PID,
};

/// Parts of the above that two outcomes are shown by.
const MEDIAN_LATENCY: OverTime = OverTime {
    id: "p50-over-time",
    title: "p50 over time",
    quantities: &[LATENCY.quantities[0]],
    ..LATENCY
};
const HIGH_LATENCY: OverTime = OverTime {
    id: "p99-over-time",
    title: "p99 over time",
    quantities: &[LATENCY.quantities[1]],
    ..LATENCY
};
const SERVER_PROCESSORS: OverTime = OverTime {
    id: "server-cpu",
    title: "Server CPU",
    quantities: &[PROCESSORS.quantities[0]],
    ..PROCESSORS
};

/// Returns the charts of an outcome.
pub(super) fn outcome_charts(outcome: &ScenarioReport) -> Vec<Chart> {
    let axis = axis_of_percentiles(&[outcome]);
    let curve = |(number, run): (usize, &Run)| Curve {
        label: format!("run {}", number + 1),
        colour: number,
        is_filled: false,
        lines: percentile_line(number, run, axis).into_iter().collect(),
        absent: if run.is_whole() {
            NOT_MEASURED
        } else {
            "scores zero"
        },
    };
    let curves = outcome.runs.iter().enumerate().map(curve).collect();
    let mut charts = vec![percentiles(curves, axis)];
    let over_time = [LATENCY, RECEIVED, SENT, PROCESSORS, MEMORY];
    charts.extend(over_time.iter().map(|chart| chart.of_one(outcome)));
    charts.retain(Chart::shows_anything);
    charts
}

/// Returns the charts of two outcomes.
pub(super) fn comparison_charts(outcomes: [NamedReport<'_>; 2]) -> Vec<Chart> {
    let axis = axis_of_percentiles(&outcomes.map(|(_, outcome)| outcome));
    let curve = |(colour, (name, outcome)): (usize, NamedReport<'_>)| {
        let runs = outcome.runs.iter().enumerate();
        let lines = runs.filter_map(|(number, run)| percentile_line(number, run, axis));
        Curve {
            label: name.to_owned(),
            colour,
            is_filled: false,
            lines: lines.collect(),
            absent: if outcome.has_passed() {
                NOT_MEASURED
            } else {
                "scores zero"
            },
        }
    };
    let curves = outcomes.into_iter().enumerate().map(curve).collect();
    let mut charts = vec![percentiles(curves, axis)];
    let over_time = [
        MEDIAN_LATENCY,
        HIGH_LATENCY,
        RECEIVED,
        SENT,
        SERVER_PROCESSORS,
        MEMORY,
    ];
    charts.extend(over_time.iter().map(|chart| chart.of_two(outcomes)));
    charts.retain(Chart::shows_anything);
    charts
}

fn rate(value: f64, length: f64) -> Option<f64> {
    (length >= RATE_SECONDS_MIN).then_some(value)
}

impl Chart {
    fn shows_anything(&self) -> bool {
        self.curves.iter().any(|curve| !curve.lines.is_empty())
    }
}

fn percentiles(curves: Vec<Curve>, axis: Percentiles) -> Chart {
    let scale = Scale::fitting(&values(&curves));
    Chart {
        id: "latency-by-percentile",
        title: "Latency by percentile",
        about: format!(
            "ms{}, at each percentile of what was received",
            logarithmic(scale)
        ),
        scale,
        ticks: axis.ticks(),
        slots: Vec::new(),
        curves,
    }
}

/// Returns one axis for all curves of a chart.
fn axis_of_percentiles(outcomes: &[&ScenarioReport]) -> Percentiles {
    let runs = outcomes.iter().flat_map(|outcome| &outcome.runs);
    let latencies = runs.filter_map(|run| run.latency.as_ref());
    let points = latencies.flat_map(significant);
    Percentiles::new(points.map(|(percentile, _)| *percentile))
}

/// Returns the percentiles above which there is at least one value: the last of a hundred is no 99.9th percentile.
fn significant(latency: &Latency) -> impl Iterator<Item = &(f64, f64)> {
    let above = |percentile: f64| latency.count as f64 * (1.0 - percentile / 100.0);
    let points = latency.percentiles.iter();
    points.filter(move |(percentile, _)| *percentile >= 100.0 || above(*percentile) >= 1.0)
}

/// Returns the line of a run, if it has one.
fn percentile_line(number: usize, run: &Run, axis: Percentiles) -> Option<Vec<Point>> {
    let latency = run.latency.as_ref()?;
    let point = |(percentile, value): &(f64, f64)| Point {
        x: axis.place(*percentile),
        value: *value,
        about: format!("run {}, {percentile} %: {} ms", number + 1, short(*value)),
    };
    Some(significant(latency).map(point).collect())
}

impl OverTime {
    pub(crate) fn of_one(&self, outcome: &ScenarioReport) -> Chart {
        let timeline = Timeline::new(&[outcome]);
        let quantities = self.quantities.iter().enumerate();
        let curve = |(colour, (label, quantity)): (usize, &(&str, Quantity))| Curve {
            label: (*label).to_owned(),
            colour,
            is_filled: self.is_amount,
            lines: self.lines(outcome, *quantity, &timeline),
            absent: self.absent,
        };
        self.chart(quantities.map(curve).collect(), &timeline, &[outcome])
    }

    pub(crate) fn of_two(&self, outcomes: [NamedReport<'_>; 2]) -> Chart {
        let both = outcomes.map(|(_, outcome)| outcome);
        let timeline = Timeline::new(&both);
        let mut curves = Vec::new();
        for (colour, (name, outcome)) in outcomes.into_iter().enumerate() {
            let lines = self.quantities.iter();
            let lines = lines.flat_map(|(_, quantity)| self.lines(outcome, *quantity, &timeline));
            curves.push(Curve {
                label: name.to_owned(),
                colour,
                is_filled: false,
                lines: lines.collect(),
                absent: self.absent,
            });
        }
        self.chart(curves, &timeline, &both)
    }

    fn chart(
        &self,
        curves: Vec<Curve>,
        timeline: &Timeline,
        outcomes: &[&ScenarioReport],
    ) -> Chart {
        let values = values(&curves);
        let scale = if self.is_amount {
            Scale::linear(&values)
        } else {
            Scale::fitting(&values)
        };
        Chart {
            id: self.id,
            title: self.title,
            about: format!("{}{}; {}", self.unit, logarithmic(scale), timeline.about()),
            scale,
            ticks: timeline.ticks(),
            slots: timeline.slots(outcomes),
            curves,
        }
    }

    /// Returns a line for each stretch without a gap.
    fn lines(
        &self,
        outcome: &ScenarioReport,
        quantity: Quantity,
        timeline: &Timeline,
    ) -> Vec<Vec<Point>> {
        let mut lines = Vec::new();
        for (number, run) in outcome.runs.iter().enumerate() {
            let mut line = Vec::new();
            let mut begun = 0.0;
            for second in &run.series {
                let length = second.at - begun;
                begun = second.at;
                let value = (length > 0.0).then(|| quantity(second, length)).flatten();
                let Some(value) = value else {
                    lines.push(std::mem::take(&mut line));
                    continue;
                };
                let at = second.at - length / 2.0;
                let (run, time) = (number + 1, short(second.at));
                line.push(Point {
                    x: timeline.place(number, at),
                    value,
                    about: format!("run {run}, {time} s: {} {}", short(value), self.unit),
                });
            }
            lines.push(line);
        }
        lines.retain(|line| !line.is_empty());
        lines
    }
}

fn values(curves: &[Curve]) -> Vec<f64> {
    let points = curves.iter().flat_map(|curve| curve.lines.iter().flatten());
    points.map(|point| point.value).collect()
}

fn logarithmic(scale: Scale) -> &'static str {
    match scale {
        Scale::Linear { .. } => "",
        Scale::Logarithmic { .. } => " (logarithmic)",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn outcome(p99: &[Option<f64>]) -> ScenarioReport {
        let second = |(number, p99_ms): (usize, &Option<f64>)| Second {
            at: number as f64 + 1.0,
            received: 10,
            p99_ms: *p99_ms,
            ..Second::default()
        };
        let run = Run {
            seconds: p99.len() as f64,
            latency: Some(Latency {
                count: 100,
                percentiles: vec![(0.0, 1.0), (99.0, 2.0), (99.9, 3.0), (100.0, 3.0)],
            }),
            series: p99.iter().enumerate().map(second).collect(),
            ..Run::default()
        };
        ScenarioReport::new(
            "test",
            String::new(),
            BTreeMap::new(),
            vec![run],
            Vec::new(),
        )
    }

    #[test]
    fn seconds_without_events_break_the_line() {
        let outcome = outcome(&[Some(1.0), Some(2.0), None, Some(3.0)]);
        let charts = outcome_charts(&outcome);
        let latency = charts.iter().find(|chart| chart.id == "latency-over-time");
        let curves = &latency.expect("a chart").curves;
        let lengths: Vec<usize> = curves[1].lines.iter().map(Vec::len).collect();
        assert_eq!(lengths, [2, 1]);
        assert!(curves[0].lines.is_empty(), "no p50 was measured");
    }

    #[test]
    fn the_rest_of_a_run_tells_no_rate() {
        let mut outcome = outcome(&[Some(1.0), Some(2.0)]);
        let rest = Second {
            at: 2.01,
            received: 3,
            p99_ms: Some(9.0),
            ..Second::default()
        };
        outcome.runs[0].series.push(rest);
        let charts = outcome_charts(&outcome);
        let last = |id: &str| {
            let chart = charts.iter().find(|chart| chart.id == id).expect("a chart");
            let line = chart.curves.last().and_then(|curve| curve.lines.last());
            line.and_then(|line| line.last()).map(|point| point.value)
        };
        assert_eq!(last("received"), Some(10.0));
        assert_eq!(last("latency-over-time"), Some(9.0));
    }

    #[test]
    fn percentiles_end_where_nothing_is_above() {
        let chart = &outcome_charts(&outcome(&[None]))[0];
        assert_eq!(chart.curves[0].lines[0].len(), 3, "{chart:?}");
        let last = chart
            .ticks
            .iter()
            .rev()
            .nth(1)
            .map(|tick| tick.label.as_str());
        assert_eq!(last, Some("99"), "{chart:?}");
    }

    #[test]
    fn what_nobody_measured_has_no_chart() {
        let ids: Vec<&str> = outcome_charts(&outcome(&[None]))
            .iter()
            .map(|chart| chart.id)
            .collect();
        assert_eq!(ids, ["latency-by-percentile", "received", "sent", "cpu"]);
    }

    #[test]
    fn what_metrics_do_not_tell_over_time_is_not_called_unmeasured() {
        let charts = outcome_charts(&outcome(&[Some(1.0)]));
        let chart = charts.iter().find(|chart| chart.id == "cpu");
        let server = &chart.expect("a chart").curves[0];
        assert_eq!((server.label.as_str(), server.absent), ("server", WITH_PID));
        assert!(server.lines.is_empty());
    }

    #[test]
    fn two_outcomes_share_their_axes() {
        let (left, right) = (outcome(&[Some(1.0); 10]), outcome(&[Some(4.0); 20]));
        let charts = comparison_charts([("a", &left), ("b", &right)]);
        let chart = charts.iter().find(|chart| chart.id == "p99-over-time");
        let chart = chart.expect("a chart");
        let last = |curve: &Curve| curve.lines[0].last().map(|point| point.x);
        assert_eq!(last(&chart.curves[0]), Some(9.5 / 20.0));
        assert_eq!(last(&chart.curves[1]), Some(19.5 / 20.0));
        assert_eq!(
            chart.scale,
            Scale::Linear {
                top: 4.0,
                step: 1.0
            }
        );
    }
}
