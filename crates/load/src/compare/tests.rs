//! Two outcomes side by side, and the figures that are better.

use std::collections::BTreeMap;

use super::*;
use crate::outcome::Run;

/// Returns an outcome whose runs have these values as a latency and as a rate.
fn outcome(values: &[f64]) -> ScenarioReport {
    let run = |value: &f64| {
        let mut run = Run {
            expected: 5,
            received: 5,
            ..Run::default()
        };
        run.lower("latency", "ms", *value);
        run.higher("rate", "1/s", *value);
        run
    };
    let runs = values.iter().map(run).collect();
    let setting = BTreeMap::from([("watchers".to_owned(), 1_000.into())]);
    ScenarioReport::new("fanout", "now".to_owned(), setting, runs, Vec::new())
}

fn failed(values: &[f64]) -> ScenarioReport {
    let mut runs = outcome(values).runs;
    runs[0].received = 4;
    ScenarioReport::new(
        "fanout",
        "now".to_owned(),
        BTreeMap::new(),
        runs,
        Vec::new(),
    )
}

fn compare(left: ScenarioReport, right: ScenarioReport) -> Comparison {
    let side = |name: &str, outcome| Side {
        name: name.to_owned(),
        outcome,
    };
    Comparison::new(side("a.json", left), side("b.json", right)).expect("one scenario")
}

fn standings(left: ScenarioReport, right: ScenarioReport) -> [BetterSide; 2] {
    let rows = compare(left, right).rows;
    ["latency", "rate"].map(|name| {
        let row = rows.iter().find(|row| row.name == name);
        row.expect("a row").standing
    })
}

#[test]
fn less_latency_and_more_rate_are_better() {
    let [few, many] = [outcome(&[1.0, 1.1]), outcome(&[2.0, 2.1])];
    assert_eq!(
        standings(few.clone(), many.clone()),
        [BetterSide::Left, BetterSide::Right]
    );
    assert_eq!(
        standings(many.clone(), few.clone()),
        [BetterSide::Right, BetterSide::Left]
    );
    let rows = compare(few, many).rows;
    let ratio = rows[0].ratio.expect("a ratio");
    assert!((ratio - 2.05 / 1.05).abs() < 1e-9);
}

#[test]
fn small_gaps_and_overlapping_ranges_are_ties() {
    let tie = [BetterSide::Tie; 2];
    assert_eq!(standings(outcome(&[1.0]), outcome(&[1.19])), tie);
    assert_eq!(
        standings(outcome(&[1.0, 1.0, 3.0]), outcome(&[2.5, 2.5, 2.5])),
        tie
    );
    assert_eq!(standings(outcome(&[0.0]), outcome(&[0.0])), tie);
    let apart = [BetterSide::Left, BetterSide::Right];
    assert_eq!(standings(outcome(&[1.0]), outcome(&[1.21])), apart);
}

#[test]
fn what_failed_scores_zero_and_is_never_better() {
    let [good, bad] = [outcome(&[9.0, 9.0]), failed(&[1.0, 1.0])];
    assert_eq!(standings(good.clone(), bad.clone()), [BetterSide::Left; 2]);
    assert_eq!(standings(bad.clone(), good.clone()), [BetterSide::Right; 2]);
    assert_eq!(
        standings(bad.clone(), bad.clone()),
        [BetterSide::Unknown; 2]
    );
    let comparison = compare(good, bad);
    let right = comparison.rows[0].right.as_ref().expect("a figure");
    assert_eq!((right.median, right.max), (0.0, 0.0));
    assert_eq!(comparison.rows[0].ratio, None);
    let text = text(&comparison);
    assert!(text.contains("b.json FAILED, so it scores zero"), "{text}");
    assert!(text.contains("run 1: 4 received of 5"), "{text}");
}

#[test]
fn a_figure_of_one_alone_is_shown_and_not_judged() {
    let mut right = outcome(&[5.0]);
    right.summary.shift_remove("rate");
    let comparison = compare(outcome(&[1.0]), right);
    let row = comparison
        .rows
        .iter()
        .find(|row| row.name == "rate")
        .expect("a row");
    assert_eq!(
        (row.standing, row.ratio, &row.right),
        (BetterSide::Unknown, None, &None)
    );
}

#[test]
fn settings_that_differ_are_said() {
    let mut right = outcome(&[1.0]);
    right.setting.insert("watchers".to_owned(), 5_000.into());
    right.setting.insert("http".to_owned(), "2".into());
    let comparison = compare(outcome(&[1.0]), right);
    let told: Vec<String> = comparison
        .differences
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(told, ["http: not given and 2", "watchers: 1000 and 5000"]);
    let text = text(&comparison);
    assert!(
        text.contains("warning: the settings differ: watchers: 1000 and 5000"),
        "{text}"
    );
}

#[test]
fn other_scenarios_are_refused() {
    let mut other = outcome(&[1.0]);
    other.scenario = "list".to_owned();
    let side = |name: &str, outcome| Side {
        name: name.to_owned(),
        outcome,
    };
    let error = Comparison::new(side("a", outcome(&[1.0])), side("b", other));
    let error = error.expect_err("they cannot be compared").to_string();
    assert_eq!(
        error,
        "a is of fanout and b of list: only outcomes of one scenario can be compared"
    );
}
