//! An upstream that sends what no API server should: nobody is shown anything false, and the cache recovers.

use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use ringwatch::clock::Clock;
use ringwatch::meta::{FieldSchema, ResourceVersion, WatchEvent};
use ringwatch::storage::cacher::WindowLimits;
use ringwatch::storage::{Interface, ListOptions, StorageError, WatchStream};
use ringwatch_testing::eventually::{DEADLINE, eventually};

use crate::scripted::{Scripted, event, things};
use crate::support::{Relayed, relayed};

async fn watch(relayed: &Relayed, version: u64) -> WatchStream {
    let options = ListOptions {
        resource_version: Some(ResourceVersion(version)),
        recursive: true,
        ..ListOptions::default()
    };
    relayed.cached.watch("/things/", options).await.unwrap()
}

/// Returns what a watch tells until it is silent or ends.
async fn told(watch: &mut WatchStream, most: usize) -> Vec<String> {
    let mut told = Vec::new();
    while told.len() < most {
        let item = tokio::time::timeout(DEADLINE, watch.next()).await;
        told.push(match item.expect("something in time") {
            Some(Ok(WatchEvent::Added(it))) => format!("added {} {}", it.name(), it.revision()),
            Some(Ok(WatchEvent::Modified(it))) => format!("set {} {}", it.name(), it.revision()),
            Some(Ok(WatchEvent::Deleted(it))) => format!("deleted {} {}", it.name(), it.revision()),
            Some(Ok(other)) => format!("{other:?}"),
            // An error if the watch was told why, else the end alone.
            Some(Err(_)) | None => {
                told.push("over".to_owned());
                return told;
            }
        });
    }
    told
}

/// Waits until the cache has exactly these objects.
async fn has(relayed: &Relayed, objects: &[(&str, u64)]) {
    eventually(
        DEADLINE,
        "the cache has the upstream's objects",
        async || {
            let any = ListOptions {
                resource_version: Some(ResourceVersion(0)),
                recursive: true,
                ..ListOptions::default()
            };
            let list = relayed.cached.get_list("/things/", any).await;
            list.is_ok_and(|list| {
                let found = list.items.iter().map(|it| (it.name(), it.revision()));
                found.eq(objects.iter().copied())
            })
        },
    )
    .await;
}

#[tokio::test]
async fn a_version_that_falls_is_shown_to_nobody() {
    let upstream = Scripted::start(10, &[("a", 5)]).await;
    let lie = event("ADDED", "b", 12) + &event("MODIFIED", "a", 7) + &event("ADDED", "c", 13);
    let then = Some((20, vec![("a", 15), ("b", 12)]));
    let lies = upstream.will_watch_in_two(String::new(), lie, then);
    let relayed = upstream.relayed();
    has(&relayed, &[("a", 5)]).await;
    let mut watch = watch(&relayed, 10).await;
    lies.send(()).unwrap();
    assert_eq!(told(&mut watch, 3).await, ["added b 12", "over"]);
    has(&relayed, &[("a", 15), ("b", 12)]).await;
    let opened = || upstream.script().opened.clone();
    eventually(DEADLINE, "a second watch is opened", async || {
        opened().len() > 1
    })
    .await;
    assert!(opened()[1].contains("resourceVersion=20"), "{:?}", opened());
}

#[tokio::test]
async fn a_frame_that_is_no_event_ends_no_watch() {
    let upstream = Scripted::start(10, &[("a", 5)]).await;
    let broken = event("ADDED", "b", 12) + "{\"type\":\"ADDED\"\n";
    upstream.will_watch_then(broken, false, Some((12, vec![("a", 5), ("b", 12)])));
    upstream.will_watch(event("ADDED", "c", 13), false);
    let relayed = upstream.relayed();
    relayed.cached.cacher().ready().await.unwrap();
    let mut watch = watch(&relayed, 10).await;
    assert_eq!(told(&mut watch, 2).await, ["added b 12", "added c 13"]);
    let opened = upstream.script().opened.clone();
    assert!(opened[1].contains("resourceVersion=12"), "{opened:?}");
}

#[tokio::test]
async fn objects_that_expire_together_are_deleted_together() {
    let upstream = Scripted::start(10, &[("a", 5), ("b", 6), ("c", 7)]).await;
    let deleted = event("DELETED", "a", 12) + &event("DELETED", "b", 12);
    upstream.will_watch_then(deleted, true, Some((12, vec![("c", 7)])));
    // After a break the version is asked for again, and what was seen of it is skipped.
    let again = event("DELETED", "a", 12) + &event("DELETED", "b", 12);
    upstream.will_watch(again + &event("MODIFIED", "c", 13), false);
    let relayed = upstream.relayed();
    relayed.cached.cacher().ready().await.unwrap();
    let mut watch = watch(&relayed, 10).await;
    let told = told(&mut watch, 3).await;
    assert_eq!(told, ["deleted a 12", "deleted b 12", "set c 13"]);
    let opened = upstream.script().opened.clone();
    assert!(opened[1].contains("resourceVersion=11"), "{opened:?}");
}

