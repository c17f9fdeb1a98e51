//! The implementations under test: the store and the cache in front of it, over each backend, with
//! objects in JSON and in protobuf.

use std::sync::Arc;
use std::thread::JoinHandle;

use prometheus_client::registry::Registry;
use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch::storage::StorageMediaType::{self, Json, Protobuf};
use ringwatch::storage::backend::Backend;
use ringwatch::storage::backend::embedded::Embedded;
use ringwatch::storage::backend::etcd::{self, TlsFiles};
use ringwatch::storage::cacher::{CacheDelegator, CacheMetrics, Feed, TypeConfig, WindowLimits};
use ringwatch::storage::{Interface, Versioner, etcd3};
use ringwatch_conformance::{Subject, schema};
use tempfile::TempDir;

use crate::support::etcd::Etcd;

/// The prefix of all keys.
const PATH_PREFIX: &str = "/registry";

/// The number of events that the cache under test remembers.
const WINDOW_EVENTS: usize = 200;

/// The parts beneath a subject. Fields are dropped in this order.
#[derive(Default)]
struct Support {
    /// Loops of the backend and the cache.
    tasks: tokio::task::JoinSet<()>,
    /// The embedded file's store, closed at the end, and its thread.
    embedded: Option<(Arc<Embedded>, JoinHandle<()>)>,
    /// The embedded file's folder.
    folder: Option<TempDir>,
    /// The etcd.
    etcd: Option<Etcd>,
}

impl Drop for Support {
    fn drop(&mut self) {
        self.tasks.abort_all();
        if let Some((store, thread)) = self.embedded.take() {
            store.close();
            thread.join().expect("the commit loop ends");
        }
    }
}

pub(super) async fn memory_store() -> Option<Subject> {
    let (backend, support) = memory();
    Some(store(backend, support, Json))
}

pub(super) async fn memory_cacher() -> Option<Subject> {
    let (backend, support) = memory();
    Some(cacher(backend, support, Json).await)
}

pub(super) async fn memory_protobuf_store() -> Option<Subject> {
    let (backend, support) = memory();
    Some(store(backend, support, Protobuf))
}

pub(super) async fn memory_protobuf_cacher() -> Option<Subject> {
    let (backend, support) = memory();
    Some(cacher(backend, support, Protobuf).await)
}

pub(super) async fn embedded_store() -> Option<Subject> {
    let (backend, support) = embedded();
    Some(store(backend, support, Protobuf))
}

pub(super) async fn embedded_cacher() -> Option<Subject> {
    let (backend, support) = embedded();
    Some(cacher(backend, support, Protobuf).await)
}

pub(super) async fn etcd_store() -> Option<Subject> {
    let (backend, support) = real_etcd().await?;
    Some(store(backend, support, Protobuf))
}

pub(super) async fn etcd_cacher() -> Option<Subject> {
    let (backend, support) = real_etcd().await?;
    Some(cacher(backend, support, Protobuf).await)
}

fn memory() -> (Arc<dyn Backend>, Support) {
    let backend = Arc::new(Embedded::in_memory(Clock::real()));
    let mut support = Support::default();
    support.tasks.spawn(run_leases(Arc::clone(&backend)));
    (backend, support)
}

fn embedded() -> (Arc<dyn Backend>, Support) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.redb");
    let (backend, commits) = Embedded::open(&path, Clock::real()).expect("a new file");
    let backend = Arc::new(backend);
    let mut support = Support::default();
    support.tasks.spawn(run_leases(Arc::clone(&backend)));
    let thread = std::thread::spawn(move || commits.run());
    support.embedded = Some((Arc::clone(&backend), thread));
    support.folder = Some(folder);
    (backend, support)
}

async fn run_leases(backend: Arc<Embedded>) {
    backend.run_leases(std::future::pending()).await;
}

async fn real_etcd() -> Option<(Arc<dyn Backend>, Support)> {
    let etcd = Etcd::start("the suite over etcd")?;
    let config = etcd::Config::new(vec![etcd.endpoint()], TlsFiles::default());
    let backend = etcd::Etcd::connect(config, Clock::real())
        .await
        .expect("an etcd that answers");
    let mut support = Support::default();
    support.etcd = Some(etcd);
    Some((Arc::new(backend), support))
}

fn store(backend: Arc<dyn Backend>, support: Support, media_type: StorageMediaType) -> Subject {
    let interface = Arc::new(raw_store(&backend, media_type));
    subject(interface, backend, 0, support)
}

async fn cacher(
    backend: Arc<dyn Backend>,
    mut support: Support,
    media_type: StorageMediaType,
) -> Subject {
    let source = Arc::new(etcd3::Changes::new(Arc::clone(&backend), PATH_PREFIX));
    let metrics = CacheMetrics::register(&mut Registry::default());
    let (feed, reflector) = Feed::new(source, Clock::real(), metrics, Ledger::unlimited());
    let cacher = feed.add_type(
        TypeConfig::new("", "pods")
            .with_versioner(Versioner::new(schema()))
            .with_window(WindowLimits {
                events_min: WINDOW_EVENTS,
                events_max: WINDOW_EVENTS,
                ..WindowLimits::default()
            }),
    );
    support.tasks.spawn(async move {
        reflector.run(std::future::pending()).await;
    });
    cacher.ready().await.expect("a cache that fills");
    let store = raw_store(&backend, media_type);
    let interface = Arc::new(CacheDelegator::new(cacher, Arc::new(store)));
    // A window keeps less than a sixteenth more than it must.
    let fill = WINDOW_EVENTS + WINDOW_EVENTS / 16;
    subject(interface, backend, fill, support)
}

fn raw_store(backend: &Arc<dyn Backend>, media_type: StorageMediaType) -> etcd3::Store {
    etcd3::Store::new(
        Arc::clone(backend),
        etcd3::Config::new(PATH_PREFIX, "/pods", Clock::real())
            .with_versioner(Versioner::new(schema()).writing(media_type)),
    )
}

fn subject(
    interface: Arc<dyn Interface>,
    backend: Arc<dyn Backend>,
    window: usize,
    support: Support,
) -> Subject {
    Subject::new(interface, backend, PATH_PREFIX, window, support)
}
