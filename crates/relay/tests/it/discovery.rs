//! A front asks an upstream about resources: which answers count, and for how long.

use std::time::Duration;

use jiff::Timestamp;
use ringwatch::clock::Clock;
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::json;

use crate::front::{Fronted, LATER};
use crate::scripted::Scripted;

const VERSION: &str = "/apis/example.com/v1";
const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com";

/// A front of an upstream that has no resource yet.
async fn start() -> (Scripted, Fronted) {
    let upstream = Scripted::start(10, &[("a", 5)]).await;
    let clock = Clock::manual(Timestamp::UNIX_EPOCH);
    let fronted = Fronted::new(upstream.client_by(clock.clone()), clock);
    upstream.answers(VERSION, 404, "{}");
    (upstream, fronted)
}

impl Scripted {
    fn answers(&self, path: &str, status: u16, body: &str) {
        let answer = Some((status, body.to_owned()));
        self.script().answers.insert(path.to_owned(), answer);
    }

    fn never_answers(&self, path: &str) {
        self.script().answers.insert(path.to_owned(), None);
    }

    fn asked(&self, path: &str) -> usize {
        let script = self.script();
        script.asked.iter().filter(|it| *it == path).count()
    }

    /// Has the resource `things` from now on.
    fn has_things(&self, verbs: &[&str]) {
        let list = json!({"kind": "APIResourceList", "groupVersion": "example.com/v1", "resources": [
            {"name": "things", "kind": "Thing", "namespaced": false, "verbs": verbs}]});
        self.answers(VERSION, 200, &list.to_string());
        let definition = json!({"kind": "CustomResourceDefinition",
            "apiVersion": "apiextensions.k8s.io/v1",
            "metadata": {"name": "things.example.com", "uid": "1"},
            "spec": {"group": "example.com", "scope": "Cluster",
                "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}}}]},
            "status": {"storedVersions": ["v1"],
                "acceptedNames": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
                "conditions": [{"type": "Established", "status": "True"}, {"type": "NamesAccepted", "status": "True"}]}});
        self.answers(DEFINITION, 200, &definition.to_string());
    }
}

const ALL: [&str; 3] = ["get", "list", "watch"];

#[tokio::test]
async fn that_a_resource_is_not_there_is_not_kept() {
    let (upstream, fronted) = start().await;
    for asked in 1..4 {
        assert_eq!(fronted.caches("v1", "things").await, Ok(false));
        assert_eq!(upstream.asked(VERSION), asked);
    }
    upstream.has_things(&ALL);
    for _ in 0..5 {
        assert_eq!(fronted.caches("v1", "things").await, Ok(true));
    }
    assert_eq!(
        (upstream.asked(VERSION), upstream.asked(DEFINITION)),
        (4, 1)
    );
    assert_eq!(fronted.caches("v1", "others").await, Ok(false));
}

#[tokio::test]
async fn what_cannot_be_followed_is_not_cached() {
    let (upstream, fronted) = start().await;
    for verbs in [&["get", "list"][..], &["create"], &["list", "watch"]] {
        upstream.has_things(verbs);
        fronted.clock.advance(LATER);
        assert_eq!(fronted.caches("v1", "things").await, Ok(false), "{verbs:?}");
    }
    assert_eq!(upstream.asked(DEFINITION), 0);
}

/// An aggregated API has resources without a definition, of which nothing else is known.
#[tokio::test]
async fn what_has_no_definition_is_not_cached() {
    let (upstream, fronted) = start().await;
    upstream.has_things(&ALL);
    upstream.answers(DEFINITION, 404, "{}");
    for _ in 0..3 {
        assert_eq!(fronted.caches("v1", "things").await, Ok(false));
    }
    assert_eq!(upstream.asked(DEFINITION), 1, "that is known for a time");
    upstream.has_things(&ALL);
    fronted.clock.advance(LATER);
    assert_eq!(fronted.caches("v1", "things").await, Ok(true));
}

#[tokio::test]
async fn an_older_answer_counts_while_there_is_no_newer_one() {
    let (upstream, fronted) = start().await;
    upstream.has_things(&ALL);
    assert_eq!(fronted.caches("v1", "things").await, Ok(true));
    for (status, body) in [
        (503, "{}"),
        (500, "x"),
        (403, "{}"),
        (200, "no list"),
        (200, r#"{"groupVersion":"other/v1"}"#),
    ] {
        upstream.answers(VERSION, status, body);
        upstream.answers(DEFINITION, 503, "{}");
        fronted.clock.advance(LATER);
        let before = upstream.asked(VERSION);
        for _ in 0..3 {
            assert_eq!(
                fronted.caches("v1", "things").await,
                Ok(true),
                "{status} {body}"
            );
        }
        assert_eq!(upstream.asked(VERSION), before + 1, "{status} {body}");
    }
    let things = "/apis/example.com/v1/things?resourceVersion=0";
    let age = fronted.answer(things, "application/json").await.headers()["age"].clone();
    assert_eq!(
        age,
        (5 * LATER.as_secs()).to_string(),
        "its watch is open, and tells nothing"
    );
    // That it is gone is an answer.
    upstream.answers(VERSION, 404, "{}");
    fronted.clock.advance(LATER);
    assert_eq!(fronted.caches("v1", "things").await, Ok(false));
    upstream.has_things(&ALL);
    assert_eq!(
        fronted.caches("v1", "things").await,
        Ok(true),
        "and comes back at once"
    );
}

#[tokio::test]
async fn an_upstream_that_has_never_answered_is_an_error() {
    let (upstream, fronted) = start().await;
    for (status, body) in [
        (503, "{}"),
        (200, "no list"),
        (200, r#"{"groupVersion":"other/v1"}"#),
    ] {
        upstream.answers(VERSION, status, body);
        fronted.caches("v1", "things").await.expect_err(body);
    }
    upstream.has_things(&ALL);
    upstream.answers(DEFINITION, 503, "{}");
    fronted
        .caches("v1", "things")
        .await
        .expect_err("no definition");
    upstream.has_things(&ALL);
    assert_eq!(fronted.caches("v1", "things").await, Ok(true));
}

#[tokio::test]
async fn an_upstream_that_hangs_is_not_waited_for_long() {
    let (upstream, fronted) = start().await;
    upstream.never_answers(VERSION);
    let fronted = std::sync::Arc::new(fronted);
    let asking = |fronted: &std::sync::Arc<Fronted>| {
        let fronted = std::sync::Arc::clone(fronted);
        tokio::spawn(async move { fronted.caches("v1", "things").await })
    };
    let first = asking(&fronted);
    eventually(DEADLINE, "it is asked", async || {
        upstream.asked(VERSION) == 1
    })
    .await;
    // It answers nothing for the longest time that is waited.
    eventually(DEADLINE, "the first is told", async || {
        fronted.clock.advance(Duration::from_secs(1));
        first.is_finished()
    })
    .await;
    let error = first.await.unwrap().unwrap_err();
    assert!(error.contains("did not answer in time"), "{error}");

    upstream.has_things(&ALL);
    assert_eq!(fronted.caches("v1", "things").await, Ok(true));
    upstream.never_answers(VERSION);
    fronted.clock.advance(LATER);
    let known = asking(&fronted);
    eventually(DEADLINE, "it is asked again", async || {
        upstream.asked(VERSION) == 3
    })
    .await;
    let other = tokio::time::timeout(DEADLINE, fronted.caches("v1", "things"));
    assert_eq!(other.await.expect("no other waits for that"), Ok(true));
    eventually(DEADLINE, "the older answer is taken", async || {
        fronted.clock.advance(Duration::from_secs(1));
        known.is_finished()
    })
    .await;
    assert_eq!(known.await.unwrap(), Ok(true));
}

#[tokio::test]
async fn apis_of_which_the_upstream_says_nothing_fill_no_memory() {
    let (upstream, fronted) = start().await;
    // As many as are known at a time.
    for number in 0..2_000 {
        let version = format!("v{}", number + 2);
        fronted
            .caches(&version, "things")
            .await
            .expect_err(&version);
    }
    upstream.has_things(&ALL);
    assert_eq!(fronted.caches("v1", "things").await, Ok(true));
}
