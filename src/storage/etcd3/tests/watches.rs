//! Watches straight from an etcd that deletes several keys at one revision and breaks their streams.

use futures::StreamExt;
use proptest::prelude::*;

use super::etcd::Etcd;
use super::*;
use crate::meta::{ResourceVersion, WatchEvent};
use crate::storage::backend::{BackendError, Event, EventKind, KeyRange, LeaseId, WatchRequest};
use crate::storage::etcd3::Store;
use crate::storage::{Interface, ListOptions, StorageError, WatchStream};

/// The number of keys.
const KEYS: usize = 5;
/// The time to live of a lease in seconds.
const LEASE: i64 = 10;

#[derive(Clone, Debug)]
enum Step {
    /// A key is written, and expires with others if it has a lease.
    Write {
        key: usize,
        is_leased: bool,
    },
    Delete(usize),
    /// The keys that have a lease go at one revision.
    Expire,
    /// The stream breaks, and so often more when it is opened again.
    Break(u32),
    /// The client reads what there is.
    Read,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..KEYS, any::<bool>()).prop_map(|(key, is_leased)| Step::Write { key, is_leased }),
        2 => (0..KEYS).prop_map(Step::Delete),
        2 => Just(Step::Expire),
        2 => (0..3_u32).prop_map(Step::Break),
        2 => Just(Step::Read),
    ];
    proptest::collection::vec(step, 1..30)
}

/// An event, in short: `+k1@7` or `-k1@8`.
fn of_etcd(event: &Event) -> String {
    let sign = if event.kind == EventKind::Put {
        '+'
    } else {
        '-'
    };
    let name = event.kv.key.rsplit('/').next().unwrap_or_default();
    format!("{sign}{name}@{}", event.kv.mod_revision)
}

fn of_watch(event: &WatchEvent) -> String {
    match event {
        WatchEvent::Added(object) | WatchEvent::Modified(object) => {
            format!("+{}@{}", object.name(), object.revision())
        }
        WatchEvent::Deleted(object) => format!("-{}@{}", object.name(), object.revision()),
        other => panic!("{other:?}"),
    }
}

/// Returns what a stream delivers before it waits for longer than a stream is opened again.
async fn delivered<T>(stream: &mut (impl futures::Stream<Item = T> + Unpin)) -> Vec<T> {
    let mut items = Vec::new();
    let moment = Duration::from_secs(30);
    while let Ok(Some(item)) = Clock::real().timeout(moment, stream.next()).await {
        items.push(item);
    }
    items
}

struct World {
    etcd: Arc<Etcd>,
    store: Store,
    lease: Option<LeaseId>,
}

impl World {
    fn new() -> Self {
        let etcd = Etcd::new();
        Self {
            store: Store::new(Arc::clone(&etcd) as _, config()),
            etcd,
            lease: None,
        }
    }

    async fn watch(&self) -> WatchStream {
        self.watch_from(Some(ResourceVersion(1))).await
    }

    async fn watch_from(&self, resource_version: Option<ResourceVersion>) -> WatchStream {
        let options = ListOptions {
            resource_version,
            recursive: true,
            ..ListOptions::default()
        };
        let watch = self.store.watch("/configmaps/", options).await;
        watch.expect("a watch")
    }

    async fn write(&mut self, name: &str, is_leased: bool) {
        let content = &self.etcd.content;
        if is_leased && self.lease.is_none() {
            self.lease = Some(content.grant_lease(LEASE).await.expect("a lease"));
        }
        self.put(name, self.lease.filter(|_| is_leased)).await;
    }

    async fn write_plain(&self, name: &str) {
        self.put(name, None).await;
    }

    async fn put(&self, name: &str, lease: Option<LeaseId>) {
        let key = format!("/registry/configmaps/d/{name}");
        let value = config_map(name, "x").to_string().into();
        self.change(Op::Put { key, value, lease }).await;
    }

    async fn delete(&self, name: &str) {
        let key = format!("/registry/configmaps/d/{name}");
        self.change(Op::Delete { key }).await;
    }

    async fn change(&self, op: Op) {
        let txn = Txn {
            compare: Compare::Version("/never".to_owned(), 0),
            then: op,
            otherwise: None,
        };
        self.etcd.content.txn(txn).await.expect("a write");
    }

    async fn expire(&mut self) {
        self.lease = None;
        let past = Duration::from_secs(LEASE.unsigned_abs() + 1);
        let clock = Clock::real();
        self.etcd.content.run_leases(clock.sleep(past)).await;
    }

