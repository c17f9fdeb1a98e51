//! The metrics of lists and of leases.

use super::*;
use crate::budget::Ledger;
use crate::meta::{FieldSelector, LabelSelector};
use crate::storage::etcd3::{ListMetrics, RequestMetrics, Store};
use crate::storage::{Interface, ListOptions, SelectionPredicate};

/// Returns a store of config maps whose lists and requests are counted.
fn counted(registry: &mut Registry) -> Store {
    let lists = ListMetrics::register(registry).of_type("", "configmaps");
    let requests = RequestMetrics::register(registry, Clock::real()).of_type("", "configmaps");
    Store::new(backend() as _, config()).counted(lists, requests)
}

async fn create(store: &Store, name: &str, app: &str, ttl: Option<u64>) {
    let key = format!("/configmaps/d/{name}");
    store
        .create(&key, &config_map(name, app), ttl)
        .await
        .expect("created");
}

#[tokio::test]
async fn lists_are_counted_with_what_they_read_and_returned() {
    let mut registry = Registry::default();
    let store = counted(&mut registry);
    for (name, app) in [("a", "x"), ("b", "y"), ("c", "x"), ("d", "y"), ("e", "y")] {
        create(&store, name, app, None).await;
    }
    let list = async |predicate: SelectionPredicate| {
        let options = ListOptions {
            recursive: true,
            predicate,
            ..ListOptions::default()
        };
        let list = store
            .get_list("/configmaps/", options)
            .await
            .expect("a list");
        list.items.len()
    };
    assert_eq!(list(SelectionPredicate::default()).await, 5);
    // Two pages, of one object and of two, until one is found.
    let selected = SelectionPredicate {
        label: LabelSelector::parse("app=y").expect("a selector"),
        field: FieldSelector::default(),
        limit: 1,
        ..SelectionPredicate::default()
    };
    assert_eq!(list(selected).await, 1);
    let shown = |name: &str| {
        let start = format!("apiserver_storage_list{name}_total{{");
        shown(&registry, &start)
    };
    assert_eq!(shown(""), 2.0);
    assert_eq!(shown("_fetched_objects"), 8.0);
    assert_eq!(shown("_evaluated_objects"), 7.0);
    assert_eq!(shown("_returned_objects"), 6.0);
}

#[tokio::test(start_paused = true)]
async fn the_objects_that_share_a_lease_are_counted() {
    let mut registry = Registry::default();
    let store = counted(&mut registry);
    for name in ["a", "b", "c"] {
        create(&store, name, "x", Some(1_000)).await;
    }
    // Its lease has too little time left.
    tokio::time::advance(Duration::from_secs(500)).await;
    create(&store, "d", "x", Some(1_000)).await;
    assert_eq!(shown(&registry, "etcd_lease_object_counts_count"), 1.0);
    assert_eq!(shown(&registry, "etcd_lease_object_counts_sum"), 3.0);
}

#[tokio::test(start_paused = true)]
async fn leases_are_shared_or_not_as_configured() {
    for (reuse_seconds, leases) in [(0, 2.0), (60, 0.0)] {
        let mut registry = Registry::default();
        let reuse = Duration::from_secs(reuse_seconds);
        let store = counted(&mut registry).sharing_leases(reuse);
        for name in ["a", "b", "c"] {
            create(&store, name, "x", Some(1_000)).await;
        }
        let ended = shown(&registry, "etcd_lease_object_counts_count");
        assert_eq!(ended, leases, "{reuse_seconds} s");
    }
}

#[tokio::test]
async fn requests_are_counted_by_what_they_do() {
    let mut registry = Registry::default();
    let store = counted(&mut registry);
    create(&store, "a", "x", None).await;
    store.stats().await.expect("a count");
    let all = ListOptions {
        recursive: true,
        ..ListOptions::default()
    };
    let list = store.get_list("/configmaps/", all).await;
    assert_eq!(list.expect("a list").items.len(), 1);
    for operation in ["create", "listWithCount", "list"] {
        let start = format!("etcd_requests_total{{operation=\"{operation}\"");
        assert_eq!(shown(&registry, &start), 1.0, "{operation}");
    }
}

/// A page has few of the objects that nobody has read yet, since they may be large.
#[tokio::test]
async fn a_list_knows_from_the_last_one_how_large_objects_are() {
    let mut registry = Registry::default();
    let store = counted(&mut registry);
    for number in 0..20 {
        create(&store, &format!("a{number:02}"), "x", None).await;
    }
    let pages = async || {
        let start = "etcd_requests_total{operation=\"list\"";
        let options = ListOptions {
            recursive: true,
            memory: Some(Ledger::new(16 << 20)),
            ..ListOptions::default()
        };
        let list = store.get_list("/configmaps/", options).await;
        assert_eq!(list.expect("a list").items.len(), 20);
        shown(&registry, start)
    };
    let first = pages().await;
    assert!(first > 1.0, "{first} pages");
    assert_eq!(pages().await, first + 1.0);
}
