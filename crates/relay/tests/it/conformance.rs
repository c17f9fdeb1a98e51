//! The conformance suite over an upstream: over its API, and over the cache in front of that. The pods are custom
//! resources, which the upstream takes as they are.

use std::sync::Arc;

use http::Method;
use ringwatch::clock::Clock;
use ringwatch::storage::backend::embedded::Embedded;
use ringwatch::storage::cacher::WindowLimits;
use ringwatch::storage::{Interface, Versioner};
use ringwatch_conformance::{Subject, schema};
use ringwatch_relay::{ResourceType, Upstream, UpstreamStore};
use ringwatch_server::InProcessServer;
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::json;

use crate::support::{ask, client, create, relayed};

/// The number of events that the cache under test remembers.
const WINDOW_EVENTS: usize = 200;

/// The namespaces of the suite's pods.
const NAMESPACES: [&str; 6] = ["ns", "foo", "foobar", "bar", "filler", "marker"];

ringwatch_conformance::suite_over_an_api! {
    upstream "an upstream" super::upstream;
    cached_upstream "the cache over an upstream" super::cached_upstream;
}

async fn upstream() -> Option<Subject> {
    let (server, backend, client) = start().await;
    let store = UpstreamStore::new(client, pods(), Versioner::new(schema()));
    Some(subject(Arc::new(store), backend, 0, server))
}

async fn cached_upstream() -> Option<Subject> {
    let (server, backend, client) = start().await;
    let window = WindowLimits {
        events_min: WINDOW_EVENTS,
        events_max: WINDOW_EVENTS,
        ..WindowLimits::default()
    };
    let relayed = relayed(&client, pods(), schema(), window);
    relayed.cached.cacher().ready().await.unwrap();
    let interface = Arc::clone(&relayed.cached);
    // A window keeps less than a sixteenth more than it must.
    let fill = WINDOW_EVENTS + WINDOW_EVENTS / 16;
    Some(subject(interface, backend, fill, (relayed, server)))
}

fn subject(
    interface: Arc<dyn Interface>,
    backend: Arc<Embedded>,
    window: usize,
    support: impl Send + Sync + 'static,
) -> Subject {
    let path_prefix = "/registry/example.com";
    let subject = Subject::new(interface, backend, path_prefix, window, support);
    subject.among_others("example.com/v1")
}

fn pods() -> ResourceType {
    ResourceType {
        group: "example.com".to_owned(),
        version: "v1".to_owned(),
        resource: "pods".to_owned(),
        kind: "Pod".to_owned(),
        is_namespaced: true,
        prefix: "/pods/".to_owned(),
    }
}

/// Starts an upstream that serves the suite's pods. It has no cache of its own, whose window would show what is
/// compacted.
async fn start() -> (InProcessServer, Arc<Embedded>, Arc<Upstream>) {
    let backend = Arc::new(Embedded::in_memory(Clock::real()));
    let server = InProcessServer::builder()
        .backend(Arc::clone(&backend) as _)
        .flag("--watch-cache=false")
        .start()
        .await
        .unwrap();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "pods.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "pods", "kind": "Pod"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "selectableFields": [{"jsonPath": ".spec.nodeName"}],
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {
                        "nodeName": {"type": "string"}}}}}},
            }],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    create(&server, definitions, &definition).await;
    for name in NAMESPACES {
        let namespace = json!({"metadata": {"name": name}});
        create(&server, "/api/v1/namespaces", &namespace).await;
    }
    eventually(DEADLINE, "the pods are served", async || {
        ask(&server, Method::GET, "/apis/example.com/v1/pods", None)
            .await
            .0
            == 200
    })
    .await;
    let client = client(&server);
    (server, backend, client)
}
