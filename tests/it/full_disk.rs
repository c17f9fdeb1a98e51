//! A database that cannot grow: writes are refused, the log says so once, reads go on, and nothing
//! that was acknowledged is lost.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, ObjectMeta, PostParams};
use kube::{Api, Client};

use crate::support::server::Server;

/// The database may grow to 8 MiB. The signal that comes with the refusal would end the server.
const LIMITED: [&str; 4] = ["env", "--ignore-signal=XFSZ", "prlimit", "--fsize=8388608"];
/// So many objects do not fit in that.
const OBJECTS_MAX: usize = 100;
const OBJECT_BYTES: usize = 200 << 10;

/// What the server says when it can write no more.
const REFUSAL: &str = "store.redb: the database takes no more writes";

fn config_maps(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), "default")
}

async fn create(api: &Api<ConfigMap>, name: &str) -> Result<(), kube::Error> {
    let object = ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([("x".to_owned(), "x".repeat(OBJECT_BYTES))])),
        ..ConfigMap::default()
    };
    api.create(&PostParams::default(), &object).await.map(drop)
}

async fn names(api: &Api<ConfigMap>) -> BTreeSet<String> {
    let list = api.list(&ListParams::default()).await.expect("a list");
    let names = list.items.into_iter().map(|it| it.metadata.name);
    names.map(|name| name.expect("a name")).collect()
}

#[tokio::test]
async fn what_was_acknowledged_outlives_a_full_disk() {
    let mut server = Server::start_under(&LIMITED, &[]);
    let api = config_maps(&server.client().await);
    let mut acknowledged = BTreeSet::new();
    let mut refused = None;
    for number in 0..OBJECTS_MAX {
        let name = format!("object-{number}");
        match create(&api, &name).await {
            Ok(()) => acknowledged.insert(name),
            Err(error) => {
                refused = Some((name, error));
                break;
            }
        };
    }
    let (unanswered, error) = refused.expect("a refusal");
    let kube::Error::Api(status) = error else {
        panic!("{error}");
    };
    assert_eq!(
        (status.code, status.reason.as_str()),
        (500, "InternalError")
    );
    assert!(status.message.contains(REFUSAL), "{}", status.message);
    assert!(create(&api, "another").await.is_err(), "still full");
    assert_eq!(names(&api).await, acknowledged, "reads go on");
    let log = server.log();
    assert_eq!(log.matches(REFUSAL).count(), 1, "{log}");

    server.stop().await;
    server.no_longer_under();
    server.start_again();
    let api = config_maps(&server.client().await);
    let mut found = names(&api).await;
    // Whether what was refused has been written shows only now.
    if !acknowledged.contains(&unanswered) {
        found.remove(&unanswered);
    }
    assert_eq!(found, acknowledged);
    create(&api, "another").await.expect("room again");
}
