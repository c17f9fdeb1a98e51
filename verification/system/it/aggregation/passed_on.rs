//! A second server as the server of an API that the first does not know.

use std::path::Path;
use std::process::Command;

use futures::{StreamExt, TryStreamExt};
use kube::api::{ApiResource, DynamicObject, WatchEvent, WatchParams};
use kube::{Api, Client};
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use super::{Answer, DEFINITIONS, Front, Pair, Proxy, ask, encoded, start};
use crate::support::server::Server;
use crate::support::tools::{self, skipped};

const GROUP: &str = "example.com";
const GEARS: &str = "/apis/example.com/v1/namespaces/default/gears";

/// Two servers: what the front does not know, the remote serves.
struct Both {
    front: Front,
    remote: Server,
    remote_client: Client,
}

impl Both {
    async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let proxy = Proxy::new(folder.path());
        let serving = Pair::serving(folder.path(), "gears");
        let rbac = vec!["--authorization-mode=RBAC".to_owned()];
        let mut remote = start(&[serving.serving_flags(), proxy.remote_flags(), rbac]);
        let front = Front::start(&proxy, &[]).await;
        let remote_client = remote.client().await;
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition", "metadata": {"name": "gears.example.com"},
            "spec": {"group": GROUP, "scope": "Namespaced",
                "names": {"plural": "gears", "kind": "Gear", "shortNames": ["gr"]}, "versions": [
                    {"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                        "additionalPrinterColumns": [{"name": "Teeth", "type": "integer", "jsonPath": ".spec.teeth"}],
                        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                            "spec": {"type": "object", "properties": {
                                "teeth": {"type": "integer", "description": "How many there are."}}}}}}}]}});
        let created = ask(&remote_client, "POST", DEFINITIONS, &definition).await;
        created.expect("created");
        let served = async || ask(&remote_client, "GET", GEARS, &Value::Null).await;
        eventually(DEADLINE, "the remote serves gears", served).await;
        front.local_service("gears").await;
        let trust = json!({"caBundle": encoded(&serving.pem)});
        front.aggregate(GROUP, "gears", remote.port(), &trust).await;
        let message = front.condition(GROUP, "True", "Passed").await;
        assert_eq!(message, "all checks passed");
        let both = Self {
            front,
            remote,
            remote_client,
        };
        let request = format!("GET {GEARS}");
        let is_passed_on = both
            .front
            .answers("secret", &request, "", |it| it.status == 200);
        is_passed_on.await;
        both
    }

    /// Runs kubectl and returns its output.
    fn kubectl(&self, program: &Path, words: &[&str]) -> String {
        let output = tools::run(
            Command::new(program)
                .arg("--kubeconfig")
                .arg(self.front.server.kubeconfig())
                .arg("--cache-dir")
                .arg(self.front.folder.path().join("cache"))
                .args(words),
        );
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{words:?}: {output:?}");
        said
    }

    fn gears(client: &Client) -> Api<DynamicObject> {
        let mut resource = ApiResource::erase::<k8s_openapi::api::core::v1::ConfigMap>(&());
        resource.group = GROUP.to_owned();
        resource.api_version = format!("{GROUP}/v1");
        resource.kind = "Gear".to_owned();
        resource.plural = "gears".to_owned();
        Api::namespaced_with(client.clone(), "default", &resource)
    }
}

fn gear(name: &str, teeth: u32) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Gear",
        "metadata": {"name": name}, "spec": {"teeth": teeth}})
}

#[tokio::test]
async fn objects_of_another_server_are_written_read_and_watched() {
    let both = Both::start().await;
    let front = &both.front;
    front.create(GEARS, &gear("a", 7)).await;
    let path = format!("{GEARS}/a");
    let stored = ask(&both.remote_client, "GET", &path, &Value::Null).await;
    assert!(stored.expect("there").contains("\"teeth\":7"));
    let patched = front
        .ask("PATCH", &path, &json!({"spec": {"teeth": 8}}))
        .await;
    assert!(patched.expect("patched").contains("\"teeth\":8"));
    let mut odd = gear("b", 1);
    odd["spec"]["teeth"] = json!("many");
    let refused = front.ask("POST", GEARS, &odd);
    let (code, message) = refused.await.expect_err("not as the schema says");
    assert!(code == 422 && message.contains("spec.teeth"), "{message}");

    let list = Both::gears(&front.client).list(&Default::default()).await;
    let version = list
        .expect("a list")
        .metadata
        .resource_version
        .expect("a version");
    let watch = Both::gears(&front.client);
    let events = watch.watch(&WatchParams::default(), &version).await;
    let mut events = events.expect("a watch").boxed();
    for name in ["c", "d"] {
        let created = ask(&both.remote_client, "POST", GEARS, &gear(name, 1)).await;
        created.expect("created");
        let event = tokio::time::timeout(DEADLINE, events.try_next()).await;
        let event = event
            .expect("in time")
            .expect("no error")
            .expect("an event");
        let WatchEvent::Added(object) = event else {
            panic!("{event:?}");
        };
        assert_eq!(object.metadata.name.as_deref(), Some(name));
    }
}

