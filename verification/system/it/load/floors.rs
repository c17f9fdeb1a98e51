//! `ringwatch load verify` against servers that break no promise, since they refuse what could show it.

use http::StatusCode;

use super::fault::Fault;
use super::loading::Loaded;
use super::proxy::Proxy;
use crate::support::server::Server;

/// One watch of so many is refused. A single watcher that is refused lists and watches again, so it is
/// every resume that is refused.
const ONE_WATCH_OF: usize = 2;

/// Runs it through a proxy with this fault, and expects the run to fail for these reasons.
async fn falls_short(fault: Fault, flags: &[&str], reasons: &[&str]) {
    let (_server, client) = Server::ready(&["--storage-backend", "memory"]).await;
    let proxy = Proxy::start(client, fault, ONE_WATCH_OF, 0).await;
    let url = proxy.url();
    let arguments = ["verify", "--duration", "8s", "--objects", "10"];
    let verified = Loaded::by(&["--server", &url], &[&arguments, flags].concat()).await;
    let found = verified.reasons().join("\n");
    assert_eq!(verified.code, Some(1), "{fault:?}: {}", verified.table);
    for reason in reasons {
        let reason = format!("run 1: {reason}");
        assert!(
            found.contains(&reason),
            "{fault:?}: {reason} is not in\n{found}"
        );
    }
}

#[tokio::test]
async fn a_server_that_refuses_every_write_fails() {
    for status in [
        StatusCode::FORBIDDEN,
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::INTERNAL_SERVER_ERROR,
    ] {
        let reasons = [
            "few-writes: all writers: 0 of 800 writes were acknowledged, at least 16 must be",
            "few-writes: creations in JSON: 0 of ",
            "few-writes: creations in protobuf: 0 of ",
        ];
        falls_short(Fault::RefuseWrites(status), &[], &reasons).await;
    }
}

#[tokio::test]
async fn a_server_that_refuses_deletions_fails() {
    let reasons = ["few-writes: deletions in JSON: 0 of "];
    falls_short(Fault::RefuseDeletions, &[], &reasons).await;
}

#[tokio::test]
async fn a_server_that_resumes_no_watch_fails() {
    // The third is the only one that comes back.
    let reasons =
        ["few-resumes: watcher resumed-0: 0 of 4 resumes were granted, at least 1 must be"];
    falls_short(Fault::RefuseWatches, &["--watchers", "3"], &reasons).await;
}

#[tokio::test]
async fn a_server_that_sends_no_events_fails() {
    let reasons = ["few-events: watcher everything-0: 0 of "];
    falls_short(Fault::EndWatches, &["--watchers", "1"], &reasons).await;
}

#[tokio::test]
async fn a_server_that_answers_no_lists_fails() {
    let reasons = [
        "few-reads: lists of any state: 0 of 5 were answered, at least 1 must be",
        "few-reads: lists of an exact revision: 0 of 5 were answered, at least 1 must be",
    ];
    falls_short(Fault::RefuseLists, &[], &reasons).await;
}
