//! kill -9 under write load, again and again: what was acknowledged is there, and nothing else is
//! but what was under way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, ObjectMeta, PostParams};
use kube::{Api, Client};
use ringwatch_testing::eventually::{DEADLINE, eventually};

use crate::support::server::Server;

const KILLS: usize = 20;
const WRITERS: usize = 8;
/// The server is killed soon after so many writes of a round are acknowledged, which differs per round.
const ACKNOWLEDGED_MIN: usize = 20;
const ACKNOWLEDGED_STEP: usize = 7;

/// The writes, as far as the writers know.
#[derive(Default)]
struct Ledger {
    /// Names whose creation was acknowledged.
    acknowledged: BTreeSet<String>,
    /// Names that were sent and never answered.
    unanswered: BTreeSet<String>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_writes_survive_kill_9() {
    let mut server = Server::start(&[]);
    let ledger = Arc::new(Mutex::new(Ledger::default()));
    for round in 0..KILLS {
        let client = server.client().await;
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let prefix = format!("r{round:02}-w{writer}");
                tokio::spawn(write_until_refused(
                    client.clone(),
                    prefix,
                    Arc::clone(&ledger),
                ))
            })
            .collect();
        let before = ledger.lock().unwrap().acknowledged.len();
        let wanted = before + ACKNOWLEDGED_MIN + round * ACKNOWLEDGED_STEP;
        eventually(DEADLINE, format!("{wanted} writes"), async || {
            ledger.lock().unwrap().acknowledged.len() >= wanted
        })
        .await;
        server.kill();
        for writer in writers {
            writer
                .await
                .expect("a writer that ends when the server does");
        }
        server.start_again();
        check(&server.client().await, &ledger).await;
    }
}

/// Creates one object after the other until an answer stays away.
async fn write_until_refused(client: Client, prefix: String, ledger: Arc<Mutex<Ledger>>) {
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    for number in 0.. {
        let name = format!("{prefix}-{number:06}");
        ledger.lock().unwrap().unanswered.insert(name.clone());
        let object = ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                ..ObjectMeta::default()
            },
            data: Some(BTreeMap::from([("name".to_owned(), name.clone())])),
            ..ConfigMap::default()
        };
        if api.create(&PostParams::default(), &object).await.is_err() {
            return;
        }
        let mut ledger = ledger.lock().unwrap();
        ledger.unanswered.remove(&name);
        ledger.acknowledged.insert(name);
    }
}

async fn check(client: &Client, ledger: &Mutex<Ledger>) {
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let listed = api.list(&ListParams::default()).await.expect("a list");
    let mut found = BTreeSet::new();
    for object in listed.items {
        let name = object.metadata.name.expect("a name");
        if name.starts_with('r') {
            let whole = object
                .data
                .is_some_and(|data| data.get("name") == Some(&name));
            assert!(whole, "{name} has its content");
            found.insert(name);
        }
    }
    let ledger = ledger.lock().unwrap();
    let lost: Vec<_> = ledger.acknowledged.difference(&found).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    let sent: BTreeSet<_> = ledger
        .acknowledged
        .union(&ledger.unanswered)
        .cloned()
        .collect();
    let strange: Vec<_> = found.difference(&sent).collect();
    assert!(strange.is_empty(), "never sent: {strange:?}");
}
