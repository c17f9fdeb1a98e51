//! The memory budget of a real server: it holds, what gives way comes back, and clients that go
//! leave nothing behind.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, PostParams, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client};
use ringwatch_testing::eventually::{DEADLINE, eventually};

use crate::support::named;
use crate::support::requests;
use crate::support::server::Server;

/// The least budget that a server takes.
const BUDGET_BYTES: u64 = 16 << 20;

/// The number of objects that do not fit into the budget, and the size of each in bytes.
const OBJECTS_MAX: usize = 60;
const OBJECT_BYTES: usize = 500 << 10;

/// The content of `/metrics`.
struct Metrics(String);

impl Metrics {
    async fn read(client: &Client) -> Self {
        Self(requests::text(client, "/metrics").await)
    }

    /// The sum of all lines of a family whose labels contain these words.
    fn sum(&self, name: &str, labels: &str) -> u64 {
        let lines = self.0.lines().filter(|line| {
            let rest = line.strip_prefix(name).unwrap_or("x");
            rest.starts_with(['{', ' ']) && rest.contains(labels)
        });
        let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "counts and sizes"
        )]
        let sum = values.sum::<f64>() as u64;
        sum
    }

    fn accounted(&self) -> u64 {
        self.sum("ringwatch_memory_bytes", "")
    }

    fn account(&self, name: &str) -> u64 {
        let label = format!("account=\"{name}\"");
        self.sum("ringwatch_memory_bytes", &label)
    }

    fn watches(&self) -> u64 {
        self.sum("apiserver_longrunning_requests", "verb=\"WATCH\"")
    }
}

fn config_maps(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), "default")
}

fn config_map(name: &str, bytes: usize) -> ConfigMap {
    ConfigMap {
        metadata: named(name),
        data: Some(BTreeMap::from([("x".to_owned(), "x".repeat(bytes))])),
        ..ConfigMap::default()
    }
}

async fn create(api: &Api<ConfigMap>, name: &str, bytes: usize) {
    let object = config_map(name, bytes);
    let created = api.create(&PostParams::default(), &object).await;
    created.expect("writes go on");
}

/// Waits until what `/metrics` says is as wanted.
async fn until(client: &Client, what: &str, wanted: impl Fn(&Metrics) -> bool) {
    eventually(DEADLINE, what, async || {
        let metrics = Metrics::read(client).await;
        wanted(&metrics).then_some(()).ok_or(metrics.0)
    })
    .await;
}

/// A list or a watch, as curl would ask for it.
async fn raw(client: &Client, uri: &str) -> http::Response<kube::client::Body> {
    client.send(requests::get(uri)).await.expect("an answer")
}

/// That a request is refused as kube-apiserver refuses: a Status, and when to come back.
async fn is_shed(client: &Client, uri: &str) -> bool {
    let response = raw(client, uri).await;
    if response.status() != 429 {
        assert_eq!(response.status(), 200);
        return false;
    }
    assert_eq!(response.headers()["retry-after"], "5");
    let body = response.into_body().collect_bytes().await.expect("a body");
    let status: serde_json::Value = serde_json::from_slice(&body).expect("a Status");
    assert_eq!(status["kind"], "Status");
    assert_eq!(status["reason"], "TooManyRequests");
    assert_eq!(status["code"], 429);
    assert_eq!(status["details"]["retryAfterSeconds"], 5);
    true
}

const LIST: &str = "/api/v1/namespaces/default/configmaps?limit=1&resourceVersion=0";
const WATCH: &str =
    "/api/v1/namespaces/default/configmaps?watch=1&resourceVersion=0&timeoutSeconds=1";

