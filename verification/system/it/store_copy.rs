//! `ringwatch store copy` between embedded stores and a real etcd: servers on both sides of a move, and copies that are
//! killed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, PostParams, WatchParams};
use kube::{Api, Client, Error};
use ringwatch::clock::Clock;
use ringwatch::storage::backend::copy::MARKER_KEY;
use ringwatch::storage::backend::embedded::{Embedded, FILE_NAME};
use ringwatch::storage::backend::etcd::{Config, Etcd as Backend, TlsFiles};
use ringwatch::storage::backend::{
    Backend as _, Compare, KeyRange, Op, RangeContent, RangeRequest, Txn,
};
use ringwatch_testing::reserved_port::ReservedPort;
use serde_json::Value;

use crate::store::{done, refused, status, text, write};
use crate::support::etcd::Etcd;
use crate::support::server::Server;

/// The number of objects of a copy that is killed, unless the variable has another.
const OBJECTS: usize = 6_000;
const OBJECTS_VARIABLE: &str = "COPY_OBJECTS";
/// The number of copies that may end before they are killed, which happens where this test gets no time.
const ATTEMPTS_MAX: usize = 30;
/// The size of a value.
const VALUE_BYTES: usize = 1_000;
/// The time between two looks at a copy.
const LOOK_EVERY: Duration = Duration::from_millis(1);

fn location(kind: &str, place: &str) -> String {
    format!("{kind}:{place}")
}

fn json(printed: &str) -> Value {
    serde_json::from_str(printed).expect("JSON")
}

async fn connect(etcd: &Etcd) -> Backend {
    let config = Config::new(vec![etcd.endpoint()], TlsFiles::default());
    Backend::connect(config, Clock::real())
        .await
        .expect("a running etcd")
}

/// Lists the objects that the test wrote, without what differs between stores.
async fn objects(client: &Client) -> BTreeMap<String, BTreeMap<String, String>> {
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let listed = api.list(&ListParams::default()).await.expect("a list");
    let named = listed.items.into_iter().map(|it| {
        let name = it.metadata.name.expect("a name");
        (name, it.data.unwrap_or_default())
    });
    named
        .filter(|(name, _)| name.starts_with("object"))
        .collect()
}

fn code<T: std::fmt::Debug>(outcome: Result<T, Error>) -> u16 {
    match outcome.expect_err("a refusal") {
        Error::Api(status) => status.code,
        other => panic!("{other}"),
    }
}

