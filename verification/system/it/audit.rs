//! Audit by the real binary: what policies record of requests, and what becomes of it when backends fail.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use http::Request;
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use crate::support::requests;
use crate::support::server::Server;
use crate::support::webhook::{Reply, Webhook};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Writes a policy with these rules.
fn policy(folder: &Path, rules: &Value) -> String {
    let file = folder.join("policy.json");
    let policy = json!({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules});
    fs::write(&file, policy.to_string()).expect("written");
    format!("--audit-policy-file={}", file.display())
}

/// Reads the events of a log.
fn events(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let lines = text.lines();
    lines
        .map(|it| serde_json::from_str(it).expect("an event a line"))
        .collect()
}

/// Sends a request with an audit id; returns the text of the answer, or of the error.
async fn send(client: &kube::Client, id: &str, method: &str, path: &str, body: Value) -> String {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("Audit-ID", id);
    let answer = client
        .request_text(requests::with_document(request, &body))
        .await;
    answer.unwrap_or_else(|error| error.to_string())
}

fn of<'a>(events: &'a [Value], id: &str) -> Vec<&'a Value> {
    events.iter().filter(|it| it["auditID"] == id).collect()
}

fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": value}})
}

/// Rules of all levels.
fn levels() -> Value {
    let maps = |names: &[&str]| json!([{"group": "", "resources": ["configmaps"], "resourceNames": names}]);
    json!([
        {"level": "None", "nonResourceURLs": ["/healthz*", "/readyz*"]},
        {"level": "Metadata", "resources": maps(&["metadata"])},
        {"level": "Request", "resources": maps(&["request"]), "omitStages": ["RequestReceived"]},
        {"level": "RequestResponse", "userGroups": ["system:masters"], "verbs": ["create", "watch"],
         "resources": [{"group": "", "resources": ["configmaps"]}], "omitManagedFields": true},
        {"level": "None"}])
}

#[tokio::test]
async fn a_policy_decides_how_much_is_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log/audit.log");
    let flags = [
        policy(folder.path(), &levels()),
        format!("--audit-log-path={}", log.display()),
    ];
    let (mut server, client) = Server::ready(&[&flags[0], &flags[1]]).await;
    for name in ["metadata", "request"] {
        send(
            &client,
            &format!("create-{name}"),
            "POST",
            MAPS,
            config_map(name, "v"),
        )
        .await;
        let path = format!("{MAPS}/{name}");
        send(&client, name, "PATCH", &path, json!({"data": {"k": "w"}})).await;
    }
    let none = format!("{MAPS}/none");
    send(
        &client,
        "missing",
        "PUT",
        &format!("{MAPS}/metadata"),
        json!({"kind": 1}),
    )
    .await;
    send(&client, "unrecorded", "GET", &none, Value::Null).await;
    let watch = format!("{MAPS}?watch=true&timeoutSeconds=1");
    send(&client, "watch", "GET", &watch, Value::Null).await;
    server.stop().await;

    let events = events(&log);
    let stages = |id: &str| -> Vec<&str> {
        of(&events, id)
            .iter()
            .map(|it| it["stage"].as_str().expect("a stage"))
            .collect()
    };
    assert_eq!(stages("metadata"), ["RequestReceived", "ResponseComplete"]);
    assert_eq!(stages("request"), ["ResponseComplete"]);
    assert_eq!(
        stages("watch"),
        ["RequestReceived", "ResponseStarted", "ResponseComplete"]
    );
    assert_eq!(stages("unrecorded"), [""; 0]);
    each_level_has_its_parts(&events);
}

/// Checks the events of the requests above.
fn each_level_has_its_parts(events: &[Value]) {
    let last = |id: &str| of(events, id).pop().cloned().expect(id);
    let metadata = last("metadata");
    assert_eq!(
        metadata["responseStatus"],
        json!({"metadata": {}, "code": 200})
    );
    assert!(metadata.get("requestObject").is_none() && metadata.get("responseObject").is_none());
    assert_eq!(
        metadata["annotations"]["authorization.k8s.io/decision"],
        "allow"
    );
    assert_eq!(metadata["sourceIPs"], json!(["127.0.0.1"]));
    let request = last("request");
    assert_eq!(request["requestObject"], json!({"data": {"k": "w"}}));
    assert!(request.get("responseObject").is_none());
    assert_eq!(last("missing")["responseStatus"]["code"], 400);
    assert_eq!(last("missing")["responseStatus"]["status"], "Failure");
    let created = last("create-metadata");
    assert_eq!(created["requestObject"]["data"], json!({"k": "v"}));
    assert_eq!(created["responseObject"]["data"], json!({"k": "v"}));
    assert!(
        created["responseObject"]["metadata"]
            .get("managedFields")
            .is_none()
    );
    assert_eq!(created["objectRef"]["name"], "metadata");
    assert_eq!(created["responseStatus"]["code"], 201);
}

