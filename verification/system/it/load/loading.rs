//! Runs of `ringwatch load`, and what must hold after each of them.

use std::path::Path;
use std::process::{Output, Stdio};

use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::{Api, Client};
use ringwatch_testing::eventually::DEADLINE;
use serde_json::Value;
use tokio::process::{Child, Command};

/// A load that has begun.
pub(super) fn start(arguments: &[&str], environment: &[(&str, &Path)]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_ringwatch"))
        .arg("load")
        .args(arguments)
        .env_remove("KUBECONFIG")
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the binary")
}

/// Waits for the end and returns the output.
pub(super) async fn end(child: Child) -> Output {
    let ended = tokio::time::timeout(DEADLINE, child.wait_with_output()).await;
    ended.expect("an end in time").expect("output")
}

/// A load that has ended with an outcome.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) code: Option<i32>,
    /// The printed table.
    pub(super) table: String,
    /// The saved outcome.
    pub(super) outcome: Value,
}

impl Loaded {
    /// Runs a scenario against what these flags name. What it prints must be what it saves.
    pub(super) async fn by(target: &[&str], arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let saved = folder.path().join("outcome.json");
        let saved = saved.to_str().expect("a path");
        let all = [target, arguments, &["--save", saved]].concat();
        let output = end(start(&all, &[])).await;
        let errors = String::from_utf8_lossy(&output.stderr);
        let table = String::from_utf8(output.stdout).expect("text");
        let json = std::fs::read(saved);
        let json = json.unwrap_or_else(|error| panic!("{arguments:?}: {error}: {errors}"));
        let shown = |flags: &[&str]| start(&[&["show", saved], flags].concat(), &[]);
        let [again, as_json] = [end(shown(&[])).await, end(shown(&["--json"])).await];
        assert_eq!(String::from_utf8_lossy(&again.stdout), table);
        assert_eq!(again.status.code(), output.status.code(), "{table}");
        assert_eq!(as_json.stdout, json, "{table}");
        let loaded = Self {
            code: output.status.code(),
            outcome: serde_json::from_slice(&json).expect("JSON"),
            table,
        };
        loaded.agrees();
        loaded
    }

    /// Everything came. Gives the outcome.
    pub(super) fn passed(self) -> Value {
        let Self {
            code,
            table,
            outcome,
        } = self;
        assert_eq!(code, Some(0), "{table}");
        assert_eq!(outcome["verdict"]["is"], "passed", "{table}");
        assert!(table.contains("\npassed: "), "{table}");
        outcome
    }

    /// The reasons of a failure.
    pub(super) fn reasons(&self) -> Vec<&str> {
        let reasons = self.outcome["verdict"]["reasons"].as_array();
        let reasons = reasons.map(Vec::as_slice).unwrap_or_default();
        reasons.iter().filter_map(Value::as_str).collect()
    }

    /// Every figure of the outcome stands in the table: its median and range, or the value of the only
    /// run.
    fn agrees(&self) {
        let Self { table, outcome, .. } = self;
        let runs = outcome["runs"].as_array().expect("runs").len();
        let told: &[&str] = match runs {
            1 => &["median"],
            _ => &["median", "min", "max"],
        };
        let summary = outcome["summary"].as_object().expect("a summary");
        assert!(!summary.is_empty(), "{table}");
        for (name, figure) in summary {
            let row = table
                .lines()
                .find_map(|line| line.strip_prefix(&format!("  {name}  ")));
            let row = row.unwrap_or_else(|| panic!("{name} is not in\n{table}"));
            let words: Vec<&str> = row.split_whitespace().collect();
            for (word, field) in words.iter().zip(told) {
                let kept = figure[field].as_f64().expect("a number");
                assert!(is_rounded(word, kept), "{name}: {word} for {kept}");
            }
            let unit = figure["unit"].as_str().expect("a unit");
            let better = match figure["better"].as_str() {
                Some("lower") => "less",
                Some("higher") => "more",
                other => other.map(|_| "").expect("a direction"),
            };
            let rest = words[told.len()..].join(" ");
            assert_eq!(rest, format!("{unit} {better}").trim(), "{row}");
        }
    }
}

/// Returns true if a printed number is the saved one, to its last digit.
fn is_rounded(word: &str, kept: f64) -> bool {
    let digits = word.split_once('.').map_or(0, |(_, behind)| behind.len());
    let told: f64 = word.replace(',', "").parse().expect("a number");
    (told - kept).abs() <= 0.5001 * 0.1_f64.powi(i32::try_from(digits).expect("digits"))
}

/// The namespaces of loads.
pub(super) async fn left_behind(client: &Client) -> Vec<String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let listed = namespaces.list(&ListParams::default()).await;
    let names = listed.expect("namespaces").items.into_iter();
    let names = names.filter_map(|namespace| namespace.metadata.name);
    names.filter(|name| name.contains("load")).collect()
}

/// The median of a figure.
pub(super) fn median(outcome: &Value, figure: &str) -> f64 {
    let median = outcome["summary"][figure]["median"].as_f64();
    median.unwrap_or_else(|| panic!("no {figure} in {}", outcome["summary"]))
}
