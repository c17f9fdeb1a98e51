//! `ringwatch load verify` against real servers, and against one that breaks its promises.

use std::path::Path;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::PostParams;
use kube::runtime::conditions;
use kube::runtime::wait::await_condition;
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use super::fault::Fault;
use super::loading::{Loaded, median};
use super::proxy::Proxy;
use crate::support::etcd::Etcd;
use crate::support::requests;
use crate::support::server::Server;

/// One event of so many is changed.
const ONE_EVENT_OF: usize = 10_000;
/// One list of so many is an old one.
const ONE_LIST_OF: usize = 4;
/// The number of events before the first one that is changed.
const EVENTS_BEFORE: usize = 100;

/// Runs it with the target that these flags name.
async fn verify(target: &[&str], flags: &[&str]) -> Loaded {
    Loaded::by(target, &[&["verify"], flags].concat()).await
}

async fn verify_server(server: &mut Server, flags: &[&str]) -> Loaded {
    server.client().await;
    let kubeconfig = path(&server.kubeconfig());
    verify(&["--kubeconfig", &kubeconfig], flags).await
}

fn path(path: &Path) -> String {
    path.to_str().expect("a path").to_owned()
}

/// Nothing is wrong, and much has happened. Gives the outcome.
fn has_passed(verified: Loaded) -> Value {
    let outcome = verified.passed();
    for figure in [
        "writes done",
        "writes refused",
        "lists",
        "watches resumed",
        "watches with initial events",
        "bookmarks",
    ] {
        assert!(median(&outcome, figure) > 0.0, "no {figure}");
    }
    outcome
}

#[tokio::test]
async fn an_embedded_server_keeps_its_promises() {
    let mut server = Server::start(&["--storage-backend", "memory"]);
    let flags = ["--duration", "6s", "--objects", "10"];
    has_passed(verify_server(&mut server, &flags).await);
}

#[tokio::test]
async fn a_server_over_etcd_keeps_its_promises() {
    let Some(etcd) = Etcd::start("a_server_over_etcd_keeps_its_promises") else {
        return;
    };
    let mut server = Server::start(&["--etcd-servers", &etcd.endpoint()]);
    let flags = ["--duration", "6s", "--objects", "10", "--http", "2"];
    has_passed(verify_server(&mut server, &flags).await);
}

/// A client that is told to open another connection sends its next request there, and none remains without an answer.
#[tokio::test]
async fn requests_are_not_lost_when_connections_are_told_to_end() {
    let flags = ["--storage-backend=memory", "--goaway-chance=0.02"];
    let mut server = Server::start(&flags);
    let flags = ["--duration", "6s", "--objects", "10", "--http", "2"];
    let outcome = verify_server(&mut server, &flags).await.passed();
    assert_eq!(median(&outcome, "writes without answer"), 0.0);
}

/// Returns how many watches of secrets the server has begun.
async fn watches(server: &mut Server) -> u64 {
    let client = server.client().await;
    let metrics = requests::text(&client, "/metrics").await;
    let of_watches = metrics.lines().filter(|line| {
        let is_count = line.starts_with("apiserver_request_total{");
        is_count && line.contains("resource=\"secrets\"") && line.contains("verb=\"WATCH\"")
    });
    let values = of_watches.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
    values.sum()
}

#[tokio::test]
async fn two_servers_over_one_etcd_keep_their_promises_together() {
    let Some(etcd) = Etcd::start("two_servers_over_one_etcd_keep_their_promises_together") else {
        return;
    };
    let tokens = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(tokens.path(), "token,admin,1,system:masters\n").expect("a file");
    let tokens = path(tokens.path());
    let flags = [
        "--etcd-servers",
        &etcd.endpoint(),
        "--token-auth-file",
        &tokens,
    ];
    let (mut one, mut other) = (Server::start(&flags), Server::start(&flags));
    one.client().await;
    other.client().await;
    let [first, second] = [&one, &other].map(|it| format!("https://127.0.0.1:{}", it.port()));
    let target = [
        "--server",
        &first,
        "--also-server",
        &second,
        "--token",
        "token",
    ];
    let target = [&target[..], &["--insecure-skip-tls-verify"]].concat();
    has_passed(verify(&target, &["--duration", "6s", "--objects", "10"]).await);
    for server in [&mut one, &mut other] {
        assert!(watches(server).await > 0, "nobody watched one of them");
    }
}

#[tokio::test]
async fn custom_resources_keep_the_promises() {
    let (mut server, client) = Server::ready(&["--storage-backend", "memory"]).await;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "selectableFields": [{"jsonPath": ".type"}],
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "type": {"type": "string"}}}}}],
        },
    });
    let definition = serde_json::from_value(definition).expect("a definition");
    let definitions = Api::<CustomResourceDefinition>::all(client);
    let created = definitions
        .create(&PostParams::default(), &definition)
        .await;
    created.expect("created");
    let established = conditions::is_crd_established();
    let established = await_condition(definitions, "widgets.example.com", established);
    let established = tokio::time::timeout(DEADLINE, established).await;
    established.expect("established in time").expect("a watch");
    let flags = [
        "--resource",
        "widgets.v1.example.com",
        "--watchers-only",
        "watch-list",
    ];
    let flags = [&flags[..], &["--duration", "6s", "--objects", "10"]].concat();
    let outcome = verify_server(&mut server, &flags).await.passed();
    for figure in ["writes done", "lists", "watches with initial events"] {
        assert!(median(&outcome, figure) > 0.0, "no {figure}");
    }
}