/// A kubeconfig for a path of the webhook.
fn kubeconfig(folder: &Path, webhook: &Webhook, path: &str) -> PathBuf {
    let file = folder.join("webhook.yaml");
    let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "w", "cluster": {"server": format!("https://{}{path}", webhook.address),
            "certificate-authority-data": webhook.ca_bundle()}}],
        "contexts": [{"name": "c", "context": {"cluster": "w", "user": ""}}]});
    fs::write(&file, config.to_string()).expect("written");
    file
}

/// Starts a server that sends events about ConfigMaps to a path of the webhook.
fn start(folder: &Path, webhook: &Webhook, path: &str, flags: &[&str]) -> Server {
    let rules =
        json!([{"level": "Metadata", "resources": [{"group": "", "resources": ["configmaps"]}]}]);
    let policy = policy(folder, &rules);
    let config = kubeconfig(folder, webhook, path);
    let config = format!("--audit-webhook-config-file={}", config.display());
    let own = [
        policy.as_str(),
        &config,
        "--audit-webhook-initial-backoff=100ms",
    ];
    Server::start(&[&own, flags].concat())
}

/// The number of times that the webhook fails before it recovers, and the number of times that it has been asked.
const FAILURES: usize = 2;
static ASKED: AtomicUsize = AtomicUsize::new(0);

fn answer(path: &str, _events: &Value) -> Reply {
    match path {
        "/hangs" => Reply::Hang,
        "/flaky" if ASKED.fetch_add(1, Ordering::Relaxed) < FAILURES => {
            Reply::Text(500, "soon".to_owned())
        }
        _ => Reply::Text(200, "not even JSON".to_owned()),
    }
}

#[tokio::test]
async fn a_webhook_that_recovers_gets_every_event_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let webhook = Webhook::start(answer).await;
    let flags = ["--audit-webhook-batch-max-wait=50ms"];
    let mut server = start(folder.path(), &webhook, "/flaky", &flags);
    let client = server.client().await;
    for number in 0..5 {
        let (id, name) = (format!("id-{number}"), format!("map-{number}"));
        send(&client, &id, "POST", MAPS, config_map(&name, "v")).await;
    }
    // The end sends what is left, without waiting for a batch to be full.
    server.stop().await;
    let lists = webhook.take("/flaky");
    assert!(lists.len() > FAILURES, "{} attempts", lists.len());
    assert!(lists.iter().all(|it| it["kind"] == "EventList"));
    // Attempts that were answered 500 were repeated with the same events.
    let mut events: Vec<Value> = Vec::new();
    for list in lists {
        for event in list["items"].as_array().expect("items") {
            if !events.contains(event) {
                events.push(event.clone());
            }
        }
    }
    for number in 0..5 {
        assert_eq!(of(&events, &format!("id-{number}")).len(), 2);
    }
}

#[tokio::test]
async fn a_webhook_that_hangs_delays_nobody() {
    let folder = tempfile::tempdir().expect("a folder");
    let webhook = Webhook::start(answer).await;
    let flags = [
        "--audit-webhook-batch-buffer-size=4",
        "--audit-webhook-batch-max-size=2",
        "--audit-webhook-batch-throttle-qps=0.01",
        "--audit-webhook-batch-throttle-burst=1",
    ];
    let mut server = start(folder.path(), &webhook, "/hangs", &flags);
    let client = server.client().await;
    for number in 0..20 {
        let made = send(
            &client,
            "id",
            "POST",
            MAPS,
            config_map(&format!("map-{number}"), "v"),
        )
        .await;
        assert!(made.contains("uid"), "{made}");
    }
    eventually(DEADLINE, "a hanging call", async || {
        !webhook.take("/hangs").is_empty()
    })
    .await;
    let metrics = send(&client, "id", "GET", "/metrics", Value::Null).await;
    assert!(
        metrics.contains("apiserver_audit_error_total{plugin=\"buffered\"}"),
        "{metrics}"
    );
    // The end gives the webhook up.
    server.stop().await;
    assert!(
        server.log().contains("could not be written in time"),
        "{}",
        server.log()
    );
}