/// Asserts that a server answers a client which knows an object and a list of the store before the move: the object has
/// changed, and the versions are too old.
async fn assert_moved(client: &Client, mut known: ConfigMap, listed_at: &str) {
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let name = known.metadata.name.clone().expect("a name");
    known.data = None;
    let updated = api.replace(&name, &PostParams::default(), &known).await;
    assert_eq!(code(updated), 409);
    let exactly = ListParams::default()
        .at(listed_at)
        .matching(kube::api::VersionMatch::Exact);
    assert_eq!(code(api.list(&exactly).await), 410);
    let watch = api.watch(&WatchParams::default(), listed_at).await;
    let status = match watch {
        Ok(events) => match std::pin::pin!(events).try_next().await.expect("an event") {
            Some(kube::api::WatchEvent::Error(status)) => status.code,
            other => panic!("{other:?}"),
        },
        refused => code(refused.map(drop)),
    };
    assert_eq!(status, 410);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_moves_to_etcd_and_back() {
    let Some(etcd) = Etcd::start("a_cluster_moves_to_etcd_and_back") else {
        return;
    };
    let (mut first, client) = Server::ready(&[]).await;
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    for number in 0..20 {
        write(&api, format!("object-{number}")).await;
    }
    let data = first.folder().join("data");
    let (from, to) = (
        location("embedded", text(&data)),
        location("etcd", &etcd.endpoint()),
    );
    let copy = ["copy", "--from", &from, "--to", &to, "-o", "json"];
    let served = refused(&copy);
    assert!(
        served.contains("is served by a process; stop it"),
        "{served}"
    );
    let kubeconfig = first.kubeconfig();
    let online = [&copy[..], &["--prepare", "--kubeconfig", text(&kubeconfig)]].concat();
    let prepared = json(&done(&online));
    assert_eq!(prepared["finished"], false, "{prepared}");
    for number in 20..25 {
        write(&api, format!("object-{number}")).await;
    }
    let known = api.get("object-7").await.expect("an object");
    let listed = api.list(&ListParams::default()).await.expect("a list");
    let listed_at = listed.metadata.resource_version.expect("a version");
    let expected = objects(&client).await;
    first.stop().await;
    let copied = json(&done(&copy));
    assert!(
        copied["changes"].as_u64() < copied["keys"].as_u64(),
        "{copied}"
    );
    assert!(
        copied["targetRevision"].as_u64() > copied["sourceRevision"].as_u64(),
        "{copied}"
    );
    let again = refused(&copy);
    assert!(again.contains("keys already"), "{again}");

    let (mut second, client) = Server::ready(&["--etcd-servers", &etcd.endpoint()]).await;
    assert_eq!(objects(&client).await, expected);
    assert_moved(&client, known, &listed_at).await;
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let known = api.get("object-7").await.expect("an object");
    second.stop().await;

    // A store keeps the revisions of an etcd: clients go on as if nothing had happened.
    let data = second.folder().join("data");
    let back = location("embedded", text(&data));
    let copied = json(&done(&["copy", "--from", &to, "--to", &back, "-o", "json"]));
    assert_eq!(
        copied["targetRevision"], copied["sourceRevision"],
        "{copied}"
    );
    assert_eq!(
        status(&["--data-dir", text(&data)])["digest"],
        copied["digest"]
    );
    second.start_again_with(&[]);
    let client = second.client().await;
    assert_eq!(objects(&client).await, expected);
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let updated = api
        .replace("object-7", &PostParams::default(), &known)
        .await;
    updated.expect("the version is the same");
}

/// Makes a store with so many objects in a data directory.
async fn fill(data: &Path, objects: usize) {
    fs::create_dir(data).expect("a folder");
    let (store, commits) = Embedded::open(&data.join(FILE_NAME), Clock::real()).expect("a store");
    let commits = tokio::task::spawn_blocking(|| commits.run());
    let writes = futures::stream::iter(0..objects).map(|number| {
        let key = format!("/registry/configmaps/default/object-{number:06}");
        let value = format!("{number:0VALUE_BYTES$}");
        store.txn(Txn {
            compare: Compare::ModRevision(key.clone(), 0),
            then: Op::Put {
                key,
                value: Bytes::from(value),
                lease: None,
            },
            otherwise: None,
        })
    });
    let mut writes = writes.buffer_unordered(512);
    while let Some(written) = writes.next().await {
        written.expect("a write");
    }
    drop(writes);
    store.close();
    commits.await.expect("the store is closed");
}

/// A copy that runs.
struct Copy {
    child: Child,
    started: Instant,
}

impl Copy {
    fn start(from: &str, to: &str) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_ringwatch"))
            .args(["store", "copy", "--from", from, "--to", to])
            .stdout(Stdio::null())
            .spawn()
            .expect("the binary");
        Self {
            child,
            started: Instant::now(),
        }
    }

    /// Kills it once the condition holds, and returns true; false if it has ended before.
    async fn kill_when(mut self, what: &str, mut holds: impl AsyncFnMut() -> bool) -> bool {
        while !holds().await {
            if let Some(ended) = self.child.try_wait().expect("a child") {
                assert!(ended.success(), "the copy ended: {ended:?}");
                return false;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        self.child.kill().expect("a copy");
        let status = self.child.wait().expect("a killed copy");
        eprintln!("{what}: killed after {:.1?}", self.started.elapsed());
        !status.success()
    }
}

fn resume(what: &str, from: &str, to: &str) -> Value {
    let started = Instant::now();
    let copied = json(&done(&["copy", "--from", from, "--to", to, "-o", "json"]));
    eprintln!(
        "{what}: resumed, whole after {:.1?}: {copied}",
        started.elapsed()
    );
    copied
}

async fn count(etcd: &Backend) -> usize {
    let request = RangeRequest {
        content: RangeContent::Count,
        ..RangeRequest::all(KeyRange::prefix("/registry/"))
    };
    let count = etcd.range(request).await.expect("a count").count;
    usize::try_from(count).expect("a count")
}

fn size(path: &Path) -> usize {
    let size = fs::metadata(path).map_or(0, |it| it.len());
    usize::try_from(size).expect("a size")
}

/// Asserts that no server with a data directory and these flags starts on an unfinished copy.
fn assert_not_served(data: &Path, flags: &[&str]) {
    let port = ReservedPort::new();
    let number = port.number().to_string();
    let served = Command::new(env!("CARGO_BIN_EXE_ringwatch"))
        .args(["serve", "--secure-port", &number])
        .args(["--data-dir", text(data)])
        .args(flags)
        .output()
        .expect("the binary");
    assert_eq!(served.status.code(), Some(1));
    let errors = String::from_utf8(served.stderr).expect("text");
    assert!(errors.contains("is an unfinished copy"), "{errors}");
}

/// Copies objects to an etcd and kills the copy half way, again from the start if it was too fast. Returns how many
/// objects are there.
async fn kill_half_way(
    etcd: &Etcd,
    backend: &Backend,
    from: &str,
    to: &str,
    objects: usize,
) -> usize {
    for _ in 0..ATTEMPTS_MAX {
        let copy = Copy::start(from, to);
        let half = async || count(backend).await > objects / 2;
        let is_killed = copy.kill_when("to etcd", half).await;
        let there = count(backend).await;
        if is_killed && there < objects {
            return there;
        }
        etcd.etcdctl(&["del", "", "--from-key=true"]);
    }
    panic!("each copy was too fast");
}

/// `COPY_OBJECTS=100000` copies so many.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_is_killed_goes_on() {
    let (Some(etcd), Some(other)) = (
        Etcd::start("a_copy_that_is_killed_goes_on"),
        Etcd::start("a_copy_that_is_killed_goes_on, another etcd"),
    ) else {
        return;
    };
    let objects =
        std::env::var(OBJECTS_VARIABLE).map_or(OBJECTS, |it| it.parse().expect("a number"));
    let folder = tempfile::tempdir().expect("a folder");
    let [data, back] = ["data", "back"].map(|it| folder.path().join(it));
    fill(&data, objects).await;
    let (from, to) = (
        location("embedded", text(&data)),
        location("etcd", &etcd.endpoint()),
    );
    let backend = connect(&etcd).await;

    let there = kill_half_way(&etcd, &backend, &from, &to, objects).await;
    let marker = backend
        .range(RangeRequest::key(MARKER_KEY))
        .await
        .expect("a read");
    assert_eq!(marker.count, 1);
    let served = folder.path().join("served");
    assert_not_served(&served, &["--etcd-servers", &etcd.endpoint()]);
    let overrides = format!("--etcd-servers-overrides=/events#{}", etcd.endpoint());
    assert_not_served(&served, &["--etcd-servers", &other.endpoint(), &overrides]);
    let copied = resume("to etcd", &from, &to);
    assert_eq!(copied["keys"], objects, "{copied}");
    // The writes that were under way were made after the count.
    let changes = copied["changes"]
        .as_u64()
        .and_then(|it| usize::try_from(it).ok());
    assert!(
        changes.is_some_and(|it| it <= objects - there),
        "{there}: {copied}"
    );

    let to_back = location("embedded", text(&back));
    let unfinished = back.join(".ringwatch-store-copy");
    let half = objects * VALUE_BYTES / 2;
    let mut attempts = 0..ATTEMPTS_MAX;
    loop {
        attempts.next().expect("a copy that is not too fast");
        let copy = Copy::start(&to, &to_back);
        let is_half = async || size(&unfinished) > half;
        if copy.kill_when("to a file", is_half).await && unfinished.exists() {
            break;
        }
        fs::remove_dir_all(&back).expect("the copy that has ended");
    }
    assert_not_served(&back, &[]);
    assert!(!back.join(FILE_NAME).exists());
    let copied = resume("to a file", &to, &to_back);
    assert_eq!(copied["keys"], objects, "{copied}");
    assert!(
        copied["changes"].as_u64() < copied["keys"].as_u64(),
        "{copied}"
    );
    assert!(!unfinished.exists());
    let there = status(&["--data-dir", text(&back)]);
    assert_eq!(
        (&there["digest"], &there["revision"]),
        (&copied["digest"], &copied["sourceRevision"])
    );
    let printed = done(&["check", "--data-dir", text(&back)]);
    assert!(printed.contains("FINDINGS  0\n"), "{printed}");
}

#[test]
fn mistakes_are_one_line_that_says_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let from = location("embedded", text(folder.path()));
    let to = location("embedded", &format!("{}/to", text(folder.path())));
    let line = refused(&["copy", "--from", &from, "--to", &to]);
    assert!(
        line.contains("there is no store; name the data directory"),
        "{line}"
    );
    fs::write(folder.path().join(FILE_NAME), "a store").expect("a file");
    let line = refused(&["copy", "--from", &to, "--to", &from]);
    assert!(line.contains("there is a store already"), "{line}");
    assert!(line.contains("it may be whole"), "{line}");
    let line = refused(&["copy", "--from", "etcd:http://127.0.0.1:1", "--to", &to]);
    assert!(
        line.contains("cannot reach etcd at http://127.0.0.1:1"),
        "{line}"
    );
}