/// Objects are written until there is no memory for anything else. New lists and watches are then
/// refused, everything else goes on, and no watch that runs loses an event. When objects are
/// deleted, lists and watches are served again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_and_watches_are_shed_before_the_budget_is_spent() {
    let (server, _) = Server::ready(&["--storage-backend=memory", "--memory-budget-mib=16"]).await;
    let client = another_client(&server).await;
    let api = config_maps(&client);
    let params = WatchParams::default().timeout(290);
    let watch = api.watch(&params, "0").await.expect("a watch").boxed();
    let told = tokio::spawn(created(watch));

    let mut written = BTreeSet::new();
    // An event on its way to the watch may have either refused for a moment: it is so once both are.
    while !(is_shed(&client, LIST).await && is_shed(&client, WATCH).await) {
        assert!(written.len() < OBJECTS_MAX, "nothing is refused");
        let name = format!("object-{:02}", written.len());
        create(&api, &name, OBJECT_BYTES).await;
        written.insert(name);
        let accounted = Metrics::read(&client).await.accounted();
        assert!(accounted < BUDGET_BYTES, "{accounted} bytes are in use");
    }
    let first = api.get("object-00").await.expect("gets go on");
    assert!(first.data.is_some());
    create(&api, "last", 1).await;
    written.insert("last".to_owned());
    let metrics = Metrics::read(&client).await;
    assert!(metrics.sum("ringwatch_sheds_total", "kind=\"list\"") > 0);
    assert!(metrics.sum("ringwatch_sheds_total", "kind=\"watch\"") > 0);
    let told = tokio::time::timeout(DEADLINE, told).await.expect("in time");
    assert!(
        told.expect("no panic").is_superset(&written),
        "an event is lost"
    );

    for name in &written {
        let deleted = api.delete(name, &DeleteParams::default()).await;
        deleted.expect("deletes go on");
        let accounted = Metrics::read(&client).await.accounted();
        assert!(accounted < BUDGET_BYTES, "{accounted} bytes are in use");
    }
    until(&client, "memory comes back", |metrics| {
        metrics.accounted() < BUDGET_BYTES / 2
    })
    .await;
    assert!(!is_shed(&client, LIST).await);
    assert!(!is_shed(&client, WATCH).await);
}

/// The names of all objects that a watch tells of, up to the last.
async fn created(
    mut watch: impl futures::Stream<Item = kube::Result<WatchEvent<ConfigMap>>> + Unpin,
) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    while let Some(event) = watch.next().await {
        if let WatchEvent::Added(object) = event.expect("no error") {
            let name = object.metadata.name.expect("a name");
            let last = name == "last";
            names.insert(name);
            if last {
                break;
            }
        }
    }
    names
}

/// A client of its own, whose connections nobody shares.
async fn another_client(server: &Server) -> Client {
    let kubeconfig = Kubeconfig::read_from(server.kubeconfig()).expect("a kubeconfig");
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options);
    let mut config = config.await.expect("a config");
    // Refusals are what is looked for.
    config.default_retry = false;
    Client::try_from(config).expect("a client")
}

/// The number of clients that list at the same time.
const LISTS_AT_ONCE: usize = 6;

/// Lists that the store answers have objects of their own, which nobody else has in memory. So they
/// ask before they read, page by page: a list that is too long is refused and one that is short
/// enough is not, however many come at the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_from_the_store_ask_before_they_read() {
    let flags = [
        "--storage-backend=memory",
        "--memory-budget-mib=16",
        "--watch-cache=false",
    ];
    let (server, _) = Server::ready(&flags).await;
    let client = another_client(&server).await;
    let api = config_maps(&client);
    for number in 0..OBJECTS_MAX {
        create(&api, &format!("object-{number:02}"), OBJECT_BYTES).await;
    }
    let all = "/api/v1/namespaces/default/configmaps";
    assert!(is_shed(&client, all).await, "30 MB in a budget of 16");
    let shed = Metrics::read(&client)
        .await
        .sum("ringwatch_sheds_total", "kind=\"list\"");
    assert_eq!(shed, 1);
    until(&client, "what it has read is gone", |metrics| {
        metrics.account("requests") == 0
    })
    .await;
    let some = format!("{all}?limit=3");
    assert!(!is_shed(&client, &some).await);

    let lists = (0..LISTS_AT_ONCE).map(|number| {
        let (client, some) = (client.clone(), some.clone());
        let uri = if number % 2 == 0 {
            all.to_owned()
        } else {
            some
        };
        async move { is_shed(&client, &uri).await }
    });
    let lists = tokio::spawn(futures::future::join_all(lists));
    while !lists.is_finished() {
        let accounted = Metrics::read(&client).await.accounted();
        assert!(accounted < BUDGET_BYTES, "{accounted} bytes are in use");
    }
    let shed = lists.await.expect("no panic");
    assert!(shed.iter().step_by(2).all(|shed| *shed), "{shed:?}");
    until(&client, "memory comes back", |metrics| {
        metrics.account("requests") == 0
    })
    .await;
}

/// The number of clients that come and go, and the number of watches that each has.
const CLIENTS: u64 = 20;
const WATCHES: u64 = 25;

