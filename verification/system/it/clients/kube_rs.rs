//! kube-rs follows the changes of the writer: its watcher loses none, its reflector ends with the same state.

use std::time::Duration;

use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, reflector};
use kube::{Api, Client};
use tokio::task::JoinHandle;

use super::writer::{self, CHANGES};

/// The most time that the followers may take to see the last change before the test gives up.
const PATIENCE: Duration = Duration::from_secs(600);

/// A watcher and a reflector at work.
pub(super) struct Follower(JoinHandle<()>);

impl Follower {
    /// Follows the changes that a client sees from now on.
    pub(super) fn start(client: &Client) -> Self {
        Self(tokio::spawn(follow(client.clone())))
    }

    /// Waits until both have seen the last change, and checks that they missed none.
    pub(super) async fn check(self) {
        let ended = tokio::time::timeout(PATIENCE, self.0).await;
        ended
            .expect("the followers saw the last change in time")
            .expect("the followers agree");
    }
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
