//! A server with the controllers of `--test-cluster`, and what tests ask of it.

use http::header::CONTENT_TYPE;
use http::{Method, Request};
use ringwatch_apimachinery::accessor;
use ringwatch_server::InProcessServer;
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use crate::support::in_process;
use crate::support::requests;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A server with the controllers.
pub(super) struct Cluster {
    client: kube::Client,
    pub(super) server: InProcessServer,
}

impl Cluster {
    pub(super) async fn start() -> Self {
        Self::with(&["--test-cluster"]).await
    }

    /// Starts a server with these flags.
    pub(super) async fn with(flags: &[&str]) -> Self {
        let server = InProcessServer::builder();
        let server = flags.iter().fold(server, |server, flag| server.flag(*flag));
        let server = server.start().await.expect("a server");
        Self {
            client: in_process::client(&server).await,
            server,
        }
    }

    pub(super) async fn ask(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let request = requests::request(method, path, body);
        requests::status_and_document(&requests::send(&self.client, request).await)
    }

    pub(super) async fn get(&self, path: &str) -> Option<Value> {
        let (status, object) = self.ask(Method::GET, path, &Value::Null).await;
        (status == 200).then_some(object)
    }

    /// Writes, and returns the object.
    pub(super) async fn write(&self, method: Method, path: &str, body: Value) -> Value {
        let (status, object) = self.ask(method.clone(), path, &body).await;
        assert!((200..300).contains(&status), "{method} {path}: {object}");
        object
    }

    /// Returns the states of an object that followed the one that is given, in their order.
    pub(super) async fn states_after(&self, list: &str, object: &Value) -> Vec<Value> {
        let text = |member| accessor::text(object, member);
        let (name, version) = (text("name"), text("resourceVersion"));
        let path = format!(
            "{list}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3D{name}&resourceVersion={version}"
        );
        let response = requests::send(&self.client, requests::get(&path)).await;
        let events = serde_json::Deserializer::from_slice(response.body()).into_iter::<Value>();
        let objects = events.map(|it| it.expect("an event")["object"].take());
        objects.collect()
    }

    /// Patches by strategic merge, and returns the object.
    pub(super) async fn patch_strategically(&self, path: &str, patch: &Value) -> Value {
        const TYPE: &str = "application/strategic-merge-patch+json";
        let request = Request::builder().method(Method::PATCH).uri(path);
        let request = request.header(CONTENT_TYPE, TYPE);
        let request = requests::with_document(request, patch);
        let response = requests::send(&self.client, request).await;
        let (status, object) = requests::status_and_document(&response);
        assert_eq!(status, 200, "{path}: {object}");
        object
    }

    pub(super) async fn create(&self, path: &str, object: Value) -> Value {
        self.write(Method::POST, path, object).await
    }

    /// Deletes with a policy for the dependents.
    pub(super) async fn delete(&self, path: &str, policy: &str) {
        let options = json!({"propagationPolicy": policy});
        self.write(Method::DELETE, path, options).await;
    }

    /// Creates a namespace, and waits until accounts can be used there.
    pub(super) async fn namespace(&self, name: &str) {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.create("/api/v1/namespaces", namespace).await;
        self.expect_there(&format!(
            "/api/v1/namespaces/{name}/serviceaccounts/default"
        ))
        .await;
    }

    pub(super) async fn expect_there(&self, path: &str) -> Value {
        eventually(DEADLINE, format!("{path} is there"), async || {
            self.get(path).await
        })
        .await
    }

    pub(super) async fn expect_gone(&self, path: &str) {
        eventually(DEADLINE, format!("{path} is gone"), async || {
            let found = self.get(path).await;
            found.map_or(Ok(()), Err)
        })
        .await;
    }

    pub(super) async fn expect(&self, path: &str, is: impl Fn(&Value) -> bool) -> Value {
        eventually(DEADLINE, format!("{path} is as expected"), async || {
            let found = self.get(path).await;
            let holds = found.as_ref().is_some_and(&is);
            holds.then(|| found.clone()).flatten().ok_or(found)
        })
        .await
    }

    /// Defines Gears, and waits until they are served.
    pub(super) async fn define_gears(&self) {
        self.define("gears", "Gear").await;
    }

    /// Defines custom resources, and waits until they are served.
    pub(super) async fn define(&self, plural: &str, kind: &str) {
        let version = |name: &str, is_stored: bool| {
            json!({"name": name, "served": true, "storage": is_stored,
                "schema": {"openAPIV3Schema": {"type": "object"}}})
        };
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.example.com")},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": plural, "kind": kind},
                "versions": [version("v1", true), version("v2", false)],
            },
        });
        self.create(DEFINITIONS, definition).await;
        self.expect_there(&format!("/apis/example.com/v1/{plural}"))
            .await;
    }
}
