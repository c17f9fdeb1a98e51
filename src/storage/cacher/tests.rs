//! The cache against a source that does what each test says. Time is tokio's, paused.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::{CacheDelegator, CacheMetrics, Cacher, Feed, TypeConfig, WindowLimits};
use crate::budget::Ledger;
use crate::clock::Clock;
use crate::meta::{LabelSelector, ResourceVersion, WatchEvent};
use crate::storage::{
    Interface, List, ListOptions, SelectionPredicate, StorageError, Versioner, WatchStream,
};
use scripted::{CountingStore, Script};

mod dropped;
mod encrypted;
mod feeding;
mod field_index;
mod figures;
mod following;
mod histories;
mod history;
mod index;
mod log;
mod memory;
mod model;
mod oracle;
mod probe;
mod readiness;
mod reading;
mod registrations;
mod ring;
mod scripted;
mod shards;
mod suggestions;
mod types;
mod watching;
mod window;
mod without_store;

/// A feed of pods over a scripted source.
struct World {
    script: Arc<Script>,
    feed: Feed,
    pods: Arc<Cacher>,
    store: Arc<CountingStore>,
    delegator: CacheDelegator,
    clock: Clock,
    ledger: Ledger,
    /// Stops the feed.
    shutdown: Option<oneshot::Sender<()>>,
    /// The running feed; dropped with the world.
    running: JoinSet<()>,
}

impl World {
    /// Creates a feed that runs and has listed its pods.
    async fn new(limits: WindowLimits) -> Self {
        let world = Self::of(Arc::new(Script::default()), limits);
        world.pods.ready().await.expect("listed");
        world.settle().await;
        world
    }

    /// Creates a feed that runs.
    fn of(script: Arc<Script>, limits: WindowLimits) -> Self {
        Self::with(script, limits, CacheMetrics::default())
    }

    /// Creates a feed that runs, with metrics of the test's own.
    fn with(script: Arc<Script>, limits: WindowLimits, metrics: CacheMetrics) -> Self {
        Self::within(script, limits, metrics, Ledger::unlimited())
    }

    /// Creates a feed that runs, with a memory budget.
    fn within(
        script: Arc<Script>,
        limits: WindowLimits,
        metrics: CacheMetrics,
        ledger: Ledger,
    ) -> Self {
        let clock = Clock::stepped(Timestamp::UNIX_EPOCH);
        let source = Arc::clone(&script);
        let (feed, reflector) = Feed::new(source, clock.clone(), metrics, ledger.clone());
        let pods = feed.add_type(of_type("pods", "/pods/", limits));
        let store = Arc::new(CountingStore::default());
        let (sender, receiver) = oneshot::channel::<()>();
        let mut running = JoinSet::new();
        running.spawn(reflector.run(async move {
            // A world that is dropped shuts down as well.
            let _ = receiver.await;
        }));
        Self {
            delegator: CacheDelegator::new(Arc::clone(&pods), Arc::clone(&store) as _),
            script,
            feed,
            pods,
            store,
            clock,
            ledger,
            shutdown: Some(sender),
            running,
        }
    }

    /// Lets everything happen that can happen now.
    async fn settle(&self) {
        self.clock.sleep(Duration::from_millis(1)).await;
    }

    /// Writes pods of these names, each in a revision of its own.
    fn put_pods(&self, names: &[&str]) {
        for name in names {
            self.script.put(&format!("/pods/d/{name}"), "x");
        }
    }

    async fn watch(&self, options: ListOptions) -> WatchStream {
        self.pods.watch("/pods/", options).await.expect("ready")
    }

    async fn list(&self, options: ListOptions) -> Result<List, StorageError> {
        self.delegator.get_list("/pods/", options).await
    }
}

fn of_type(resource: &str, prefix: &str, window: WindowLimits) -> TypeConfig {
    TypeConfig::new("", resource)
        .with_prefix(prefix)
        .with_window(window)
        .with_shard_indexes(true)
}

