//! Collectors that are absent, refuse or hang cost spans and nothing else; and files that are wrong.

use std::net::SocketAddr;
use std::process::Command;

use ringwatch_server::InProcessServer;
use ringwatch_testing::reserved_port::ReservedPort;

use super::collector::{Collector, Manner};
use super::{CONFIG_MAPS, DEADLINE, ask, config, eventually, flag, start};
use crate::support::in_process::client;
use crate::support::requests;
use crate::support::server::Server;

/// The number of requests between two looks.
const ASKED_AT_ONCE: usize = 20;

/// The value of a sample of `/metrics`.
async fn sample(server: &InProcessServer, name: &str) -> u64 {
    let answer = requests::whole(server.answer(requests::get("/metrics")).await).await;
    let text = String::from_utf8_lossy(answer.body());
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.map_or(0, |value| value.trim().parse().unwrap())
}

/// Makes requests, all sampled, until the sample is there.
async fn ask_until(server: &InProcessServer, name: &str) {
    let admin = client(server).await;
    eventually(DEADLINE, format!("{name} rises"), async || {
        for _ in 0..ASKED_AT_ONCE {
            assert_eq!(ask(&admin, "GET", CONFIG_MAPS, "", "").await, 200);
        }
        sample(server, name).await > 0
    })
    .await;
}

#[tokio::test]
async fn a_collector_that_hangs_fills_the_queue_and_holds_no_request_up() {
    let collector = Collector::start(Manner::Hangs).await;
    let file = config(collector.address, 1_000_000);
    let server = start(&file, |it| it).await;
    ask_until(
        &server,
        "ringwatch_tracing_dropped_spans_total{reason=\"queue_full\"}",
    )
    .await;
}

#[tokio::test]
async fn spans_that_a_collector_refuses_are_counted() {
    let free = ReservedPort::new();
    let absent = SocketAddr::from(([127, 0, 0, 1], free.number()));
    let refusing = Collector::start(Manner::Refuses).await;
    for address in [absent, refusing.address] {
        let file = config(address, 1_000_000);
        let server = start(&file, |it| it).await;
        ask_until(
            &server,
            "ringwatch_tracing_dropped_spans_total{reason=\"export_failed\"}",
        )
        .await;
        assert_eq!(
            sample(&server, "ringwatch_tracing_exported_spans_total").await,
            0
        );
    }
}

#[tokio::test]
async fn spans_that_a_collector_takes_are_counted() {
    let collector = Collector::start(Manner::Takes).await;
    let file = config(collector.address, 1_000_000);
    let server = start(&file, |it| it).await;
    ask_until(&server, "ringwatch_tracing_exported_spans_total").await;
    assert!(!collector.all().is_empty());
}

#[tokio::test]
async fn a_collector_that_hangs_does_not_hold_the_end_up() {
    let collector = Collector::start(Manner::Hangs).await;
    let file = config(collector.address, 1_000_000);
    let (mut server, admin) = Server::ready(&["--storage-backend=memory", &flag(&file)]).await;
    assert_eq!(ask(&admin, "GET", CONFIG_MAPS, "", "").await, 200);
    drop(admin);
    server.stop().await;
    let log = server.log();
    let lines = log
        .lines()
        .filter(|it| it.contains("the last spans could not be exported"));
    assert_eq!(lines.count(), 1, "{log}");
}

#[test]
fn wrong_files_are_one_line_that_names_the_field() {
    let folder = tempfile::tempdir().unwrap();
    for (content, words) in [
        (
            "samplingRatePerMillion: -1",
            "samplingRatePerMillion: Invalid value: -1",
        ),
        (
            "endpoint: https://a:1",
            "endpoint: Invalid value: \"https://a:1\"",
        ),
        ("samplingRate: 5", "samplingRate"),
        ("endpoint: [1]", "endpoint"),
    ] {
        let path = folder.path().join("tracing.yaml");
        let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n";
        std::fs::write(&path, format!("{head}{content}\n")).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_ringwatch"))
            .args([
                "serve",
                "--secure-port=0",
                "--storage-backend=memory",
                "--data-dir",
            ])
            .arg(folder.path().join("data"))
            .arg(format!("--tracing-config-file={}", path.display()))
            .output()
            .unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(error.contains(words), "{error}");
        assert!(error.contains("tracing.yaml"), "{error}");
    }
}
