//! kube-rs follows ten thousand changes: its watcher loses none, its reflector ends with the same
//! state, through restarts of the server and of etcd.

use std::time::Duration;

use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, reflector};
use kube::{Api, Client};

use super::writer::{self, CHANGES};
use crate::support::etcd::Etcd;
use crate::support::server::Server;

/// How long the whole may take before it is given up.
const PATIENCE: Duration = Duration::from_secs(600);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watcher_and_reflector_follow_an_embedded_store_through_restarts() {
    let mut server = Server::start(&[]);
    let client = server.client().await;
    let followers = tokio::spawn(follow(client.clone()));
    for number in 1..=CHANGES {
        writer::write(&client, number).await;
        if number % (CHANGES / 3) == 0 {
            server.stop().await;
            server.start_again();
        }
    }
    finish(followers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watcher_and_reflector_follow_etcd_through_restarts() {
    let Some(mut etcd) = Etcd::start("kube-rs over etcd") else {
        return;
    };
    let mut server = Server::start(&["--etcd-servers", &etcd.endpoint()]);
    let client = server.client().await;
    let followers = tokio::spawn(follow(client.clone()));
    for number in 1..=CHANGES {
        writer::write(&client, number).await;
        if number == CHANGES / 3 {
            server.stop().await;
            server.start_again();
        }
        if number == 2 * CHANGES / 3 {
            etcd.restart();
        }
    }
    finish(followers).await;
}

async fn finish(followers: tokio::task::JoinHandle<()>) {
    let ended = tokio::time::timeout(PATIENCE, followers).await;
    ended
        .expect("the followers saw the last change in time")
        .expect("the followers agree");
}

/// Follows with a watcher and with a reflector until the last change.
async fn follow(client: Client) {
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let config = watcher::Config::default();
    let events = watcher::watcher(api.clone(), config.clone()).default_backoff();
    let (reader, store) = reflector::store();
    let mirror = reflector(store, watcher::watcher(api, config).default_backoff());
    tokio::join!(every_change(events), last_change(mirror));

    let mut mirrored: Vec<u64> = reader
        .state()
        .iter()
        .filter_map(|it| writer::number(it))
        .collect();
    mirrored.sort_unstable();
    let newest: Vec<u64> = (CHANGES - 49..=CHANGES).collect();
    assert_eq!(mirrored, newest, "the reflector's state is the last state");
}

/// Each change once and in order. Changes of before a list count as seen when the list shows them.
async fn every_change(events: impl Stream<Item = Result<Event<ConfigMap>, watcher::Error>>) {
    let mut events = std::pin::pin!(events);
    let mut seen = 0;
    let mut listed = 0;
    let mut has_begun = false;
    while seen < CHANGES {
        let event = match events.next().await.expect("a watcher never ends") {
            Ok(event) => event,
            Err(_reconnecting) => continue,
        };
        match event {
            Event::Init => listed = 0,
            Event::InitApply(object) => {
                listed = listed.max(writer::number(&object).unwrap_or_default());
            }
            Event::InitDone => {
                if has_begun {
                    assert_eq!(listed, seen, "a new list found what no event told");
                }
                (seen, has_begun) = (listed, true);
            }
            Event::Apply(object) => {
                let Some(number) = writer::number(&object) else {
                    continue;
                };
                assert_eq!(number, seen + 1, "the next change");
                seen = number;
            }
            Event::Delete(object) => panic!("nothing is deleted: {object:?}"),
        }
    }
}

/// Polls a reflector until it has stored the last change, lists included.
async fn last_change(events: impl Stream<Item = Result<Event<ConfigMap>, watcher::Error>>) {
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        if let Ok(Event::InitApply(object) | Event::Apply(object)) = event
            && writer::number(&object) == Some(CHANGES)
        {
            return;
        }
    }
}
