//! Every scenario, small.

use super::loading::{median, passes};
use crate::support::etcd::Etcd;
use crate::support::server::Server;

/// How long the runs of a small load take.
const SMALL: [&str; 3] = ["--runs=2", "--duration=1s", "--warm-up=500ms"];

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
async fn fanout_over_etcd() {
    let Some(etcd) = Etcd::start("load fanout over etcd") else {
        return;
    };
    let mut server = Server::start(&["--etcd-servers", &etcd.endpoint()]);
    let outcome = small(&mut server, &["fanout", "--watchers=20", "--rate=40"]).await;
    assert_eq!(outcome["runs"][1]["received"], 20 * 40);
}
