//! A database that cannot grow: writes are refused and health says so, the log says it once, reads
//! go on, nothing that was acknowledged is lost, and writes are taken again when there is room.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client};
use ringwatch_testing::eventually::{DEADLINE, eventually};

use crate::support::named;
use crate::support::requests;
use crate::support::server::Server;

/// The database may grow to 8 MiB, by a soft limit that can be lifted. The signal that comes with the
/// refusal would end the server.
const LIMITED: [&str; 4] = ["env", "--ignore-signal=XFSZ", "prlimit", "--fsize=8388608:"];
/// The number of objects that do not fit into such a database, and the size of each in bytes.
const OBJECTS_MAX: usize = 100;
const OBJECT_BYTES: usize = 200 << 10;

/// The error of a server that can write no more.
const REFUSAL: &str = "store.redb: the database takes no more writes";
/// The check of health that fails then.
const CHECK: &str = "storage-writable";

/// The message when the quota is reached, as kube-apiserver passes it on from etcd.
const NO_SPACE: &str = "etcdserver: mvcc: database space exceeded";
const QUOTA: &str = "--quota-backend-bytes=4194304";

fn config_maps(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), "default")
}

async fn create(api: &Api<ConfigMap>, name: &str) -> Result<(), kube::Error> {
    let object = ConfigMap {
        metadata: named(name),
        data: Some(BTreeMap::from([("x".to_owned(), "x".repeat(OBJECT_BYTES))])),
        ..ConfigMap::default()
    };
    api.create(&PostParams::default(), &object).await.map(drop)
}

async fn names(api: &Api<ConfigMap>) -> BTreeSet<String> {
    let list = api.list(&ListParams::default()).await.expect("a list");
    let names = list.items.into_iter().map(|it| it.metadata.name);
    let names: BTreeSet<_> = names.map(|name| name.expect("a name")).collect();
    names
        .into_iter()
        .filter(|it| it.starts_with("object-"))
        .collect()
}

/// Creates objects until one is refused. What was acknowledged, what was not, and why.
async fn fill(api: &Api<ConfigMap>) -> (BTreeSet<String>, String, Box<kube::core::Status>) {
    let mut acknowledged = BTreeSet::new();
    for number in 0..OBJECTS_MAX {
        let name = format!("object-{number:02}");
        match create(api, &name).await {
            Ok(()) => acknowledged.insert(name),
            Err(kube::Error::Api(status)) => return (acknowledged, name, status),
            Err(error) => panic!("{error}"),
        };
    }
    panic!("no refusal");
}

/// The answer of a path of health, be it well or not.
async fn health(client: &Client, path: &str) -> String {
    match client.request_text(requests::get(path)).await {
        Ok(text) => text,
        Err(kube::Error::Api(status)) => status.message,
        Err(error) => panic!("{error}"),
    }
}

/// Waits until a path of health says ok.
async fn until_ok(client: &Client, path: &str) {
    eventually(DEADLINE, format!("{path} says ok"), async || {
        let said = health(client, path).await;
        (said == "ok").then_some(()).ok_or(said)
    })
    .await;
}

/// A client that asks once.
async fn client(server: &mut Server) -> Client {
    server.client().await;
    let kubeconfig = kube::config::Kubeconfig::read_from(server.kubeconfig());
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig.expect("a kubeconfig"), &options);
    let mut config = config.await.expect("a configuration");
    config.default_retry = false;
    Client::try_from(config).expect("a client")
}

/// Lets the files of a server that runs grow again.
fn lift_limit(server: &Server) {
    let process = server.id().to_string();
    let lifted = Command::new("prlimit")
        .args(["--pid", &process, "--fsize=unlimited"])
        .status();
    assert!(lifted.expect("prlimit").success());
}

