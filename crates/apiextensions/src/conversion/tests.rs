//! Converted storages over the real ones, with a webhook in this process.
//!
//! Objects are stored in v1 and served in v2, where the webhook gives them a label.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::join_all;
use futures::{FutureExt, StreamExt};
use ringwatch::budget::{Account, Ledger};
use ringwatch::clock::Clock;
use ringwatch::meta::{LabelSelector, Object, ResourceVersion, WatchEvent};
use ringwatch::storage::backend::embedded::Embedded;
use ringwatch::storage::cacher::{CacheDelegator, CacheMetrics, Feed, TypeConfig};
use ringwatch::storage::{
    DeleteOptions, GetOptions, Interface, ListOptions, NextContent, NoCheck, Rejection,
    StorageError, TryUpdate, UpdateOptions, WatchStream, etcd3,
};
use ringwatch_apimachinery::path::{list, text};
use ringwatch_webhook::{CallError, ClientConfig, WebhookClient};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::*;
use crate::Definition;

const FOLDER: &str = "/example.com/gates/";

/// Labels objects by their hosts.
#[derive(Debug, Default)]
struct Webhook {
    /// The names of the objects in each call.
    calls: Mutex<Vec<String>>,
    /// The explanation with which calls fail, if they do.
    fails: Mutex<Option<String>>,
}

#[async_trait]
impl WebhookClient for Webhook {
    async fn post(
        &self,
        _to: &ClientConfig,
        review: Bytes,
        _timeout: Duration,
    ) -> Result<Bytes, CallError> {
        // Others get to run while it is asked.
        tokio::task::yield_now().await;
        let review: Value = serde_json::from_slice(&review).expect("JSON");
        let mut objects = list(&review, "request.objects").to_vec();
        let names: Vec<_> = objects.iter().map(|it| text(it, "metadata.name")).collect();
        self.calls.lock().expect("sound").push(names.join(" "));
        if let Some(why) = self.fails.lock().expect("sound").clone() {
            return Err(CallError {
                why,
                is_passing: false,
                status: None,
            });
        }
        for object in &mut objects {
            object["apiVersion"] = review["request"]["desiredAPIVersion"].clone();
            object["metadata"]["labels"] = json!({"on": object["host"]});
        }
        let answer = json!({"apiVersion": review["apiVersion"], "kind": "ConversionReview",
            "response": {"uid": review["request"]["uid"], "result": {"status": "Success"},
                "convertedObjects": objects}});
        Ok(answer.to_string().into())
    }
}

struct World {
    /// The storage below the cache.
    store: Arc<etcd3::Store>,
    /// The storage with the cache.
    stored: Arc<CacheDelegator>,
    webhook: Arc<Webhook>,
    ledger: Ledger,
    feed: JoinSet<()>,
}

impl World {
    /// Creates a storage whose cache is filled.
    async fn new() -> Self {
        let world = Self::unfilled(true);
        world.stored.cacher().ready().await.expect("filled");
        world
    }

    fn unfilled(is_filled_later: bool) -> Self {
        let clock = Clock::real();
        let backend = Arc::new(Embedded::in_memory(clock.clone()));
        let ledger = Ledger::new(1 << 30);
        let changes = Arc::new(etcd3::Changes::new(Arc::clone(&backend) as _, "/registry"));
        let metrics = CacheMetrics::default();
        let (feed, reflector) = Feed::new(changes, clock.clone(), metrics, ledger.clone());
        let cacher = feed.add_type(TypeConfig::new("example.com", "gates").with_prefix(FOLDER));
        let config = etcd3::Config::new("/registry", "/example.com/gates", clock);
        let store = Arc::new(etcd3::Store::new(backend, config));
        let mut running = JoinSet::new();
        if is_filled_later {
            running.spawn(reflector.run(std::future::pending()));
        }
        Self {
            stored: Arc::new(CacheDelegator::new(cacher, Arc::clone(&store) as _)),
            store,
            webhook: Arc::default(),
            ledger,
            feed: running,
        }
    }

