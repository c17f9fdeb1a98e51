//! Counts the stored objects of each resource once a minute, for `/metrics` and for the seats that lists take.
//!
//! A resource, built-in or custom, is counted from the creation of its storage until [`ObjectCounts`] is told to forget
//! it.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use ringwatch::clock::{Clock, Instant};
use ringwatch::storage::{Interface, Stats};
use tokio::sync::Notify;

/// The period of the counts of a resource, as in kube-apiserver.
const INTERVAL: Duration = Duration::from_secs(60);
/// Maximum time of one count. A resource whose storage does not answer must not keep the others from being counted.
const COUNT_MAX: Duration = Duration::from_secs(10);
/// The age after which a count is stale, as in kube-apiserver: the number is then unknown.
const STALE_AFTER: Duration = Duration::from_secs(180);
/// The age after which a resource counts as never counted.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3_600);

/// The value while the store does not answer.
const UNKNOWN: i64 = -1;

type Gauges<Labels> = Family<Labels, Gauge<i64, AtomicI64>>;

/// The numbers of objects, and their sizes.
#[derive(Clone, Debug, Default)]
pub struct ObjectCounts {
    counted: Arc<Mutex<BTreeMap<Resource, CountedStorage>>>,
    /// Notified when a storage is added.
    added: Arc<Notify>,
    /// The number of objects, by a name that kube-apiserver has deprecated.
    stored: Gauges<StoredCount>,
    /// The number of objects.
    objects: Gauges<Resource>,
    /// The bytes of the objects together, estimated.
    bytes: Gauges<Resource>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StoredCount {
    resource: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
struct Resource {
    group: String,
    resource: String,
}

impl Resource {
    fn new(group: &str, resource: &str) -> Self {
        Self {
            group: group.to_owned(),
            resource: resource.to_owned(),
        }
    }

    fn qualified(&self) -> StoredCount {
        let Self { group, resource } = self;
        let resource = if group.is_empty() {
            resource.clone()
        } else {
            format!("{resource}.{group}")
        };
        StoredCount { resource }
    }
}

/// A storage that is counted.
#[derive(Debug)]
struct CountedStorage {
    storage: Arc<dyn Interface>,
    /// The time of the next count; `None` for at once.
    due: Option<Instant>,
    /// The last count that succeeded, and when that was.
    last: Option<(Stats, Instant)>,
}

/// The objects of a resource, as far as they are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// The resource is not counted here, or was not counted for a long time.
    Unknown,
    /// The last count is stale, so there may be any number by now.
    Stale,
    /// The result of the last count.
    Counted(Stats),
}

impl ObjectCounts {
    /// Registers the metrics for `/metrics`.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let counts = Self::default();
        registry.register(
            "apiserver_storage_objects",
            "[STABLE] (Deprecated since 1.34.0) [DEPRECATED, consider using apiserver_resource_objects \
             instead] Number of stored objects at the time of last check split by kind. In case of a \
             fetching error, the value will be -1.",
            counts.stored.clone(),
        );
        registry.register(
            "apiserver_resource_objects",
            "[ALPHA] Number of stored objects at the time of last check split by kind. In case of a \
             fetching error, the value will be -1.",
            counts.objects.clone(),
        );
        registry.register(
            "apiserver_resource_size_estimate_bytes",
            "[ALPHA] Estimated size of stored objects in database. Estimate is based on sum of last \
             observed sizes of serialized objects. In case of a fetching error, the value will be \
             -1.",
            counts.bytes.clone(),
        );
        counts
    }

    /// Counts a resource from now on in this storage, which replaces an earlier one of the same resource.
    pub fn add(&self, group: &str, resource: &str, storage: &Arc<dyn Interface>) {
        let counted = CountedStorage {
            storage: Arc::clone(storage),
            due: None,
            last: None,
        };
        let resource = Resource::new(group, resource);
        self.counted().insert(resource, counted);
        self.added.notify_one();
    }

