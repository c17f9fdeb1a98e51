//! The traces of requests: parents, names, attributes, and other servers that continue them.

use std::fs;

use ringwatch_server::InProcessServer;
use serde_json::json;

use super::collector::{Collector, Manner, hex, named};
use super::{
    CONFIG_MAPS, DEADLINE, NOT_SAMPLED, SAMPLED, TRACE, WATCH_LIST, ask, collected, config,
    eventually, flag, start,
};
use crate::support::etcd::Etcd;
use crate::support::in_process::{client, client_with};
use crate::support::server::Server;
use crate::support::webhook::{Reply, Webhook};

const CALLER: &str = "00f067aa0ba902b7";

#[tokio::test]
async fn the_span_of_a_request_has_the_callers_as_its_parent() {
    let (collector, _server, admin) = collected().await;
    assert_eq!(ask(&admin, "GET", CONFIG_MAPS, NOT_SAMPLED, "").await, 200);
    assert_eq!(ask(&admin, "GET", CONFIG_MAPS, "", "").await, 200);
    let path = format!("{CONFIG_MAPS}?limit=500");
    assert_eq!(ask(&admin, "GET", &path, SAMPLED, "").await, 200);

    let name = "GET /api/v1/namespaces/{:namespace}/configmaps";
    let trace = collector.trace(TRACE, name).await;
    let request = named(&trace, name);
    assert_eq!(request.parent(), CALLER);
    assert_eq!(request.span.kind, 2, "a server's");
    assert_eq!(request.service["service.name"], "apiserver");
    assert!(request.service["service.instance.id"].starts_with("apiserver-"));
    for (key, value) in [
        ("http.request.method", "GET"),
        ("http.target", path.as_str()),
        ("url.path", CONFIG_MAPS),
        ("url.scheme", "https"),
        ("server.address", "127.0.0.1"),
        ("client.address", "127.0.0.1"),
        ("http.response.status_code", "200"),
    ] {
        assert_eq!(request.attributes[key], value, "{key}");
    }
    assert!(
        request.attributes["http.response.body.size"]
            .parse::<u64>()
            .unwrap()
            > 10
    );
    let audit_id = &request.attributes["audit-id"];

    let list = named(&trace, "List");
    assert_eq!(list.parent(), request.id());
    for (key, value) in [
        ("resource", "configmaps"),
        ("namespace", "default"),
        ("api-version", "v1"),
        ("scope", "namespace"),
        ("verb", "LIST"),
        ("url", CONFIG_MAPS),
        ("audit-id", audit_id),
    ] {
        assert_eq!(list.attributes[key], value, "{key}");
    }
    let cached = named(&trace, "cacher.GetList");
    assert_eq!(cached.parent(), list.id());
    assert_eq!(cached.attributes["type"], "configmaps");
    let written = named(&trace, "SerializeObject");
    assert_eq!(written.parent(), list.id());
    assert_eq!(written.attributes["mediaType"], "application/json");
    for it in &trace {
        let span = &it.span;
        assert!(
            span.end_time_unix_nano >= span.start_time_unix_nano,
            "{span:?}"
        );
        assert!(span.start_time_unix_nano >= request.span.start_time_unix_nano);
    }
    // The caller has decided that its other request is not sampled, and nobody that the third one is.
    assert_eq!(collector.all().len(), trace.len(), "{:?}", collector.all());
}

