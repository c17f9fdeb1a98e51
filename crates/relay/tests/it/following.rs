//! The cache follows a real upstream: its objects in its encoding, its versions, its absence.

use std::sync::Arc;

use futures::StreamExt;
use http::Method;
use ringwatch::clock::Clock;
use ringwatch::codec;
use ringwatch::meta::{FieldSchema, ResourceVersion, StoredForm, WatchEvent};
use ringwatch::storage::backend::embedded::Embedded;
use ringwatch::storage::cacher::WindowLimits;
use ringwatch::storage::{
    GetOptions, Interface, ListOptions, StorageError, Versioner, WatchStream,
};
use ringwatch_relay::{ResourceType, UpstreamStore};
use ringwatch_server::InProcessServer;
use ringwatch_testing::eventually::{DEADLINE, eventually};
use ringwatch_testing::reserved_port::ReservedPort;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Relayed, ask, client, create, relayed};

/// The path of the config maps of the tests.
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn config_maps() -> ResourceType {
    ResourceType {
        group: String::new(),
        version: "v1".to_owned(),
        resource: "configmaps".to_owned(),
        kind: "ConfigMap".to_owned(),
        is_namespaced: true,
        prefix: "/configmaps/".to_owned(),
    }
}

fn config_map(name: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"k": "v"}})
}

fn version(object: &Value) -> u64 {
    let version = object["metadata"]["resourceVersion"].as_str();
    version.unwrap().parse().unwrap()
}

async fn cache(server: &InProcessServer) -> Relayed {
    let window = WindowLimits::default();
    let relayed = relayed(
        &client(server),
        config_maps(),
        FieldSchema::default(),
        window,
    );
    relayed.cached.cacher().ready().await.unwrap();
    relayed
}

fn options(version: Option<u64>) -> ListOptions {
    ListOptions {
        resource_version: version.map(ResourceVersion),
        recursive: true,
        ..ListOptions::default()
    }
}

/// Returns the type, the name and the version of the next event.
async fn next(watch: &mut WatchStream) -> (&'static str, String, u64) {
    let event = tokio::time::timeout(DEADLINE, watch.next());
    match event.await.expect("in time").expect("a watch").unwrap() {
        WatchEvent::Added(it) => ("added", it.name().to_owned(), it.revision()),
        WatchEvent::Modified(it) => ("modified", it.name().to_owned(), it.revision()),
        WatchEvent::Deleted(it) => ("deleted", it.name().to_owned(), it.revision()),
        other => panic!("a change, not {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_are_cached_in_protobuf_and_are_the_upstreams() {
    let server = InProcessServer::start().await.unwrap();
    create(&server, CONFIG_MAPS, &config_map("before")).await;
    let relayed = cache(&server).await;
    let after = create(&server, CONFIG_MAPS, &config_map("after")).await;
    let at_least = GetOptions {
        resource_version: Some(ResourceVersion(version(&after))),
    };
    let read = relayed.cached.get("/configmaps/default/after", at_least);
    read.await.unwrap();
    for name in ["before", "after"] {
        let key = format!("/configmaps/default/{name}");
        // The read did not wait for it if the cache was so slow that the upstream answered.
        let cached = eventually(DEADLINE, format!("{name} is cached"), async || {
            relayed.cached.cacher().cached(&key)
        });
        let cached = cached.await;
        assert_eq!(cached.form(), StoredForm::Protobuf, "{name}");
        let path = format!("{CONFIG_MAPS}/{name}");
        let (_, of_upstream) = ask(&server, Method::GET, &path, None).await;
        assert_eq!(codec::tree(&cached).unwrap(), of_upstream);
    }
    let (_, all) = ask(&server, Method::GET, "/api/v1/configmaps", None).await;
    let cached = relayed
        .cached
        .get_list("/configmaps/", options(Some(0)))
        .await;
    assert_eq!(
        cached.unwrap().items.len(),
        all["items"].as_array().unwrap().len()
    );
}

/// The versions are the same on both sides, so a watch may go on at the other after any event, and after a list.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_moves_between_relay_and_upstream() {
    let server = InProcessServer::start().await.unwrap();
    let relayed = cache(&server).await;
    let upstream = UpstreamStore::new(client(&server), config_maps(), Versioner::default());
    let doors: [&dyn Interface; 2] = [&*relayed.cached, &upstream];
    let mut at = upstream
        .get_list("/configmaps/", options(None))
        .await
        .unwrap()
        .revision;
    for number in 0..6 {
        let door = doors[number % 2];
        let mut watch = door.watch("/configmaps/", options(Some(at))).await.unwrap();
        for part in ["a", "b"] {
            let name = format!("{part}{number}");
            let created = create(&server, CONFIG_MAPS, &config_map(&name)).await;
            at = version(&created);
            assert_eq!(next(&mut watch).await, ("added", name, at), "{number}");
        }
    }
}

/// A read without a version and a watch that begins with the state miss nothing that the upstream acknowledged before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_without_a_version_are_as_new_as_the_upstream() {
    let server = InProcessServer::start().await.unwrap();
    let relayed = cache(&server).await;
    for number in 0..20 {
        let name = format!("c{number:02}");
        let created = create(&server, CONFIG_MAPS, &config_map(&name)).await;
        // Another resource raises the version, of which the watch says nothing.
        let namespace = json!({"metadata": {"name": format!("n{number}")}});
        create(&server, "/api/v1/namespaces", &namespace).await;
        let key = format!("/configmaps/default/{name}");
        let read = relayed
            .cached
            .get(&key, GetOptions::default())
            .await
            .unwrap();
        assert_eq!(read.revision(), version(&created));
        let list = relayed
            .cached
            .get_list("/configmaps/default/", options(None))
            .await
            .unwrap();
        assert!(list.items.iter().any(|it| it.name() == name), "{name}");
        let from_state = ListOptions {
            send_initial_events: Some(true),
            ..options(None)
        };
        let watch = relayed
            .cached
            .watch("/configmaps/default/", from_state)
            .await
            .unwrap();
        let state = watch.take(list.items.len()).map(|it| match it.unwrap() {
            WatchEvent::Added(object) => object.name().to_owned(),
            other => panic!("an object, not {other:?}"),
        });
        assert!(state.collect::<Vec<_>>().await.contains(&name), "{name}");
    }
}