    /// Returns a storage as it is served in v2.
    fn shown(&self, inner: Arc<dyn Interface>) -> ConvertedStorage {
        let version = |name: &str, is_stored: bool| {
            json!({"name": name, "served": true, "storage": is_stored, "schema": {
                "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
        };
        let names =
            json!({"plural": "gates", "singular": "gate", "kind": "Gate", "listKind": "GateList"});
        let url = json!({"url": "https://localhost/convert"});
        let webhook = json!({"conversionReviewVersions": ["v1"], "clientConfig": url});
        let definition = Definition::new(json!({"metadata": {"name": "gates.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": names,
                "versions": [version("v1", true), version("v2", false)],
                "conversion": {"strategy": "Webhook", "webhook": webhook}},
            "status": {"acceptedNames": names}}));
        self.served(&definition, "v2", inner)
    }

    /// Returns a storage as it is served in a version.
    fn served(
        &self,
        definition: &Definition,
        version: &str,
        inner: Arc<dyn Interface>,
    ) -> ConvertedStorage {
        let resources = definition.resources().expect("schemas").into_iter();
        let mut resources = resources.filter(|it| it.group_version.version == version);
        let resource = Arc::new(resources.next().expect("it is served"));
        let client: Arc<dyn WebhookClient> = Arc::clone(&self.webhook) as _;
        let converter = Converter::new(definition, &client);
        ConvertedStorage::new(
            inner,
            converter,
            resource,
            &SharedConversions::new(&self.ledger),
        )
    }

    async fn create(&self, name: &str, host: &str) {
        let gate = json!({"apiVersion": "example.com/v1", "kind": "Gate", "host": host,
            "metadata": {"name": name, "namespace": "d", "uid": name}});
        let created = self.stored.create(&key(name), &gate, None).await;
        created.expect("created");
    }

    /// Returns the version in which an object is stored.
    async fn stored_version(&self, name: &str) -> String {
        let object = self.store.get(&key(name), GetOptions::default()).await;
        let object: Value = serde_json::from_slice(object.expect("found").stored()).expect("JSON");
        text(&object, "apiVersion").to_owned()
    }

    fn take_calls(&self) -> Vec<String> {
        std::mem::take(&mut *self.webhook.calls.lock().expect("sound"))
    }
}

fn key(name: &str) -> String {
    format!("{FOLDER}d/{name}")
}

/// Moves a gate to another host.
struct MoveTo(&'static str);

#[async_trait]
impl TryUpdate for MoveTo {
    async fn try_update(&mut self, existing: Option<&Object>) -> Result<NextContent, Rejection> {
        let existing = existing.expect("it exists");
        let mut object: Value = serde_json::from_slice(existing.stored())?;
        object["host"] = json!(self.0);
        Ok(NextContent { object, ttl: None })
    }
}

/// Returns options that select a label.
fn labelled(host: &str) -> ListOptions {
    let mut options = everything();
    let selector = LabelSelector::parse(&format!("on={host}"));
    options.predicate.label = selector.expect("a selector");
    options
}

fn everything() -> ListOptions {
    ListOptions {
        recursive: true,
        ..ListOptions::default()
    }
}

/// Returns the next events of a watch, such as `+a ~a -a`.
async fn events(watch: &mut WatchStream, count: usize) -> String {
    let mut seen = Vec::new();
    while seen.len() < count {
        let event = watch.next().await.expect("an event").expect("no error");
        seen.push(match event {
            WatchEvent::Added(it) => format!("+{}", it.name()),
            WatchEvent::Modified(it) => format!("~{}", it.name()),
            WatchEvent::Deleted(it) => format!("-{}", it.name()),
            other => panic!("{other:?}"),
        });
    }
    seen.join(" ")
}

#[tokio::test]
async fn watches_share_what_is_converted_for_an_event() {
    let world = World::new().await;
    let shown = world.shown(Arc::clone(&world.stored) as _);
    let options = [labelled("x"), labelled("y"), everything()];
    let begun = options.into_iter().cycle().take(12);
    let begun = begun.map(|options| shown.watch(FOLDER, options));
    let mut watches: Vec<_> = join_all(begun)
        .await
        .into_iter()
        .map(|watch| watch.expect("ready"))
        .collect();
    world.create("a", "x").await;
    world.create("b", "y").await;
    let (a, b) = (key("a"), key("b"));
    let (mut update, mut check) = (MoveTo("y"), NoCheck);
    let stored = &world.stored;
    let moved = stored.guaranteed_update(&a, UpdateOptions::default(), &mut update);
    moved.await.expect("updated");
    let deleted = stored.delete(&b, DeleteOptions::default(), &mut check);
    deleted.await.expect("deleted");
    let expected = ["+a -a", "+b +a -b", "+a +b ~a -b"];
    let reading = watches.iter_mut().zip(expected.into_iter().cycle());
    let reading = reading.map(|(watch, expected)| async move {
        let count = expected.split(' ').count();
        assert_eq!(events(watch, count).await, expected);
    });
    join_all(reading).await;
    assert_eq!(world.take_calls(), ["a", "b", "a", "b"]);
    let mut late = shown.watch(FOLDER, everything()).await.expect("ready");
    assert_eq!(events(&mut late, 1).await, "+a");
    assert!(world.take_calls().is_empty(), "it has been converted");
}

#[tokio::test]
async fn a_watch_ends_with_its_error() {
    let world = World::new().await;
    let shown = world.shown(Arc::clone(&world.stored) as _);
    let mut watch = shown.watch(FOLDER, everything()).await.expect("ready");
    *world.webhook.fails.lock().expect("sound") = Some("no answer".to_owned());
    world.create("a", "x").await;
    let error = watch.next().await.expect("an item").expect_err("an error");
    assert!(error.to_string().ends_with("no answer"), "{error}");
    let end = watch.next().now_or_never();
    assert!(matches!(end, Some(None)), "whatever comes later");
    *world.webhook.fails.lock().expect("sound") = None;
    let mut watch = shown.watch(FOLDER, everything()).await.expect("ready");
    assert_eq!(events(&mut watch, 1).await, "+a");
}

#[tokio::test]
async fn the_memory_of_lists_is_in_the_budget() {
    let world = World::new().await;
    for number in 0..20 {
        let host = if number == 7 { "x" } else { "y" };
        world.create(&format!("g{number:02}"), host).await;
    }
    let spent = || world.ledger.spent(Account::Requests);
    let before = spent();
    let cached: Arc<dyn Interface> = Arc::clone(&world.stored) as _;
    for (inner, copies) in [(cached, 1), (Arc::clone(&world.store) as _, 2)] {
        let shown = world.shown(inner);
        let list = |mut options: ListOptions| {
            options.memory = Some(world.ledger.clone());
            shown.get_list(FOLDER, options)
        };
        let all = list(everything()).await.expect("a list");
        let sizes = all.items.iter().map(|it| it.stored().len() as u64);
        // Those of the store are in memory as they are stored as well, a little shorter.
        let least = sizes.sum::<u64>() * copies * 3 / 4;
        let held = spent() - before;
        assert!(held >= least, "{held} of {least} bytes are counted");
        drop(all);
        assert_eq!(spent(), before);
        let one = list(labelled("x")).await.expect("a list");
        assert_eq!(one.items.len(), 1);
        assert!(
            (1..=held / 10).contains(&(spent() - before)),
            "{} of {held}",
            spent()
        );
        drop(one);
        let mut objects = world.ledger.share(Account::Objects);
        objects.set(world.ledger.limit());
        let refused = list(everything()).await;
        assert!(matches!(refused, Err(StorageError::OutOfMemory(_))));
    }
    assert_eq!(spent(), before);
}

/// Its pages have no selectors, but may be many.
#[tokio::test]
async fn a_selecting_list_is_not_the_stores_while_the_cache_is_filled() {
    let world = World::unfilled(false);
    assert!(world.feed.is_empty());
    world.create("a", "x").await;
    let shown = world.shown(Arc::clone(&world.stored) as _);
    let limited = |mut options: ListOptions| {
        options.predicate.limit = 5;
        shown.get_list(FOLDER, options)
    };
    let page = limited(everything()).await.expect("the store's");
    assert_eq!(page.items.len(), 1);
    let refused = limited(labelled("x")).await;
    assert!(matches!(refused, Err(StorageError::NotReady { .. })));
}

/// Returns a definition without a webhook, in which v1 and v2 each have a member of their own.
fn unconverted(storage: &str) -> Definition {
    let version = |name: &str, own: &str| {
        let text = json!({"type": "string"});
        let mut properties = json!({"host": text, "given": {"type": "string", "default": name}});
        properties[own] = json!({"type": "string", "nullable": true});
        json!({"name": name, "served": true, "storage": name == storage, "schema": {
            "openAPIV3Schema": {"type": "object", "properties": properties}}})
    };
    let names =
        json!({"plural": "gates", "singular": "gate", "kind": "Gate", "listKind": "GateList"});
    Definition::new(json!({"metadata": {"name": "gates.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names,
            "versions": [version("v1", "one"), version("v2", "two")],
            "conversion": {"strategy": "None"}},
        "status": {"acceptedNames": names}}))
}

fn content(object: &Object) -> Value {
    let mut object: Value = serde_json::from_slice(object.stored()).expect("JSON");
    object.as_object_mut().expect("members").remove("metadata");
    object
}

/// Changes nothing, and sees the version of the object.
#[derive(Default)]
struct Look(Value);

#[async_trait]
impl TryUpdate for Look {
    async fn try_update(&mut self, existing: Option<&Object>) -> Result<NextContent, Rejection> {
        let object: Value = serde_json::from_slice(existing.expect("it exists").stored())?;
        self.0 = object["apiVersion"].clone();
        Ok(NextContent { object, ttl: None })
    }
}

#[tokio::test]
async fn what_an_older_storage_version_has_is_served_in_the_version_that_is_asked_for() {
    let world = World::new().await;
    let gate = json!({"apiVersion": "example.com/v1", "kind": "Gate", "host": "x", "one": "gone",
        "two": null, "metadata": {"name": "a", "namespace": "d", "uid": "a"}});
    let created = world.stored.create(&key("a"), &gate, None).await;
    created.expect("created");
    let definition = unconverted("v2");
    let v2 = json!({"apiVersion": "example.com/v2", "kind": "Gate", "host": "x", "two": null});
    let v1 = json!({"apiVersion": "example.com/v1", "kind": "Gate", "host": "x", "one": "gone"});
    for (version, expected) in [("v2", &v2), ("v1", &v1)] {
        for inner in [
            Arc::clone(&world.stored) as _,
            Arc::clone(&world.store) as _,
        ] {
            let shown = world.served(&definition, version, inner);
            let got = shown.get(&key("a"), GetOptions::default()).await;
            assert_eq!(
                content(&got.expect("found"))["apiVersion"],
                expected["apiVersion"]
            );
            let list = shown.get_list(FOLDER, everything()).await.expect("a list");
            let mut listed = content(&list.items[0]);
            if version == "v1" {
                listed.as_object_mut().expect("members").remove("two");
            }
            assert_eq!(
                listed, *expected,
                "its members are pruned, and it gets no defaults"
            );
        }
    }
}

#[tokio::test]
async fn events_about_an_older_storage_version_are_converted_once() {
    let world = World::new().await;
    world.create("a", "x").await;
    world.create("b", "y").await;
    let shown = world.served(&unconverted("v2"), "v2", Arc::clone(&world.stored) as _);
    let mut watches = Vec::new();
    for _ in 0..2 {
        watches.push(shown.watch(FOLDER, everything()).await.expect("ready"));
    }
    let (a, b) = (key("a"), key("b"));
    let (mut update, mut check) = (MoveTo("z"), NoCheck);
    let moved = shown.guaranteed_update(&a, UpdateOptions::default(), &mut update);
    assert_eq!(content(&moved.await.expect("updated"))["host"], "z");
    let deleted = shown.delete(&b, DeleteOptions::default(), &mut check).await;
    assert!(deleted.expect("deleted").is_written_in("example.com/v2"));
    let mut seen = Vec::new();
    for watch in &mut watches {
        let mut objects = Vec::new();
        for _ in 0..4 {
            let event = watch.next().await.expect("an event").expect("no error");
            let (WatchEvent::Added(object)
            | WatchEvent::Modified(object)
            | WatchEvent::Deleted(object)) = event
            else {
                panic!("{event:?}");
            };
            assert!(object.is_written_in("example.com/v2"), "{object:?}");
            objects.push(object);
        }
        seen.push(objects);
    }
    let same = seen[0].iter().zip(&seen[1]);
    assert!(same.into_iter().all(|(one, other)| Arc::ptr_eq(one, other)));
}

#[tokio::test]
async fn what_is_stored_as_it_is_served_passes_with_its_bytes() {
    let world = World::new().await;
    world.create("a", "x").await;
    let shown = world.served(&unconverted("v1"), "v1", Arc::clone(&world.stored) as _);
    let written = world.store.get(&key("a"), GetOptions::default()).await;
    let revision = written.expect("found").revision();
    let cached = GetOptions {
        resource_version: Some(ResourceVersion(revision)),
    };
    let stored = world.stored.get(&key("a"), cached).await.expect("found");
    let got = shown.get(&key("a"), cached).await.expect("found");
    assert!(Arc::ptr_eq(&stored, &got));
    let list = shown
        .get_list(FOLDER, labelled("none"))
        .await
        .expect("a list");
    assert!(list.items.is_empty(), "the cache selects");
    let list = shown.get_list(FOLDER, everything()).await.expect("a list");
    assert!(Arc::ptr_eq(&stored, &list.items[0]));
    let mut watch = shown.watch(FOLDER, everything()).await.expect("ready");
    let event = watch.next().await.expect("an event").expect("no error");
    assert!(matches!(event, WatchEvent::Added(object) if Arc::ptr_eq(&stored, &object)));
}

#[tokio::test]
async fn an_update_that_changes_nothing_moves_an_object_to_the_storage_version() {
    let world = World::new().await;
    world.create("a", "x").await;
    let definition = unconverted("v2");
    let mut versions = Vec::new();
    for (version, expected) in [("v1", "example.com/v1"), ("v2", "example.com/v2")] {
        let shown = world.served(&definition, version, Arc::clone(&world.stored) as _);
        let mut look = Look::default();
        let key = key("a");
        let updated = shown.guaranteed_update(&key, UpdateOptions::default(), &mut look);
        let updated = updated.await.expect("updated");
        assert_eq!(look.0, expected);
        assert!(updated.is_written_in(expected));
        assert_eq!(world.stored_version("a").await, "example.com/v2");
        versions.push(updated.revision());
    }
    assert_eq!(versions[0], versions[1], "it had moved");
}

#[tokio::test]
async fn what_is_created_is_shown_with_the_defaults_of_the_version_in_which_it_is_stored() {
    let world = World::new().await;
    for (storage, served, expected) in [
        ("v1", "v1", json!({"host": "x", "one": "1", "given": "v1"})),
        ("v2", "v1", json!({"host": "x", "given": "v2"})),
    ] {
        let definition = unconverted(storage);
        let shown = world.served(&definition, served, Arc::clone(&world.stored) as _);
        let gate = json!({"apiVersion": "example.com/v1", "kind": "Gate", "host": "x", "one": "1",
            "metadata": {"name": storage, "namespace": "d", "uid": storage}});
        let mut expected = expected;
        expected["apiVersion"] = json!("example.com/v1");
        expected["kind"] = json!("Gate");
        let previewed = shown.preview(&gate, 0).await.expect("it can be stored");
        assert_eq!(content(&previewed), expected, "a dry run");
        let created = shown
            .create(&key(storage), &gate, None)
            .await
            .expect("created");
        assert_eq!(content(&created), expected);
        assert!(created.revision() > 0);
    }
}
