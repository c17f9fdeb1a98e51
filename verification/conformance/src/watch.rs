//! Watches: start versions, selectors, bookmarks, ends.

use ringwatch::meta::{FieldSelector, LabelSelector, ResourceVersion, VersionMatch, WatchEvent};
use ringwatch::storage::{DeleteOptions, ListOptions, StorageError};
use ringwatch_testing::eventually::{DEADLINE, eventually};

use super::Subject;
use super::objects::key;

fn from(version: u64) -> impl FnOnce(&mut ListOptions) {
    move |options| options.resource_version = Some(ResourceVersion(version))
}

fn initial(version: Option<u64>) -> impl FnOnce(&mut ListOptions) {
    move |options| {
        options.resource_version = version.map(ResourceVersion);
        options.version_match = Some(VersionMatch::NotOlderThan);
        options.send_initial_events = Some(true);
        options.predicate.allow_watch_bookmarks = true;
    }
}

fn on_node(node: &str) -> impl FnOnce(&mut ListOptions) {
    move |options| {
        options.predicate.field = FieldSelector::parse(&format!("spec.nodeName={node}")).unwrap();
    }
}

async fn start(subject: &Subject) -> u64 {
    subject
        .interface
        .current_resource_version()
        .await
        .unwrap()
        .0
}

pub async fn each_change_is_told_once_and_in_order(subject: Subject) {
    let begin = start(&subject).await;
    let mut watch = subject.watch("/pods/", from(begin)).await;
    let created = subject.create("ns", "a").await;
    let changed = subject.set_node("ns", "a", "n1").await;
    let deleted = subject
        .delete("ns", "a", DeleteOptions::default())
        .await
        .unwrap();
    watch.added("a", created.revision()).await;
    watch.modified("a", changed.revision()).await;
    let last = watch.deleted("a", deleted.revision()).await;
    assert_eq!(last.stored(), changed.stored(), "the last content");
    watch.nothing(&subject).await;
}

pub async fn a_watch_resumes_after_any_version(subject: Subject) {
    let mut revisions = Vec::new();
    for name in ["a", "b", "c", "d"] {
        revisions.push(subject.create("ns", name).await.revision());
    }
    for (index, revision) in revisions.iter().enumerate() {
        let mut watch = subject.watch("/pods/", from(*revision)).await;
        for (name, expected) in ["a", "b", "c", "d"].iter().zip(&revisions).skip(index + 1) {
            watch.added(name, *expected).await;
        }
        watch.nothing(&subject).await;
    }
}

pub async fn a_watch_from_zero_begins_with_the_state(subject: Subject) {
    let created = subject.create("ns", "a").await;
    let changed = subject.set_node("ns", "a", "n1").await;
    assert!(changed.revision() > created.revision());
    subject.catch_up().await;
    let mut watch = subject.watch("/pods/", from(0)).await;
    watch.added("a", changed.revision()).await;
    let deleted = subject
        .delete("ns", "a", DeleteOptions::default())
        .await
        .unwrap();
    watch.deleted("a", deleted.revision()).await;
    let again = subject.create("ns", "a").await;
    watch.added("a", again.revision()).await;
}

pub async fn objects_enter_and_leave_a_selection(subject: Subject) {
    let begin = start(&subject).await;
    let mut watch = subject
        .watch("/pods/", |options| {
            from(begin)(options);
            on_node("n1")(options);
        })
        .await;
    subject.create("ns", "a").await;
    let entered = subject.set_node("ns", "a", "n1").await;
    let stayed = subject.label("ns", "a", "colour", "red").await;
    let left = subject.set_node("ns", "a", "n2").await;
    subject.label("ns", "a", "colour", "blue").await;
    let back = subject.set_node("ns", "a", "n1").await;
    let deleted = subject
        .delete("ns", "a", DeleteOptions::default())
        .await
        .unwrap();
    watch.added("a", entered.revision()).await;
    watch.modified("a", stayed.revision()).await;
    let gone = watch.deleted("a", left.revision()).await;
    assert_eq!(gone.stored(), stayed.stored(), "as it was last selected");
    watch.added("a", back.revision()).await;
    watch.deleted("a", deleted.revision()).await;
    watch.nothing(&subject).await;
}

pub async fn labels_select_too(subject: Subject) {
    let begin = start(&subject).await;
    let mut watch = subject
        .watch("/pods/", |options| {
            from(begin)(options);
            options.predicate.label = LabelSelector::parse("colour=red").unwrap();
        })
        .await;
    subject.create("ns", "a").await;
    let red = subject.label("ns", "a", "colour", "red").await;
    let blue = subject.label("ns", "a", "colour", "blue").await;
    subject
        .delete("ns", "a", DeleteOptions::default())
        .await
        .unwrap();
    watch.added("a", red.revision()).await;
    watch.deleted("a", blue.revision()).await;
    watch.nothing(&subject).await;
}

pub async fn a_namespace_and_a_name_are_watched_alone(subject: Subject) {
    let begin = start(&subject).await;
    let mut namespace = subject.watch("/pods/foo/", from(begin)).await;
    let mut name = subject
        .watch(&key("foo", "a"), |options| {
            from(begin)(options);
            options.recursive = false;
        })
        .await;
    subject.create("foobar", "a").await;
    let a = subject.create("foo", "a").await.revision();
    let ab = subject.create("foo", "ab").await.revision();
    namespace.added("a", a).await;
    namespace.added("ab", ab).await;
    namespace.nothing(&subject).await;
    name.added("a", a).await;
    name.nothing(&subject).await;
}