#[tokio::test]
async fn objects_that_expire_together_may_come_in_pieces() {
    let upstream = Scripted::start(10, &[("a", 5), ("b", 6), ("c", 7)]).await;
    let first = event("MODIFIED", "c", 11) + &event("DELETED", "a", 12);
    let rest = event("DELETED", "b", 12) + &event("MODIFIED", "c", 13);
    let goes_on = upstream.will_watch_in_two(first, rest, None);
    // It stands still, so that nothing is given away because of the time.
    let client = upstream.client_by(Clock::manual(Timestamp::UNIX_EPOCH));
    let window = WindowLimits::default();
    let relayed = relayed(&client, things(), FieldSchema::default(), window);
    relayed.cached.cacher().ready().await.unwrap();
    let mut watch = watch(&relayed, 10).await;
    assert_eq!(told(&mut watch, 1).await, ["set c 11"]);
    goes_on.send(()).unwrap();
    let told = told(&mut watch, 3).await;
    assert_eq!(told, ["deleted a 12", "deleted b 12", "set c 13"]);
}

#[tokio::test]
async fn a_version_that_was_parted_has_everything_listed_again() {
    let upstream = Scripted::start(10, &[("a", 5), ("b", 6)]).await;
    let part = event("DELETED", "a", 12);
    upstream.will_watch_then(part, true, Some((12, Vec::new())));
    let rest = event("DELETED", "a", 12) + &event("DELETED", "b", 12);
    upstream.will_watch(rest, false);
    let relayed = upstream.relayed();
    relayed.cached.cacher().ready().await.unwrap();
    let mut watch = watch(&relayed, 10).await;
    assert_eq!(told(&mut watch, 3).await, ["deleted a 12", "over"]);
    let opened = upstream.script().opened.clone();
    assert!(opened[1].contains("resourceVersion=11"), "{opened:?}");
    has(&relayed, &[]).await;
    let opened = || upstream.script().opened.clone();
    eventually(DEADLINE, "a third watch is opened", async || {
        opened().len() > 2
    })
    .await;
    // Not one version earlier, where the same would part it again.
    assert!(opened()[2].contains("resourceVersion=12"), "{:?}", opened());
}

#[tokio::test]
async fn a_list_of_another_version_is_not_served() {
    let upstream = Scripted::start(10, &[("a", 5)]).await;
    upstream.script().exact = Some(9);
    let relayed = upstream.relayed();
    eventually(DEADLINE, "the cache says why it is not ready", async || {
        let complaint = relayed.cached.cacher().complaint().unwrap_or_default();
        complaint.contains("a list of version 9 for one of version 10")
    })
    .await;
    let any = ListOptions {
        resource_version: Some(ResourceVersion(0)),
        recursive: true,
        ..ListOptions::default()
    };
    let refused = relayed.cached.get_list("/things/", any).await;
    assert!(
        matches!(refused, Err(StorageError::NotReady { .. })),
        "{refused:?}"
    );
    upstream.script().exact = None;
    has(&relayed, &[("a", 5)]).await;
}

#[tokio::test]
async fn pages_are_no_larger_than_those_of_clients() {
    let upstream = Scripted::start(10, &[("a", 5)]).await;
    let relayed = upstream.relayed();
    relayed.cached.cacher().ready().await.unwrap();
    let listed = upstream.script().listed.clone();
    let is_page = |target: &String| target.split(['?', '&']).any(|it| it == "limit=500");
    assert!(listed.iter().any(is_page), "{listed:?}");
}

/// An upstream that sends nothing, not even bookmarks, may be gone, of which a connection does not tell.
#[tokio::test]
async fn a_watch_that_is_silent_for_long_is_opened_again() {
    let upstream = Scripted::start(10, &[("a", 5)]).await;
    upstream.will_watch(String::new(), false);
    upstream.will_watch(event("ADDED", "b", 12), false);
    let clock = Clock::manual(Timestamp::UNIX_EPOCH);
    let client = upstream.client_by(clock.clone());
    let window = WindowLimits::default();
    let relayed = relayed(&client, things(), FieldSchema::default(), window);
    relayed.cached.cacher().ready().await.unwrap();
    let mut watch = watch(&relayed, 10).await;
    eventually(DEADLINE, "the silent watch is opened", async || {
        !upstream.script().opened.is_empty()
    })
    .await;
    // Seldom, since requests go by the clock too, and the first look may come before the client waits.
    let mut looks = 0;
    eventually(DEADLINE, "another watch is opened", async || {
        if looks % 100 == 0 {
            clock.advance(Duration::from_secs(301));
        }
        looks += 1;
        upstream.script().opened.len() > 1
    })
    .await;
    assert_eq!(told(&mut watch, 1).await, ["added b 12"]);
}
