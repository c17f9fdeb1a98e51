//! The rules, the dashboard and the guide to the alerts know the same alerts, and no families but those that are
//! served.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use ringwatch_testing::tools;

use super::guard::{PREFIXES, registered};
use super::*;
use crate::support::recorded::{checkout, skipped};

/// The endings that the encoder and histograms add to the names of families.
const ENDINGS: [&str; 4] = ["_total", "_bucket", "_count", "_sum"];

fn text(path: &str) -> String {
    fs::read_to_string(checkout().join(path)).expect("a file of the checkout")
}

/// Returns all rules, as `deploy/prometheus/rules.yaml` has them.
fn rules() -> Vec<Value> {
    let file: Value = serde_saphyr::from_str(&text("deploy/prometheus/rules.yaml")).expect("YAML");
    let groups = file["groups"].as_array().expect("groups").iter();
    groups
        .flat_map(|group| group["rules"].as_array().expect("rules"))
        .cloned()
        .collect()
}

/// Returns the values of a member of all rules that have it.
fn members<'a>(rules: &'a [Value], name: &'a str) -> impl Iterator<Item = &'a str> {
    rules.iter().filter_map(move |rule| rule[name].as_str())
}

/// Returns the queries of all panels of the dashboard.
fn queries() -> Vec<String> {
    let dashboard: Value =
        serde_json::from_str(&text("deploy/grafana/ringwatch.json")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels").iter();
    let targets = panels.filter_map(|panel| panel["targets"].as_array());
    let queries = targets
        .flatten()
        .filter_map(|target| target["expr"].as_str());
    queries.map(str::to_owned).collect()
}

/// Returns the commands of a text in Markdown, block by block, each with what it prints.
fn commands(text: &str) -> Vec<(&str, &str)> {
    let parts: Vec<&str> = text.split("```").skip(1).step_by(2).collect();
    let pairs = parts.chunks(2).map(|pair| match pair {
        [commands, output] => (
            commands.strip_prefix("sh\n").expect("commands"),
            output.strip_prefix("output\n").expect("an output"),
        ),
        _ => panic!("what do these print? {pair:?}"),
    });
    pairs.collect()
}

/// Returns the queries of commands.
fn queries_of(commands: &str) -> impl Iterator<Item = &str> {
    let queries = commands
        .split("promtool query instant $PROMETHEUS '")
        .skip(1);
    queries.filter_map(|rest| rest.split('\'').next())
}

/// Returns the words of a query outside of strings.
fn words(query: &str) -> impl Iterator<Item = &str> {
    let plain = query.split('"').step_by(2);
    plain.flat_map(|part| part.split(|it: char| !(it.is_ascii_alphanumeric() || "_:".contains(it))))
}

#[test]
fn every_family_of_rules_and_dashboard_is_served() {
    let (rules, known) = (rules(), registered());
    let records: BTreeSet<&str> = members(&rules, "record").collect();
    let dashboard = queries();
    let guide = text("docs/alerts.md");
    let sections = guide.split("\n### ").skip(1).flat_map(commands);
    let shown: Vec<&str> = sections.flat_map(|(sh, _)| queries_of(sh)).collect();
    assert!(shown.len() > 10, "only {shown:?} are looked at");
    let expressions = members(&rules, "expr").chain(dashboard.iter().map(String::as_str));
    let expressions = expressions.chain(shown);
    let mut families = BTreeSet::new();
    for word in expressions.flat_map(words) {
        if word.contains(':') && !word.starts_with(':') {
            assert!(records.contains(word), "no rule records {word}");
        } else if PREFIXES.iter().any(|prefix| word.starts_with(prefix)) {
            let bare = ENDINGS.iter().find_map(|ending| word.strip_suffix(ending));
            let is_known = known.contains(word) || bare.is_some_and(|bare| known.contains(bare));
            assert!(is_known, "no family is called {word}");
            families.insert(word);
        }
    }
    assert!(families.len() > 30, "only {families:?} are looked at");
}

#[test]
fn every_alert_has_its_section_and_every_section_its_alert() {
    let rules = rules();
    let alerts: Vec<&str> = members(&rules, "alert").collect();
    let guide = text("docs/alerts.md");
    let sections: Vec<&str> = guide
        .lines()
        .filter_map(|line| line.strip_prefix("### "))
        .collect();
    assert_eq!(sections, alerts, "the guide has the order of the rules");
    for section in guide.split("\n### ").skip(1) {
        let (name, section) = section.split_once('\n').expect("more than a title");
        for part in ["**Means**", "**See**", "**Do**"] {
            assert!(section.contains(part), "{name} lacks {part}");
        }
        // `verification/system/alerts` runs them while the alert fires.
        let commands = commands(section);
        assert!(!commands.is_empty(), "{name} has no commands");
        for (commands, output) in commands {
            let blank = |line: &str| line.trim_matches(['…', ' ']).is_empty();
            assert!(!commands.trim().is_empty(), "{name}");
            assert!(!output.lines().all(blank), "{name} compares nothing");
        }
    }
    for rule in rules.iter().filter(|rule| rule["alert"].is_string()) {
        let (name, notes) = (
            rule["alert"].as_str().expect("a name"),
            &rule["annotations"],
        );
        let anchor = format!("docs/alerts.md#{}", name.to_lowercase());
        assert_eq!(notes["runbook"].as_str(), Some(&*anchor), "{name}");
        assert!(
            notes["summary"].is_string() && rule["for"].is_string(),
            "{name}"
        );
        let severity = rule["labels"]["severity"].as_str();
        assert!(matches!(severity, Some("critical" | "warning")), "{name}");
    }
}

#[test]
fn promtool_accepts_the_rules_and_their_tests_pass() {
    let Some(promtool) = tools::find("promtool") else {
        let why = "no promtool; run scripts/setup prometheus";
        return skipped("promtool with the rules of alerts", why);
    };
    for (kind, file) in [("check", "rules.yaml"), ("test", "rules_test.yaml")] {
        let file = checkout().join("deploy/prometheus").join(file);
        let output = tools::run(Command::new(&promtool).args([kind, "rules"]).arg(&file));
        let (said, error) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert!(
            output.status.success(),
            "promtool {kind} rules: {said}{error}"
        );
    }
}
