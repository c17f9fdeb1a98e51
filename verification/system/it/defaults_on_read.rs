//! Objects that another program stored without defaults: they are read with them, as by kube-apiserver.

use std::sync::Arc;

use futures::StreamExt;
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams, WatchEvent, WatchParams};
use kube::discovery::ApiResource;
use ringwatch::clock::Clock;
use ringwatch::codec;
use ringwatch::storage::backend::embedded::Embedded;
use ringwatch::storage::backend::{Backend, Compare, Op, Txn};
use ringwatch_server::InProcessServer;
use ringwatch_testing::eventually::DEADLINE;
use serde_json::{Value, json};

use crate::support::in_process::client;

/// An object as an old program may have stored it, and where a default shows.
struct Old {
    key: &'static str,
    object: Value,
    plural: &'static str,
    pointer: &'static str,
    default: Value,
}

fn old() -> Vec<Old> {
    let pod = json!({"containers": [{"name": "c", "image": "i"}]});
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": pod});
    let spec =
        json!({"selector": {"matchLabels": {"a": "b"}}, "serviceName": "s", "template": template});
    let object = |version: &str, kind: &str, more: Value| {
        let mut object = json!({"apiVersion": version, "kind": kind,
            "metadata": {"name": "old", "namespace": "default", "uid": "u"}});
        let members = object.as_object_mut().expect("an object");
        members.extend(more.as_object().expect("an object").clone());
        object
    };
    vec![
        Old {
            key: "/registry/pods/default/old",
            object: object("v1", "Pod", json!({"spec": pod})),
            plural: "pods",
            pointer: "/spec/containers/0/terminationMessagePolicy",
            default: json!("File"),
        },
        Old {
            key: "/registry/statefulsets/default/old",
            object: object("apps/v1", "StatefulSet", json!({"spec": spec})),
            plural: "statefulsets",
            pointer: "/spec/persistentVolumeClaimRetentionPolicy/whenDeleted",
            default: json!("Retain"),
        },
        Old {
            key: "/registry/services/specs/default/old",
            object: object(
                "v1",
                "Service",
                json!({"spec": {"type": "LoadBalancer", "ports": [{"port": 1}]},
                "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}),
            ),
            plural: "services",
            pointer: "/status/loadBalancer/ingress/0/ipMode",
            default: json!("VIP"),
        },
        Old {
            key: "/registry/jobs/default/old",
            object: object("batch/v1", "Job", json!({"spec": {"template": template}})),
            plural: "jobs",
            pointer: "/spec/podReplacementPolicy",
            default: json!("TerminatingOrFailed"),
        },
    ]
}

impl Old {
    fn api(&self, client: &Client) -> Api<DynamicObject> {
        let text = |name: &str| self.object[name].as_str().expect("a text").to_owned();
        let version = text("apiVersion");
        let (group, version) = version.split_once('/').unwrap_or(("", &version));
        let resource = ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: text("apiVersion"),
            kind: text("kind"),
            plural: self.plural.to_owned(),
        };
        Api::default_namespaced_with(client.clone(), &resource)
    }

    fn check(&self, from: &str, found: &DynamicObject) {
        let found = serde_json::to_value(found).expect("JSON");
        let value = found.pointer(self.pointer);
        assert_eq!(
            value,
            Some(&self.default),
            "{from} of {}: {found}",
            self.key
        );
    }
}

#[tokio::test]
async fn gets_lists_and_watches_show_them() {
    let store: Arc<dyn Backend> = Arc::new(Embedded::in_memory(Clock::real()));
    let server = InProcessServer::builder().backend(Arc::clone(&store));
    let server = server.start().await.expect("a server");
    let client = client(&server).await;
    for old in old() {
        let api = old.api(&client);
        let list = api.list(&ListParams::default()).await.expect("a list");
        let version = list.metadata.resource_version.expect("a version");
        let watch = api.watch(&WatchParams::default(), &version).await;
        let mut watch = watch.expect("a watch").boxed();
        let value = codec::encode_value(&old.object).expect("a kind");
        let written = store.txn(Txn {
            compare: Compare::ModRevision(old.key.to_owned(), 0),
            then: Op::Put {
                key: old.key.to_owned(),
                value: value.into(),
                lease: None,
            },
            otherwise: None,
        });
        assert!(written.await.expect("written").succeeded);
        let event = tokio::time::timeout(DEADLINE, watch.next()).await;
        let event = event.expect("no wait").expect("an event");
        let Ok(WatchEvent::Added(added)) = event else {
            panic!("{event:?}");
        };
        old.check("a watch", &added);
        old.check("the store", &api.get("old").await.expect("read"));
        for params in [ListParams::default(), ListParams::default().match_any()] {
            let list = api.list(&params).await.expect("a list");
            let mut items = list.items.iter();
            let found = items.find(|it| it.metadata.name.as_deref() == Some("old"));
            let found = found.expect("the object");
            old.check("a list", found);
        }
    }
}