#[tokio::test]
async fn a_server_that_is_killed_keeps_its_promises() {
    let (mut server, _) = Server::ready(&[]).await;
    let (asked, done) = (server.folder().join("asked"), server.folder().join("done"));
    let fault = format!(
        "at=2s cmd=touch {}; until [ -e {} ]; do sleep 0.05; done",
        path(&asked),
        path(&done)
    );
    let kubeconfig = path(&server.kubeconfig());
    let target = ["--kubeconfig", &kubeconfig];
    let flags = ["--duration", "6s", "--objects", "10", "--fault", &fault];
    let killing = async {
        eventually(DEADLINE, "the command is run", async || asked.exists()).await;
        server.kill();
        server.start_again();
        std::fs::write(&done, "").expect("a file");
    };
    let (verified, ()) = tokio::join!(verify(&target, &flags), killing);
    let outcome = has_passed(verified);
    assert!(median(&outcome, "watches broken") > 0.0, "nobody noticed");
}

/// The durations of runs, each of which is tried if the one before had no place for a fault: the machine decides which
/// pages and events come in a time.
const DURATIONS: [&str; 3] = ["8s", "20s", "50s"];

/// Runs it through a proxy that plants this fault, and expects the rule to be named.
async fn is_named(fault: Fault, rule: &str) {
    let one_of = if fault.is_of_reads() {
        ONE_LIST_OF
    } else {
        ONE_EVENT_OF
    };
    for duration in DURATIONS {
        let (_server, client) = Server::ready(&["--storage-backend", "memory"]).await;
        let proxy = Proxy::start(client, fault, one_of, EVENTS_BEFORE).await;
        let target = ["--server", &proxy.url()];
        let flags = ["--duration", duration, "--rate", "300", "--objects", "10"];
        let verified = verify(&target, &flags).await;
        let (came, planted) = proxy.counts();
        let reasons = verified.reasons().join("\n");
        eprintln!("{fault:?}: {planted} planted in {came} within {duration}\n{reasons}");
        if planted == 0 {
            continue;
        }
        assert_eq!(verified.code, Some(1), "{reasons}");
        let named = format!("run 1: {rule}: ");
        assert!(reasons.contains(&named), "{planted} planted:\n{reasons}");
        let evidence = reasons.lines().filter(|line| line.starts_with("    "));
        assert!(evidence.count() > 1, "no history is shown:\n{reasons}");
        return;
    }
    panic!("nothing planted in {DURATIONS:?}");
}

#[tokio::test]
async fn a_proxy_that_does_nothing_is_not_accused() {
    let (_server, client) = Server::ready(&["--storage-backend", "memory"]).await;
    let proxy = Proxy::start(client, Fault::Nothing, ONE_EVENT_OF, EVENTS_BEFORE).await;
    let flags = ["--duration", "4s", "--objects", "10"];
    has_passed(verify(&["--server", &proxy.url()], &flags).await);
}

#[tokio::test]
async fn a_dropped_event_is_named() {
    is_named(Fault::DropEvent, "no-gap").await;
}

#[tokio::test]
async fn a_repeated_event_is_named() {
    is_named(Fault::DuplicateEvent, "no-duplicate").await;
}

#[tokio::test]
async fn swapped_events_are_named() {
    is_named(Fault::SwapEvents, "ordered").await;
}

#[tokio::test]
async fn a_delayed_event_is_named() {
    is_named(Fault::DelayEvent, "ordered").await;
}

#[tokio::test]
async fn an_early_bookmark_is_named() {
    is_named(Fault::EarlyBookmark, "bookmark-early").await;
}

#[tokio::test]
async fn a_wrong_type_is_named() {
    is_named(Fault::WrongType, "selector-transition").await;
}

#[tokio::test]
async fn a_stale_list_is_named() {
    is_named(Fault::StaleList, "stale-read").await;
}

#[tokio::test]
async fn a_stale_get_is_named() {
    is_named(Fault::StaleGet, "linearizable").await;
}

#[tokio::test]
async fn a_page_of_another_state_is_named() {
    is_named(Fault::MixedPages, "mixed-pages").await;
}

#[tokio::test]
async fn a_page_that_hides_its_state_is_named() {
    is_named(Fault::ForgedPage, "snapshot").await;
}

#[tokio::test]
async fn a_selection_by_type_that_is_ignored_is_named() {
    is_named(Fault::IgnoredType, "snapshot").await;
}