#[tokio::test]
async fn writes_are_taken_again_when_there_is_room_and_nothing_is_lost() {
    let mut server = Server::start_under(&LIMITED, &[]);
    let client = client(&mut server).await;
    let api = config_maps(&client);
    let (mut acknowledged, refused, status) = fill(&api).await;
    assert_eq!(
        (status.code, status.reason.as_str()),
        (500, "ServerTimeout"),
        "as if etcd could not be reached"
    );
    let details = status.details.expect("details");
    assert_eq!(details.retry_after_seconds, 2);
    assert!(!status.message.contains("redb"), "{}", status.message);
    assert!(create(&api, "another").await.is_err(), "still full");
    assert_eq!(names(&api).await, acknowledged, "reads go on");
    for (path, fails) in [("/readyz", true), ("/healthz", true), ("/livez", false)] {
        let said = health(&client, path).await;
        assert_eq!(
            said.contains(&format!("[-]{CHECK} failed")),
            fails,
            "{said}"
        );
    }
    let said = health(&client, &format!("/readyz/{CHECK}")).await;
    assert!(said.contains("takes no more writes: "), "{said}");
    assert!(!said.contains("redb"), "no path: {said}");
    let log = server.log();
    assert_eq!(log.matches(REFUSAL).count(), 1, "{log}");

    lift_limit(&server);
    until_ok(&client, "/readyz").await;
    assert_eq!(
        names(&api).await,
        acknowledged,
        "what was refused is not there"
    );
    for name in [refused.as_str(), "object-98", "object-99"] {
        create(&api, name).await.expect("room again");
        acknowledged.insert(name.to_owned());
    }
    assert_eq!(names(&api).await, acknowledged);
    server.kill();
    server.no_longer_under();
    server.start_again();
    let api = config_maps(&server.client().await);
    assert_eq!(names(&api).await, acknowledged);
}

#[tokio::test]
async fn what_was_acknowledged_is_there_when_a_full_server_was_killed() {
    let mut server = Server::start_under(&LIMITED, &[]);
    let api = config_maps(&client(&mut server).await);
    let (acknowledged, refused, _) = fill(&api).await;
    server.kill();
    // The disk is still full when the server comes back.
    for limited in [true, false] {
        if !limited {
            server.kill();
            server.no_longer_under();
        }
        server.start_again();
        let api = config_maps(&client(&mut server).await);
        let mut found = names(&api).await;
        // Whether what was refused has been written shows only now.
        found.remove(&refused);
        assert_eq!(found, acknowledged, "limited: {limited}");
    }
    let api = config_maps(&server.client().await);
    create(&api, "another").await.expect("room again");
}

#[tokio::test]
async fn a_quota_takes_deletions_and_then_writes_again() {
    let mut server = Server::start(&[QUOTA, "--etcd-compaction-interval=1s"]);
    let client = client(&mut server).await;
    let api = config_maps(&client);
    let (acknowledged, _, status) = fill(&api).await;
    assert_eq!((status.code, status.reason.as_str()), (500, ""));
    assert_eq!(status.message, NO_SPACE);
    for (path, fails) in [("/healthz", true), ("/readyz", false), ("/livez", false)] {
        let said = health(&client, path).await;
        assert_eq!(said.contains("[-]storage-quota failed"), fails, "{said}");
    }
    let metrics = health(&client, "/metrics").await;
    assert!(
        metrics.contains("etcd_server_quota_backend_bytes 4194304"),
        "{metrics}"
    );
    let used = metrics
        .lines()
        .find_map(|line| line.strip_prefix("etcd_mvcc_db_total_size_in_use_in_bytes "))
        .and_then(|used| used.parse::<u64>().ok())
        .expect("a number");
    assert!(used > 3 << 20 && used <= 4 << 20, "{used}");

    for name in acknowledged.iter().take(acknowledged.len() / 2) {
        let deleted = api.delete(name, &DeleteParams::default()).await;
        deleted.expect("deletions are taken");
    }
    until_ok(&client, "/healthz").await;
    create(&api, "object-99").await.expect("room again");
}
