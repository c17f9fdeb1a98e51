//! A value in etcd that is not an object: whoever meets it is told its key, everything else goes
//! on, and it can be mended.

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, ListParams, ObjectMeta, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client};

use crate::support::etcd::Etcd;
use crate::support::server::Server;

/// The value that is damaged.
const KEY: &str = "/registry/configmaps/default/bad";

fn config_map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

async fn create(client: &Client, name: &str) -> u64 {
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let created = api.create(&PostParams::default(), &config_map(name)).await;
    let version = created.expect("created").metadata.resource_version;
    version.expect("a version").parse().expect("a number")
}

/// The request must fail, and say which value is the cause.
fn names_the_key<T>(outcome: Result<T, kube::Error>) {
    let Err(kube::Error::Api(status)) = outcome else {
        panic!("no refusal");
    };
    assert_eq!(
        (status.code, status.reason.as_str()),
        (500, "StorageReadError")
    );
    assert!(status.message.contains(KEY), "{}", status.message);
}

#[tokio::test]
async fn is_named_and_harms_nothing_else() {
    let Some(etcd) = Etcd::start("corrupt_value::is_named_and_harms_nothing_else") else {
        return;
    };
    let mut server = Server::start(&["--etcd-servers", &etcd.endpoint()]);
    let client = server.client().await;
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    create(&client, "good").await;
    let from = create(&client, "bad").await.to_string();
    let watch = api.watch(&WatchParams::default(), &from).await;
    let mut watch = watch.expect("a watch").boxed();

    etcd.etcdctl(&["put", KEY, "nonsense"]);
    // The cache knows of the value as soon as it knows of what was written after it.
    create(&client, "later").await;
    let event = watch.try_next().await.expect("no error").expect("an event");
    assert!(matches!(event, WatchEvent::Added(it) if it.metadata.name.as_deref() == Some("later")));

    names_the_key(api.list(&ListParams::default()).await);
    names_the_key(api.list(&ListParams::default().limit(1)).await);
    names_the_key(api.get("bad").await);
    names_the_key(api.delete("bad", &DeleteParams::default()).await);
    api.get("good").await.expect("another object");
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let others = namespaces.list(&ListParams::default()).await;
    assert!(!others.expect("another type").items.is_empty());

    etcd.etcdctl(&["del", KEY]);
    create(&client, "bad").await;
    let list = api.list(&ListParams::default()).await.expect("a list");
    assert_eq!(list.items.len(), 3);
    let rest: Vec<_> = watch
        .by_ref()
        .take(2)
        .try_collect()
        .await
        .expect("no error");
    let [WatchEvent::Deleted(gone), WatchEvent::Added(back)] = rest.as_slice() else {
        panic!("{rest:?}");
    };
    for object in [gone, back] {
        assert_eq!(object.metadata.name.as_deref(), Some("bad"));
    }
}
