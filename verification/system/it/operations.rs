//! The requirements of Kubernetes' conformance suite on an API server alone. Where a specification has a controller at
//! work, the test plays its part.

mod kinds;
mod lives;
mod pods;
mod volumes;

use http::{Method, Request};
use ringwatch_server::InProcessServer;
use serde_json::{Value, json};

use crate::support::in_process;
use crate::support::requests;

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// A server of a test's own, whose admin asks.
pub(super) struct Cluster {
    _server: InProcessServer,
    client: kube::Client,
}

/// An answer: its status and its document.
pub(super) struct Answer {
    code: u16,
    body: Value,
}

impl Cluster {
    async fn start() -> Self {
        let server = InProcessServer::start().await.expect("a server");
        Self {
            client: in_process::client(&server).await,
            _server: server,
        }
    }

    async fn namespace(&self, name: &str) {
        let namespace = json!({"metadata": {"name": name}});
        let made = self.post("/api/v1/namespaces", &namespace).await;
        made.is(201, "a namespace");
    }

    async fn get(&self, path: &str) -> Answer {
        self.ask(Method::GET, path, JSON, &Value::Null).await
    }

    async fn post(&self, path: &str, object: &Value) -> Answer {
        self.ask(Method::POST, path, JSON, object).await
    }

    async fn put(&self, path: &str, object: &Value) -> Answer {
        self.ask(Method::PUT, path, JSON, object).await
    }

    async fn delete(&self, path: &str) -> Answer {
        self.ask(Method::DELETE, path, JSON, &Value::Null).await
    }

    async fn patch(&self, path: &str, patch: &Value) -> Answer {
        self.patch_as(path, MERGE, patch).await
    }

    async fn patch_as(&self, path: &str, media_type: &str, patch: &Value) -> Answer {
        self.ask(Method::PATCH, path, media_type, patch).await
    }

    async fn ask(&self, method: Method, path: &str, media_type: &str, body: &Value) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", media_type);
        let answer = requests::send(&self.client, requests::with_document(request, body)).await;
        let (code, body) = requests::status_and_document(&answer);
        Answer { code, body }
    }
}

impl Answer {
    /// The document of an answer that has this status.
    #[track_caller]
    fn is(self, code: u16, what: &str) -> Value {
        assert_eq!(self.code, code, "{what}: {}", self.body);
        self.body
    }

    /// Checks that it is refused with this status, and a message that ends so.
    #[track_caller]
    fn is_refused(&self, code: u16, message: &str) {
        let told = self.body["message"].as_str().unwrap_or_default();
        assert_eq!(self.code, code, "{message}: {}", self.body);
        assert!(
            told.ends_with(message),
            "{told}\nshould end with\n{message}"
        );
    }
}
