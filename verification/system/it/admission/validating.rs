//! Webhooks that refuse, and which requests they are asked about.

use http::Method;
use kube::Client;
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use super::{CONFIG_MAPS, agreed, ask, config_map, configure, create, hook, message};
use crate::support::server::Server;
use crate::support::webhook::{Reply, Webhook};

fn refused(review: &Value, status: Value) -> Reply {
    agreed(review, json!({"allowed": false, "status": status}))
}

fn answer(path: &str, review: &Value) -> Reply {
    match path {
        "/deny" => refused(
            review,
            json!({"code": 403, "reason": "Forbidden", "message": "not today"}),
        ),
        "/deny-bare" => refused(review, Value::Null),
        "/deny-reason" => refused(review, json!({"reason": "Teapot", "code": 418})),
        "/deny-details" => refused(
            review,
            json!({"code": 422, "reason": "Invalid", "message": "no",
                "details": {"causes": [{"reason": "FieldValueInvalid", "field": "data.k", "message": "bad"}]}}),
        ),
        "/warn" => agreed(
            review,
            json!({"warnings": ["mind the gap", "x".repeat(1_000)]}),
        ),
        "/gate" => refused(review, json!({"code": 403, "message": "gated"})),
        _ => agreed(review, json!({})),
    }
}

#[tokio::test]
async fn refusals_are_passed_on_in_kube_apiservers_words() {
    let webhook = Webhook::start(answer).await;
    let (_server, client) = Server::ready(&["--storage-backend=memory"]).await;
    let names = ["deny", "deny-bare", "deny-reason", "deny-details", "warn"];
    let hooks = names.map(|name| hook(&webhook, name, json!({})));
    configure(
        &client,
        &webhook,
        "validatingwebhookconfigurations",
        hooks.to_vec(),
    )
    .await;
    for (name, expected) in [
        (
            "deny",
            "403 admission webhook \"deny.example.com\" denied the request: not today",
        ),
        (
            "deny-bare",
            "400 admission webhook \"deny-bare.example.com\" denied the request without explanation",
        ),
        (
            "deny-reason",
            "418 admission webhook \"deny-reason.example.com\" denied the request: Teapot",
        ),
        (
            "deny-details",
            "422 admission webhook \"deny-details.example.com\" denied the request: no",
        ),
    ] {
        let answered = create(&client, &config_map("a", name), "").await;
        assert_eq!(message(&answered), expected);
        assert_eq!(
            (&answered.1["kind"], &answered.1["status"]),
            (&json!("Status"), &json!("Failure"))
        );
        if name == "deny-details" {
            assert_eq!(answered.1["reason"], "Invalid");
            assert_eq!(
                answered.1["details"]["causes"],
                json!([{"reason": "FieldValueInvalid", "field": "data.k", "message": "bad"}])
            );
        }
    }
    let warned = create(&client, &config_map("a", "warn"), "").await;
    assert_eq!(warned.0, 201);
    assert!(warned.2[0].contains("mind the gap"), "{:?}", warned.2);

    // What is refused is neither changed nor deleted.
    let path = format!("{CONFIG_MAPS}/a");
    let relabel = json!({"metadata": {"labels": {"case": "deny"}}});
    let answered = ask(&client, Method::PATCH, &path, &relabel).await;
    assert_eq!(answered.0, 403);
    let status = ask(&client, Method::GET, &path, &Value::Null).await;
    assert_eq!(status.1["metadata"]["labels"]["case"], "warn");
}

/// Rules for one operation on one resource.
fn rules(operation: &str, group: &str, version: &str, resource: &str) -> Value {
    json!([{"operations": [operation], "apiGroups": [group], "apiVersions": [version],
        "resources": [resource]}])
}