/// Returns the options of a watch or list after a revision.
fn since(revision: u64) -> ListOptions {
    ListOptions {
        resource_version: Some(ResourceVersion(revision)),
        recursive: true,
        ..ListOptions::default()
    }
}

/// Returns the options of a list of the newest state.
fn newest() -> ListOptions {
    ListOptions {
        resource_version: None,
        ..since(0)
    }
}

/// Returns limits by which a window keeps exactly so many events.
fn so_many_events(events: usize) -> WindowLimits {
    WindowLimits {
        events_min: events,
        events_max: events,
        ..WindowLimits::default()
    }
}

/// Returns a runtime for a property, whose time stands still while there is something to do.
fn paused_runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let builder = builder.enable_time().start_paused(true);
    builder.build().expect("a runtime")
}

/// Returns the options of a watch list: the state, and bookmarks.
fn streamed(revision: Option<u64>) -> ListOptions {
    let mut options = bookmarked(revision);
    options.send_initial_events = Some(true);
    options
}

/// Returns the options of a watch with bookmarks.
fn bookmarked(revision: Option<u64>) -> ListOptions {
    ListOptions {
        resource_version: revision.map(ResourceVersion),
        predicate: SelectionPredicate {
            allow_watch_bookmarks: true,
            ..SelectionPredicate::default()
        },
        ..since(0)
    }
}

/// Returns options that select a label `app`.
fn labelled(app: &str, mut options: ListOptions) -> ListOptions {
    let selector = LabelSelector::parse(&format!("app={app}"));
    options.predicate.label = selector.expect("a selector");
    options
}

/// Returns the next item of a watch, in short: `+a@2`, `~a@3`, `~a@2-3`, `-a@4`, `=5`, `=5!`, or how it ended.
async fn next_item(watch: &mut WatchStream) -> String {
    let limit = Duration::from_secs(3600);
    match tokio::time::timeout(limit, watch.next()).await {
        Ok(item) => short(item),
        Err(_) => "nothing for an hour".to_owned(),
    }
}

/// Returns the next `count` items of a watch.
async fn next_items(watch: &mut WatchStream, count: usize) -> String {
    let mut text = String::new();
    for _ in 0..count {
        write!(text, "{} ", next_item(watch).await).expect("a string takes all");
    }
    text.trim_end().to_owned()
}

/// Returns the next item of a watch if it comes without time passing.
async fn item_now(watch: &mut WatchStream) -> Option<String> {
    let moment = Duration::from_millis(1);
    tokio::time::timeout(moment, watch.next())
        .await
        .ok()
        .map(short)
}

fn short(item: Option<Result<WatchEvent, StorageError>>) -> String {
    let (sign, object) = match item {
        None => return "end".to_owned(),
        Some(Err(error)) => return error.to_string(),
        Some(Ok(WatchEvent::Bookmark {
            revision,
            initial_events_end,
        })) => {
            let mark = if initial_events_end { "!" } else { "" };
            return format!("={revision}{mark}");
        }
        Some(Ok(WatchEvent::Added(object))) => ('+', object),
        Some(Ok(WatchEvent::Modified(object))) => ('~', object),
        Some(Ok(WatchEvent::Replaced { object, previous })) => {
            let (name, from, to) = (object.name(), previous.revision(), object.revision());
            return format!("~{name}@{from}-{to}");
        }
        Some(Ok(WatchEvent::Deleted(object))) => ('-', object),
    };
    format!("{sign}{}@{}", object.name(), object.revision())
}

/// Returns a list, in short: its revision, the names, and whether there is more.
fn listed(list: &List) -> String {
    let names: Vec<_> = list.items.iter().map(|it| it.name()).collect();
    let more = if list.continue_token.is_some() {
        " ..."
    } else {
        ""
    };
    format!("{}: {}{more}", list.revision, names.join(" "))
}
