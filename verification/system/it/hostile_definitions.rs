//! Definitions that are made to do harm: each gets its answer in bounded time and memory, and nobody else suffers.

use std::fs;

use futures::{StreamExt, stream};
use http::Request;
use kube::Client;
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Map, Value, json};

use crate::support::requests;
use crate::support::server::Server;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The memory that the server has at most meanwhile.
const SERVER_MIB_MAX: u64 = 1024;

/// Maximum number of tries of what the server does while it has other work for a second or two. A test on a busy
/// machine may miss that time, but not again and again.
const TRIES_MAX: usize = 5;

/// Minimum number of reads that are answered while expressions are checked, which takes as long as a hundred of them.
/// If reads waited for the check, only the few before and after it would be counted.
const READS_MIN: usize = 10;

fn definition(plural: &str, spec: &Value) -> Value {
    let mut kind = plural.to_owned();
    kind[..1].make_ascii_uppercase();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}],
        },
    })
}

/// The code of an answer and its message.
async fn send(client: &Client, method: &str, path: &str, body: String) -> (u16, String) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(body.into_bytes())
        .expect("a request");
    let answer = client.request::<Value>(request);
    match tokio::time::timeout(DEADLINE, answer)
        .await
        .expect("in time")
    {
        Ok(_) => (200, String::new()),
        Err(kube::Error::Api(status)) => (status.code, status.message.clone()),
        Err(other) => panic!("{path}: {other}"),
    }
}

fn with_properties(count: usize) -> Value {
    let names = (0..count).map(|number| (format!("p{number}"), json!({"type": "string"})));
    json!({"type": "object", "properties": names.collect::<Map<_, _>>()})
}

fn with_rule(rule: &str) -> Value {
    json!({"type": "object", "x-kubernetes-validations": [{"rule": rule}], "properties": {
        "text": {"type": "string"}, "list": {"type": "array", "items": {"type": "string"}}}})
}

fn with_pattern(pattern: &str) -> Value {
    json!({"type": "object", "properties": {"text": {"type": "string", "pattern": pattern}}})
}

