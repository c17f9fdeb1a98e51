//! The requests of Kubernetes' controllers and its scheduler, each with its own rights and no others.

mod addresses;
mod certificates;
mod claims;
mod events;
mod scheduling;
mod volumes;

use http::{Method, Request};
use ringwatch_server::InProcessServer;
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use crate::support::in_process;
use crate::support::requests;

const JSON: &str = "application/json";
const APPLY: &str = "application/apply-patch+yaml";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

const PODS: &str = "/api/v1/namespaces/default/pods";

/// A server where roles count.
struct Cluster {
    _server: InProcessServer,
    admin: kube::Client,
}

impl Cluster {
    async fn start() -> Self {
        let server = InProcessServer::builder().flag("--authorization-mode=Node,RBAC");
        let server = server.start().await.expect("a server");
        Self {
            admin: in_process::client(&server).await,
            _server: server,
        }
    }

    /// Returns the administrator.
    fn admin(&self) -> Actor {
        Actor {
            client: self.admin.clone(),
            user: None,
        }
    }

    /// A user, once it may list this.
    async fn user(&self, name: &str, lists: &str) -> Actor {
        let actor = Actor {
            client: self.admin.clone(),
            user: Some(name.to_owned()),
        };
        // The default roles are followed a moment after the server serves.
        eventually(DEADLINE, format!("{name} may list {lists}"), async || {
            actor.get(lists).await.code == 200
        })
        .await;
        actor
    }

    /// A controller with the account that the controller manager gives it, once it may list this.
    async fn controller(&self, name: &str, lists: &str) -> Actor {
        let account = format!("system:serviceaccount:kube-system:{name}");
        self.user(&account, lists).await
    }
}

/// A client with its user.
struct Actor {
    client: kube::Client,
    /// In whose name; the admin's own if `None`.
    user: Option<String>,
}

impl Actor {
    async fn get(&self, path: &str) -> Answer {
        self.ask(Method::GET, path, JSON, &Value::Null).await
    }

    async fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask(Method::POST, path, JSON, body).await
    }

    async fn put(&self, path: &str, body: &Value) -> Answer {
        self.ask(Method::PUT, path, JSON, body).await
    }

    async fn patch(&self, path: &str, media: &str, body: &Value) -> Answer {
        self.ask(Method::PATCH, path, media, body).await
    }

    async fn ask(&self, method: Method, path: &str, media: &str, body: &Value) -> Answer {
        let asked = format!("{method} {path}");
        let mut request = Request::builder().method(method).uri(path);
        if let Some(user) = &self.user {
            request = request.header("impersonate-user", user);
        }
        let request = request.header("content-type", media);
        let answer = requests::send(&self.client, requests::with_document(request, body)).await;
        let (code, body) = requests::status_and_document(&answer);
        Answer { asked, code, body }
    }
}

/// An answer of the server.
struct Answer {
    asked: String,
    code: u16,
    body: Value,
}

impl Answer {
    /// The object, when all is well.
    fn object(self) -> Value {
        assert!(
            (200..300).contains(&self.code),
            "{}: {} {}",
            self.asked,
            self.code,
            self.body
        );
        self.body
    }

    /// Expects a refusal with this code and message.
    fn refused(self, code: u16, message: &str) {
        assert_eq!(
            (self.code, self.body["message"].as_str()),
            (code, Some(message)),
            "{}",
            self.asked
        );
    }
}

/// A pod of one container, with what is said about it.
fn pod(metadata: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
        "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

/// An owner that controls what has it.
fn controlled_by(owner: &Value) -> Value {
    json!([{"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true}])
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().expect("a name")
}

#[tokio::test]
async fn controllers_find_what_they_rely_on() {
    let cluster = Cluster::start().await;
    let tracking = "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking";
    let tracking = cluster.admin().get(tracking).await.object();
    assert!(tracking["data"]["since"].is_string(), "{tracking}");
    scheduling::play(&cluster).await;
    volumes::play(&cluster).await;
    certificates::play(&cluster).await;
    claims::play(&cluster).await;
    events::play(&cluster).await;
    addresses::play(&cluster).await;
}