    async fn step(&mut self, step: Step, watch: &mut WatchStream, seen: &mut Vec<String>) {
        match step {
            Step::Write { key, is_leased } => self.write(&format!("k{key}"), is_leased).await,
            Step::Delete(key) => self.delete(&format!("k{key}")).await,
            Step::Expire => self.expire().await,
            Step::Break(again) => {
                self.etcd.script().away = again;
                self.etcd.break_watches();
            }
            Step::Read => {
                for item in delivered(watch).await {
                    seen.push(of_watch(&item.expect("an event")));
                }
            }
        }
    }
}

/// Takes the steps and returns what a watch of the store and a watch of the content were told.
async fn told(steps: impl IntoIterator<Item = Step>) -> [Vec<String>; 2] {
    let mut world = World::new();
    let (mut watch, mut seen) = (world.watch().await, Vec::new());
    for step in steps.into_iter().chain([Step::Read]) {
        world.step(step, &mut watch, &mut seen).await;
    }
    let request = WatchRequest {
        range: KeyRange::prefix("/"),
        start_revision: 2,
        previous: false,
        progress: false,
    };
    let mut all = world.etcd.content.watch(request).await.expect("a watch");
    let responses = delivered(&mut all).await.into_iter();
    let events = responses.flat_map(|it| it.expect("events").events);
    [seen, events.map(|it| of_etcd(&it)).collect()]
}

proptest! {
    #[test]
    fn a_watch_is_told_everything_once_and_in_order(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        let [seen, all] = runtime.block_on(told(steps));
        prop_assert_eq!(seen, all);
    }
}

/// Each page is of the revision of the first, whatever happens before it is read, and the changes come after all of
/// them.
#[tokio::test]
async fn a_state_of_several_pages_is_of_one_revision() {
    let world = World::new();
    world.etcd.script().page_max = Some(2);
    for number in 0..7 {
        world.write_plain(&format!("k{number}")).await;
    }
    let mut watch = world.watch_from(None).await;
    let mut told = Vec::new();
    let mut next = async || {
        let item = watch.next().await.expect("open").expect("an event");
        told.push(of_watch(&item));
    };
    next().await;
    // Before, within and after the page that is read next.
    world.delete("k0").await;
    world.delete("k3").await;
    world.write_plain("k30").await;
    next().await;
    world.write_plain("k6").await;
    for _ in 0..9 {
        next().await;
    }
    let state = (0..7).map(|number| format!("+k{number}@{}", number + 2));
    let changes = ["-k0@9", "-k3@10", "+k30@11", "+k6@12"].map(str::to_owned);
    assert_eq!(told, state.chain(changes).collect::<Vec<_>>());
}

/// A client learns at once that there is no state, whichever way the etcd fails; what fails later ends its watch.
#[tokio::test]
async fn a_watch_whose_state_cannot_be_read_is_refused() {
    for error in [
        BackendError::Unavailable("away".to_owned()),
        BackendError::ReadOnly("full".to_owned()),
        BackendError::Timeout("late".to_owned()),
    ] {
        let world = World::new();
        world.etcd.script().read_errors.push_back(error.clone());
        let options = ListOptions {
            recursive: true,
            ..ListOptions::default()
        };
        let watch = world.store.watch("/configmaps/", options).await.map(drop);
        let refusal = watch.expect_err("no state").to_string();
        assert_eq!(refusal, StorageError::from(error.clone()).to_string());

        world.etcd.script().page_max = Some(1);
        world.write_plain("a").await;
        world.write_plain("b").await;
        let mut watch = world.watch_from(None).await;
        world.etcd.script().read_errors.push_back(error);
        watch.next().await.expect("open").expect("the first page");
        watch
            .next()
            .await
            .expect("open")
            .expect_err("no second one");
        assert!(watch.next().await.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn keys_that_expire_together_are_all_told() {
    let write = |key, is_leased| Step::Write { key, is_leased };
    for also in [Step::Read, Step::Break(0), Step::Break(2)] {
        let steps = [
            write(0, true),
            write(1, false),
            write(2, true),
            write(3, true),
            also,
            Step::Expire,
        ];
        let [seen, all] = told(steps).await;
        assert_eq!(seen, all);
        assert_eq!(seen[4..], ["-k0@6", "-k2@6", "-k3@6"]);
    }
}
