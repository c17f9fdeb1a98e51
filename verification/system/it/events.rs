//! Events go by themselves after the time that `--event-ttl` gives them.

use std::time::{Duration, Instant};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::{ListParams, PostParams, WatchEvent, WatchParams};
use ringwatch_testing::eventually::DEADLINE;
use serde_json::json;

use crate::support::etcd::Etcd;
use crate::support::server::Server;

/// The time for which the servers of these tests keep events.
const TTL: Duration = Duration::from_secs(3);

#[tokio::test]
async fn events_expire_in_the_embedded_store() {
    expires(Server::start(&["--event-ttl=3s"])).await;
}

#[tokio::test]
async fn events_expire_in_etcd() {
    let Some(etcd) = Etcd::start("events expire in etcd") else {
        return;
    };
    let endpoint = etcd.endpoint();
    expires(Server::start(&[
        "--event-ttl=3s",
        "--etcd-servers",
        &endpoint,
    ]))
    .await;
}

async fn expires(mut server: Server) {
    let client = server.client().await;
    let events: Api<Event> = Api::default_namespaced(client);
    let list = events.list(&ListParams::default()).await.expect("a list");
    let version = list.metadata.resource_version.expect("a version");
    let mut watch = events
        .watch(&WatchParams::default(), &version)
        .await
        .expect("a watch")
        .boxed();
    let event = json!({
        "metadata": {"name": "seen"},
        "involvedObject": {"kind": "Pod", "name": "a", "namespace": "default"},
        "reason": "Tried",
        "type": "Normal",
    });
    let event: Event = serde_json::from_value(event).expect("an event");
    let began = Instant::now();
    let created = events.create(&PostParams::default(), &event).await;
    let created = created.expect("created").metadata;
    let told = async {
        loop {
            match watch.next().await.expect("an event").expect("an event") {
                WatchEvent::Deleted(event) => break event.metadata,
                WatchEvent::Added(_) => {}
                other => panic!("{other:?}"),
            }
        }
    };
    let deleted = tokio::time::timeout(DEADLINE, told).await;
    let deleted = deleted.expect("the event expired");
    assert!(began.elapsed() >= TTL, "after {:?}", began.elapsed());
    assert_eq!(deleted.uid, created.uid);
    assert_ne!(deleted.resource_version, created.resource_version);
    let gone = events.get_opt("seen").await.expect("an answer");
    assert_eq!(gone, None);
}