#[tokio::test]
async fn both_servers_have_to_allow_a_request() {
    let both = Both::start().await;
    let front = &both.front;
    // The front allows everything; the other one knows no role of hers.
    let headers = "X-Remote-User: admin\r\nX-Remote-Group: system:masters";
    let answer = front.raw("weak", &format!("GET {GEARS}"), headers).await;
    assert_eq!(answer.status, 403, "{answer:?}");
    assert!(
        answer
            .body
            .contains("User \\\"ann\\\" cannot list resource \\\"gears\\\""),
        "{answer:?}"
    );
    let rule = json!({"apiGroups": [GROUP], "resources": ["gears"], "verbs": ["list"]});
    let roles = "/apis/rbac.authorization.k8s.io/v1";
    for (path, object) in [
        (
            "clusterroles",
            json!({"metadata": {"name": "gears"}, "rules": [rule]}),
        ),
        (
            "clusterrolebindings",
            json!({"metadata": {"name": "gears"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "gears"},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "menders"}]}),
        ),
    ] {
        let created = ask(
            &both.remote_client,
            "POST",
            &format!("{roles}/{path}"),
            &object,
        )
        .await;
        created.expect("created");
    }
    let request = format!("GET {GEARS}");
    front
        .answers("weak", &request, "", |it| it.status == 200)
        .await;
    let map = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    let map = ask(&both.remote_client, "GET", map, &Value::Null).await;
    let map: Value = serde_json::from_str(&map.expect("there")).expect("JSON");
    let data = &map["data"];
    for authorities in ["client-ca-file", "requestheader-client-ca-file"] {
        let pem = data[authorities].as_str().expect("a text");
        assert!(pem.starts_with("-----BEGIN CERTIFICATE-----\n"), "{data}");
    }
    for (key, list) in [
        ("allowed-names", "[\"front-proxy-client\"]"),
        ("username-headers", "[\"X-Remote-User\"]"),
        ("uid-headers", "[\"X-Remote-Uid\"]"),
        ("group-headers", "[\"X-Remote-Group\"]"),
        ("extra-headers-prefix", "[\"X-Remote-Extra-\"]"),
    ] {
        assert_eq!(data[format!("requestheader-{key}")], list, "{data}");
    }
}

#[tokio::test]
async fn the_api_of_another_server_is_described() {
    let both = Both::start().await;
    let front = &both.front;
    let group = front.told(GROUP).await;
    let version = &group["versions"][0];
    assert_eq!(
        (&version["version"], &version["freshness"]),
        (&json!("v1"), &json!("Current"))
    );
    let gears = &version["resources"][0];
    assert_eq!(
        (&gears["resource"], &gears["scope"]),
        (&json!("gears"), &json!("Namespaced"))
    );
    assert_eq!(gears["shortNames"], json!(["gr"]));
    assert_eq!(gears["subresources"][0]["subresource"], "status");
    let groups = front.get("/apis").await.expect("groups");
    let names = groups["groups"].as_array().expect("groups").iter();
    let names: Vec<_> = names.filter_map(|it| it["name"].as_str()).collect();
    let at = |name| names.iter().position(|it| *it == name).expect("there");
    assert!(at("discovery.k8s.io") < at(GROUP), "{names:?}");
    let own = front.get("/apis/example.com").await.expect("a group");
    assert_eq!(own["preferredVersion"]["groupVersion"], "example.com/v1");
    let resources = front.get("/apis/example.com/v1").await.expect("resources");
    assert_eq!(resources["resources"][0]["name"], "gears");

    let index = front.get("/openapi/v3").await.expect("an index");
    let place = &index["paths"]["apis/example.com/v1"]["serverRelativeURL"];
    let place = place.as_str().expect("a place");
    assert!(
        place.starts_with("/openapi/v3/apis/example.com/v1?hash="),
        "{place}"
    );
    let document = front.get(place).await.expect("a document");
    let schema = &document["components"]["schemas"]["com.example.v1.Gear"];
    let teeth = &schema["properties"]["spec"]["properties"]["teeth"];
    assert_eq!(teeth["description"], "How many there are.", "{schema}");
}