    /// Stops counting a storage and removes its metrics. A newer storage of the same resource stays.
    pub fn remove(&self, storage: &Arc<dyn Interface>) {
        self.counted().retain(|resource, counted| {
            let stays = !Arc::ptr_eq(&counted.storage, storage);
            if !stays {
                self.stored.remove(&resource.qualified());
                self.objects.remove(resource);
                self.bytes.remove(resource);
            }
            stays
        });
    }

    /// Returns the number and size of the stored objects of a resource, as of `now`.
    #[must_use]
    pub fn size(&self, group: &str, resource: &str, now: Instant) -> Size {
        let resource = Resource::new(group, resource);
        let counted = self.counted();
        let Some((stats, at)) = counted.get(&resource).and_then(|it| it.last) else {
            return Size::Unknown;
        };
        match now.saturating_duration_since(at) {
            age if age > FORGOTTEN_AFTER => Size::Unknown,
            age if age > STALE_AFTER => Size::Stale,
            _ => Size::Counted(stats),
        }
    }

    /// Runs the counts that are due, forever.
    pub async fn run(self, clock: Clock) {
        loop {
            let next = self.next();
            let due = async {
                match next.as_ref().map(|(_, due)| *due) {
                    None => std::future::pending().await,
                    Some(None) => {}
                    Some(Some(due)) => clock.sleep_until(due).await,
                }
            };
            tokio::select! {
                () = due => {}
                () = self.added.notified() => continue,
            }
            if let Some((resource, _)) = next {
                self.count(&resource, &clock).await;
            }
        }
    }

    fn counted(&self) -> MutexGuard<'_, BTreeMap<Resource, CountedStorage>> {
        // A panic under the lock leaves every entry consistent, so poison is ignored.
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the resource that is to be counted next, and when.
    fn next(&self) -> Option<(Resource, Option<Instant>)> {
        let counted = self.counted();
        let (resource, next) = counted.iter().min_by_key(|(_, it)| it.due)?;
        Some((resource.clone(), next.due))
    }

    /// Counts the objects of a resource.
    async fn count(&self, resource: &Resource, clock: &Clock) {
        let storage = self
            .counted()
            .get(resource)
            .map(|it| Arc::clone(&it.storage));
        let Some(storage) = storage else {
            return;
        };
        let stats = tokio::select! {
            stats = storage.stats() => stats.map_err(|error| error.to_string()),
            () = clock.sleep(COUNT_MAX) => Err("the storage does not answer".to_owned()),
        };
        let now = clock.now();
        // Held until the metrics are set, so that those of a storage removed meanwhile do not appear again.
        let mut counted = self.counted();
        let counted = counted.get_mut(resource);
        let Some(counted) = counted.filter(|it| Arc::ptr_eq(&it.storage, &storage)) else {
            return;
        };
        counted.due = Some(now + INTERVAL);
        let (objects, bytes) = match stats {
            Ok(stats) => {
                counted.last = Some((stats, now));
                let each = stats.estimated_average_object_size_bytes;
                let bytes = stats.object_count.saturating_mul(each);
                (shown(stats.object_count), shown(bytes))
            }
            Err(error) => {
                tracing::debug!(%error, ?resource, "cannot count objects");
                (UNKNOWN, UNKNOWN)
            }
        };
        self.stored
            .get_or_create(&resource.qualified())
            .set(objects);
        self.objects.get_or_create(resource).set(objects);
        self.bytes.get_or_create(resource).set(bytes);
    }
}

