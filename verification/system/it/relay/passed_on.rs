//! Requests that a relay passes on: writes, subresources, discovery, errors. Their answers are the upstream's.

use serde_json::{Value, json};

use super::support::*;

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const PODS: &str = "/api/v1/namespaces/default/pods";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"app": "a"}},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}})
}

#[tokio::test]
async fn objects_are_written_through_a_relay() {
    let pair = Pair::start(&[], &[]).await;
    let (relayed, direct) = (&pair.relayed, &pair.direct);
    let path = format!("{CONFIG_MAPS}/a");
    let created = create(relayed, CONFIG_MAPS, &config_map("a")).await;
    assert_eq!(get(direct, &path).await.json(), created);
    let mut changed = created.clone();
    changed["data"]["k"] = json!("w");
    let updated = send(relayed, "PUT", &path, &[], &changed).await;
    assert_eq!(
        (updated.status, &updated.json()["data"]["k"]),
        (200, &json!("w")),
        "{updated:?}"
    );
    let late = send(relayed, "PUT", &path, &[], &changed).await;
    assert_eq!(late.status, 409, "{late:?}");
    let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"x": "y"}});
    let apply = [("Content-Type", "application/apply-patch+yaml")];
    let applied = send(
        relayed,
        "PATCH",
        &format!("{CONFIG_MAPS}/b?fieldManager=me"),
        &apply,
        &applied,
    )
    .await;
    assert_eq!(applied.status, 201, "{applied:?}");
    assert_eq!(
        applied.json()["metadata"]["managedFields"][0]["manager"],
        "me"
    );
    let json_patch = [("Content-Type", "application/json-patch+json")];
    let patch = json!([{"op": "replace", "path": "/data/x", "value": "z"}]);
    let patched = send(
        relayed,
        "PATCH",
        &format!("{CONFIG_MAPS}/b"),
        &json_patch,
        &patch,
    )
    .await;
    assert_eq!(patched.json()["data"]["x"], "z", "{patched:?}");
    assert_eq!(
        send(relayed, "DELETE", &path, &[], &Value::Null)
            .await
            .status,
        200
    );
    assert_eq!(get(direct, CONFIG_MAPS).await.names(), ["b"]);
    let all = send(relayed, "DELETE", CONFIG_MAPS, &[], &Value::Null).await;
    assert_eq!(
        (all.status, all.names().as_slice()),
        (200, &["b".to_owned()][..])
    );
    assert!(get(direct, CONFIG_MAPS).await.names().is_empty());
    let dry = send(
        relayed,
        "POST",
        &format!("{CONFIG_MAPS}?dryRun=All"),
        &[],
        &config_map("c"),
    )
    .await;
    assert_eq!(dry.status, 201, "{dry:?}");
    assert_eq!(get(direct, &format!("{CONFIG_MAPS}/c")).await.status, 404);
}

