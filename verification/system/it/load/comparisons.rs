//! Two outcomes side by side on the command line.

use std::process::Output;

use serde_json::Value;

use super::loading::{end, start};
use super::recorded::{failed_outcome, outcome, save};

async fn compare(left: &Value, right: &Value, flags: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let left = save(folder.path(), "left.json", left);
    let right = save(folder.path(), "right.json", right);
    let files = [&left, &right].map(|path| path.to_str().expect("a path"));
    end(start(&[&["compare"], &files[..], flags].concat(), &[])).await
}

/// Returns the output without the folder of the files.
fn printed(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().map(|line| {
        let words = line.split(' ').map(|word| match word.rsplit_once('/') {
            Some((folder, name)) if folder.starts_with('/') => name,
            _ => word,
        });
        words.collect::<Vec<_>>().join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn the_better_one_is_named_and_near_ones_are_ties() {
    let mut slow = outcome(2.0);
    slow["setting"]["watchers"] = 5_000.into();
    let output = compare(&outcome(1.0), &slow, &[]).await;
    let table = printed(&output);
    assert_eq!(output.status.code(), Some(0), "{table}");
    let row = |name: &str| {
        let row = table
            .lines()
            .find(|line| line.trim_start().starts_with(name));
        row.unwrap_or_else(|| panic!("{name} is not in\n{table}"))
            .to_owned()
    };
    let [latency, rate] = [row("delivery p99"), row("deliveries")];
    assert!(
        latency.contains("2.00") && latency.ends_with("left.json"),
        "{latency}"
    );
    assert!(rate.contains("1.00") && rate.ends_with("tie"), "{rate}");
    let warning = "warning: the settings differ: watchers: 1000 and 5000";
    assert!(table.contains(warning), "{table}");
}

#[tokio::test]
async fn json_says_the_same() {
    let output = compare(&outcome(1.0), &outcome(2.0), &["--json"]).await;
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = json["rows"].as_array().expect("rows");
    let standing = |name: &str| {
        let row = rows.iter().find(|row| row["name"] == name);
        row.expect("a row")["standing"].clone()
    };
    assert_eq!(standing("delivery p99"), "left");
    assert_eq!(standing("deliveries"), "tie");
}

#[tokio::test]
async fn an_outcome_that_failed_scores_zero() {
    let output = compare(&failed_outcome(), &outcome(9.0), &[]).await;
    let table = printed(&output);
    assert_eq!(output.status.code(), Some(1), "{table}");
    assert!(
        table.contains("left.json FAILED, so it scores zero"),
        "{table}"
    );
    let latency = table.lines().find(|line| line.contains("delivery p99"));
    let latency = latency.expect("a row");
    assert!(
        latency.ends_with("right.json") && latency.contains("0 (0 .. 0)"),
        "{latency}"
    );
}

#[tokio::test]
async fn what_cannot_be_compared_is_refused_in_one_line() {
    let mut list = outcome(1.0);
    list["scenario"] = "list".into();
    let mut newer = outcome(1.0);
    newer["format"] = 2.into();
    for (other, words) in [
        (list, "only outcomes of one scenario can be compared"),
        (newer, "has format 2, and this version reads format 1 alone"),
        (Value::Null, "is not what ringwatch load --json prints"),
    ] {
        let output = compare(&outcome(1.0), &other, &[]).await;
        let line = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line}");
        assert!(line.lines().count() == 1 && line.contains(words), "{line}");
        assert!(output.stdout.is_empty());
    }
}