pub async fn initial_events_end_with_a_bookmark(subject: Subject) {
    let a = subject.create("ns", "a").await.revision();
    let b = subject.create("ns", "b").await.revision();
    // Before the watch at `b` a cache may not have `b`, which a watch at `a` would then get after the end mark.
    for version in [None, Some(b), Some(a)] {
        let mut watch = subject.watch("/pods/", initial(version)).await;
        watch.added("a", a).await;
        watch.added("b", b).await;
        let (revision, end) = watch.bookmark().await;
        assert!(end, "the end of the initial events, at {version:?}");
        assert!(revision >= b);
    }
    let mut watch = subject.watch("/pods/", initial(None)).await;
    watch.added("a", a).await;
    watch.added("b", b).await;
    watch.bookmark().await;
    let c = subject.create("ns", "c").await.revision();
    watch.added("c", c).await;
}

pub async fn initial_events_without_bookmarks_have_no_end_mark(subject: Subject) {
    let a = subject.create("ns", "a").await.revision();
    let mut watch = subject
        .watch("/pods/", |options| {
            initial(None)(options);
            options.predicate.allow_watch_bookmarks = false;
        })
        .await;
    watch.added("a", a).await;
    let b = subject.create("ns", "b").await.revision();
    watch.added("b", b).await;
}

pub async fn an_empty_type_ends_its_initial_events_at_once(subject: Subject) {
    let mut watch = subject.watch("/pods/", initial(None)).await;
    let (_, end) = watch.bookmark().await;
    assert!(end);
    let a = subject.create("ns", "a").await.revision();
    watch.added("a", a).await;
}

pub async fn a_compacted_version_is_expired(subject: Subject) {
    let first = subject.create("ns", "a").await.revision();
    let newest = subject.fill_the_window().await;
    subject.compact(newest).await;
    // A cache hears of the compaction, and lets go of its own history, a moment later.
    let expired = eventually(DEADLINE, "the version is expired", async || {
        let watch = subject.try_watch("/pods/", from(first)).await;
        let mut watch = watch.expect("a stream, of which expiry is an item");
        match watch.next().await {
            Some(Err(error)) => Ok((watch, error)),
            other => Err(other),
        }
    });
    let (mut watch, error) = expired.await;
    let is_expired = matches!(
        error,
        StorageError::WatchExpired | StorageError::TooOld { .. }
    );
    assert!(is_expired, "{error:?}");
    assert!(watch.next().await.is_none(), "nothing follows an error");
    let mut watch = subject.watch("/pods/", from(newest)).await;
    let b = subject.create("ns", "b").await.revision();
    watch.added("b", b).await;
}

/// Fewer than the window of the cache under test holds.
const UNREAD_EVENTS: usize = 150;

pub async fn unread_events_wait(subject: Subject) {
    let begin = start(&subject).await;
    let mut watch = subject.watch("/pods/", from(begin)).await;
    let mut revisions = Vec::new();
    for number in 0..UNREAD_EVENTS {
        revisions.push(
            subject
                .create("ns", &format!("p{number:03}"))
                .await
                .revision(),
        );
    }
    for (number, revision) in revisions.iter().enumerate() {
        watch.added(&format!("p{number:03}"), *revision).await;
    }
    watch.nothing(&subject).await;
}

pub async fn many_unread_watches_hold_up_no_write(subject: Subject) {
    let begin = start(&subject).await;
    let mut unread = Vec::new();
    for _ in 0..50 {
        unread.push(subject.watch("/pods/", from(begin)).await);
    }
    let mut last = 0;
    for number in 0..300 {
        last = subject
            .create("ns", &format!("p{number:03}"))
            .await
            .revision();
    }
    let mut reading = subject.watch("/pods/", from(last - 1)).await;
    reading.added("p299", last).await;
    drop(unread);
    let more = subject.create("ns", "more").await.revision();
    reading.added("more", more).await;
}

pub async fn every_watcher_sees_the_same(subject: Subject) {
    let begin = start(&subject).await;
    let mut watches = Vec::new();
    for _ in 0..10 {
        watches.push(subject.watch("/pods/", from(begin)).await);
    }
    let mut delivered: Vec<Vec<(String, u64)>> = vec![Vec::new(); watches.len()];
    for number in 0..100 {
        subject.create("ns", &format!("p{number:02}")).await;
        if number % 3 == 0 {
            subject
                .delete("ns", &format!("p{number:02}"), DeleteOptions::default())
                .await
                .unwrap();
        }
    }
    for (watch, delivered) in watches.iter_mut().zip(&mut delivered) {
        for _ in 0..134 {
            delivered.push(describe(&watch.event().await));
        }
    }
    assert!(delivered.iter().all(|other| *other == delivered[0]));
    assert!(
        delivered[0].windows(2).all(|pair| pair[0].1 < pair[1].1),
        "strictly rising"
    );
}

fn describe(event: &WatchEvent) -> (String, u64) {
    let what = match event {
        WatchEvent::Added(object) => format!("added {}", object.name()),
        WatchEvent::Modified(object) => format!("modified {}", object.name()),
        WatchEvent::Replaced { object, .. } => format!("replaced {}", object.name()),
        WatchEvent::Deleted(object) => format!("deleted {}", object.name()),
        WatchEvent::Bookmark { .. } => "bookmark".to_owned(),
    };
    (what, event.revision())
}