#[tokio::test]
async fn callers_who_are_not_trusted_begin_traces_of_their_own() {
    let collector = Collector::start(Manner::Takes).await;
    let file = config(collector.address, 1_000_000);
    let tokens = tempfile::NamedTempFile::new().unwrap();
    fs::write(tokens.path(), "ann-token,ann,1\n").unwrap();
    let tokens_flag = format!("--token-auth-file={}", tokens.path().display());
    let server = start(&file, |it| it.flag(tokens_flag)).await;
    let ann = client_with(&server, |auth| {
        auth.client_certificate_data = None;
        auth.client_key_data = None;
        auth.token = Some("ann-token".to_owned().into());
    })
    .await;
    assert_eq!(ask(&ann, "GET", CONFIG_MAPS, NOT_SAMPLED, "").await, 403);
    let is_hers = |it: &&super::collector::Exported| {
        it.attributes
            .get("http.response.status_code")
            .is_some_and(|it| it == "403")
    };
    let found = eventually(DEADLINE, "her request", async || {
        collector.all().iter().find(is_hers).cloned()
    });
    let request = found.await;
    assert_ne!(hex(&request.span.trace_id), TRACE);
    assert_eq!(request.parent(), "");
    assert_eq!(hex(&request.span.links[0].trace_id), TRACE);
    assert_eq!(hex(&request.span.links[0].span_id), CALLER);
}

fn allow(_: &str, review: &serde_json::Value) -> Reply {
    let uid = &review["request"]["uid"];
    Reply::Json(
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "response": {"uid": uid, "allowed": true}}),
    )
}

/// Configures a webhook for ConfigMaps, and waits until it is asked.
async fn configure(admin: &kube::Client, webhook: &Webhook) {
    let configuration = json!({"apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "spans"}, "webhooks": [{
            "name": "spans.example.com", "clientConfig": webhook.client_config("/spans"),
            "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"],
                "resources": ["configmaps"]}],
            "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 30}]});
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let created = ask(admin, "POST", path, "", &configuration.to_string()).await;
    assert_eq!(created, 201);
    eventually(DEADLINE, "the webhook is asked", async || {
        let dry = format!("{CONFIG_MAPS}?dryRun=All");
        assert_eq!(ask(admin, "POST", &dry, "", &config_map("dry")).await, 201);
        !webhook.take("/spans").is_empty()
    })
    .await;
}

fn config_map(name: &str) -> String {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}).to_string()
}

/// The `traceparent` of the last call of a webhook.
fn traceparent(webhook: &Webhook) -> Option<String> {
    let heads = webhook.heads.lock().unwrap();
    let mut lines = heads.last().unwrap().lines();
    let value = lines.find_map(|line| line.strip_prefix("traceparent: "));
    value.map(ToOwned::to_owned)
}

#[tokio::test]
async fn webhooks_continue_the_trace() {
    let (collector, _server, admin) = collected().await;
    let webhook = Webhook::start(allow).await;
    configure(&admin, &webhook).await;
    assert_eq!(
        traceparent(&webhook).map(|it| it.ends_with("-00")),
        Some(true)
    );
    let created = ask(&admin, "POST", CONFIG_MAPS, SAMPLED, &config_map("a")).await;
    assert_eq!(created, 201);

    let name = "POST /api/v1/namespaces/{:namespace}/configmaps";
    let trace = collector.trace(TRACE, name).await;
    let create = named(&trace, "Create");
    assert_eq!(create.parent(), named(&trace, name).id());
    assert_eq!(create.attributes["scope"], "resource");
    let call = named(&trace, "Call validating webhook");
    assert_eq!(call.parent(), create.id());
    for (key, value) in [
        ("configuration", "spans"),
        ("webhook", "spans.example.com"),
        ("resource", "/v1, Resource=configmaps"),
        ("operation", "CREATE"),
    ] {
        assert_eq!(call.attributes[key], value, "{key}");
    }
    let post = named(&trace, "HTTP POST");
    assert_eq!(post.parent(), call.id());
    assert_eq!(post.span.kind, 3, "a client's");
    assert_eq!(post.attributes["http.response.status_code"], "200");
    assert_eq!(
        traceparent(&webhook).unwrap(),
        format!("00-{TRACE}-{}-01", post.id())
    );
    let stored = named(&trace, "Create etcd3");
    assert_eq!(stored.parent(), create.id());
    assert_eq!(stored.attributes["key"], "/configmaps/default/a");
}