fn shown(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use ringwatch::storage::backend::embedded::Embedded;
    use ringwatch::storage::etcd3;
    use serde_json::json;

    use super::*;

    const LABELS: &str = "group=\"apps\",resource=\"deployments\"";
    /// Maximum number of times that a test yields until its condition must hold.
    const TURNS_MAX: u32 = 1_000;

    /// Returns a storage with a deployment, and how many bytes that has.
    async fn storage(clock: &Clock) -> (Arc<dyn Interface>, u64) {
        let config = etcd3::Config::new("/registry", "/deployments", clock.clone());
        let store = etcd3::Store::new(Arc::new(Embedded::in_memory(clock.clone())), config);
        let bytes = create(&store, "a").await;
        (Arc::new(store), bytes)
    }

    /// Creates a deployment and says how many bytes it has.
    async fn create(storage: &dyn Interface, name: &str) -> u64 {
        let object = json!({"kind": "Deployment", "apiVersion": "apps/v1",
            "metadata": {"name": name, "namespace": "default"}});
        let key = format!("/deployments/default/{name}");
        let created = storage.create(&key, &object, None).await;
        created.expect("created").stored().len() as u64
    }

    fn text(registry: &Registry) -> String {
        let mut text = String::new();
        encode(&mut text, registry).expect("text");
        text
    }

    fn one_of(bytes: u64) -> Size {
        Size::Counted(Stats {
            object_count: 1,
            estimated_average_object_size_bytes: bytes,
        })
    }

    #[tokio::test]
    async fn objects_are_counted_and_weighed_until_their_storage_is_given_up() {
        let clock = Clock::real();
        let (store, bytes) = storage(&clock).await;
        let mut registry = Registry::default();
        let counts = ObjectCounts::register(&mut registry);
        counts.add("apps", "deployments", &store);
        let resource = Resource::new("apps", "deployments");
        counts.count(&resource, &clock).await;
        let shown = text(&registry);
        for line in [
            "apiserver_storage_objects{resource=\"deployments.apps\"} 1\n".to_owned(),
            format!("apiserver_resource_objects{{{LABELS}}} 1\n"),
            format!("apiserver_resource_size_estimate_bytes{{{LABELS}}} {bytes}\n"),
        ] {
            assert!(shown.contains(&line), "{line} in {shown}");
        }
        counts.remove(&store);
        counts.count(&resource, &clock).await;
        let shown = text(&registry);
        assert!(!shown.contains("deployments"), "{shown}");
        let size = counts.size("apps", "deployments", clock.now());
        assert_eq!(size, Size::Unknown);
    }

    #[tokio::test]
    async fn a_storage_that_takes_the_place_of_another_stays() {
        let clock = Clock::real();
        let (before, bytes) = storage(&clock).await;
        let (after, _) = storage(&clock).await;
        let counts = ObjectCounts::default();
        counts.add("apps", "deployments", &before);
        counts.add("apps", "deployments", &after);
        counts.remove(&before);
        let resource = Resource::new("apps", "deployments");
        counts.count(&resource, &clock).await;
        let size = counts.size("apps", "deployments", clock.now());
        assert_eq!(size, one_of(bytes));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_added_is_counted_at_once_and_again_after_a_minute() {
        let clock = Clock::real();
        let counts = ObjectCounts::default();
        let counted = async || {
            let mut last = None;
            for _ in 0..TURNS_MAX {
                tokio::task::yield_now().await;
                if let Size::Counted(stats) = counts.size("apps", "deployments", clock.now()) {
                    last = Some(stats.object_count);
                }
            }
            last
        };
        let looking = async {
            assert_eq!(counted().await, None);
            let (store, _) = storage(&clock).await;
            counts.add("apps", "deployments", &store);
            let begun = clock.now();
            assert_eq!(counted().await, Some(1));
            assert_eq!(clock.now(), begun, "nothing was waited for");
            create(&*store, "b").await;
            assert_eq!(counted().await, Some(1));
            tokio::time::advance(INTERVAL).await;
            assert_eq!(counted().await, Some(2));
        };
        tokio::select! {
            () = counts.clone().run(clock.clone()) => {}
            () = looking => {}
        }
    }

    #[tokio::test]
    async fn a_count_becomes_stale_and_is_forgotten() {
        let clock = Clock::real();
        let (store, bytes) = storage(&clock).await;
        let counts = ObjectCounts::default();
        counts.add("apps", "deployments", &store);
        let resource = Resource::new("apps", "deployments");
        counts.count(&resource, &clock).await;
        let after = |seconds| {
            let now = clock.now() + Duration::from_secs(seconds);
            counts.size("apps", "deployments", now)
        };
        assert_eq!(after(170), one_of(bytes));
        assert_eq!(after(190), Size::Stale);
        assert_eq!(after(3_700), Size::Unknown);
    }
}
