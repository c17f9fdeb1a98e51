//! A worker serves others: requests whose cost their client chooses keep neither health checks nor watchers waiting.
//!
//! This is the one test that looks at a clock: it runs alone, its large requests are sent by threads of their own, and the time
//! for which the machine itself left a thread of this process unserved does not count.

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle, available_parallelism};
use std::time::{Duration, Instant};

use futures::TryStreamExt;
use http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Client, Config, ResourceExt};
use serde_json::{Value, json};

use crate::support::server::Server;

/// No answer and no event may take longer beside large work.
const WAIT_MAX: Duration = Duration::from_millis(100);

/// How long the thread sleeps that notices how late the machine wakes it.
const BEAT: Duration = Duration::from_millis(1);

/// How often each is looked at beside each kind of large work.
const SAMPLES: u32 = 25;

/// Bytes of a large body: below the limit of 3 MiB.
const LARGE_BYTES: usize = 2_900_000;

/// A request that takes long.
struct Large {
    name: &'static str,
    method: &'static str,
    path: &'static str,
    media_type: &'static str,
    body: String,
}

impl Large {
    fn post(name: &'static str, path: &'static str, body: String) -> Self {
        Self {
            name,
            method: "POST",
            path,
            media_type: "application/json",
            body,
        }
    }

    fn request(&self) -> Request<Vec<u8>> {
        Request::builder()
            .method(self.method)
            .uri(self.path)
            .header("content-type", self.media_type)
            .body(self.body.clone().into_bytes())
            .expect("a request")
    }
}

/// Fields that are repeated far down in a document.
fn repeated_fields() -> String {
    let levels = 115;
    let repeated = r#""a":1,"#.repeat(100);
    let filler = "x".repeat(LARGE_BYTES);
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"generateName":"a-"}},"data":{{"filler":"{filler}"}},"unknown":{}{{{repeated}"b":1}}{}}}"#,
        r#"{"c":"#.repeat(levels),
        "}".repeat(levels)
    )
}

fn items(count: usize, item: impl Fn(usize) -> Value) -> Value {
    (0..count).map(item).collect()
}

fn large_requests() -> Vec<Large> {
    let config_maps = "/api/v1/namespaces/default/configmaps?dryRun=All";
    let yaml = (0..100_000).map(|number| format!("  k{number}: v{number}\n"));
    let yaml: String = yaml.collect();
    vec![
        Large::post("repeated fields", config_maps, repeated_fields()),
        Large {
            media_type: "application/yaml",
            ..Large::post(
                "yaml",
                config_maps,
                format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: y}}\ndata:\n{yaml}"),
            )
        },
        Large {
            method: "PATCH",
            media_type: "application/strategic-merge-patch+json",
            ..Large::post(
                "finalizers",
                "/api/v1/namespaces/default/configmaps/sample?dryRun=All",
                json!({"metadata": {"finalizers": items(60_000, |it| json!(format!("example.com/{it}")))}})
                    .to_string(),
            )
        },
        Large::post(
            "spread constraints",
            "/api/v1/namespaces/default/pods?dryRun=All",
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {
                "containers": [{"name": "c", "image": "i"}],
                "topologySpreadConstraints": items(15_000, |it| json!({"maxSkew": 1,
                    "topologyKey": format!("k{it}"), "whenUnsatisfiable": "DoNotSchedule"}))}})
            .to_string(),
        ),
        Large::post(
            "empty items",
            "/api/v1/namespaces/default/services?dryRun=All",
            format!(
                r#"{{"apiVersion":"v1","kind":"Service","metadata":{{"name":"s"}},"spec":{{"ports":[{{}}{}]}}}}"#,
                ",{}".repeat(20_000)
            ),
        ),
        Large::post(
            "expressions",
            "/apis/example.com/v1/namespaces/default/rules?dryRun=All",
            json!({"apiVersion": "example.com/v1", "kind": "Rule", "metadata": {"name": "r"},
                "spec": {"list": items(200, |it| json!(it))}})
            .to_string(),
        ),
    ]
}

/// A definition whose rules cost as much as they may on a small object.
fn definition() -> Value {
    let rule = json!({"rule": "self.list.all(a, self.list.all(b, a + b >= 0))"});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "rules.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "rules", "kind": "Rule"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object",
                    "x-kubernetes-validations": vec![rule; 20],
                    "properties": {"list": {"type": "array", "maxItems": 200, "items": {"type": "integer"}}}}}}}}],
        },
    })
}

/// The code of an answer.
async fn send(client: &Client, request: Request<Vec<u8>>) -> u16 {
    match client.request::<Value>(request).await {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(other) => panic!("{other}"),
    }
}

