//! Every scenario, small, on both backends.

use std::collections::BTreeSet;
use std::path::Path;

use futures::StreamExt;
use ringwatch_observe::status::{STATE_PATH, ServerState};
use ringwatch_testing::eventually::{DEADLINE, eventually};
use ringwatch_tls::target::USER_AGENT;
use serde_json::Value;

use super::fault::Fault;
use super::loading::{Loaded, end, left_behind, median, start};
use super::proxy::Proxy;
use crate::support::etcd::Etcd;
use crate::support::requests;
use crate::support::server::Server;

/// The flags of a small load: the number of its runs, the time of each, and the time of the warm-up before it.
const SMALL: [&str; 3] = ["--runs=2", "--duration=600ms", "--warm-up=200ms"];
/// The number of small loads that share a server at a time.
const AT_ONCE: usize = 4;

/// A scenario with its flags, how often it is run with these, and what its outcome must be.
struct Case {
    scenario: &'static [&'static str],
    /// Flags of each load.
    forms: &'static [&'static [&'static str]],
    check: fn(&Value),
}

const JSON_AND_PROTOBUF: &[&[&str]] = &[&["--encoding=json"], &["--encoding=protobuf"]];
const ONE_AND_TWO: &[&[&str]] = &[&["--http=1"], &["--http=2", "--streams=4"]];

const CASES: &[Case] = &[
    Case {
        scenario: &["fanout", "--watchers=20", "--rate=40"],
        forms: &[
            &["--http=1", "--encoding=json"],
            &["--http=2", "--encoding=json", "--streams=8"],
            &["--http=1", "--encoding=protobuf"],
            &["--http=2", "--encoding=protobuf", "--streams=8"],
        ],
        check: |outcome| {
            received(outcome, 20 * 24);
            // The server adds what it may; what is asked for is met closely.
            let off = (median(outcome, "event size") - 1_024.0).abs();
            assert!(off < 16.0, "{off} bytes off");
            assert_eq!(outcome["summary"]["event size"]["better"], "neither");
            assert!(median(outcome, "delivery p99") > 0.0);
            assert!(median(outcome, "server memory") > 0.0);
        },
    },
    Case {
        scenario: &["burst", "--watchers=10", "--writes=16", "--every=200ms"],
        forms: &[&[]],
        check: |outcome| {
            received(outcome, 3 * 16 * 10);
            assert!(median(outcome, "drain max") >= median(outcome, "drain p50"));
        },
    },
    Case {
        scenario: &["idle", "--watchers=15"],
        forms: &[&[]],
        check: |outcome| {
            // One write a run, to see that all of them still watch.
            received(outcome, 15);
            assert!(median(outcome, "opening") > 0.0);
        },
    },
    Case {
        scenario: &["write", "--rate=50"],
        forms: JSON_AND_PROTOBUF,
        check: |outcome| {
            // Creates, updates and deletes, each answered and watched.
            received(outcome, 3 * 10 * 2);
            for verb in ["create", "update", "delete"] {
                assert!(median(outcome, &format!("{verb} p50")) > 0.0);
            }
        },
    },
    Case {
        scenario: &["list", "--objects=100", "--page=30"],
        forms: &[&[]],
        check: |outcome| {
            for form in ["rv=0", "consistent", "exact", "paged"] {
                for encoding in ["JSON", "protobuf"] {
                    assert!(median(outcome, &format!("list {form} {encoding} p50")) > 0.0);
                }
            }
        },
    },
    Case {
        scenario: &["get", "--rate=50"],
        forms: &[&[]],
        check: |outcome| {
            received(outcome, 30);
            assert_eq!(outcome["runs"][0]["latency"]["count"], 30);
        },
    },
    Case {
        scenario: &["renew", "--writers=3"],
        forms: JSON_AND_PROTOBUF,
        check: |outcome| assert!(median(outcome, "renewals") > 0.0),
    },
    Case {
        scenario: &["selective", "--watchers=12", "--pods=5", "--rate=40"],
        forms: JSON_AND_PROTOBUF,
        // Each write concerns one watcher.
        check: |outcome| received(outcome, 24),
    },
    Case {
        scenario: &["slow", "--watchers=8", "--stalled=4", "--rate=40"],
        forms: ONE_AND_TWO,
        check: |outcome| {
            received(outcome, 24 * (8 + 4));
            assert!(median(outcome, "delivery p99, stalled over none") > 0.0);
        },
    },
    Case {
        scenario: &["resume", "--watchers=15", "--behind=20"],
        forms: ONE_AND_TWO,
        check: |outcome| received(outcome, 15 * 20),
    },
    Case {
        scenario: &["storm", "--clients=6", "--objects=50"],
        forms: JSON_AND_PROTOBUF,
        check: |outcome| {
            received(outcome, 2 * 6);
            assert!(median(outcome, "watch-list p99") > 0.0);
        },
    },
];