/// Opens watches, reads no more than the head of each, and gives what keeps them open.
async fn open_watches(server: &Server, uri: &str) -> Vec<http::Response<kube::client::Body>> {
    let client = another_client(server).await;
    let mut responses = Vec::new();
    for _ in 0..WATCHES {
        responses.push(raw(&client, uri).await);
    }
    responses
}

/// k#38670, k#70207, k#137631: a watch whose client stopped reading while an event, or the state at
/// its beginning, was being sent stayed behind for good: a goroutine, its buffers and its place in
/// the cache. So clients stop at each of these moments, by the hundred, and what the server keeps
/// must come back to what it was: watches, open files, and every account of memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k38670_clients_that_stop_reading_leave_nothing_behind() {
    let (server, client) =
        Server::ready(&["--storage-backend=memory", "--memory-budget-mib=512"]).await;
    let api = config_maps(&client);
    for number in 0..20 {
        create(&api, &format!("object-{number}"), 200 << 10).await;
    }
    let baseline = Metrics::read(&client).await;
    let held = |metrics: &Metrics| metrics.account("connections") + metrics.account("requests");

    let base = "/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=290";
    let in_the_state = format!(
        "{base}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    );
    let in_an_event = format!("{base}&resourceVersion=0&sendInitialEvents=false");
    let in_an_event = format!("{in_an_event}&resourceVersionMatch=NotOlderThan");
    let mut open = Vec::new();
    for number in 0..CLIENTS {
        let uri = if number % 2 == 0 {
            &in_the_state
        } else {
            &in_an_event
        };
        open.push(open_watches(&server, uri).await);
    }
    for number in 20..30 {
        create(&api, &format!("object-{number}"), 200 << 10).await;
    }
    until(&client, "the clients stall", |metrics| {
        metrics.watches() >= CLIENTS * WATCHES && held(metrics) > 4 * held(&baseline)
    })
    .await;
    drop(open);
    // The client that asks may have opened another connection meanwhile: that is none of the hundreds.
    let open_files = |metrics: &Metrics| metrics.sum("process_open_fds", "");
    until(&client, "everything comes back", |metrics| {
        metrics.watches() == baseline.watches()
            && held(metrics) <= 2 * held(&baseline)
            && open_files(metrics) <= open_files(&baseline) + 1
    })
    .await;
    create(&api, "after", 1).await;
}

/// Resident memory that the end of a watch may take for a while: less than a buffer of the size that connections read
/// and write with. All of them together make far more than the noise of a process' resident memory.
const END_BYTES_MAX: u64 = 32 << 10;
/// An open connection counts for so much, even if nothing is sent on it. The client that asks may have opened another
/// one.
const CONNECTION_BYTES: u64 = 16 << 10;

/// k#102259: thousands of watches that ended at the same time made memory rise instead of fall,
/// because the end of each was told to it through buffers of its own. So nothing that is counted may
/// rise, and all of it must come back; and what is not counted must not be such a buffer for each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k102259_memory_does_not_rise_when_many_watches_end_at_once() {
    const WATCHES_OF_ALL: u64 = CLIENTS * WATCHES;
    let (server, client) = Server::ready(&["--storage-backend=memory"]).await;
    let baseline = Metrics::read(&client).await;
    let uri = "/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=290&resourceVersion=1";
    let mut open = Vec::new();
    for _ in 0..CLIENTS {
        open.push(open_watches(&server, uri).await);
    }
    let held = |metrics: &Metrics| metrics.account("connections") + metrics.account("requests");
    let resident = |metrics: &Metrics| metrics.sum("process_resident_memory_bytes", "");
    let with_all = Metrics::read(&client).await;
    assert_eq!(with_all.watches(), baseline.watches() + WATCHES_OF_ALL);
    drop(open);
    let most = resident(&with_all) + WATCHES_OF_ALL * END_BYTES_MAX;
    until(&client, "the watches end", |metrics| {
        let (counted, now) = (held(metrics), resident(metrics));
        let most_counted = held(&with_all) + CONNECTION_BYTES;
        assert!(counted <= most_counted, "{counted} bytes are counted");
        assert!(now <= most, "{now} bytes are resident, and {most} at most");
        metrics.watches() == baseline.watches() && counted <= held(&baseline) + CONNECTION_BYTES
    })
    .await;
}
