//! The permissions of kubelets, by the Node authorizer and the NodeRestriction plugin.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Method, Request};
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use super::Fixture;
use crate::support::requests;

const DEFAULT: &str = "/api/v1/namespaces/default";

/// The answer to the kubelet of a node, or the message of a refusal.
async fn as_node(
    fixture: &Fixture,
    node: &str,
    method: Method,
    path: &str,
    body: &Value,
) -> Result<String, String> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("impersonate-user", format!("system:node:{node}"))
        .header("impersonate-group", "system:nodes");
    let request = requests::with_document(request, body);
    fixture
        .admin
        .request_text(request)
        .await
        .map_err(requests::refusal)
}

async fn get(fixture: &Fixture, node: &str, path: &str) -> Result<String, String> {
    as_node(fixture, node, Method::GET, path, &Value::Null).await
}

/// Asks again until the answer is as it should be, since pods are followed.
async fn until(fixture: &Fixture, node: &str, path: &str, allowed: bool) {
    let what = format!("{path} is allowed: {allowed}");
    eventually(DEADLINE, what, async || {
        let answer = get(fixture, node, path).await;
        if answer.is_ok() == allowed {
            Ok(())
        } else {
            Err(answer)
        }
    })
    .await;
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
    let fixture = Fixture::start("Node,RBAC").await;
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
    let fixture = Fixture::start("Node,RBAC").await;
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
    let fixture = Fixture::start("Node,RBAC").await;
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
    assert_eq!(refused, Err(r#"404 node "a" not found"#.to_owned()));
    let own = json!({"metadata": {"name": "a"}});
    let own = as_node(&fixture, "a", Method::POST, "/api/v1/nodes", &own).await;
    let own: Value = serde_json::from_str(&own.expect("its own")).expect("JSON");
    let uid = own["metadata"]["uid"].as_str().expect("a uid");
    let refused = as_node(&fixture, "a", Method::POST, &pods, &mirror).await;
    let words = format!(r#"403 pods "m" is forbidden: node a UID mismatch: expected u got {uid}"#);
    assert_eq!(refused, Err(words));
    mirror["metadata"]["ownerReferences"][0]["uid"] = uid.into();
    let refused = as_node(&fixture, "a", Method::POST, &pods, &mirror).await;
    let words = r#"403 pods "m" is forbidden: node "a" can not create pods that reference secrets"#;
    assert_eq!(refused, Err(words.to_owned()));
    mirror["spec"]["containers"][0]["env"].take();
    mirror["spec"]["volumes"] = json!([{"name": "v", "projected": {"sources": [
        {"clusterTrustBundle": {"path": "p", "name": "b"}}]}}]);
    let refused = as_node(&fixture, "a", Method::POST, &pods, &mirror).await;
    let words = r#"403 pods "m" is forbidden: node "a" can not create pods that reference clustertrustbundles"#;
    assert_eq!(refused, Err(words.to_owned()));
    mirror["spec"]["volumes"].take();
    let created = as_node(&fixture, "a", Method::POST, &pods, &mirror).await;
    created.expect("what it runs by itself");
}

#[tokio::test]
async fn kubelets_have_tokens_for_their_own_pods_only() {
    let fixture = Fixture::start("Node,RBAC").await;
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
    // Until it is known which pods there are, nobody may ask at all.
    eventually(DEADLINE, "it is refused for that", async || {
        let refused = as_node(&fixture, "a", Method::POST, &tokens, &unbound).await;
        let why = refused.expect_err("a token for anything");
        let is_it = why.contains("node requested token not bound to a pod");
        if is_it { Ok(()) } else { Err(why) }
    })
    .await;
}

#[tokio::test]
async fn kubelets_have_tokens_for_the_audiences_of_their_pods() {
    let fixture = Fixture::start("Node,RBAC").await;
    let accounts = format!("{DEFAULT}/serviceaccounts");
    fixture
        .create(&accounts, json!({"metadata": {"name": "robot"}}))
        .await;
    let driver =
        json!({"metadata": {"name": "d"}, "spec": {"tokenRequests": [{"audience": "storage"}]}});
    let drivers = "/apis/storage.k8s.io/v1/csidrivers";
    fixture.create(drivers, driver).await;
    let mut bot = pod("bot", "a", "s");
    bot["spec"]["serviceAccountName"] = "robot".into();
    bot["spec"]["volumes"] = json!([
        {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "t", "audience": "vault"}}]}},
        {"name": "c", "csi": {"driver": "d"}}]);
    let pods = format!("{DEFAULT}/pods");
    let bot = super::ask(&fixture.admin, Method::POST, &pods, &bot).await;
    let bot: Value = serde_json::from_str(&bot.expect("created")).expect("JSON");
    until(&fixture, "a", &format!("{pods}/bot"), true).await;
    let tokens = format!("{accounts}/robot/token");
    let request = |audiences: Value| {
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {
            "audiences": audiences, "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "bot",
                "uid": bot["metadata"]["uid"]}}})
    };
    let ask = async |node: &str, audiences: Value| {
        as_node(&fixture, node, Method::POST, &tokens, &request(audiences)).await
    };
    for audience in ["vault", "storage"] {
        ask("a", json!([audience])).await.expect(audience);
    }
    let refused = r#"403 serviceaccounts "robot" is forbidden"#;
    let not_found = |audience: &str| {
        format!(
            "{refused}: audience {audience:?} not found in pod spec volume, system:node:a is not authorized to request tokens for this audience"
        )
    };
    assert_eq!(ask("a", json!(["other"])).await, Err(not_found("other")));
    assert_eq!(ask("a", json!([])).await, Err(not_found("")));
    assert_eq!(
        ask("a", json!(["vault", "storage"])).await,
        Err(format!("{refused}: node may only request 0 or 1 audiences"))
    );
    ask("b", json!(["vault"])).await.expect_err("another's pod");
    // Who may ask for others is a role's to say.
    let role = json!({"metadata": {"name": "audiences"}, "rules": [{"apiGroups": [""], "resources": ["other"],
        "verbs": ["request-serviceaccounts-token-audience"]}]});
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    fixture.create(&format!("{rbac}/clusterroles"), role).await;
    let binding = json!({"metadata": {"name": "audiences"}, "roleRef": {"kind": "ClusterRole",
        "apiGroup": "rbac.authorization.k8s.io", "name": "audiences"},
        "subjects": [{"kind": "Group", "name": "system:nodes"}]});
    let bindings = format!("{rbac}/clusterrolebindings");
    fixture.create(&bindings, binding).await;
    let asked = async || ask("a", json!(["other"])).await;
    eventually(DEADLINE, "a role says so", asked).await;
}