#[tokio::test]
async fn a_server_that_is_gone_is_not_asked() {
    let mut both = Both::start().await;
    both.front.told(GROUP).await;
    both.remote.kill();
    let front = &both.front;
    // What is looked at next is asked again at the latest half a minute later, or when something changes.
    let touched = json!({"metadata": {"labels": {"touched": "yes"}}});
    let service = format!("{}/gears", super::SERVICES);
    front
        .ask("PATCH", &service, &touched)
        .await
        .expect("patched");
    let message = front
        .condition(GROUP, "False", "FailedDiscoveryCheck")
        .await;
    assert!(
        message.starts_with("failing or missing response from https://localhost:"),
        "{message}"
    );
    assert!(
        message.ends_with("connect: connection refused"),
        "{message}"
    );
    let request = format!("GET {GEARS}");
    let is_unavailable = |it: &Answer| it.body == "service unavailable\n";
    let answer = front.answers("secret", &request, "", is_unavailable).await;
    assert_eq!(answer.status, 503);
    eventually(DEADLINE, "its resources are kept as stale", async || {
        let group = front.discovered(GROUP).await;
        let version = &group["versions"][0];
        let is_stale = version["freshness"] == "Stale";
        if is_stale && version["resources"][0]["resource"] == "gears" {
            Ok(())
        } else {
            Err(group)
        }
    })
    .await;
    let path = format!("{}/v1.{GROUP}", super::API_SERVICES);
    front
        .ask("DELETE", &path, &Value::Null)
        .await
        .expect("deleted");
    let what = "the group is no longer discovered";
    eventually(DEADLINE, what, async || {
        match front.discovered(GROUP).await {
            Value::Null => Ok(()),
            group => Err(group),
        }
    })
    .await;
    let answer = front.raw("secret", &request, "").await;
    assert_eq!(
        (answer.status, answer.body.as_str()),
        (404, "404 page not found\n")
    );
}

#[tokio::test]
async fn kubectl_works_with_what_another_server_serves() {
    let both = Both::start().await;
    let Some(kubectl) = tools::kubectl(33) else {
        return skipped("kubectl with an aggregated API", "no kubectl 1.33");
    };
    let folder = both.front.folder.path();
    let manifest = folder.join("gear.json");
    std::fs::write(&manifest, gear("a", 7).to_string()).expect("written");
    let manifest = manifest.display().to_string();
    both.front.told(GROUP).await;
    let run = |words: &[&str]| both.kubectl(&kubectl, words);
    let said = run(&["get", "apiservice", "v1.example.com", "--no-headers"]);
    let words: Vec<_> = said.split_whitespace().collect();
    assert_eq!(
        words[..3],
        ["v1.example.com", "default/gears", "True"],
        "{said}"
    );
    let said = run(&["api-resources", "--api-group", GROUP, "--no-headers"]);
    let words: Vec<_> = said.split_whitespace().collect();
    assert_eq!(words, ["gears", "gr", "example.com/v1", "true", "Gear"]);
    for (words, expected) in [
        (
            vec!["apply", "-f", &manifest],
            "gear.example.com/a created\n",
        ),
        (
            vec!["apply", "-f", &manifest],
            "gear.example.com/a unchanged\n",
        ),
        (
            vec![
                "apply",
                "--server-side",
                "--field-manager=x",
                "-f",
                &manifest,
            ],
            "gear.example.com/a serverside-applied\n",
        ),
        (vec!["get", "gr", "a", "-o", "jsonpath={.spec.teeth}"], "7"),
        (
            vec![
                "get",
                "gears",
                "--no-headers",
                "-o",
                "custom-columns=:.metadata.name",
            ],
            "a\n",
        ),
    ] {
        assert_eq!(run(&words), expected, "{words:?}");
    }
    let said = run(&["get", "gears"]);
    assert!(said.starts_with("NAME   TEETH\na      7"), "{said}");
    let said = run(&["explain", "gears.spec.teeth"]);
    assert!(said.contains("How many there are."), "{said}");
    assert_eq!(
        run(&["delete", "gear", "a"]),
        "gear.example.com \"a\" deleted\n"
    );
}
