//! The upstream of a relay goes away, comes back, and comes back in an older state.

use std::collections::BTreeSet;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as follow};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use super::support::*;

const ANY: &str = "/api/v1/namespaces/default/configmaps?resourceVersion=0";
const A: &str = "/api/v1/namespaces/default/configmaps/a";
const AWAY: &str = "ringwatch_relay_upstream_away_seconds";
/// The number of times that the upstream is killed under a watcher, and the number of objects that
/// are written in between.
const KILLS: usize = 3;
const WRITES: usize = 20;

fn age(answer: &Answer) -> Option<u64> {
    let age = answer.headers.get("age")?;
    Some(age.to_str().unwrap().parse().unwrap())
}

/// Asserts that whatever needs the upstream is refused with its reason, and without an age.
async fn newest_reads_and_writes_fail(pair: &Pair) {
    let watch_list = format!(
        "{CONFIG_MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    );
    let try_again = "could not be completed at this time, please try again";
    for (method, path, body, words) in [
        ("GET", CONFIG_MAPS, Value::Null, try_again),
        ("GET", A, Value::Null, try_again),
        ("GET", "/api/v1/configmaps?limit=1", Value::Null, try_again),
        (
            "POST",
            CONFIG_MAPS,
            config_map("b"),
            "error trying to reach the upstream: ",
        ),
        ("DELETE", A, Value::Null, "connection refused"),
        ("GET", "/apis", Value::Null, "connection refused"),
    ] {
        let refused = send(&pair.relayed, method, path, &[], &body).await;
        assert!(
            (500..600).contains(&refused.status),
            "{method} {path}: {refused:?}"
        );
        assert!(
            refused.text().contains(words),
            "{method} {path}: {refused:?}"
        );
        assert_eq!(age(&refused), None, "{method} {path}");
    }
    let begun = get(&pair.relayed, &watch_list).await;
    assert_eq!((begun.status, age(&begun)), (200, None), "{begun:?}");
    assert_eq!(begun.json()["object"]["code"], 500, "{begun:?}");
}

#[tokio::test]
async fn reads_of_any_version_say_how_old_they_are_while_the_upstream_is_away() {
    let flag = "--authorization-webhook-cache-unauthorized-ttl=0s";
    let mut pair = Pair::start(&[], &[flag]).await;
    pair.create(CONFIG_MAPS, &config_map("a")).await;
    let one = format!("{CONFIG_MAPS}/a?resourceVersion=0");
    let list = until_listed(&pair.relayed, ANY, &["a"]).await;
    // What is asked for while the upstream is away must have been allowed before.
    assert_eq!(get(&pair.relayed, &one).await.status, 200);
    pair.grant("joe", Some("default"), &may_read()).await;
    let joe = pair.relay.client_with_token("joe-token").await;
    eventually(DEADLINE, "joe may read", async || {
        get(&joe, ANY).await.status == 200
    })
    .await;
    let mut events = Watch::open(&pair.relayed, &format!("{ANY}&watch=1")).await;
    assert_eq!(
        events.next_name().await,
        ("ADDED".to_owned(), "a".to_owned())
    );
    eventually(DEADLINE, "there is a watch upstream", async || {
        age(&get(&pair.relayed, ANY).await).is_none()
            && metric(&pair.relayed, AWAY, &[]).await < 0.5
    })
    .await;
    pair.upstream.kill();
    eventually(DEADLINE, "lists say their age", async || {
        age(&get(&pair.relayed, ANY).await) > Some(0)
    })
    .await;
    assert_eq!(get(&pair.relayed, ANY).await.names(), ["a"]);
    assert!(age(&get(&pair.relayed, &one).await) > Some(0));
    assert!(metric(&pair.relayed, AWAY, &[]).await > 0.5);
    let after = format!("{CONFIG_MAPS}?watch=1&resourceVersion={}", list.version());
    let mut later = Watch::open(&pair.relayed, &after).await;

    newest_reads_and_writes_fail(&pair).await;
    // What joe may do was asked before, but not this.
    let refused = get(&joe, "/api/v1/configmaps?resourceVersion=0").await;
    assert!(
        (500..600).contains(&refused.status),
        "nobody has refused it: {refused:?}"
    );
    assert_eq!(get(&joe, ANY).await.names(), ["a"]);

    pair.upstream.start_again();
    pair.upstream.client().await;
    pair.create(CONFIG_MAPS, &config_map("c")).await;
    for watch in [&mut events, &mut later] {
        assert_eq!(
            watch.next_name().await,
            ("ADDED".to_owned(), "c".to_owned())
        );
    }
    assert_eq!(get(&pair.relayed, CONFIG_MAPS).await.names(), ["a", "c"]);
    create(&pair.relayed, CONFIG_MAPS, &config_map("d")).await;
    assert_eq!(
        events.next_name().await,
        ("ADDED".to_owned(), "d".to_owned())
    );
    eventually(DEADLINE, "no answer is old", async || {
        age(&get(&pair.relayed, ANY).await).is_none()
    })
    .await;
    assert!(metric(&pair.relayed, AWAY, &[]).await < 0.5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_loses_nothing_while_the_upstream_is_killed_again_and_again() {
    let mut pair = Pair::start(&[], &[]).await;
    let api: Api<ConfigMap> = Api::default_namespaced(pair.relayed.clone());
    let written: BTreeSet<_> = (0..KILLS * WRITES)
        .map(|number| format!("c{number}"))
        .collect();
    let expected = written.clone();
    let following = tokio::spawn(async move {
        let events = follow(api, watcher::Config::default()).default_backoff();
        let mut events = std::pin::pin!(events);
        let (mut seen, mut lists) = (Vec::new(), 0);
        while seen.len() < expected.len() {
            match events.next().await.expect("a watcher does not end") {
                Ok(Event::Apply(object) | Event::InitApply(object)) => seen.push(object.name_any()),
                Ok(Event::InitDone) => lists += 1,
                Ok(Event::Init | Event::Delete(_)) => {}
                Err(error) => panic!("a watch through the relay broke: {error}"),
            }
        }
        (seen, lists)
    });
    let direct: Api<ConfigMap> = Api::default_namespaced(pair.direct.clone());
    for (number, name) in (0..KILLS * WRITES).map(|number| (number, format!("c{number}"))) {
        let object = serde_json::from_value(config_map(&name)).unwrap();
        direct
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
        if number % WRITES == WRITES / 2 {
            pair.upstream.kill();
            pair.upstream.start_again();
            pair.upstream.client().await;
        }
    }
    let (seen, lists) = following.await.unwrap();
    assert_eq!(lists, 1, "it went on from where it was");
    assert_eq!(seen.iter().cloned().collect::<BTreeSet<_>>(), written);
}

#[tokio::test]
async fn an_upstream_in_an_older_state_ends_watches_and_shows_nothing_that_is_gone() {
    let mut pair = Pair::start(&[], &[]).await;
    for number in 0..30 {
        pair.create(CONFIG_MAPS, &config_map(&format!("before{number}")))
            .await;
    }
    let listed = eventually(DEADLINE, "all are listed", async || {
        let list = get(&pair.relayed, ANY).await;
        (list.names().len() == 30).then_some(list)
    });
    let list = listed.await;
    let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion={}", list.version());
    let mut events = Watch::open(&pair.relayed, &path).await;
    pair.create(CONFIG_MAPS, &config_map("last")).await;
    assert_eq!(
        events.next_name().await,
        ("ADDED".to_owned(), "last".to_owned())
    );
    pair.upstream.kill();
    std::fs::remove_file(pair.upstream.folder().join("data/store.redb")).unwrap();
    pair.upstream.start_again();
    pair.upstream.client().await;
    let new = pair.create(CONFIG_MAPS, &config_map("after")).await;
    let number = |version: String| version.parse::<u64>().unwrap();
    assert!(
        number(version(&new)) < number(list.version()),
        "the versions have fallen"
    );
    // No read is wrong in between: it shows the old objects or the new ones.
    eventually(DEADLINE, "the new state is there", async || {
        let list = get(&pair.relayed, ANY).await;
        if list.status != 200 {
            return false;
        }
        let names = list.names();
        let has_old = names
            .iter()
            .any(|it| it.starts_with("before") || it == "last");
        let has_new = names.iter().any(|it| it == "after");
        assert!(!(has_old && has_new), "{names:?}");
        has_new
    })
    .await;
    let event = events.next().await;
    if let Some(event) = &event {
        assert_eq!(event["type"], "ERROR", "{event}");
        assert_eq!(event["object"]["code"], json!(410), "{event}");
        assert_eq!(events.next().await, None);
    }
    assert_eq!(
        get(&pair.relayed, CONFIG_MAPS).await.names(),
        get(&pair.direct, CONFIG_MAPS).await.names()
    );
    let mut again = Watch::open(
        &pair.relayed,
        &format!("{CONFIG_MAPS}?watch=1&resourceVersion={}", version(&new)),
    )
    .await;
    pair.create(CONFIG_MAPS, &config_map("next")).await;
    assert_eq!(
        again.next_name().await,
        ("ADDED".to_owned(), "next".to_owned())
    );
}