/// Sends a large request again and again on a thread of its own, so that this process's other work does not wait for its answers.
fn sender(config: &Config, request: &Arc<Large>, stop: &Arc<AtomicBool>) -> JoinHandle<()> {
    let (config, request, stop) = (config.clone(), Arc::clone(request), Arc::clone(stop));
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let client = Client::try_from(config).expect("a client");
            while !stop.load(Ordering::Relaxed) {
                let code = send(&client, request.request()).await;
                assert!(code != 404 && code < 500, "{}: {code}", request.name);
            }
        });
    })
}

/// Notices how late the machine wakes a thread that has nothing to do.
struct Lateness {
    nanos: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

impl Lateness {
    fn begin() -> Self {
        let nanos = Arc::new(AtomicUsize::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let (noticed, ended) = (Arc::clone(&nanos), Arc::clone(&stop));
        thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                let begin = Instant::now();
                thread::sleep(BEAT);
                let late = begin.elapsed().saturating_sub(BEAT).as_nanos();
                noticed.fetch_max(
                    usize::try_from(late).unwrap_or(usize::MAX),
                    Ordering::Relaxed,
                );
            }
        });
        Self { nanos, stop }
    }

    /// Returns the longest since the last call.
    fn take(&self) -> Duration {
        Duration::from_nanos(self.nanos.swap(0, Ordering::Relaxed) as u64)
    }
}

impl Drop for Lateness {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

async fn ready(client: &Client) -> Duration {
    let begin = Instant::now();
    let request = Request::get("/readyz").body(Vec::new()).expect("a request");
    let answer = client.request_text(request).await.expect("ready");
    assert_eq!(answer, "ok");
    begin.elapsed()
}

/// Changes an object and waits until a watcher sees it.
async fn event(
    config_maps: &Api<ConfigMap>,
    events: &mut (impl futures::Stream<Item = kube::Result<WatchEvent<ConfigMap>>> + Unpin),
    number: u32,
) -> Duration {
    let begin = Instant::now();
    let change = Patch::Merge(json!({"data": {"number": number.to_string()}}));
    let params = PatchParams::default();
    let changed = config_maps.patch("sample", &params, &change);
    let version = changed.await.expect("changed").resource_version();
    loop {
        let event = events.try_next().await.expect("an event");
        if let Some(WatchEvent::Modified(object)) = event
            && object.resource_version() == version
        {
            return begin.elapsed();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn large_work_keeps_neither_health_nor_watchers_waiting() {
    let mut server = Server::start(&["--storage-backend", "memory"]);
    let client = server.client().await;
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let mut sample = ConfigMap::default();
    sample.metadata.name = Some("sample".to_owned());
    let sample = config_maps.create(&PostParams::default(), &sample).await;
    let version = sample.expect("created").resource_version().expect("one");
    let events = config_maps.watch(&WatchParams::default(), &version).await;
    let mut events = Box::pin(events.expect("a watch"));
    let defined = Large::post(
        "definition",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        definition().to_string(),
    );
    assert_eq!(send(&client, defined.request()).await, 200);

    let cores = available_parallelism().map_or(1, NonZero::get);
    let config = server.config().await;
    let machine = Lateness::begin();
    for large in large_requests() {
        // A definition is served a moment after it was taken.
        while send(&client, large.request()).await == 404 {
            tokio::task::yield_now().await;
        }
        let large = Arc::new(large);
        let stop = Arc::new(AtomicBool::new(false));
        let senders: Vec<_> = (0..cores).map(|_| sender(&config, &large, &stop)).collect();
        let (mut health, mut watcher) = (Duration::ZERO, Duration::ZERO);
        let mut late = Duration::ZERO;
        for number in 0..SAMPLES {
            machine.take();
            let waits = (
                ready(&client).await,
                event(&config_maps, &mut events, number).await,
            );
            let lateness = machine.take();
            late = late.max(lateness);
            health = health.max(waits.0.saturating_sub(lateness));
            watcher = watcher.max(waits.1.saturating_sub(lateness));
        }
        stop.store(true, Ordering::Relaxed);
        for sender in senders {
            sender.join().expect("no answer was a failure");
        }
        println!(
            "{}: /readyz within {health:?}, an event within {watcher:?}, the machine late by {late:?}",
            large.name
        );
        assert!(health < WAIT_MAX, "{}: /readyz took {health:?}", large.name);
        assert!(
            watcher < WAIT_MAX,
            "{}: an event took {watcher:?}",
            large.name
        );
    }
}
