//! Runs of `ringwatch load`, and what must hold after each of them.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::{Api, Client};
use serde_json::Value;
use tokio::process::{Child, Command};

use crate::support::server::Server;

/// No small load takes longer.
const LOAD_SECONDS_MAX: u64 = 120;
/// Watches the digits of a table: three behind the point for small values.
const TABLE_PRECISION: f64 = 0.06;

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

/// What it has said when it has ended.
pub(super) async fn end(child: Child) -> Output {
    let at_most = Duration::from_secs(LOAD_SECONDS_MAX);
    let ended = tokio::time::timeout(at_most, child.wait_with_output()).await;
    ended.expect("an end in time").expect("output")
}

/// Runs a scenario to its end, which must be a success. The table must say what the JSON says, and
/// the namespace must be gone. Gives the JSON.
pub(super) async fn passes(server: &mut Server, arguments: &[&str]) -> Value {
    let client = server.client().await;
    let kubeconfig = server.kubeconfig();
    let saved = server.folder().join("outcome.json");
    let mut all = vec!["--save", saved.to_str().expect("a path")];
    all.extend_from_slice(arguments);
    let output = end(start(&all, &[("KUBECONFIG", &kubeconfig)])).await;
    let table = String::from_utf8(output.stdout).expect("text");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}\n{table}");
    let json = std::fs::read(&saved).expect("the outcome");
    let outcome: Value = serde_json::from_slice(&json).expect("JSON");
    assert_eq!(outcome["verdict"]["is"], "passed", "{table}");
    assert!(table.contains("\npassed: "), "{table}");
    agree(&table, &outcome);
    assert_eq!(left_behind(&client).await, Vec::<String>::new());
    outcome
}

/// Every figure of the outcome stands in the table with its median and range.
fn agree(table: &str, outcome: &Value) {
    let summary = outcome["summary"].as_object().expect("a summary");
    assert!(!summary.is_empty(), "{table}");
    for (name, figure) in summary {
        let row = table
            .lines()
            .find_map(|line| line.trim_start().strip_prefix(&format!("{name} ")));
        let row = row.unwrap_or_else(|| panic!("{name} is not in\n{table}"));
        let told: Vec<f64> = row
            .split_whitespace()
            .map_while(|word| word.replace(',', "").parse().ok())
            .collect();
        let kept = ["median", "min", "max"].map(|field| figure[field].as_f64().expect("a number"));
        assert_eq!(told.len(), kept.len(), "{row}");
        for (told, kept) in told.iter().zip(kept) {
            let off = (told - kept).abs();
            let rounding = if kept >= 1_000.0 {
                0.5
            } else {
                TABLE_PRECISION
            };
            assert!(off <= rounding, "{name}: {told} for {kept}");
        }
        let unit = figure["unit"].as_str().expect("a unit");
        assert!(row.contains(unit), "{unit} is not in {row}");
    }
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
