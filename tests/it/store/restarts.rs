//! The cache over a real backend when a server starts again, and when the store is rolled back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use prometheus_client::registry::Registry;
use ringwatch::budget::Ledger;
use ringwatch::meta::ResourceVersion;
use ringwatch::storage::ListOptions;
use ringwatch::storage::cacher::{CacheDelegator, CacheMetrics, Feed, TypeConfig};
use ringwatch::storage::etcd3::Changes;
use tokio::task::JoinSet;

use super::*;

over_backends!(watches_resume_after_a_restart_from_all_of_history);

/// The least number of versions that are written before the restart.
const WRITTEN: u64 = 1_500;
/// The number of objects that are written in turns.
const OBJECTS: u64 = 20;
/// The time between two writes.
const WRITE_PERIOD: Duration = Duration::from_millis(1);
/// The number of versions between two positions from which watches resume.
const POSITIONS_APART: usize = 50;

/// A server: a feed and one type's cache over a backend.
struct Server {
    delegator: CacheDelegator,
    /// The feed; dropped with the server.
    _running: JoinSet<()>,
}

impl Server {
    async fn start(fixture: &Fixture) -> Self {
        let source = Arc::new(Changes::new(Arc::clone(&fixture.backend), "/registry"));
        let metrics = CacheMetrics::register(&mut Registry::default());
        let (feed, reflector) = Feed::new(source, Clock::real(), metrics, Ledger::unlimited());
        let cacher = feed.add_type(TypeConfig::new("", "configmaps").with_prefix(ALL));
        let mut running = JoinSet::new();
        running.spawn(reflector.run(std::future::pending()));
        let ready = tokio::time::timeout(DEADLINE, cacher.ready()).await;
        ready.expect("in time").expect("filled");
        Self {
            delegator: CacheDelegator::new(cacher, Arc::new(fixture.store.clone())),
            _running: running,
        }
    }

    async fn watch(&self, after: u64) -> WatchStream {
        let options = ListOptions {
            resource_version: Some(ResourceVersion(after)),
            recursive: true,
            ..ListOptions::default()
        };
        self.delegator.watch(ALL, options).await.expect("ready")
    }
}

/// A server ends and another begins while writes go on. Clients that stood anywhere in the history
/// come to the new one, and each receives everything since, once and in order: nobody is too late.
async fn watches_resume_after_a_restart_from_all_of_history(fixture: Fixture) {
    let fixture = Arc::new(fixture);
    let first = fixture.create("first", "x").await.revision();
    let server = Server::start(&fixture).await;
    let mut early = server.watch(first).await;
    let stop = Arc::new(AtomicBool::new(false));
    let mut writer = JoinSet::new();
    let (writing, stopped) = (Arc::clone(&fixture), Arc::clone(&stop));
    writer.spawn(async move {
        let mut written = Vec::new();
        let mut tick = tokio::time::interval(WRITE_PERIOD);
        while !stopped.load(Ordering::SeqCst) {
            tick.tick().await;
            let number = written.len() as u64;
            let (name, label) = (format!("m{}", number % OBJECTS), number.to_string());
            let object = if number < OBJECTS {
                writing.create(&name, &label).await
            } else {
                writing.label(&name, &label).await
            };
            written.push(object.revision());
        }
        written
    });
    let mut seen = vec![first];
    while (seen.len() as u64) < WRITTEN {
        let event = next_item(&mut early).await.expect("an event");
        seen.push(event.revision());
    }
    drop((early, server));
    let server = Server::start(&fixture).await;
    let mut resumed = Vec::new();
    for position in seen.iter().step_by(POSITIONS_APART) {
        resumed.push((*position, server.watch(*position).await));
    }
    stop.store(true, Ordering::SeqCst);
    let written = writer
        .join_next()
        .await
        .expect("a writer")
        .expect("its end");
    assert_eq!(seen[1..], written[..seen.len() - 1]);
    for (position, mut watch) in resumed {
        for revision in written.iter().filter(|it| **it > position) {
            let event = next_item(&mut watch).await.expect("nobody is too late");
            assert_eq!(event.revision(), *revision, "after {position}");
        }
    }
}

/// F11 with a real etcd: its data are replaced by an older copy while the server runs. Watches end
/// with "too old", and what is served then is what etcd holds.
#[tokio::test]
async fn f11_an_etcd_that_is_put_back_is_read_anew() {
    let name = concat!(
        module_path!(),
        "::f11_an_etcd_that_is_put_back_is_read_anew"
    );
    let Some(mut fixture) = Fixture::etcd(name).await else {
        return;
    };
    let kept = fixture.create("kept", "x").await.revision();
    let copy = fixture.etcd.as_mut().expect("an etcd").copy();
    let server = Server::start(&fixture).await;
    let mut watch = server.watch(kept).await;
    let mut last = kept;
    for name in ["lost-1", "lost-2", "lost-3"] {
        last = fixture.create(name, "x").await.revision();
        assert_eq!(next(&mut watch).await, format!("ADDED {name} x {last}"));
    }
    fixture.etcd.as_mut().expect("an etcd").put_back(&copy);
    let error = next_item(&mut watch).await.expect_err("too old");
    assert!(matches!(error, StorageError::WatchExpired), "{error:?}");
    let ready = server.delegator.cacher().ready();
    let ready = tokio::time::timeout(DEADLINE, ready).await;
    ready.expect("in time").expect("filled");
    let list = server.delegator.get_list(ALL, all()).await.expect("a list");
    let names: Vec<_> = list.items.iter().map(|it| it.name()).collect();
    assert_eq!(names, ["kept"]);
    assert!(list.revision < last);
    let mut watch = server.watch(list.revision).await;
    let again = fixture.create("new", "y").await.revision();
    assert!(again <= last, "a number that was delivered before");
    assert_eq!(next(&mut watch).await, format!("ADDED new y {again}"));
}

fn all() -> ListOptions {
    ListOptions {
        recursive: true,
        ..ListOptions::default()
    }
}