/// Alternatives within alternatives, twice as many at each level.
fn with_alternatives(levels: usize) -> Value {
    let innermost = json!({"required": ["a"]});
    let all = (0..levels).fold(innermost, |inner, _| json!({"anyOf": [inner, inner]}));
    json!({"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [all]})
}

/// Definitions: their plural, the schema of their spec, and the code and a part of the message of the answer.
#[allow(clippy::too_many_lines)] // a table
fn hostile() -> Vec<(&'static str, Value, u16, &'static str)> {
    let too_large = "expression is too large";
    vec![
        ("properties", with_properties(10_000), 200, ""),
        (
            "defaults",
            json!({"type": "object", "default": {"a": "x".repeat(1_000_000)},
            "properties": {"a": {"type": "string"}}}),
            200,
            "",
        ),
        ("alternatives", with_alternatives(12), 200, ""),
        (
            "brackets",
            with_rule(&format!("{}true{}", "(".repeat(300), ")".repeat(300))),
            422,
            too_large,
        ),
        (
            "negations",
            // The parser counts them, and no more.
            with_rule(&format!("{}true", "!".repeat(2000))),
            200,
            "",
        ),
        (
            "chains",
            with_rule(&format!("1{} > 0", " + 1".repeat(5000))),
            422,
            too_large,
        ),
        (
            "indexes",
            with_rule(&format!("self.list{} == ''", "[0]".repeat(5000))),
            422,
            too_large,
        ),
        (
            "conjunctions",
            with_rule(&format!("true{}", " && true".repeat(5000))),
            200,
            "",
        ),
        (
            "repetitions",
            with_pattern("((a{1,100}){1,100}){1,100}"),
            422,
            "invalid repeat count",
        ),
        ("classes", with_pattern("[[:]"), 200, ""),
        (
            "lookaheads",
            with_pattern("(?=a)"),
            422,
            "must be a valid regular expression",
        ),
        (
            "levels",
            with_pattern(&"(".repeat(5000)),
            422,
            "must be a valid regular expression",
        ),
        ("catastrophes", with_pattern("^(a+)+$"), 200, ""),
        (
            "copies",
            with_rule(&format!(
                "(self.list{}).size() > 0",
                " + self.list".repeat(45)
            )),
            200,
            "",
        ),
        (
            "texts",
            with_rule(&format!(
                "(self.text{}).size() > 0",
                " + self.text".repeat(45)
            )),
            422,
            "estimated rule cost exceeds budget by factor of",
        ),
        (
            "loops",
            with_rule(
                "self.list.all(a, self.list.all(b, self.list.all(c, self.list.all(d, a + b == c + d))))",
            ),
            422,
            "estimated rule cost exceeds budget by factor of more than 100x",
        ),
    ]
}

#[tokio::test]
async fn hostile_definitions_are_answered() {
    let (server, client) = Server::ready(&["--storage-backend", "memory"]).await;
    for (plural, spec, code, told) in hostile() {
        let body = definition(plural, &spec).to_string();
        let (found, message) = send(&client, "POST", DEFINITIONS, body).await;
        assert_eq!(found, code, "{plural}: {message}");
        assert!(message.contains(told), "{plural}: {message}");
    }
    for (levels, code) in [(40, 200), (5000, 400)] {
        let inner = r#"{"type":"object","properties":{"a":"#.repeat(levels);
        let schema = format!(r#"{inner}{{"type":"string"}}{}"#, "}}".repeat(levels));
        let body = definition(&format!("deep{levels}"), &json!("SCHEMA")).to_string();
        let body = body.replace("\"SCHEMA\"", &schema);
        assert_eq!(
            send(&client, "POST", DEFINITIONS, body).await.0,
            code,
            "{levels}"
        );
    }
    objects_are_answered(&client).await;
    let v2 = send(&client, "GET", "/openapi/v2", String::new()).await;
    assert_eq!(v2.0, 200);
    let status = fs::read_to_string(format!("/proc/{}/status", server.id())).expect("a process");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|it| it.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    let peak = peak.expect("its memory") / 1024;
    assert!(peak < SERVER_MIB_MAX, "{peak} MiB");
}

#[tokio::test]
async fn others_are_served_while_expressions_are_checked() {
    let mut server = Server::start_under(
        &["env", "TOKIO_WORKER_THREADS=1"],
        &["--storage-backend", "memory"],
    );
    let client = server.client().await;
    let rule = format!("[{}1].size() > 0", "1, ".repeat(5_000));
    let rules = vec![json!({"rule": rule}); 10];
    let spec = json!({"type": "object", "x-kubernetes-validations": rules});
    let reads = reads_while_written(&client, definition("rules", &spec).to_string()).await;
    assert!(reads >= READS_MIN, "{reads} reads");
}

/// Writes a definition, and returns how many reads, one after the other, were answered meanwhile.
async fn reads_while_written(client: &Client, body: String) -> usize {
    let written = async {
        let answer = send(client, "POST", DEFINITIONS, body).await;
        assert_eq!(answer.0, 200, "{}", answer.1);
    };
    let mut reads = 0;
    let read = async {
        loop {
            let answer = send(client, "GET", "/api/v1/namespaces", String::new()).await;
            assert_eq!(answer.0, 200, "{}", answer.1);
            reads += 1;
        }
    };
    tokio::select! {
        () = written => {}
        () = read => unreachable!(),
    }
    reads
}

/// Objects of those types that are made to do harm.
async fn objects_are_answered(client: &Client) {
    let many = vec!["item"; 50_000];
    let a_lot = format!("{}!", "a".repeat(100_000));
    for (plural, kind, spec, told) in [
        (
            "catastrophes",
            "Catastrophes",
            json!({"text": a_lot}),
            "should match",
        ),
        (
            "copies",
            "Copies",
            json!({"list": many}),
            "actual cost limit exceeded",
        ),
    ] {
        let path = format!("/apis/example.com/v1/namespaces/default/{plural}");
        until_served(client, &path).await;
        let object = json!({"apiVersion": "example.com/v1", "kind": kind,
            "metadata": {"name": "a"}, "spec": spec});
        let (code, message) = send(client, "POST", &path, object.to_string()).await;
        assert_eq!(code, 422, "{plural}: {message}");
        assert!(message.contains(told), "{plural}: {message}");
    }
}

/// It takes a second or two to delete as many.
const OBJECTS: usize = 400;
const AT_A_TIME: usize = 16;

/// Defines a type of which there are many objects, and deletes it. Returns the path of the definition, which is still
/// there until they are deleted.
async fn delete_many(client: &Client, number: usize) -> String {
    let plural = format!("many{number}");
    define(client, &plural).await;
    let objects = format!("/apis/example.com/v1/namespaces/default/{plural}");
    let create = |object| {
        let object = json!({"apiVersion": "example.com/v1", "kind": format!("Many{number}"),
            "metadata": {"name": format!("m{object}")}});
        send(client, "POST", &objects, object.to_string())
    };
    let created = stream::iter(0..OBJECTS)
        .map(create)
        .buffer_unordered(AT_A_TIME);
    assert!(created.all(|(code, _)| async move { code == 200 }).await);
    let path = format!("{DEFINITIONS}/{plural}.example.com");
    assert_eq!(send(client, "DELETE", &path, String::new()).await.0, 200);
    path
}

/// Waits until a path of a defined type is served.
async fn until_served(client: &Client, path: &str) {
    let served = eventually(DEADLINE, format!("{path} is served"), async || {
        send(client, "GET", path, String::new()).await.0 == 200
    });
    served.await;
}

/// Defines a type, and waits until it is served.
async fn define(client: &Client, plural: &str) {
    let text = definition(plural, &json!({"type": "object"})).to_string();
    let (code, message) = send(client, "POST", DEFINITIONS, text).await;
    assert_eq!(code, 200, "{message}");
    let objects = format!("/apis/example.com/v1/namespaces/default/{plural}");
    until_served(client, &objects).await;
}

#[tokio::test]
async fn a_definition_is_served_while_another_ones_objects_are_deleted() {
    let (_server, client) = Server::ready(&[]).await;
    for number in 0..TRIES_MAX {
        let path = delete_many(&client, number).await;
        define(&client, &format!("few{number}")).await;
        let is_there = send(&client, "GET", &path, String::new()).await.0 == 200;
        let gone = eventually(DEADLINE, format!("{path} is gone"), async || {
            send(&client, "GET", &path, String::new()).await.0 == 404
        });
        gone.await;
        if is_there {
            return;
        }
    }
    panic!("each time the other one was cleaned up before");
}

#[tokio::test]
async fn a_start_does_not_wait_until_the_objects_of_a_deleted_definition_are_gone() {
    let (mut server, client) = Server::ready(&[]).await;
    for number in 0..TRIES_MAX {
        let path = delete_many(&client, number).await;
        server.kill();
        server.start_again();
        let found = eventually(DEADLINE, "the server answers", async || {
            match client.request::<Value>(requests::get(&path)).await {
                Ok(definition) => Ok(Some(definition)),
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
                Err(error) => Err(error),
            }
        });
        if let Some(definition) = found.await {
            return assert!(definition["metadata"]["deletionTimestamp"].is_string());
        }
    }
    panic!("each time the definition was cleaned up before the server answered");
}