#[tokio::test]
async fn a_full_log_is_rotated() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("audit.log");
    let rules = json!([{"level": "RequestResponse", "resources": [{"group": "", "resources": ["configmaps"]}]}]);
    let path = format!("--audit-log-path={}", log.display());
    let flags = [policy(folder.path(), &rules), path];
    let own = [
        "--audit-log-maxsize=1",
        "--audit-log-compress",
        "--audit-log-mode=batch",
    ];
    let (mut server, client) =
        Server::ready(&[&[flags[0].as_str(), &flags[1]][..], &own].concat()).await;
    let large = "x".repeat(300 << 10);
    for number in 0..4 {
        send(
            &client,
            "id",
            "POST",
            MAPS,
            config_map(&format!("map-{number}"), &large),
        )
        .await;
    }
    let packed = || {
        let names = fs::read_dir(folder.path()).expect("a folder");
        let names = names.map(|it| it.expect("an entry").file_name());
        names
            .filter(|it| it.to_string_lossy().ends_with(".log.gz"))
            .count()
    };
    eventually(DEADLINE, "a packed log", async || packed() > 0).await;
    server.stop().await;
    assert!(fs::metadata(&log).expect("the log").len() <= 1 << 20);
}

/// A JSON patch that adds `p: q` to the data, in base64.
const PATCH: &str = "W3sib3AiOiJhZGQiLCJwYXRoIjoiL2RhdGEvcCIsInZhbHVlIjoicSJ9XQ==";
const HOOKS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

/// Patches what is reviewed, but for a path that fails.
fn admit(path: &str, review: &Value) -> Reply {
    if path == "/down" {
        return Reply::Text(500, "no".to_owned());
    }
    let response = json!({"uid": review["request"]["uid"], "allowed": true, "patchType": "JSONPatch",
        "patch": PATCH, "auditAnnotations": {"said": "so"}});
    Reply::Json(
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}),
    )
}

#[tokio::test]
async fn admission_webhooks_annotate_events() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("audit.log");
    let flags = [
        policy(folder.path(), &json!([{"level": "Request"}])),
        format!("--audit-log-path={}", log.display()),
    ];
    let webhook = Webhook::start(admit).await;
    let (mut server, client) = Server::ready(&[&flags[0], &flags[1]]).await;
    let hook = |name: &str| {
        json!({"name": format!("{name}.example.com"), "failurePolicy": "Ignore",
            "clientConfig": webhook.client_config(&format!("/{name}")), "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "rules": [{"operations": ["CREATE"], "apiGroups": [""],
                "apiVersions": ["v1"], "resources": ["configmaps"]}]})
    };
    let configuration = json!({"apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration", "metadata": {"name": "hooks"},
        "webhooks": [hook("patches"), hook("down")]});
    send(&client, "hooks", "POST", HOOKS, configuration).await;
    let dry = format!("{MAPS}?dryRun=All");
    eventually(DEADLINE, "the configuration is followed", async || {
        let answer = send(&client, "dry", "POST", &dry, config_map("dry", "v")).await;
        answer.contains("\"q\"")
    })
    .await;
    send(&client, "hooked", "POST", MAPS, config_map("hooked", "v")).await;
    server.stop().await;
    let events = events(&log);
    let event = of(&events, "hooked").pop().expect("an event");
    let annotations = &event["annotations"];
    for (key, value) in [
        (
            "mutation.webhook.admission.k8s.io/round_0_index_0",
            "{\"configuration\":\"hooks\",\"webhook\":\"patches.example.com\",\"mutated\":true}",
        ),
        (
            "patch.webhook.admission.k8s.io/round_0_index_0",
            "{\"configuration\":\"hooks\",\"webhook\":\"patches.example.com\",\"patch\":[{\"op\":\"add\",\"path\":\"/data/p\",\"value\":\"q\"}],\"patchType\":\"JSONPatch\"}",
        ),
        ("patches.example.com/said", "so"),
        (
            "mutation.webhook.admission.k8s.io/round_0_index_1",
            "{\"configuration\":\"hooks\",\"webhook\":\"down.example.com\",\"mutated\":false}",
        ),
        (
            "failed-open.mutation.webhook.admission.k8s.io/round_0_index_1",
            "down.example.com",
        ),
    ] {
        assert_eq!(annotations[key], value, "{key}: {annotations}");
    }
}
