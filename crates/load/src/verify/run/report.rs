//! Sums up a history and its violations: figures, and lines that show the faults.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::outcome::Run;
use crate::verify::checks::CheckResult;
use crate::verify::history::{At, History, Item, Nanos, Start, WatchEnd, Write, WriteAnswer};
use crate::verify::violation::{Promise, Violation};

/// The most violations of a rule that are shown; the rest is counted.
const SHOWN_MAX: usize = 3;

/// Returns the run. What was expected and what was received are counted apart, so a run in which they differ fails,
/// whatever the rules say of it.
pub(super) fn report(history: &History, checked: &CheckResult, trouble: Vec<String>) -> Run {
    let sessions = || history.watchers.iter().flat_map(|it| &it.sessions);
    let counts = checked.tallies.iter();
    let counts = counts.flat_map(|tally| [tally.initial, tally.changes]);
    let uncertain: u64 = checked.tallies.iter().map(|tally| tally.uncertain).sum();
    let mut run = Run {
        expected: counts.clone().map(|count| count.expected).sum(),
        received: counts.map(|count| count.received).sum(),
        faults: trouble,
        ..Run::default()
    };
    run.faults.extend(shown(&checked.violations));
    for violation in &checked.violations {
        *run.violations
            .entry(violation.rule.name().to_owned())
            .or_default() += 1;
    }
    let writes = |fits: fn(&WriteAnswer) -> bool| {
        let fitting = history.writes.iter().filter(|write| fits(&write.answer));
        fitting.count()
    };
    let ends = |fits: fn(&WatchEnd) -> bool| sessions().filter(|it| fits(&it.end)).count();
    let resumed = sessions().filter(|it| matches!(it.start, Start::Resume { .. }));
    let initial = sessions().filter(|it| it.initial_revision().is_some());
    let seen = sessions().flat_map(|it| &it.seen);
    let bookmarks = seen.filter(|it| matches!(it.item, Item::Bookmark { .. }));
    let done = |answer: &WriteAnswer| matches!(answer, WriteAnswer::Acknowledged { .. });
    for (name, count) in [
        ("writes done", writes(done)),
        (
            "writes refused",
            writes(|it| matches!(it, WriteAnswer::Refused { .. })),
        ),
        ("lists", history.reads.len()),
        ("gets", history.gets.len()),
        ("watches", sessions().count()),
        ("watches resumed", resumed.count()),
        ("watches with initial events", initial.count()),
        ("bookmarks", bookmarks.count()),
    ] {
        run.note(name, "", count as f64);
    }
    run.note("uncertain events", "", uncertain as f64);
    run.note("objects not judged", "", checked.undecided.len() as f64);
    let answered = history.writes.iter().filter_map(Write::acknowledged_at);
    run.lower(
        "longest time without a write done",
        "s",
        longest_pause(answered),
    );
    let answered = history
        .reads
        .iter()
        .flat_map(|it| &it.pages)
        .map(|it| it.answered);
    run.lower("longest time without a list", "s", longest_pause(answered));
    for (name, count) in [
        (
            "writes without answer",
            writes(|it| *it == WriteAnswer::Uncertain),
        ),
        (
            "watches broken",
            ends(|it| matches!(it, WatchEnd::Broken(_))),
        ),
        ("watches expired (410)", ends(|it| *it == WatchEnd::Expired)),
    ] {
        run.lower(name, "", count as f64);
    }
    run
}

/// Returns the longest time between two of these times, in seconds.
fn longest_pause(times: impl Iterator<Item = Nanos>) -> f64 {
    let mut times: Vec<Nanos> = times.collect();
    times.sort_unstable();
    let pauses = times.windows(2).map(|it| it[1] - it[0]);
    Duration::from_nanos(pauses.max().unwrap_or_default()).as_secs_f64()
}