/// Each run got so much.
fn received(outcome: &Value, events: u64) {
    let runs = outcome["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 2);
    assert!(runs.iter().all(|run| run["received"] == events), "{runs:?}");
}

/// All scenarios in all their forms, some at a time.
async fn all_pass(mut server: Server) {
    let client = server.client().await;
    let kubeconfig = server.kubeconfig();
    let target = ["--kubeconfig", text(&kubeconfig)];
    let forms = |case: &'static Case| case.forms.iter().map(move |form| (case, *form));
    let loads = CASES.iter().flat_map(forms).map(async |(case, form)| {
        let flags = [&SMALL, case.scenario, form].concat();
        let outcome = Loaded::by(&target, &flags).await.passed();
        eprintln!("{flags:?}");
        (case.check)(&outcome);
    });
    let loads = futures::stream::iter(loads).buffer_unordered(AT_ONCE);
    loads.collect::<()>().await;
    assert_eq!(left_behind(&client).await, Vec::<String>::new());
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path")
}

fn over(etcd: &Etcd) -> Server {
    Server::start(&["--etcd-servers", &etcd.endpoint()])
}

#[tokio::test]
async fn scenarios_on_the_embedded_store() {
    all_pass(Server::start(&[])).await;
}

#[tokio::test]
async fn scenarios_over_etcd() {
    if let Some(etcd) = Etcd::start("scenarios_over_etcd") {
        all_pass(over(&etcd)).await;
    }
}

/// Runs a fan-out through a proxy that plants one fault in its second run.
async fn is_found_out(client: kube::Client, fault: Fault, told: &str, flags: &[&str]) {
    // One of so many that it is the only one.
    let proxy = Proxy::start(client, fault, 100_000, 330).await;
    let target = ["--server", &proxy.url()];
    let length = ["--runs=2", "--duration=500ms", "--warm-up=100ms"];
    let fanout = ["fanout", "--watchers=10", "--rate=40"];
    let loaded = Loaded::by(&target, &[&length[..], &fanout, flags].concat()).await;
    let (came, planted) = proxy.counts();
    assert_eq!(planted, 1, "{fault:?} in {came}");
    assert_eq!(loaded.code, Some(1), "{}", loaded.table);
    assert!(loaded.table.contains("\nFAILED: "), "{}", loaded.table);
    let reasons = loaded.reasons();
    let of_second = |it: &&str| it.starts_with("run 2: ");
    assert!(reasons.iter().all(of_second), "{fault:?}: {reasons:?}");
    let says = |it: &&str| it.contains(told);
    assert!(reasons.iter().any(says), "{fault:?}: {reasons:?}");
    let figures = |run: usize| loaded.outcome["runs"][run]["figures"].as_object();
    let whole = figures(0).expect("figures");
    assert!(
        whole["delivery p99"]["value"].as_f64() > Some(0.0),
        "{whole:?}"
    );
    let broken = figures(1).expect("figures");
    let is_zero = |figure: &Value| figure["value"] == 0.0;
    assert!(broken.values().all(is_zero), "{broken:?}");
}

#[tokio::test]
async fn a_run_that_lost_an_event_scores_zero_and_says_so() {
    let (_server, client) = Server::ready(&["--storage-backend", "memory"]).await;
    let faults = [
        (Fault::DropEvent, "199 received of 200", &[][..]),
        // Nothing of such a run is measured against the floor.
        (Fault::DropEvent, "199 received of 200", &["--floor"]),
        (Fault::DuplicateEvent, "version", &[]),
        (Fault::SwapEvents, "version", &[]),
    ];
    let all = faults.map(|(fault, told, flags)| is_found_out(client.clone(), fault, told, flags));
    futures::future::join_all(all).await;
    assert_eq!(left_behind(&client).await, Vec::<String>::new());
}

/// The floor sends all that the server has sent, and its figures stand beside the server's.
#[tokio::test]
async fn the_floor_gets_everything_across_too() {
    let (server, client) = Server::ready(&["--storage-backend", "memory"]).await;
    let (kubeconfig, process) = (server.kubeconfig(), server.id().to_string());
    let target = ["--kubeconfig", text(&kubeconfig), "--pid", &process];
    let beside_floor = async |scenario: &[&str]| {
        let flags = [&SMALL, scenario, &["--floor"]].concat();
        Loaded::by(&target, &flags).await.passed()
    };
    let fanout = ["fanout", "--watchers=20", "--rate=40"];
    let protobuf = ["--http=2", "--streams=10", "--encoding=protobuf"];
    for form in [&[][..], &protobuf] {
        let outcome = beside_floor(&[&fanout, form].concat()).await;
        // What the floor sent again counts apart.
        received(&outcome, 20 * 24);
        assert!(median(&outcome, "floor CPU per delivery") > 0.0);
        assert!(median(&outcome, "floor delivery p99") > 0.0);
        assert!(outcome["summary"]["server CPU over floor"].is_object());
    }
    // An object is never shorter than its metadata.
    for size in ["--size=1024", "--size=1"] {
        let too_many = ["fanout", "--duration=1000s", "--rate=2000", size, "--floor"];
        let refused = end(start(&[&target[..], &too_many].concat(), &[])).await;
        let why = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{why}");
        assert!(why.contains("shorten --duration"), "{why}");
    }
    let burst = ["burst", "--watchers=10", "--writes=16", "--every=200ms"];
    received(&beside_floor(&burst).await, 3 * 16 * 10);
    let list = ["list", "--objects=100", "--page=30", "--write-rate=100"];
    let outcome = beside_floor(&list).await;
    for form in ["rv=0", "consistent", "exact", "paged"] {
        for encoding in ["JSON", "protobuf"] {
            let figure = format!("list {form} {encoding} floor CPU");
            assert!(median(&outcome, &figure) > 0.0);
        }
    }
    requests_beside_floor(&target).await;
    assert_eq!(left_behind(&client).await, Vec::<String>::new());
}

/// The floor answers requests of every kind, by either version of HTTP.
async fn requests_beside_floor(target: &[&str]) {
    let scenarios = [
        (
            &["get", "--rate=50"][..],
            &["get rv=0", "get consistent"][..],
        ),
        (&["write", "--rate=50"], &["create", "update", "delete"]),
        (&["renew", "--writers=3"], &["renew"]),
    ];
    for form in ONE_AND_TWO {
        for (scenario, names) in scenarios {
            let flags = [&SMALL[..], scenario, form, &["--floor"]].concat();
            let outcome = Loaded::by(target, &flags).await.passed();
            for name in names {
                assert!(median(&outcome, &format!("{name} floor CPU")) > 0.0);
                let ratio = format!("{name} server CPU over floor");
                assert!(outcome["summary"][&ratio].is_object(), "{outcome}");
            }
        }
    }
}

/// Whoever looks at the server sees who loads it, by either version of HTTP.
#[tokio::test]
async fn watches_tell_who_opens_them() {
    let (server, client) = Server::ready(&["--storage-backend", "memory"]).await;
    let kubeconfig = server.kubeconfig();
    let target = ["--kubeconfig", text(&kubeconfig)];
    for form in ONE_AND_TWO {
        let idle = ["--runs=1", "--duration=40ms", "idle", "--watchers=4"];
        let idle = Loaded::by(&target, &[form, &idle[..]].concat()).await;
        idle.passed();
    }
    let state: ServerState = client.request(requests::get(STATE_PATH)).await.unwrap();
    let watches = state.clients.iter().filter(|it| it.verb == "watch");
    let agents: BTreeSet<&str> = watches.map(|it| &*it.user_agent).collect();
    assert_eq!(agents, [USER_AGENT].into());
}

/// Writes beside lists are told of when they do not keep up with their rate.
#[tokio::test]
async fn late_writes_beside_lists_are_told() {
    let (server, _) = Server::ready(&["--storage-backend", "memory"]).await;
    let kubeconfig = server.kubeconfig();
    let target = ["--kubeconfig", text(&kubeconfig)];
    // Hundreds of writes within milliseconds.
    let length = ["--runs=1", "--duration=40ms"];
    let list = ["list", "--objects=20", "--write-rate=100000"];
    let outcome = Loaded::by(&target, &[&length[..], &list].concat()).await;
    let warnings = outcome.passed()["warnings"].to_string();
    assert!(warnings.contains(" late (p99)"), "{warnings}");
}

/// Exact lists go on though the server compacts what is older.
#[tokio::test]
async fn exact_lists_are_of_versions_that_are_not_compacted() {
    let memory = ["--storage-backend", "memory"];
    let compacting = ["--etcd-compaction-interval=4s"];
    let (server, _) = Server::ready(&[&memory[..], &compacting].concat()).await;
    let kubeconfig = server.kubeconfig();
    let target = ["--kubeconfig", text(&kubeconfig)];
    // The last run is after two intervals, and its lists are far shorter than one.
    let length = ["--runs=3", "--duration=4s"];
    let list = ["list", "--objects=20", "--write-rate=50"];
    Loaded::by(&target, &[&length[..], &list].concat())
        .await
        .passed();
}

/// A watch over HTTP/1.1 with nothing to tell takes no more, in KiB; a buffer that it does not need would be half as
/// much.
const IDLE_KIB_MAX: f64 = 16.0;

/// An idle watch takes little. Only a server that never had more than it has shows what watchers take, and only many of
/// them outweigh the mebibytes by which a server that has just started grows or shrinks by itself.
#[tokio::test]
async fn idle_watches_take_little_and_memory_that_was_freed_before_is_not_taken_for_less() {
    let (server, _) = Server::ready(&[]).await;
    let kubeconfig = server.kubeconfig();
    let process = server.id().to_string();
    let target = ["--kubeconfig", text(&kubeconfig), "--pid", &process];
    let idle = async |watchers| {
        let flags = [
            "--runs=1",
            "--duration=600ms",
            "idle",
            "--watchers",
            watchers,
        ];
        Loaded::by(&target, &flags).await.passed()
    };
    let fresh = idle("4000").await;
    let each = median(&fresh, "memory per watcher");
    assert!(each > 1.0 && each < IDLE_KIB_MAX, "{each} KiB: {fresh}");
    let again = idle("50").await;
    assert_eq!(again["summary"].get("memory per watcher"), None);
    let warnings = again["warnings"].to_string();
    assert!(warnings.contains("restart the server first"), "{warnings}");
}

/// The server is killed and started again by the command, and nothing is lost.
async fn a_restart_loses_nothing(mut server: Server) {
    server.client().await;
    let restarted = server.folder().join("restarted");
    let command = format!(
        "touch {0}; while test -e {0}; do sleep 0.05; done",
        restarted.display()
    );
    let kubeconfig = server.kubeconfig();
    let target = ["--kubeconfig", text(&kubeconfig)];
    let length = ["--runs=1", "--duration=3s", "--warm-up=200ms"];
    let restart = ["restart", "--watchers=10", "--rate=20", "--command"];
    let flags = [&length[..], &restart, &[&command]].concat();
    let restarting = async {
        eventually(DEADLINE, "the command is run", async || restarted.exists()).await;
        server.kill();
        server.start_again();
        // The command ends when the file is gone.
        std::fs::remove_file(&restarted).expect("the file");
    };
    let (loaded, ()) = tokio::join!(Loaded::by(&target, &flags), restarting);
    let outcome = loaded.passed();
    assert_eq!(outcome["runs"][0]["received"], 10 * 60);
    let client = server.client().await;
    assert_eq!(left_behind(&client).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_restart_on_the_embedded_store() {
    a_restart_loses_nothing(Server::start(&[])).await;
}

#[tokio::test]
async fn a_restart_over_etcd() {
    if let Some(etcd) = Etcd::start("a_restart_over_etcd") {
        a_restart_loses_nothing(over(&etcd)).await;
    }
}
