//! An upstream in this process, and the cache in front of one of its resources.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::BodyExt;
use prometheus_client::registry::Registry;
use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch::meta::FieldSchema;
use ringwatch::storage::Versioner;
use ringwatch::storage::cacher::{CacheDelegator, CacheMetrics, Feed, TypeConfig, WindowLimits};
use ringwatch_relay::{Caches, ResourceType, Upstream, UpstreamSource, UpstreamStore};
use ringwatch_server::InProcessServer;
use ringwatch_tls::kubeconfig::Kubeconfig;
use serde_json::Value;
use tokio::task::JoinSet;

/// Returns the client of the admin of a server.
pub(crate) fn client(server: &InProcessServer) -> Arc<Upstream> {
    client_by(server, Clock::real())
}

/// Returns the client of the admin of a server that goes by a clock.
pub(crate) fn client_by(server: &InProcessServer, clock: Clock) -> Arc<Upstream> {
    let kubeconfig = Kubeconfig::parse(&server.kubeconfig(), Path::new("kubeconfig"));
    Arc::new(Upstream::new(&kubeconfig.unwrap(), Ledger::unlimited(), clock).unwrap())
}

/// Sends a request to a server as its admin, and returns the status and the object of the answer.
pub(crate) async fn ask(
    server: &InProcessServer,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> (u16, Value) {
    let content = body.map(|it| Bytes::from(it.to_string()));
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(content.unwrap_or_default());
    let answer = server.answer(request.unwrap()).await;
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

/// Creates an object.
pub(crate) async fn create(server: &InProcessServer, path: &str, object: &Value) -> Value {
    let (status, created) = ask(server, Method::POST, path, Some(object)).await;
    assert_eq!(status, 201, "{created}");
    created
}

/// Runs the followers until the set is dropped, as a server does.
pub(crate) fn run(caches: &Arc<Caches>) -> JoinSet<()> {
    let caches = Arc::clone(caches);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut followers = JoinSet::new();
        loop {
            followers.spawn(caches.next_follower().await);
        }
    });
    tasks
}

/// The cache of a resource of an upstream, which fills and follows it until this is dropped.
pub(crate) struct Relayed {
    pub(crate) cached: Arc<CacheDelegator>,
    _tasks: JoinSet<()>,
}

/// Puts a cache in front of a resource, which remembers so many events.
pub(crate) fn relayed(
    upstream: &Arc<Upstream>,
    resource: ResourceType,
    schema: FieldSchema,
    window: WindowLimits,
) -> Relayed {
    let source = Arc::new(UpstreamSource::new(Arc::clone(upstream), resource.clone()));
    let metrics = CacheMetrics::register(&mut Registry::default());
    let (feed, reflector) = Feed::new(source, Clock::real(), metrics, Ledger::unlimited());
    let cacher = feed.add_type(
        TypeConfig::new(resource.group.clone(), resource.resource.clone())
            .with_prefix(resource.prefix.clone())
            .with_versioner(Versioner::new(schema.clone()))
            .with_window(window),
    );
    let mut tasks = JoinSet::new();
    tasks.spawn(reflector.run(std::future::pending()));
    let store = UpstreamStore::new(Arc::clone(upstream), resource, Versioner::new(schema));
    Relayed {
        cached: Arc::new(CacheDelegator::new(cacher, Arc::new(store))),
        _tasks: tasks,
    }
}