#[tokio::test]
async fn subresources_are_the_upstreams() {
    let pair = Pair::start(&[], &[]).await;
    let (relayed, direct) = (&pair.relayed, &pair.direct);
    let deployment = json!({"metadata": {"name": "d"}, "spec": {"replicas": 1,
        "selector": {"matchLabels": {"app": "a"}},
        "template": {"metadata": {"labels": {"app": "a"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    create(relayed, DEPLOYMENTS, &deployment).await;
    let scale = format!("{DEPLOYMENTS}/d/scale");
    get(relayed, &scale)
        .await
        .is_like(&get(direct, &scale).await, &scale);
    let merge = [("Content-Type", "application/merge-patch+json")];
    let patch = json!({"spec": {"replicas": 5}});
    let scaled = send(relayed, "PATCH", &scale, &merge, &patch).await;
    assert_eq!(scaled.json()["spec"]["replicas"], 5, "{scaled:?}");
    assert_eq!(
        get(direct, &format!("{DEPLOYMENTS}/d")).await.json()["spec"]["replicas"],
        5
    );
    let status = json!({"status": {"replicas": 3}});
    let path = format!("{DEPLOYMENTS}/d/status");
    let patched = send(relayed, "PATCH", &path, &merge, &status).await;
    assert_eq!(patched.json()["status"]["replicas"], 3, "{patched:?}");
    get(relayed, &path)
        .await
        .is_like(&get(direct, &path).await, &path);

    for name in ["p", "q"] {
        create(relayed, PODS, &pod(name)).await;
        let running = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
        let path = format!("{PODS}/{name}/status");
        assert_eq!(
            send(relayed, "PATCH", &path, &merge, &running).await.status,
            200
        );
    }
    let eviction = |name: &str| json!({"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": name}});
    let evicted = send(
        relayed,
        "POST",
        &format!("{PODS}/p/eviction"),
        &[],
        &eviction("p"),
    )
    .await;
    assert_eq!(evicted.status, 201, "{evicted:?}");
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let budget = json!({"metadata": {"name": "b"}, "spec": {"minAvailable": 1,
        "selector": {"matchLabels": {"app": "a"}}}});
    create(relayed, budgets, &budget).await;
    // Nobody has looked at the budget yet, so the client is to try again.
    let path = format!("{PODS}/q/eviction");
    let expected = send(direct, "POST", &path, &[], &eviction("q")).await;
    assert_eq!(expected.status, 429, "{expected:?}");
    assert!(expected.headers.contains_key("retry-after"), "{expected:?}");
    let through = send(relayed, "POST", &path, &[], &eviction("q")).await;
    through.is_like(&expected, &path);
}

#[tokio::test]
async fn discovery_and_descriptions_are_the_upstreams() {
    let pair = Pair::start(&[], &[]).await;
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    for (path, accept) in [
        ("/", "*/*"),
        ("/version", "*/*"),
        ("/api", "application/json"),
        ("/api", aggregated),
        ("/apis", "application/json"),
        ("/apis", aggregated),
        ("/api/v1", "application/json"),
        ("/apis/apps", "application/json"),
        ("/apis/apps/v1", "application/json"),
        ("/apis/no.such.group", "application/json"),
        ("/apis/no.such.group/v1/things", "application/json"),
        (
            "/apis/apps/v1/namespaces/default/things",
            "application/json",
        ),
        ("/openapi/v2", "application/json"),
        ("/openapi/v3", "application/json"),
        ("/openapi/v3/api/v1", "application/json"),
        (
            "/openapi/v3/apis/apps/v1",
            "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
        ),
        ("/.well-known/openid-configuration", "*/*"),
        ("/openid/v1/jwks", "*/*"),
        ("/no/such/path", "*/*"),
    ] {
        let accept = [("Accept", accept)];
        let expected = send(&pair.direct, "GET", path, &accept, &Value::Null).await;
        let through = send(&pair.relayed, "GET", path, &accept, &Value::Null).await;
        through.is_like(&expected, &format!("{path} as {accept:?}"));
        let known = expected.headers.get("etag").and_then(|it| it.to_str().ok());
        if let Some(known) = known {
            let same = [accept[0], ("If-None-Match", known)];
            let again = send(&pair.relayed, "GET", path, &same, &Value::Null).await;
            assert_eq!(again.status, 304, "{path}: {again:?}");
        }
    }
}

/// A request: its method, path, media type and body, and the status of its answer.
type Refused = (&'static str, String, &'static str, Value, u16);

/// Requests with bodies that are refused, but for the warned one.
fn refused_writes() -> Vec<Refused> {
    let json_type = "application/json";
    let wrong_name = json!({"metadata": {"name": "Not A Name"}});
    let unknown = json!({"metadata": {"name": "u"}, "no-such-field": 1, "data": {"k": "v"}});
    let post = |query: &str, media_type, body, status| {
        let path = format!("{CONFIG_MAPS}{query}");
        ("POST", path, media_type, body, status)
    };
    let nowhere = "/api/v1/namespaces/none/configmaps".to_owned();
    vec![
        post("", json_type, config_map("a"), 409),
        post("", json_type, wrong_name, 422),
        post("", json_type, json!("{"), 400),
        post("", "text/plain", config_map("b"), 415),
        post("?fieldValidation=Strict", json_type, unknown.clone(), 400),
        post("?fieldValidation=Warn&dryRun=All", json_type, unknown, 201),
        post("?dryRun=Some", json_type, config_map("b"), 422),
        ("POST", nowhere, json_type, config_map("b"), 404),
    ]
}

/// Other requests that are refused.
fn refused_others() -> Vec<Refused> {
    let json_type = "application/json";
    let on = |path: &str| format!("{CONFIG_MAPS}{path}");
    let other = json!({"preconditions": {"uid": "other"}});
    let log = format!("{PODS}/none/log");
    let node = "/api/v1/nodes/none/proxy/".to_owned();
    vec![
        ("PUT", on("/b"), "application/yaml", json!("a: [\n"), 400),
        ("PUT", on(""), json_type, config_map("b"), 405),
        ("PATCH", on("/a"), "application/other-patch", json!({}), 415),
        ("DELETE", on("/none"), json_type, Value::Null, 404),
        ("DELETE", on("/a"), json_type, other, 409),
        (
            "GET",
            on("/a?resourceVersion=x"),
            json_type,
            Value::Null,
            500,
        ),
        ("GET", log, json_type, Value::Null, 404),
        ("GET", node, json_type, Value::Null, 404),
        ("OPTIONS", on("/a"), json_type, Value::Null, 405),
    ]
}

#[tokio::test]
async fn refusals_and_warnings_come_as_they_are() {
    let pair = Pair::start(&[], &[]).await;
    pair.create(CONFIG_MAPS, &config_map("a")).await;
    for (method, path, media_type, body, status) in [refused_writes(), refused_others()].concat() {
        let headers = [("Content-Type", media_type)];
        let expected = send(&pair.direct, method, &path, &headers, &body).await;
        assert_eq!(expected.status, status, "{method} {path}: {expected:?}");
        let through = send(&pair.relayed, method, &path, &headers, &body).await;
        match status {
            // A dry run has a uid and a time of its own.
            201 => {
                assert_eq!(through.status, status, "{through:?}");
                assert!(expected.headers.contains_key("warning"), "{expected:?}");
                assert_eq!(
                    through.headers.get("warning"),
                    expected.headers.get("warning")
                );
            }
            _ => through.is_like(&expected, &format!("{method} {path}")),
        }
    }
}

#[tokio::test]
async fn secrets_are_cached_only_if_that_is_asked_for() {
    for (flags, is_cached) in [(&[][..], false), (&["--cache-secrets"][..], true)] {
        let pair = Pair::start(&[], flags).await;
        pair.create(
            SECRETS,
            &json!({"metadata": {"name": "s"}, "stringData": {"k": "v"}}),
        )
        .await;
        let any = format!("{SECRETS}?resourceVersion=0");
        // The first may be the upstream's, while the cache is filled.
        until_listed(&pair.relayed, &any, &["s"]).await;
        if is_cached {
            pair.until_cached(&pair.relayed, &any, "secrets").await;
        }
        let before = pair.upstream_requests("LIST", "secrets").await;
        for _ in 0..5 {
            assert!(
                get(&pair.relayed, &any)
                    .await
                    .names()
                    .contains(&"s".to_owned())
            );
        }
        let lists = pair.upstream_requests("LIST", "secrets").await - before;
        // The cache's own check of the history is one at most.
        assert_eq!(lists < 1.5, is_cached, "{lists} lists");
        let mut events = Watch::open(&pair.relayed, &format!("{SECRETS}?watch=1")).await;
        assert_eq!(
            events.next_name().await,
            ("ADDED".to_owned(), "s".to_owned())
        );
    }
}
