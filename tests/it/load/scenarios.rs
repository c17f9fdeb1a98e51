//! Every scenario, small.

use std::time::Duration;

use super::loading::{end, left_behind, median, passes, start};
use crate::support::etcd::Etcd;
use crate::support::server::Server;

/// How long the runs of a small load take.
const SMALL: [&str; 3] = ["--runs=2", "--duration=1s", "--warm-up=500ms"];

/// How often a condition is looked at, and how many times at most: half a minute.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const LOOKS_MAX: u32 = 600;

async fn small(server: &mut Server, arguments: &[&str]) -> serde_json::Value {
    passes(server, &[&SMALL, arguments].concat()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fanout_in_every_form() {
    let mut server = Server::start(&[]);
    for (http, encoding) in [
        ("1", "json"),
        ("2", "json"),
        ("1", "protobuf"),
        ("2", "protobuf"),
    ] {
        let form = ["--http", http, "--encoding", encoding, "--streams=8"];
        let fanout = ["fanout", "--watchers=20", "--rate=40"];
        let outcome = small(&mut server, &[&form[..], &fanout].concat()).await;
        let run = &outcome["runs"][0];
        assert_eq!(run["received"], 20 * 40, "{http} {encoding}");
        assert_eq!(outcome["setting"]["encoding"], encoding);
        // The server adds what it may; what is asked for is met closely.
        let off = (median(&outcome, "event size") - 1_024.0).abs();
        assert!(off < 16.0, "{http} {encoding}: {off} bytes off");
        assert!(median(&outcome, "delivery p99") > 0.0);
        assert!(median(&outcome, "server memory") > 0.0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bursts_drain() {
    let mut server = Server::start(&[]);
    let burst = ["burst", "--watchers=10", "--writes=16", "--every=250ms"];
    let outcome = small(&mut server, &burst).await;
    assert_eq!(outcome["runs"][0]["received"], 4 * 16 * 10);
    assert!(median(&outcome, "drain max") >= median(&outcome, "drain p50"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_watchers_are_told_the_next_write() {
    let mut server = Server::start(&[]);
    let outcome = small(&mut server, &["idle", "--watchers=15"]).await;
    // One write a run, to see that all of them still watch.
    assert_eq!(outcome["runs"][1]["received"], 15);
    assert!(outcome["summary"]["memory per watcher"].is_object());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_write_is_watched() {
    let mut server = Server::start(&[]);
    for encoding in ["json", "protobuf"] {
        let write = ["write", "--rate=30", "--encoding", encoding];
        let outcome = small(&mut server, &write).await;
        // Creates, updates and deletes, each answered and watched.
        assert_eq!(outcome["runs"][1]["received"], 3 * 10 * 2, "{encoding}");
        for verb in ["create", "update", "delete"] {
            assert!(median(&outcome, &format!("{verb} p50")) > 0.0);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_in_every_form() {
    let mut server = Server::start(&[]);
    let outcome = small(&mut server, &["list", "--objects=100", "--page=30"]).await;
    for form in ["rv=0", "consistent", "exact", "paged"] {
        for encoding in ["JSON", "protobuf"] {
            assert!(median(&outcome, &format!("list {form} {encoding} p50")) > 0.0);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gets_on_a_schedule() {
    let mut server = Server::start(&[]);
    let outcome = small(&mut server, &["get", "--rate=50"]).await;
    assert_eq!(outcome["runs"][0]["received"], 50);
    assert_eq!(outcome["runs"][0]["latency"]["count"], 50);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn selective_watchers_get_their_own() {
    let mut server = Server::start(&[]);
    for encoding in ["json", "protobuf"] {
        let selective = ["selective", "--watchers=12", "--pods=5", "--rate=40"];
        let outcome = [&selective[..], &["--encoding", encoding]].concat();
        let outcome = small(&mut server, &outcome).await;
        // Each write concerns one watcher.
        assert_eq!(outcome["runs"][0]["received"], 40, "{encoding}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stalled_get_everything() {
    let mut server = Server::start(&[]);
    for http in ["1", "2"] {
        let slow = [
            "slow",
            "--watchers=8",
            "--stalled=4",
            "--rate=40",
            "--http",
            http,
        ];
        let outcome = small(&mut server, &slow).await;
        assert_eq!(outcome["runs"][1]["received"], 40 * (8 + 4), "{http}");
        assert!(median(&outcome, "delivery p99, stalled over none") > 0.0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_who_come_back_get_what_they_missed() {
    let mut server = Server::start(&[]);
    for http in ["1", "2"] {
        let resume = ["resume", "--watchers=15", "--behind=20", "--http", http];
        let outcome = small(&mut server, &[&resume[..], &["--streams=4"]].concat()).await;
        assert_eq!(outcome["runs"][1]["received"], 15 * 20, "{http}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn storms_sync_everybody() {
    let mut server = Server::start(&[]);
    for encoding in ["json", "protobuf"] {
        let storm = [
            "storm",
            "--clients=6",
            "--objects=50",
            "--encoding",
            encoding,
        ];
        let outcome = small(&mut server, &storm).await;
        assert_eq!(outcome["runs"][1]["received"], 2 * 6, "{encoding}");
        assert!(median(&outcome, "watch-list p99") > 0.0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_loses_nothing() {
    let mut server = Server::start(&[]);
    server.client().await;
    let restarted = server.folder().join("restarted");
    let command = format!(
        "touch {0}; while test -e {0}; do sleep 0.05; done",
        restarted.display()
    );
    let kubeconfig = server.kubeconfig();
    let saved = server.folder().join("outcome.json");
    let mut arguments = vec!["--save", saved.to_str().expect("a path"), "--runs=1"];
    arguments.extend([
        "--duration=4s",
        "--warm-up=500ms",
        "restart",
        "--watchers=10",
    ]);
    arguments.extend(["--rate=20", "--command", &command]);
    let child = start(&arguments, &[("KUBECONFIG", &kubeconfig)]);
    let restarting = async {
        let mut looks = 0;
        while !restarted.exists() {
            looks += 1;
            assert!(looks < LOOKS_MAX, "the command was not run");
            tokio::time::sleep(LOOK_EVERY).await;
        }
        server.kill();
        server.start_again();
        // The command ends when the file is gone.
        std::fs::remove_file(&restarted).expect("the file");
    };
    let (output, ()) = tokio::join!(end(child), restarting);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}{text}");
    let outcome = std::fs::read(&saved).expect("an outcome");
    let outcome: serde_json::Value = serde_json::from_slice(&outcome).expect("JSON");
    assert_eq!(outcome["runs"][0]["received"], 10 * 80);
    let client = server.client().await;
    assert_eq!(left_behind(&client).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fanout_over_etcd() {
    let Some(etcd) = Etcd::start("load fanout over etcd") else {
        return;
    };
    let mut server = Server::start(&["--etcd-servers", &etcd.endpoint()]);
    let outcome = small(&mut server, &["fanout", "--watchers=20", "--rate=40"]).await;
    assert_eq!(outcome["runs"][1]["received"], 20 * 40);
}
