//! A request for one type never reads another's objects, whatever its path is made of (CVE-2022-3162).

use http::Request;
use kube::Client;
use kube::client::Body;
use ringwatch_server::InProcessServer;
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::json;

use crate::support::in_process;
use crate::support::requests;

/// The types, each with the path of a namespace's objects, where `@` stands for the namespace, and a kind.
const TYPES: [(&str, &str, &str); 4] = [
    ("configmaps", "/api/v1/namespaces/@/configmaps", "ConfigMap"),
    ("secrets", "/api/v1/namespaces/@/secrets", "Secret"),
    ("gears", "/apis/example.com/v1/namespaces/@/gears", "Gear"),
    ("cogs", "/apis/example.com/v1/namespaces/@/cogs", "Cog"),
];

/// Namespaces that try to lead out of their own type into `@`, another.
const NAMESPACES: [&str; 14] = [
    "..%2f@",
    "..%2f@%2fdefault",
    "..%2f..%2f@",
    "%2e%2e%2f@%2fdefault",
    "..%252f@",
    "../@",
    "../../@/default",
    "..%2f..%2f..%2fregistry%2f@",
    "default%2f..%2f..%2f@%2fdefault",
    "%00%2f..%2f@",
    "..%5c@",
    "%2f@",
    ".%2f..%2f@",
    "..%2f..%2f..%2fregistry%2fexample.com%2f@%2fdefault",
];

async fn text(client: &Client, path: &str) -> String {
    let request = Request::get(path).body(Vec::new());
    // What no client can even ask for does no harm.
    let Ok(request) = request else {
        return String::new();
    };
    let answer = requests::send(client, request.map(Body::from)).await;
    String::from_utf8_lossy(answer.body()).into_owned()
}

async fn create(client: &Client, path: &str, object: &serde_json::Value) {
    eventually(DEADLINE, format!("{path} takes an object"), async || {
        let request = requests::request("POST", path, object);
        client.request::<serde_json::Value>(request).await
    })
    .await;
}

fn mark(plural: &str) -> String {
    format!("mark-of-{plural}")
}

async fn fill(client: &Client) {
    for (plural, kind) in [("gears", "Gear"), ("cogs", "Cog")] {
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.example.com")},
            "spec": {
                "group": "example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}}}],
            },
        });
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        create(client, path, &definition).await;
    }
    for (plural, path, kind) in TYPES {
        let version = if path.starts_with("/api/") {
            "v1"
        } else {
            "example.com/v1"
        };
        let object = json!({"apiVersion": version, "kind": kind,
            "metadata": {"name": "a", "labels": {"mark": mark(plural)}}});
        create(client, &path.replace('@', "default"), &object).await;
    }
}

#[tokio::test]
async fn no_path_leads_from_one_type_to_another() {
    for cache in ["--watch-cache=true", "--watch-cache=false"] {
        let server = InProcessServer::builder().flag(cache).start();
        let server = server.await.expect("a server");
        let client = in_process::client(&server).await;
        fill(&client).await;
        for (own, path, _) in TYPES {
            let list = text(&client, &path.replace('@', "default")).await;
            assert!(list.contains(&mark(own)), "{own}: {list}");
            for (other, ..) in TYPES.iter().filter(|it| it.0 != own) {
                for namespace in NAMESPACES {
                    let path = path.replace('@', &namespace.replace('@', other));
                    for query in [
                        "",
                        "?resourceVersion=0",
                        "?watch=true&timeoutSeconds=1&resourceVersion=0",
                        "?resourceVersion=0&resourceVersionMatch=NotOlderThan",
                        "/a",
                        "/..%2fa",
                    ] {
                        // A watch is asked of one way out only, since each takes a second.
                        if query.contains("watch") && namespace != NAMESPACES[0] {
                            continue;
                        }
                        let asked = format!("{path}{query}");
                        let seen = text(&client, &asked).await;
                        assert!(
                            !seen.contains(&mark(other)),
                            "{asked} shows {other}: {seen}"
                        );
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn names_that_are_no_names_are_told_so() {
    let server = InProcessServer::start().await.expect("a server");
    let client = in_process::client(&server).await;
    fill(&client).await;
    for (_, path, kind) in TYPES {
        let path = path.replace('@', "default");
        let nothing_below = match path.starts_with("/api/") {
            true => "could not find the requested resource",
            false => "not found",
        };
        for (name, told) in [
            ("%2e%2e", "may not be '..'"),
            ("..", "may not be '..'"),
            // An object a, and of it something called b, which custom resources tell by the name of the object.
            ("a%2fb", nothing_below),
            ("..%2fa", nothing_below),
            ("a%00b", "not found"),
            ("%252e%252e", "may not contain '%'"),
        ] {
            let answer = text(&client, &format!("{path}/{name}")).await;
            assert!(answer.contains(told), "{path}/{name}: {answer}");
        }
        for name in ["..", "a/b", "a%2fb", "a\u{0}b", "A"] {
            let version = if path.starts_with("/api/") {
                "v1"
            } else {
                "example.com/v1"
            };
            let object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}});
            let request = requests::request("POST", &path, &object);
            let refused = client.request::<serde_json::Value>(request).await;
            let Err(kube::Error::Api(status)) = refused else {
                panic!("{name:?} is a name of a {kind}");
            };
            assert_eq!(
                (status.code, status.reason.as_str()),
                (422, "Invalid"),
                "{name:?}"
            );
        }
    }
}

/// As in kube-apiserver, which decodes a path before it splits it.
#[tokio::test]
async fn an_escaped_slash_is_a_slash() {
    let server = InProcessServer::start().await.expect("a server");
    let client = in_process::client(&server).await;
    for (path, code, word) in [
        ("/api/v1/namespaces/default%2fsecrets", 200, "SecretList"),
        (
            "/api/v1/namespaces/..%2fsecrets",
            400,
            "Namespace parameter invalid",
        ),
        (
            "/api/v1/namespaces/../secrets",
            400,
            "Namespace parameter invalid",
        ),
        (
            "/api/v1/namespaces/default/secrets/%2e%2e",
            400,
            "may not be '..'",
        ),
        (
            "/api/v1/namespaces/default/secrets/a%252fb",
            400,
            "may not contain '%'",
        ),
        (
            "/api/v1/namespaces/default/secrets/a%2fb",
            404,
            "could not find the requested resource",
        ),
        // What follows a namespace is a resource of it, and no other namespace.
        (
            "/api/v1/namespaces/default/namespaces",
            404,
            "could not find the requested resource",
        ),
        (
            "/api/v1/namespaces/default/namespaces/kube-system",
            404,
            "could not find the requested resource",
        ),
        (
            "/api/v1/namespaces/default/namespaces/default",
            404,
            "could not find the requested resource",
        ),
        (
            "/api/v1/watch/namespaces/default/namespaces",
            404,
            "could not find the requested resource",
        ),
        ("/api/v1/namespaces/default", 200, "\"Namespace\""),
        ("/healthz%2fping", 200, "ok"),
    ] {
        let answer = requests::send(&client, requests::get(path)).await;
        let (status, text) = (answer.status(), String::from_utf8_lossy(answer.body()));
        assert_eq!(status, code, "{path}: {text}");
        assert!(text.contains(word), "{path}: {text}");
    }
}
