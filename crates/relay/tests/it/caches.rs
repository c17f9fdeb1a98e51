//! The caches of an upstream: begun once, shared, forgotten.

use std::sync::Arc;

use futures::StreamExt;
use ringwatch::budget::Ledger;
use ringwatch::meta::{FieldSchema, ResourceVersion};
use ringwatch::storage::cacher::CacheMetrics;
use ringwatch::storage::{Interface, ListOptions, StorageError};
use ringwatch_relay::{Caches, ResourceType};
use ringwatch_testing::eventually::{DEADLINE, eventually};

use crate::scripted::{Scripted, event, things};
use crate::support::run;

fn caches(upstream: &Scripted) -> Arc<Caches> {
    let metrics = CacheMetrics::default();
    Arc::new(Caches::new(upstream.client(), metrics, Ledger::unlimited()))
}

fn any() -> ListOptions {
    ListOptions {
        resource_version: Some(ResourceVersion(0)),
        recursive: true,
        ..ListOptions::default()
    }
}

#[tokio::test]
async fn a_resource_is_followed_once_for_all_who_ask() {
    let upstream = Scripted::start(10, &[("a", 5)]).await;
    let caches = caches(&upstream);
    assert_eq!(upstream.script().lists, 0, "nobody has asked");
    let _tasks = run(&caches);
    let first = caches.cached(&things(), &FieldSchema::default()).unwrap();
    first.cacher().ready().await.unwrap();
    let lists = upstream.script().lists;
    for _ in 0..10 {
        let again = caches.cached(&things(), &FieldSchema::default()).unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        assert_eq!(
            again.get_list("/things/", any()).await.unwrap().items.len(),
            1
        );
    }
    eventually(DEADLINE, "it is watched", async || {
        upstream.script().opened.len() == 1
    })
    .await;
    let checked = upstream.script().lists - lists;
    assert!(
        checked <= 1,
        "{checked} lists beside the check of the history"
    );
    let other = ResourceType {
        version: "v2".to_owned(),
        ..things()
    };
    let other = caches.cached(&other, &FieldSchema::default()).unwrap();
    assert!(
        !Arc::ptr_eq(&first, &other),
        "another version has objects of its own"
    );
}

#[tokio::test]
async fn a_forgotten_resource_ends_its_watches_and_can_come_back() {
    let upstream = Scripted::start(10, &[("a", 5)]).await;
    let caches = caches(&upstream);
    let _tasks = run(&caches);
    let gone = caches.cached(&things(), &FieldSchema::default()).unwrap();
    gone.cacher().ready().await.unwrap();
    let mut watch = gone.watch("/things/", any()).await.unwrap();
    watch.next().await.expect("a watch").expect("an object");
    caches.forget(&things());
    while let Some(item) = watch.next().await {
        item.expect_err("no event any more");
    }
    let refused = gone.get_list("/things/", any()).await;
    assert!(
        matches!(refused, Err(StorageError::NotReady { .. })),
        "{refused:?}"
    );

    upstream.will_watch(event("ADDED", "b", 12), false);
    let again = caches.cached(&things(), &FieldSchema::default()).unwrap();
    again.cacher().ready().await.unwrap();
    eventually(DEADLINE, "it is followed again", async || {
        again.get_list("/things/", any()).await.unwrap().items.len() == 2
    })
    .await;
}