#[tokio::test]
async fn without_the_flag_the_callers_span_goes_on_to_webhooks() {
    let server = InProcessServer::builder().start().await.unwrap();
    let admin = client(&server).await;
    let webhook = Webhook::start(allow).await;
    configure(&admin, &webhook).await;
    assert_eq!(traceparent(&webhook), None);
    let created = ask(&admin, "POST", CONFIG_MAPS, SAMPLED, &config_map("a")).await;
    assert_eq!(created, 201);
    assert_eq!(traceparent(&webhook).as_deref(), Some(SAMPLED));
}

#[tokio::test]
async fn a_server_that_ends_while_it_starts_flushes_its_spans() {
    let Some(etcd) = Etcd::start("spans of a server that starts") else {
        return;
    };
    // The start waits for the address of the Service kubernetes, which is taken.
    let taken = json!({"apiVersion": "networking.k8s.io/v1", "kind": "IPAddress",
        "metadata": {"name": "10.0.0.1", "uid": "1", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "other"}}});
    etcd.etcdctl(&["put", "/registry/ipaddresses/10.0.0.1", &taken.to_string()]);
    let collector = Collector::start(Manner::Takes).await;
    let file = config(collector.address, 0);
    let mut server = Server::start(&["--etcd-servers", &etcd.endpoint(), &flag(&file)]);
    let admin = server.client_once("/livez/ping").await;
    let path = "/api/v1/namespaces/default";
    eventually(DEADLINE, "the namespace is created first", async || {
        ask(&admin, "GET", path, "", "").await == 200
    })
    .await;
    assert_eq!(ask(&admin, "GET", path, SAMPLED, "").await, 200);
    server.stop().await;
    assert!(!server.log().contains("serves the Kubernetes API at"));
    named(&collector.all(), "Get");
}

#[tokio::test]
async fn a_watch_is_a_span_until_it_ends() {
    let (collector, _server, admin) = collected().await;
    let path = format!("{CONFIG_MAPS}?{WATCH_LIST}");
    assert_eq!(ask(&admin, "GET", &path, SAMPLED, "").await, 200);
    let name = "GET /api/v1/namespaces/{:namespace}/configmaps";
    let trace = collector.trace(TRACE, name).await;
    let request = named(&trace, name);
    let watch = named(&trace, "WatchServer.HandleHTTP");
    let state = named(&trace, "WatchList");
    assert_eq!(watch.parent(), request.id());
    assert_eq!(state.parent(), request.id());
    assert_eq!(state.attributes["verb"], "WATCH");
    assert!(state.span.end_time_unix_nano <= watch.span.end_time_unix_nano);
    named(&trace, "cacher.Watch");
}

#[tokio::test]
async fn a_trace_goes_through_a_relay_to_its_upstream() {
    let collector = Collector::start(Manner::Takes).await;
    let file = config(collector.address, 0);
    let flag = flag(&file);
    let (mut upstream, _) = Server::ready(&["--storage-backend=memory", &flag]).await;
    let mut relay = Server::relay(&upstream.kubeconfig(), &[&flag]);
    let relayed = relay.client().await;
    let object = r#"{"metadata": {"name": "a"}}"#;
    let written = ask(&relayed, "POST", CONFIG_MAPS, SAMPLED, object).await;
    assert_eq!(written, 201);
    // Those that end send what they have.
    relay.stop().await;
    upstream.stop().await;
    let name = "POST /api/v1/namespaces/{:namespace}/configmaps";
    let trace = collector.trace(TRACE, name).await;
    let of = |id: &str| trace.iter().find(|it| it.id() == id);
    let requests: Vec<_> = trace.iter().filter(|it| it.span.name == name).collect();
    let [outer, inner] = requests[..] else {
        panic!("{trace:?}");
    };
    assert_eq!(outer.parent(), CALLER);
    let call = of(&inner.parent()).unwrap_or_else(|| panic!("{trace:?}"));
    assert_eq!(
        (call.parent(), call.span.kind),
        (outer.id(), 3),
        "a client's"
    );
}