/// Hooks that refuse all that their rules and selectors choose.
#[allow(clippy::too_many_lines)] // a table
fn gates(webhook: &Webhook) -> Vec<Value> {
    // Its path is cleaned before it is called.
    let gate = webhook.client_config("//x/..//gate/");
    let gated = |name: &str, more: Value| {
        let mut hook = hook(
            webhook,
            name,
            json!({"clientConfig": gate, "objectSelector": {}}),
        );
        for (member, value) in more.as_object().expect("members") {
            hook[member] = value.clone();
        }
        hook
    };
    vec![
        gated(
            "exec",
            json!({"rules": rules("CONNECT", "", "v1", "pods/exec")}),
        ),
        gated(
            "evict",
            json!({"rules": rules("CREATE", "", "v1", "pods/eviction")}),
        ),
        gated(
            "bind",
            json!({"rules": rules("CREATE", "", "*", "pods/binding")}),
        ),
        gated(
            "scale",
            json!({"rules": rules("UPDATE", "*", "*", "deployments/scale")}),
        ),
        gated(
            "status",
            json!({"rules": rules("UPDATE", "apps", "v1", "*/status")}),
        ),
        gated(
            "finalize",
            json!({"rules": rules("DELETE", "", "v1", "secrets")}),
        ),
        gated(
            "namespaces",
            json!({"rules": rules("CREATE", "", "v1", "namespaces"),
            "namespaceSelector": {"matchLabels": {"gate": "closed"}}}),
        ),
        gated(
            "in-namespace",
            json!({"rules": rules("CREATE", "", "v1", "services"),
            "namespaceSelector": {"matchLabels": {"gate": "closed"}}}),
        ),
        gated(
            "condition",
            json!({"rules": rules("CREATE", "", "v1", "serviceaccounts"),
            "matchConditions": [
                {"name": "named", "expression": "object.metadata.name.startsWith('gated')"},
                {"name": "new", "expression": "request.operation == 'CREATE' && oldObject == null"}]}),
        ),
        gated(
            "broken",
            json!({"rules": rules("CREATE", "", "v1", "endpoints"),
            "matchConditions": [{"name": "broken", "expression": "object.none.none == 1"}]}),
        ),
        gated(
            "equivalent",
            json!({
            "rules": rules("CREATE", "autoscaling", "v1", "horizontalpodautoscalers"),
            "matchConditions": [{"name": "v1", "expression": "object.spec.targetCPUUtilizationPercentage == 80"}]}),
        ),
        gated(
            "exact",
            json!({"matchPolicy": "Exact",
            "rules": rules("CREATE", "events.k8s.io", "v1", "events")}),
        ),
    ]
}

#[tokio::test]
async fn rules_and_selectors_choose_requests() {
    let webhook = Webhook::start(answer).await;
    let (_server, client) = Server::ready(&["--storage-backend=memory"]).await;
    let hooks = gates(&webhook);
    configure(&client, &webhook, "validatingwebhookconfigurations", hooks).await;
    requests_are_chosen(&client).await;
    reviews_tell_what_is_asked(&webhook.take("/gate"));
    // The namespace's labels are those that it has now.
    let labels = json!({"metadata": {"labels": {"gate": "closed"}}});
    ask(&client, Method::PATCH, "/api/v1/namespaces/shut", &labels).await;
    let service = json!({"metadata": {"name": "t"}, "spec": {"ports": [{"port": 1}]}});
    let path = "/api/v1/namespaces/shut/services";
    let dry = format!("{path}?dryRun=All");
    eventually(DEADLINE, "it is refused", async || {
        ask(&client, Method::POST, &dry, &service).await.0 == 403
    })
    .await;
    // Whoever is shut out can mend the configuration.
    let path = format!("{}/validatingwebhookconfigurations/tests", super::GROUP);
    assert_eq!(
        ask(&client, Method::DELETE, &path, &Value::Null).await.0,
        200
    );
}

/// Requests, and whether they are let through.
#[allow(clippy::too_many_lines)] // a table
async fn requests_are_chosen(client: &Client) {
    let core = "/api/v1/namespaces/default";
    let named = |name: &str| json!({"metadata": {"name": name}});
    let pod =
        json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}});
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": pod["spec"]});
    let deployment = json!({"metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}}, "template": template}});
    let closed = json!({"metadata": {"name": "shut", "labels": {"gate": "closed"}}});
    let scaler = json!({"metadata": {"name": "s"}, "spec": {"maxReplicas": 2,
        "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
        "metrics": [{"type": "Resource", "resource": {"name": "cpu",
            "target": {"type": "Utilization", "averageUtilization": 80}}}]}});
    let event = json!({"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}});
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 1}]}});
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let open = |name: &str| json!({"metadata": {"name": name}});
    let (post, put, get) = (Method::POST, Method::PUT, Method::GET);
    for (method, path, body, code) in [
        (&post, format!("{core}/pods"), &pod, 201),
        (
            &get,
            format!("{core}/pods/p/exec?command=x&stdout=true"),
            &Value::Null,
            403,
        ),
        (
            &get,
            format!("{core}/pods/p/attach?stdout=true"),
            &Value::Null,
            400,
        ),
        (
            &post,
            format!("{core}/pods/p/eviction"),
            &json!({"metadata": {"name": "p"}}),
            403,
        ),
        (
            &post,
            format!("{core}/pods/p/binding"),
            &json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}),
            403,
        ),
        (&post, deployments.to_owned(), &deployment, 201),
        (
            &put,
            format!("{deployments}/d/scale"),
            &json!({"metadata": {"name": "d", "namespace": "default"}, "spec": {"replicas": 3}}),
            403,
        ),
        (&put, format!("{deployments}/d/status"), &deployment, 403),
        (&put, format!("{deployments}/d"), &deployment, 200),
        (&post, format!("{core}/secrets"), &named("s"), 201),
        (
            &Method::DELETE,
            format!("{core}/secrets/s"),
            &Value::Null,
            403,
        ),
        (
            &Method::DELETE,
            format!("{core}/secrets"),
            &Value::Null,
            403,
        ),
        (&get, format!("{core}/secrets/s"), &Value::Null, 200),
        (&post, "/api/v1/namespaces".to_owned(), &closed, 403),
        (&post, "/api/v1/namespaces".to_owned(), &open("shut"), 201),
        (
            &post,
            "/api/v1/namespaces/shut/services".to_owned(),
            &service,
            201,
        ),
        (
            &post,
            format!("{core}/serviceaccounts"),
            &named("gated-1"),
            403,
        ),
        (
            &post,
            format!("{core}/serviceaccounts"),
            &named("free"),
            201,
        ),
        (&post, format!("{core}/endpoints"), &named("e"), 403),
        (
            &post,
            "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers".to_owned(),
            &scaler,
            403,
        ),
        (&post, format!("{core}/events"), &event, 201),
    ] {
        let answered = ask(client, method.clone(), &path, body).await;
        assert_eq!(answered.0, code, "{method} {path}: {}", message(&answered));
        if code == 403 && !path.ends_with("/endpoints") {
            let text = message(&answered);
            assert!(
                text.ends_with("denied the request: gated"),
                "{path}: {text}"
            );
        }
    }
}

