//! What kubelets may do, by the Node authorizer and the NodeRestriction plugin.

use http::{Method, Request};
use serde_json::{Value, json};

use super::{Fixture, LOOK_PERIOD, LOOKS_MAX};

const DEFAULT: &str = "/api/v1/namespaces/default";

/// The answer to the kubelet of a node, or the message of a refusal.
async fn as_node(
    fixture: &Fixture,
    node: &str,
    method: Method,
    path: &str,
    body: &Value,
) -> Result<String, String> {
    let body = if body.is_null() {
        Vec::new()
    } else {
        body.to_string().into_bytes()
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .header("impersonate-user", format!("system:node:{node}"))
        .header("impersonate-group", "system:nodes")
        .body(body)
        .expect("a request");
    match fixture.admin.request_text(request).await {
        Ok(text) => Ok(text),
        Err(kube::Error::Api(status)) => Err(format!("{} {}", status.code, status.message)),
        Err(error) => panic!("{path}: {error}"),
    }
}

async fn get(fixture: &Fixture, node: &str, path: &str) -> Result<String, String> {
    as_node(fixture, node, Method::GET, path, &Value::Null).await
}

/// Asks again until the answer is as it should be, since pods are followed.
async fn until(fixture: &Fixture, node: &str, path: &str, allowed: bool) {
    for _ in 0..LOOKS_MAX {
        if get(fixture, node, path).await.is_ok() == allowed {
            return;
        }
        tokio::time::sleep(LOOK_PERIOD).await;
    }
    panic!("{path}: {:?}", get(fixture, node, path).await);
}

fn pod(name: &str, node: &str, secret: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"nodeName": node,
        "containers": [{"name": "c", "image": "i"}],
        "volumes": [{"name": "v", "secret": {"secretName": secret}}]}})
}