/// An upstream that can be stopped and started again with the same objects, certificates and address.
struct Restarted {
    backend: Arc<Embedded>,
    folder: TempDir,
    port: ReservedPort,
}

impl Restarted {
    fn new() -> Self {
        Self {
            backend: Arc::new(Embedded::in_memory(Clock::real())),
            folder: tempfile::tempdir().unwrap(),
            port: ReservedPort::new(),
        }
    }

    async fn start(&self) -> InProcessServer {
        let folder = self.folder.path().display();
        let builder = InProcessServer::builder().backend(Arc::clone(&self.backend) as _);
        let builder = builder.flag(format!("--data-dir={folder}"));
        let started = builder
            .flag(format!("--secure-port={}", self.port.number()))
            .start();
        started.await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_outlive_an_upstream_that_goes_and_comes_back() {
    let upstream = Restarted::new();
    let server = upstream.start().await;
    let relayed = cache(&server).await;
    let first = create(&server, CONFIG_MAPS, &config_map("first")).await;
    let mut watch = relayed
        .cached
        .watch("/configmaps/default/", options(Some(0)))
        .await
        .unwrap();
    // Its account's config map is of the upstream's own making, if it is there.
    while next(&mut watch).await.2 != version(&first) {}
    drop(server);

    let any = relayed
        .cached
        .get_list("/configmaps/default/", options(Some(0)))
        .await
        .unwrap();
    assert!(
        any.items.iter().any(|it| it.name() == "first"),
        "any version is served"
    );
    eventually(
        DEADLINE,
        "the upstream is told to be unreachable",
        async || {
            let namespace = "/configmaps/default/";
            let consistent = relayed.cached.get_list(namespace, options(None)).await;
            match &consistent {
                Err(StorageError::Shared(error))
                    if matches!(**error, StorageError::Unreachable { .. }) =>
                {
                    Ok(())
                }
                _ => Err(consistent),
            }
        },
    )
    .await;

    let server = upstream.start().await;
    let second = create(&server, CONFIG_MAPS, &config_map("second")).await;
    let expected = ("added", "second".to_owned(), version(&second));
    assert_eq!(next(&mut watch).await, expected, "the same watch goes on");
    eventually(DEADLINE, "consistent reads are served again", async || {
        relayed
            .cached
            .get_list("/configmaps/", options(None))
            .await
            .is_ok()
    })
    .await;
}

/// Another upstream at the same address has another history, and nothing of the first is served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upstream_that_was_restored_is_another_upstream() {
    let mut upstream = Restarted::new();
    let server = upstream.start().await;
    let relayed = cache(&server).await;
    for number in 0..200 {
        create(&server, CONFIG_MAPS, &config_map(&format!("c{number}"))).await;
    }
    let newest = relayed
        .cached
        .get_list("/configmaps/", options(None))
        .await
        .unwrap()
        .revision;
    let mut watch = relayed
        .cached
        .watch("/configmaps/", options(Some(newest)))
        .await
        .unwrap();
    drop(server);
    upstream.backend = Arc::new(Embedded::in_memory(Clock::real()));
    let server = upstream.start().await;
    create(&server, CONFIG_MAPS, &config_map("other")).await;
    let end = loop {
        match watch.next().await {
            Some(Ok(WatchEvent::Bookmark { .. })) => {}
            other => break other,
        }
    };
    assert!(
        matches!(end, None | Some(Err(_))),
        "no event of another history: {end:?}"
    );
    eventually(DEADLINE, "the other's objects are cached", async || {
        let any = relayed
            .cached
            .get_list("/configmaps/", options(Some(0)))
            .await;
        any.is_ok_and(|list| {
            let has = |name: &str| list.items.iter().any(|it| it.name() == name);
            has("other") && !has("c0")
        })
    })
    .await;
}