fn reviews_tell_what_is_asked(asked: &[Value]) {
    let about = |operation: &str, part: &str| {
        let found = asked.iter().map(|review| &review["request"]);
        let mut found =
            found.filter(|it| it["operation"] == operation && it["subResource"] == part);
        found.next().cloned().unwrap_or_default()
    };
    let exec = about("CONNECT", "exec");
    assert_eq!(
        exec["object"],
        json!({"kind": "PodExecOptions", "apiVersion": "v1", "stdout": true, "command": ["x"]})
    );
    assert_eq!(exec["kind"]["kind"], "PodExecOptions");
    let scale = about("UPDATE", "scale");
    assert_eq!(
        (
            &scale["object"]["kind"],
            &scale["object"]["spec"]["replicas"]
        ),
        (&json!("Scale"), &json!(3))
    );
    assert_eq!(scale["oldObject"]["spec"]["replicas"], 1);
    assert_eq!(about("CREATE", "eviction")["kind"]["group"], "policy");
    let equivalent = asked.iter().map(|review| &review["request"]);
    let mut equivalent = equivalent.filter(|it| it["requestResource"]["version"] == "v2");
    let equivalent = equivalent.next().expect("asked");
    assert_eq!(equivalent["resource"]["version"], "v1");
    assert_eq!(equivalent["object"]["apiVersion"], "autoscaling/v1");
}

#[tokio::test]
async fn services_are_found() {
    let webhook = Webhook::start(answer).await;
    let (_server, client) = Server::ready(&["--storage-backend=memory"]).await;
    let at = |name: &str, port: u16| {
        json!({"clientConfig": {"caBundle": webhook.ca_bundle(), "service": {
            "name": name, "namespace": "default", "path": "/deny", "port": port}}})
    };
    let hooks = vec![
        hook(&webhook, "served", at("hook", webhook.address.port())),
        hook(&webhook, "other-port", at("idle", 1)),
        hook(&webhook, "idle", at("idle", 443)),
        hook(&webhook, "missing", at("missing", 443)),
    ];
    let services = "/api/v1/namespaces/default/services";
    let outside = json!({"metadata": {"name": "hook"}, "spec": {
        "type": "ExternalName", "externalName": "localhost"}});
    let idle = json!({"metadata": {"name": "idle"}, "spec": {
        "clusterIP": "None", "ports": [{"port": 443}]}});
    for service in [outside, idle] {
        let created = ask(&client, Method::POST, services, &service).await;
        assert_eq!(created.0, 201, "{}", message(&created));
    }
    configure(&client, &webhook, "validatingwebhookconfigurations", hooks).await;
    let unreachable = |hook: &str, (service, port): (&str, u16), why: &str| {
        format!(
            "500 Internal error occurred: failed calling webhook \"{hook}.example.com\": failed to call webhook: \
             Post \"https://{service}.default.svc:{port}/deny?timeout=30s\": {why}"
        )
    };
    for (name, expected) in [
        (
            "served",
            "403 admission webhook \"served.example.com\" denied the request: not today".to_owned(),
        ),
        (
            "other-port",
            unreachable(
                "other-port",
                ("idle", 1),
                "no service port 1 found for service \"idle\"",
            ),
        ),
        (
            "idle",
            unreachable(
                "idle",
                ("idle", 443),
                "no endpoints available for service \"idle\"",
            ),
        ),
        (
            "missing",
            unreachable("missing", ("missing", 443), "service \"missing\" not found"),
        ),
    ] {
        let answered = create(&client, &config_map("a", name), "").await;
        assert_eq!(message(&answered), expected);
    }
}
