//! A value in etcd that is not an object: whoever meets it is told its key, everything else goes
//! on, and it can be mended.

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use kube::core::Status;
use kube::{Api, Client};
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use crate::support::etcd::Etcd;
use crate::support::named;
use crate::support::requests;
use crate::support::server::Server;

/// The value that is damaged.
const KEY: &str = "/registry/configmaps/default/bad";

fn config_map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: named(name),
        ..ConfigMap::default()
    }
}

async fn create(client: &Client, name: &str) -> u64 {
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let created = api.create(&PostParams::default(), &config_map(name)).await;
    let version = created.expect("created").metadata.resource_version;
    version.expect("a version").parse().expect("a number")
}

fn refusal<T>(outcome: Result<T, kube::Error>) -> Box<Status> {
    match outcome {
        Err(kube::Error::Api(status)) => status,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("no refusal"),
    }
}

/// The request about one object must fail, and say which value is the cause.
fn names_the_key<T>(outcome: Result<T, kube::Error>) {
    let status = refusal(outcome);
    assert_eq!(
        (status.code, status.reason.as_str()),
        (500, "InternalError")
    );
    let begin =
        format!("Internal error occurred: StorageError: corrupt object, Code: 7, Key: {KEY}, ");
    assert!(status.message.starts_with(&begin), "{}", status.message);
}

/// The list must fail, and say of each value that is a cause why.
fn names_all_keys<T>(outcome: Result<T, kube::Error>) {
    let status = refusal(outcome);
    let message = "failed to read one or more configmaps from the storage";
    assert_eq!(
        (status.code, status.reason.as_str(), status.message.as_str()),
        (500, "StorageReadError", message)
    );
    let details = status.details.expect("details");
    assert_eq!(details.kind, "configmaps");
    let [cause] = details.causes.as_slice() else {
        panic!("{:?}", details.causes);
    };
    assert_eq!(
        (cause.reason.as_str(), cause.field.as_str()),
        ("UnexpectedServerResponse", KEY)
    );
    assert!(cause.message.contains("object not decodable revision="));
}

/// Deletes below the namespace with the option for what cannot be read.
async fn delete_unsafely(client: &Client, path: &str) -> Result<Value, kube::Error> {
    let path = format!(
        "/api/v1/namespaces/default/{path}?ignoreStoreReadErrorWithClusterBreakingPotential=true"
    );
    client
        .request(requests::request("DELETE", &path, &Value::Null))
        .await
}

/// An APIService that is no object keeps no other from being looked at.
async fn other_apis_are_looked_at(client: &Client, etcd: &Etcd) {
    const PATH: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
    let key = "/registry/apiregistration.k8s.io/apiservices/v1.broken.example.com";
    etcd.etcdctl(&["put", key, "nonsense"]);
    let spec = json!({"group": "fine.example.com", "version": "v1", "groupPriorityMinimum": 1,
        "versionPriority": 1, "insecureSkipTLSVerify": true,
        "service": {"namespace": "default", "name": "none"}});
    let api = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1.fine.example.com"}, "spec": spec});
    let created = client
        .request::<Value>(requests::request("POST", PATH, &api))
        .await;
    let created = created.expect("created");
    assert_eq!(created["metadata"]["name"], "v1.fine.example.com");
    eventually(DEADLINE, "it is looked at", async || {
        let request = requests::get(&format!("{PATH}/v1.fine.example.com"));
        let api: Value = client.request(request).await.expect("it is there");
        let is_it = api["status"]["conditions"][0]["reason"] == "ServiceNotFound";
        if is_it { Ok(()) } else { Err(api) }
    })
    .await;
}

#[tokio::test]
async fn is_named_and_harms_nothing_else() {
    let Some(etcd) = Etcd::start("corrupt_value::is_named_and_harms_nothing_else") else {
        return;
    };
    let (_server, client) = Server::ready(&["--etcd-servers", &etcd.endpoint()]).await;
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

    names_all_keys(api.list(&ListParams::default()).await);
    names_all_keys(api.list(&ListParams::default().limit(1)).await);
    names_the_key(api.get("bad").await);
    names_the_key(api.delete("bad", &DeleteParams::default()).await);
    // The option is that of a feature which is off.
    names_the_key(delete_unsafely(&client, "configmaps/bad").await);
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
    other_apis_are_looked_at(&client, &etcd).await;
}

#[tokio::test]
async fn is_deleted_unsafely_where_that_is_allowed() {
    let Some(etcd) = Etcd::start("corrupt_value::is_deleted_unsafely_where_that_is_allowed") else {
        return;
    };
    let endpoint = etcd.endpoint();
    let gate = "AllowUnsafeMalformedObjectDeletion=true";
    let (_server, client) =
        Server::ready(&["--etcd-servers", &endpoint, "--feature-gates", gate]).await;
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    create(&client, "good").await;
    etcd.etcdctl(&["put", KEY, "k8s"]);
    create(&client, "later").await;
    names_the_key(api.delete("bad", &DeleteParams::default()).await);

    let status = refusal(delete_unsafely(&client, "configmaps/good").await);
    assert_eq!(status.code, 422);
    assert_eq!(
        status.message,
        "configmaps \"good\" is invalid: ignoreStoreReadErrorWithClusterBreakingPotential: \
         Invalid value: true: is exclusively used to delete corrupt object(s), try again by \
         removing this option"
    );
    let status = refusal(delete_unsafely(&client, "configmaps").await);
    assert_eq!(status.code, 422);
    assert!(
        status
            .message
            .contains("is not allowed with DELETECOLLECTION"),
        "{}",
        status.message
    );

    let deleted = delete_unsafely(&client, "configmaps/bad").await;
    let deleted = deleted.expect("deleted");
    assert_eq!(deleted["status"], "Success");
    assert_eq!(
        deleted["details"],
        json!({"name": "bad", "kind": "ConfigMap"})
    );
    create(&client, "bad").await;
    let list = api.list(&ListParams::default()).await.expect("a list");
    assert_eq!(list.items.len(), 3);
}