/// Watches that broke, which a server may do, and should not without a reason.
pub(super) fn warnings(history: &History) -> Vec<String> {
    let mut warnings = Vec::new();
    for watcher in &history.watchers {
        for session in &watcher.sessions {
            if let WatchEnd::Broken(why) = &session.end {
                let (name, opened) = (&watcher.name, At(session.opened));
                warnings.push(format!("a watch of {name}, opened {opened}, broke: {why}"));
            }
        }
    }
    let rest = warnings.len().saturating_sub(SHOWN_MAX);
    warnings.truncate(SHOWN_MAX);
    if rest > 0 {
        warnings.push(format!("{rest} more watches broke"));
    }
    warnings
}

/// Returns the warning about objects of which it is not known if their requests are linearizable.
pub(super) fn undecided(checked: &CheckResult) -> Option<String> {
    let (first, count) = (checked.undecided.first()?, checked.undecided.len());
    Some(format!(
        "of {count} objects, among them {first}, too many writes were open at once to tell if their requests are \
         linearizable; lower --writers or raise --objects"
    ))
}

/// Writes some violations of each rule with their history, and how many more there are.
fn shown(violations: &[Violation]) -> Vec<String> {
    let mut by_rule: BTreeMap<Promise, Vec<&Violation>> = BTreeMap::new();
    for violation in violations {
        by_rule.entry(violation.rule).or_default().push(violation);
    }
    let mut lines = Vec::new();
    for (rule, violations) in by_rule {
        lines.extend(violations.iter().take(SHOWN_MAX).map(ToString::to_string));
        let rest = violations.len().saturating_sub(SHOWN_MAX);
        if rest > 0 {
            lines.push(format!("{rule}: {rest} more"));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::checks::Tally;
    use crate::verify::history::ObjectKey;

    #[test]
    fn of_many_violations_some_are_shown() {
        let violation = |rule| Violation::new(rule, "watcher w", "it is wrong".to_owned());
        let mut violations = vec![violation(Promise::NoGap); 5];
        violations.push(violation(Promise::Ordered).shown_by("1.0 s: BOOKMARK 3"));
        let checked = CheckResult {
            violations,
            undecided: vec![ObjectKey(7)],
            tallies: Vec::new(),
        };
        let run = report(&History::default(), &checked, Vec::new());
        assert_eq!(run.faults.len(), 5);
        assert!(run.faults[0].contains("BOOKMARK 3"), "{:?}", run.faults);
        assert_eq!(run.faults[4], "no-gap: 2 more");
        assert!(!run.is_whole());
        let counts = [("no-gap".to_owned(), 5), ("ordered".to_owned(), 1)];
        assert_eq!(run.violations, counts.into());
        let warning = undecided(&checked).expect("a warning");
        assert!(
            warning.starts_with("of 1 objects, among them object-0007,"),
            "{warning}"
        );
    }

    #[test]
    fn the_longest_pause_is_between_neighbours_in_time() {
        let second = 1_000_000_000;
        let times = [7 * second, second, 2 * second];
        assert_eq!(longest_pause(times.into_iter()), 5.0);
        assert_eq!(longest_pause(std::iter::empty()), 0.0);
    }

    #[test]
    fn what_was_expected_and_what_came_are_counted_apart() {
        let mut tally = Tally {
            uncertain: 1,
            ..Tally::default()
        };
        (tally.initial.expected, tally.initial.received) = (2, 2);
        (tally.changes.expected, tally.changes.received) = (5, 5);
        let mut checked = CheckResult {
            violations: Vec::new(),
            undecided: Vec::new(),
            tallies: vec![tally, tally],
        };
        let run = |checked: &CheckResult| report(&History::default(), checked, Vec::new());
        let whole = run(&checked);
        assert_eq!((whole.expected, whole.received), (14, 14));
        assert_eq!(whole.figures["uncertain events"].value, 2.0);
        assert!(whole.is_whole());
        checked.tallies[1].changes.received -= 1;
        assert!(!run(&checked).is_whole(), "though no rule was broken");
    }
}