#[tokio::test]
async fn kubelets_read_what_the_pods_of_their_node_need() {
    let fixture = Fixture::start("Node,RBAC").await;
    for name in ["s", "t"] {
        let secret = json!({"metadata": {"name": name}});
        fixture.create(&format!("{DEFAULT}/secrets"), secret).await;
    }
    fixture
        .create(&format!("{DEFAULT}/pods"), pod("p", "a", "s"))
        .await;
    let secret = format!("{DEFAULT}/secrets/s");
    until(&fixture, "a", &secret, true).await;
    let refusal = |what: &str, words: &str| Err(format!("403 {what}: {words}"));
    let secrets = r#"resource "secrets" in API group "" in the namespace "default""#;
    assert_eq!(
        get(&fixture, "b", &secret).await,
        refusal(
            &format!(r#"secrets "s" is forbidden: User "system:node:b" cannot get {secrets}"#),
            "no relationship found between node 'b' and this object"
        )
    );
    assert_eq!(
        get(&fixture, "a", &format!("{DEFAULT}/secrets")).await,
        refusal(
            &format!(r#"secrets is forbidden: User "system:node:a" cannot list {secrets}"#),
            "No Object name found"
        )
    );
    for path in [
        format!("{DEFAULT}/secrets/t"),
        "/api/v1/pods".to_owned(),
        "/api/v1/pods?fieldSelector=spec.nodeName%3Db".to_owned(),
        "/api/v1/nodes/b".to_owned(),
        "/api/v1/nodes".to_owned(),
        "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/b".to_owned(),
        "/apis/apps/v1/deployments".to_owned(),
    ] {
        let refused = get(&fixture, "a", &path).await.expect_err(&path);
        assert!(refused.starts_with("403 "), "{path}: {refused}");
    }
    for path in [
        "/api/v1/pods?fieldSelector=spec.nodeName%3Da".to_owned(),
        format!("{DEFAULT}/pods/p"),
        format!("{DEFAULT}/secrets?fieldSelector=metadata.name%3Ds"),
        "/api/v1/services".to_owned(),
        "/api/v1/nodes?fieldSelector=metadata.name%3Da".to_owned(),
    ] {
        get(&fixture, "a", &path).await.expect(&path);
    }
    let path = format!("{DEFAULT}/pods/p?gracePeriodSeconds=0");
    let deleted = super::ask(&fixture.admin, Method::DELETE, &path, &Value::Null).await;
    deleted.expect("deleted");
    until(&fixture, "a", &secret, false).await;
}

#[tokio::test]
async fn kubelets_write_their_own_node_and_pods() {
    let plugin = "--enable-admission-plugins=NodeRestriction";
    let fixture = Fixture::start_with("Node,RBAC", &[plugin]).await;
    let node = |name: &str, labels: Value| json!({"metadata": {"name": name, "labels": labels}});
    for (body, words) in [
        (
            node("b", json!({})),
            r#"nodes "b" is forbidden: node "a" is not allowed to modify node "b""#,
        ),
        (
            node(
                "a",
                json!({"node-restriction.kubernetes.io/x": "y", "zone": "z"}),
            ),
            r#"nodes "a" is forbidden: node "a" is not allowed to set the following labels: node-restriction.kubernetes.io/x"#,
        ),
    ] {
        let refused = as_node(&fixture, "a", Method::POST, "/api/v1/nodes", &body).await;
        assert_eq!(refused, Err(format!("403 {words}")));
    }
    let own = node("a", json!({"kubernetes.io/hostname": "a"}));
    let created = as_node(&fixture, "a", Method::POST, "/api/v1/nodes", &own).await;
    created.expect("its own");
    let taints = json!({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}});
    let mut current: Value = serde_json::from_str(
        &get(&fixture, "a", "/api/v1/nodes/a")
            .await
            .expect("its own"),
    )
    .expect("JSON");
    current["spec"] = taints["spec"].clone();
    let refused = as_node(&fixture, "a", Method::PUT, "/api/v1/nodes/a", &current).await;
    let words = r#"403 nodes "a" is forbidden: node "a" is not allowed to modify taints"#;
    assert_eq!(refused, Err(words.to_owned()));
    let pods = format!("{DEFAULT}/pods");
    let refused = as_node(&fixture, "a", Method::POST, &pods, &pod("p", "a", "s")).await;
    let words = r#"403 pods "p" is forbidden: pod does not have "kubernetes.io/config.mirror" annotation, node "a" can only create mirror pods"#;
    assert_eq!(refused, Err(words.to_owned()));
    fixture.create(&pods, pod("p", "b", "s")).await;
    let refused = as_node(
        &fixture,
        "a",
        Method::DELETE,
        &format!("{pods}/p"),
        &Value::Null,
    )
    .await;
    let words = r#"403 pods "p" is forbidden: node "a" can only delete pods with spec.nodeName set to itself"#;
    assert_eq!(refused, Err(words.to_owned()));
    let deleted = as_node(
        &fixture,
        "b",
        Method::DELETE,
        &format!("{pods}/p"),
        &Value::Null,
    )
    .await;
    deleted.expect("its own");
}

#[tokio::test]
async fn kubelets_tell_how_large_volumes_have_become() {
    let plugin = "--enable-admission-plugins=NodeRestriction";
    let fixture = Fixture::start_with("Node,RBAC", &[plugin]).await;
    let claims = format!("{DEFAULT}/persistentvolumeclaims");
    let claim = json!({"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}});
    fixture.create(&claims, claim).await;
    let mut user = pod("p", "a", "s");
    user["spec"]["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]);
    fixture.create(&format!("{DEFAULT}/pods"), user).await;
    let path = format!("{claims}/c");
    until(&fixture, "a", &path, true).await;
    let found = get(&fixture, "a", &path).await.expect("its pod's");
    let found: Value = serde_json::from_str(&found).expect("JSON");
    let status = format!("{path}/status");
    let words = r#"403 persistentvolumeclaims "c" is forbidden: node "a" is not allowed to update fields other than status.quantity and status.conditions"#;
    for (member, value) in [
        ("/metadata/labels", json!({"mine": "yes"})),
        ("/metadata/finalizers", json!([])),
        ("/spec/resources/requests/storage", json!("2Gi")),
        ("/status/phase", json!("Bound")),
    ] {
        let mut changed = found.clone();
        changed["metadata"]["labels"] = json!({});
        *changed.pointer_mut(member).expect("a member") = value;
        let refused = as_node(&fixture, "a", Method::PUT, &status, &changed).await;
        assert_eq!(refused, Err(words.to_owned()), "{member}");
    }
    let mut grown = found.clone();
    grown["status"]["capacity"] = json!({"storage": "1Gi"});
    grown["status"]["allocatedResources"] = json!({"storage": "1Gi"});
    let told = as_node(&fixture, "a", Method::PUT, &status, &grown).await;
    let told: Value = serde_json::from_str(&told.expect("its to tell")).expect("JSON");
    assert_eq!(told["status"]["capacity"]["storage"], "1Gi");
    let other = as_node(&fixture, "b", Method::PUT, &status, &grown).await;
    other.expect_err("no pod of it is there");
}

#[tokio::test]
async fn kubelets_show_pods_of_their_own_that_refer_to_nothing() {
    let plugin = "--enable-admission-plugins=NodeRestriction";
    let fixture = Fixture::start_with("Node,RBAC", &[plugin]).await;
    let pods = format!("{DEFAULT}/pods");
    let mut mirror = json!({"metadata": {"name": "m",
        "annotations": {"kubernetes.io/config.mirror": "x"}}, "spec": {"nodeName": "a",
            "containers": [{"name": "c", "image": "i", "env": [{"name": "E",
                "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}]}});
    let refused = as_node(&fixture, "a", Method::POST, &pods, &mirror).await;
    let words = r#"403 pods "m" is forbidden: node "a" can only create pods with an owner reference set to itself"#;
    assert_eq!(refused, Err(words.to_owned()));
    mirror["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Node",
        "name": "a", "uid": "u", "controller": true}]);
    let refused = as_node(&fixture, "a", Method::POST, &pods, &mirror).await;
    let words = r#"403 pods "m" is forbidden: node "a" can not create pods that reference secrets"#;
    assert_eq!(refused, Err(words.to_owned()));
    mirror["spec"]["containers"][0]["env"].take();
    let created = as_node(&fixture, "a", Method::POST, &pods, &mirror).await;
    created.expect("what it runs by itself");
}

#[tokio::test]
async fn kubelets_have_tokens_for_their_own_pods_only() {
    let plugin = "--enable-admission-plugins=NodeRestriction";
    let fixture = Fixture::start_with("Node,RBAC", &[plugin]).await;
    let accounts = format!("{DEFAULT}/serviceaccounts");
    let robot = json!({"metadata": {"name": "robot"}});
    fixture.create(&accounts, robot).await;
    let pods = format!("{DEFAULT}/pods");
    let mut bot = pod("bot", "a", "s");
    bot["spec"]["serviceAccountName"] = "robot".into();
    fixture.create(&pods, bot).await;
    let tokens = format!("{accounts}/robot/token");
    let unbound = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"expirationSeconds": 3600}});
    let mut refused = Ok(String::new());
    for _ in 0..LOOKS_MAX {
        refused = as_node(&fixture, "a", Method::POST, &tokens, &unbound).await;
        // Until it is known which pods there are, nobody may ask at all.
        if refused
            .as_ref()
            .err()
            .is_some_and(|it| it.contains("not bound"))
        {
            break;
        }
        tokio::time::sleep(LOOK_PERIOD).await;
    }
    let why = refused.expect_err("a token for anything");
    assert!(
        why.contains("node requested token not bound to a pod"),
        "{why}"
    );
}
