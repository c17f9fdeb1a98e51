//! The metrics of the process, of the build and of the memory budget.

use std::fs::File;
use std::hint::black_box;
use std::time::{SystemTime, UNIX_EPOCH};

use super::*;

#[tokio::test]
async fn the_process_shows_what_it_takes() {
    let fixture = Fixture::start(InProcessServer::builder()).await;
    let before = fixture.scrape().await;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970");
    let started = before.value("process_start_time_seconds", &[]);
    assert!(
        (now.as_secs_f64() - 600.0..=now.as_secs_f64()).contains(&started),
        "{started}"
    );
    let files: Vec<File> = (0..50)
        .map(|_| File::open("/dev/null").expect("a file"))
        .collect();
    let memory = vec![1_u8; 64 << 20];
    let larger = fixture.scrape().await;
    let shown = |family| larger.value(family, &[]);
    assert!(shown("process_max_fds") > shown("process_open_fds"));
    assert!(shown("process_virtual_memory_bytes") > shown("process_resident_memory_bytes"));
    let grew = |family| larger.value(family, &[]) - before.value(family, &[]);
    // The server itself may close some meanwhile.
    assert!(grew("process_open_fds") > 25.0, "{}", larger.0);
    assert!(grew("process_resident_memory_bytes") > 32e6, "{}", larger.0);
    drop((black_box(memory), files));
    let cpu = |scrape: &Scrape| scrape.value("process_cpu_seconds_total", &[]);
    fixture
        .until(|now| {
            black_box((0..100_000_u64).sum::<u64>());
            cpu(now) > cpu(&before)
        })
        .await;
}

#[tokio::test]
async fn the_expiry_of_the_certificate_to_be_replaced_first_is_shown() {
    let fixture = Fixture::start(InProcessServer::builder()).await;
    let scrape = fixture.scrape().await;
    let family = "ringwatch_serving_certificate_expiration_timestamp_seconds";
    let (until, since) = (
        scrape.value(family, &[]),
        scrape.value("process_start_time_seconds", &[]),
    );
    // Generated certificates are valid for a year.
    let days = (until - since) / 86_400.0;
    assert!((360.0..370.0).contains(&days), "{days}");
    let family = "ringwatch_serving_certificate_replacement_timestamp_seconds";
    let days = (until - scrape.value(family, &[])) / 86_400.0;
    assert!((6.9..7.1).contains(&days), "{days}");
}

#[tokio::test]
async fn the_build_is_that_of_the_version() {
    let fixture = Fixture::start(InProcessServer::builder()).await;
    let (_, version) = fixture.get("/version").await;
    let version: Value = serde_json::from_slice(&version).expect("JSON");
    let labels = [
        ("major", "major"),
        ("minor", "minor"),
        ("git_version", "gitVersion"),
        ("git_commit", "gitCommit"),
        ("git_tree_state", "gitTreeState"),
        ("build_date", "buildDate"),
        ("go_version", "goVersion"),
        ("compiler", "compiler"),
        ("platform", "platform"),
    ];
    let labels = labels.map(|(label, member)| (label, version[member].as_str().expect("text")));
    let build = fixture
        .scrape()
        .await
        .value("kubernetes_build_info", &labels);
    assert!((build - 1.0).abs() < 1e-9, "{build} of {version}");
}

#[tokio::test]
async fn the_memory_budget_shows_its_limit_and_what_is_spent() {
    let fixture = Fixture::start(InProcessServer::builder().flag("--memory-budget-mib=64")).await;
    let before = fixture.scrape().await;
    let limit = before.value("ringwatch_memory_limit_bytes", &[]);
    assert!((limit - f64::from(64 << 20)).abs() < 1e-9, "{limit}");
    fixture.config_map("large", 500_000).await;
    let objects =
        |scrape: &Scrape| scrape.value("ringwatch_memory_bytes", &[("account", "objects")]);
    fixture
        .until(|now| objects(now) > objects(&before) + 500_000.0)
        .await;
}
