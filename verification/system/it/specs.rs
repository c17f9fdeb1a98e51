//! The requirements of Kubernetes' conformance specs of the API that no other test here covers.

mod chunking;
mod custom_resource_definition;
mod field_validation;
mod flow_control;

use http::{Method, Request, StatusCode};
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use crate::support::requests;
use crate::support::server::Server;

/// The admin of a server of one's own.
struct Admin {
    client: kube::Client,
    _server: Server,
}

/// An answer.
#[derive(Debug)]
struct Answer {
    status: StatusCode,
    warnings: Vec<String>,
    body: Value,
}

impl Admin {
    async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// The same with these flags.
    async fn start_with(flags: &[&str]) -> Self {
        let flags = [&["--storage-backend", "memory"], flags].concat();
        let mut server = Server::start(&flags);
        Self {
            client: server.client().await,
            _server: server,
        }
    }

    /// Asks with a body of this media type, and accepts an answer of that one.
    async fn ask(
        &self,
        (method, path): (Method, &str),
        (sent, accepted): (&str, &str),
        body: impl ToString,
    ) -> Answer {
        let request = Request::builder().method(method).uri(path);
        let request = request
            .header("Content-Type", sent)
            .header("Accept", accepted);
        let request = request.body(body.to_string().into_bytes().into());
        let answer = requests::send(&self.client, request.expect("a request")).await;
        let warnings = answer.headers().get_all("Warning").iter();
        let warnings = warnings.map(|it| it.to_str().expect("a text").to_owned());
        Answer {
            status: answer.status(),
            warnings: warnings.collect(),
            body: serde_json::from_slice(answer.body()).expect("JSON"),
        }
    }

    async fn send(&self, method: Method, path: &str, sent: &str, body: impl ToString) -> Answer {
        let types = (sent, "application/json");
        self.ask((method, path), types, body).await
    }

    async fn get(&self, path: &str) -> Value {
        let answer = self.send(Method::GET, path, "application/json", "").await;
        assert_eq!(answer.status, StatusCode::OK, "{path}: {}", answer.body);
        answer.body
    }

    async fn create(&self, path: &str, object: &Value) -> Value {
        let answer = self.send(Method::POST, path, "application/json", object);
        let answer = answer.await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.body);
        answer.body
    }

    async fn patch(&self, path: &str, kind: &str, patch: &Value) -> Value {
        let kind = format!("application/{kind}");
        let answer = self.send(Method::PATCH, path, &kind, patch);
        let answer = answer.await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        answer.body
    }

    /// Looks at an object until it is as it should be.
    async fn until(&self, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let found = eventually(DEADLINE, format!("{path} becomes so"), async || {
            let found = self.get(path).await;
            if is_so(&found) {
                return Ok(found);
            }
            Err(found)
        });
        found.await
    }

    /// Defines cluster-wide Gears in example.com/v1, and gives the path of the definition and of the gears once they
    /// are served.
    async fn define_gears(&self, schema: Value) -> (String, String) {
        const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        self.create(
            DEFINITIONS,
            &json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "gears.example.com"},
                "spec": {
                    "group": "example.com", "scope": "Cluster",
                    "names": {"plural": "gears", "singular": "gear", "kind": "Gear", "listKind": "GearList"},
                    "versions": [{"name": "v1", "served": true, "storage": true,
                        "schema": {"openAPIV3Schema": schema}}],
                },
            }),
        )
        .await;
        let gears = "/apis/example.com/v1/gears".to_owned();
        eventually(DEADLINE, "gears are served", async || {
            // What is not served yet is answered by a text.
            self.client.request_text(requests::get(&gears)).await
        })
        .await;
        (format!("{DEFINITIONS}/gears.example.com"), gears)
    }
}

fn gear(name: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Gear", "metadata": {"name": name}})
}

impl Answer {
    /// Code, reason and message of a failure.
    fn failure(&self) -> (u16, &str, &str) {
        let text = |name: &str| self.body[name].as_str().unwrap_or_default();
        assert_eq!(text("kind"), "Status", "{self:?}");
        (self.status.as_u16(), text("reason"), text("message"))
    }
}
