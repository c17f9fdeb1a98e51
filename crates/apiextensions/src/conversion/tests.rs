//! Converted storages over the real ones, with a webhook in this process.
//!
//! Objects are stored in v1 and served in v2, where the webhook gives them a label.

use std::sync::Mutex;

use async_trait::async_trait;
use futures::future::join_all;
use futures::{FutureExt, StreamExt};
use ringwatch::budget::{Account, Ledger};
use ringwatch::clock::Clock;
use ringwatch::meta::{LabelSelector, Object, WatchEvent};
use ringwatch::storage::backend::embedded::Embedded;
use ringwatch::storage::cacher::{CacheDelegator, CacheMetrics, Feed, TypeConfig, WindowLimits};
use ringwatch::storage::{
    DeleteOptions, Interface, ListOptions, NoCheck, Rejection, StorageError, TryUpdate,
    UpdateOptions, Updated, Versioner, WatchStream, etcd3,
};
use ringwatch_apimachinery::webhook_client::CallError;
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
        let cacher = feed.add_type(TypeConfig {
            group: "example.com".to_owned(),
            resource: "gates".to_owned(),
            prefix: FOLDER.to_owned(),
            versioner: Versioner::default(),
            window: WindowLimits::default(),
            shard_indexes: false,
        });
        let config = etcd3::Config {
            path_prefix: "/registry".to_owned(),
            resource_prefix: "/example.com/gates".to_owned(),
            versioner: Versioner::default(),
            clock,
            compact_revision: None,
        };
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
        let resources = definition.resources().expect("schemas");
        let [v1, v2]: [_; 2] = resources.try_into().expect("two versions");
        let client: Arc<dyn WebhookClient> = Arc::clone(&self.webhook) as _;
        let converter = Converter::read(definition.object(), &client).expect("a webhook");
        let conversions = SharedConversions::new(&self.ledger);
        let v1 = Some(Arc::new(v1));
        ConvertedStorage::new(inner, converter, Arc::new(v2), v1, &conversions)
    }

    async fn create(&self, name: &str, host: &str) {
        let gate = json!({"apiVersion": "example.com/v1", "kind": "Gate", "host": host,
            "metadata": {"name": name, "namespace": "d", "uid": name}});
        let created = self.stored.create(&key(name), &gate, None).await;
        created.expect("created");
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
    async fn try_update(&mut self, existing: Option<&Object>) -> Result<Updated, Rejection> {
        let existing = existing.expect("it exists");
        let mut object: Value = serde_json::from_slice(existing.stored())?;
        object["host"] = json!(self.0);
        Ok(Updated { object, ttl: None })
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