#[tokio::test]
async fn kubelets_name_no_claims_for_devices_that_they_could_read_then() {
    let fixture = Fixture::start("Node,RBAC").await;
    let pods = format!("{DEFAULT}/pods");
    fixture.create(&pods, pod("p", "a", "s")).await;
    let path = format!("{pods}/p");
    until(&fixture, "a", &path, true).await;
    let found = get(&fixture, "a", &path).await.expect("its pod");
    let found: Value = serde_json::from_str(&found).expect("JSON");
    for (status, what) in [
        (
            json!({"resourceClaimStatuses": [{"name": "x", "resourceClaimName": "secret"}]}),
            "cannot update resource claim statues",
        ),
        (
            json!({"extendedResourceClaimStatus": {"resourceClaimName": "secret",
                "requestMappings": [{"containerName": "c", "resourceName": "r", "requestName": "q"}]}}),
            "cannot update extended resource claim status",
        ),
    ] {
        let mut told = found.clone();
        for (member, value) in status.as_object().expect("members") {
            told["status"][member] = value.clone();
        }
        let refused = as_node(&fixture, "a", Method::PUT, &format!("{path}/status"), &told).await;
        let words = format!(r#"403 pods "p" is forbidden: node "a" {what}"#);
        assert_eq!(refused, Err(words));
    }
    let mut running = found.clone();
    running["status"]["phase"] = "Running".into();
    let told = as_node(
        &fixture,
        "a",
        Method::PUT,
        &format!("{path}/status"),
        &running,
    )
    .await;
    told.expect("its to tell");
}

#[tokio::test]
async fn kubelets_ask_for_certificates_in_their_own_names() {
    let fixture = Fixture::start("Node,RBAC").await;
    let requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let request = |node: &str| {
        let mut parameters = rcgen::CertificateParams::default();
        let names = &mut parameters.distinguished_name;
        names.push(rcgen::DnType::OrganizationName, "system:nodes");
        names.push(rcgen::DnType::CommonName, format!("system:node:{node}"));
        let key = rcgen::KeyPair::generate().expect("a key");
        let pem = parameters.serialize_request(&key).expect("a request");
        let pem = STANDARD.encode(pem.pem().expect("PEM"));
        json!({"metadata": {"generateName": "csr-"}, "spec": {"request": pem,
            "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
            "usages": ["digital signature", "client auth"]}})
    };
    let own = as_node(&fixture, "a", Method::POST, requests, &request("a")).await;
    own.expect("its own");
    let others = as_node(&fixture, "a", Method::POST, requests, &request("b")).await;
    let why = others.expect_err("another's");
    assert!(
        why.ends_with("can only create a node CSR with CN=system:node:a"),
        "{why}"
    );
}

#[tokio::test]
async fn kubelets_say_which_devices_their_nodes_have() {
    let fixture = Fixture::start("Node,RBAC").await;
    let slices = "/apis/resource.k8s.io/v1/resourceslices";
    let slice = |name: &str, node: &str| {
        json!({"metadata": {"name": name}, "spec": {"driver": "d.example.com", "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}}})
    };
    let created = as_node(&fixture, "a", Method::POST, slices, &slice("of-a", "a")).await;
    created.expect("its own");
    let refused = as_node(&fixture, "a", Method::POST, slices, &slice("of-b", "b")).await;
    let why = refused.expect_err("another's");
    assert!(
        why.ends_with(
            "can only create ResourceSlice with the same NodeName as the requesting node"
        ),
        "{why}"
    );
    until(&fixture, "a", &format!("{slices}/of-a"), true).await;
    let selected = format!("{slices}?fieldSelector=spec.nodeName%3Da");
    get(&fixture, "a", &selected).await.expect("its own");
    for path in [
        slices.to_owned(),
        format!("{slices}?fieldSelector=spec.nodeName%3Db"),
    ] {
        let why = get(&fixture, "a", &path).await.expect_err(&path);
        assert!(why.contains("with nodeName field selector"), "{why}");
    }
    let others = get(&fixture, "b", &format!("{slices}/of-a")).await;
    assert!(
        others
            .expect_err("another's")
            .contains("no relationship found")
    );
}
