//! Flags that decide about services, privileges, the served APIs, and other etcds for some resources.

use http::Method;
use ringwatch_server::InProcessServer;
use serde_json::{Value, json};

use crate::authorization::ask;
use crate::support::etcd::Etcd;
use crate::support::requests;
use crate::support::server::Server;

const SERVICES: &str = "/api/v1/namespaces/default/services";
const PODS: &str = "/api/v1/namespaces/default/pods";

async fn start(flags: &[&str]) -> InProcessServer {
    let mut builder = InProcessServer::builder();
    for flag in flags {
        builder = builder.flag(flag);
    }
    builder.start().await.expect("a server")
}

/// The status and the object of an answer to the admin.
async fn answer(server: &InProcessServer, method: Method, path: &str, body: Value) -> (u16, Value) {
    let answer = server.answer(requests::request(method, path, &body)).await;
    requests::status_and_document(&requests::whole(answer).await)
}

async fn get(server: &InProcessServer, path: &str) -> (u16, Value) {
    answer(server, Method::GET, path, Value::Null).await
}

async fn post(server: &InProcessServer, path: &str, body: Value) -> (u16, Value) {
    answer(server, Method::POST, path, body).await
}

fn pod(name: &str, privileged: bool) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i",
        "securityContext": {"privileged": privileged}}]}})
}

#[tokio::test]
async fn privileged_containers_have_to_be_allowed() {
    let server = start(&[]).await;
    let (status, refused) = post(&server, PODS, pod("p", true)).await;
    assert_eq!(status, 422);
    let field = "spec.containers[0].securityContext.privileged";
    let message = format!("Pod \"p\" is invalid: {field}: Forbidden: disallowed by cluster policy");
    assert_eq!(refused["message"], message);
    let template = pod("t", true)["spec"].clone();
    let deployment = json!({"metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": template}}});
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let (status, refused) = post(&server, path, deployment.clone()).await;
    assert_eq!(status, 422);
    let field = format!("spec.template.{field}");
    assert_eq!(refused["details"]["causes"][0]["field"], field);
    let windows = json!({"metadata": {"name": "w"}, "spec": {"hostNetwork": true,
        "securityContext": {"windowsOptions": {"hostProcess": true}},
        "containers": [{"name": "c", "image": "i"}]}});
    let (status, refused) = post(&server, PODS, windows).await;
    let message = refused["message"].as_str().expect("a message");
    let words = "spec: Forbidden: hostProcess containers are disallowed by cluster policy";
    assert!(status == 422 && message.contains(words), "{message}");
    // Nor can one be added later.
    let (status, mut debugged) = post(&server, PODS, pod("p", false)).await;
    assert_eq!(status, 201);
    debugged["spec"]["ephemeralContainers"] = json!([{"name": "e", "image": "i",
        "terminationMessagePolicy": "File", "imagePullPolicy": "Always",
        "securityContext": {"privileged": true}}]);
    let path = format!("{PODS}/p/ephemeralcontainers");
    let (status, refused) = answer(&server, Method::PUT, &path, debugged).await;
    assert_eq!(status, 422);
    let field = "spec.ephemeralContainers[0].securityContext.privileged";
    assert_eq!(refused["details"]["causes"][0]["field"], field);

    let server = start(&["--allow-privileged=true"]).await;
    assert_eq!(post(&server, PODS, pod("p", true)).await.0, 201);
}

#[tokio::test]
async fn services_have_addresses_and_ports_of_the_ranges() {
    let server = start(&[
        "--service-cluster-ip-range=10.96.0.0/12,fd00:10:96::/112",
        "--service-node-port-range=40000-40001",
    ])
    .await;
    let (_, own) = get(&server, &format!("{SERVICES}/kubernetes")).await;
    assert_eq!(own["spec"]["clusterIP"], "10.96.0.1");
    assert_eq!(own["spec"]["clusterIPs"], json!(["10.96.0.1"]));
    assert_eq!(own["spec"]["ipFamilies"], json!(["IPv4"]));
    let (_, range) = get(
        &server,
        "/apis/networking.k8s.io/v1/servicecidrs/kubernetes",
    )
    .await;
    let cidrs = json!(["10.96.0.0/12", "fd00:10:96::/112"]);
    assert_eq!(range["spec"]["cidrs"], cidrs);
    let ready = &range["status"]["conditions"][0];
    assert_eq!(
        (&ready["type"], &ready["status"]),
        (&json!("Ready"), &json!("True"))
    );
    let service = |name: &str, spec: Value| {
        let mut service = json!({"metadata": {"name": name}, "spec": {
            "selector": {"a": "b"}, "ports": [{"port": 53}]}});
        for (member, value) in spec.as_object().expect("members") {
            service["spec"][member] = value.clone();
        }
        service
    };
    let dns = service("dns", json!({"clusterIP": "10.96.0.10"}));
    let (status, dns) = post(&server, SERVICES, dns).await;
    assert_eq!(
        (status, &dns["spec"]["clusterIP"]),
        (201, &json!("10.96.0.10"))
    );
    let both = json!({"ipFamilyPolicy": "RequireDualStack", "type": "NodePort"});
    let (status, both) = post(&server, SERVICES, service("both", both)).await;
    assert_eq!(status, 201, "{both}");
    assert_eq!(both["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
    let second = both["spec"]["clusterIPs"][1].as_str().expect("two");
    assert!(second.starts_with("fd00:10:96::"), "{second}");
    let port = both["spec"]["ports"][0]["nodePort"].as_u64();
    assert!(matches!(port, Some(40_000 | 40_001)), "{port:?}");
    let ips = "/apis/networking.k8s.io/v1/ipaddresses";
    let (_, noted) = get(&server, &format!("{ips}/{second}")).await;
    let label = &noted["metadata"]["labels"]["ipaddress.kubernetes.io/ip-family"];
    assert_eq!(label, "IPv6");
    let outside = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30_000}]});
    let (status, refused) = post(&server, SERVICES, service("out", outside)).await;
    let message = refused["message"].as_str().expect("a message");
    assert!(status == 422 && message.ends_with("The range of valid ports is 40000-40001"));

    let single = start(&["--service-cluster-ip-range=fd00:10:96::/112"]).await;
    let (_, own) = get(&single, &format!("{SERVICES}/kubernetes")).await;
    assert_eq!(own["spec"]["clusterIP"], "fd00:10:96::1");
    let refused = service("both", json!({"ipFamilyPolicy": "RequireDualStack"}));
    let (status, refused) = post(&single, SERVICES, refused).await;
    let words = "this cluster is not configured for dual-stack services";
    let message = refused["message"].as_str().expect("a message");
    assert!(status == 422 && message.ends_with(words), "{message}");
    let prefers = service("both", json!({"ipFamilyPolicy": "PreferDualStack"}));
    let (status, prefers) = post(&single, SERVICES, prefers).await;
    assert_eq!(
        (status, &prefers["spec"]["ipFamilies"]),
        (201, &json!(["IPv6"]))
    );
}

#[tokio::test]
async fn apis_are_served_as_the_runtime_config_says() {
    let server = start(&["--runtime-config=batch/v1=false,apps/v1/deployments=false"]).await;
    let (status, _) = get(&server, "/apis/batch/v1/jobs").await;
    assert_eq!(status, 404);
    let (status, gone) = get(&server, "/apis/apps/v1/deployments").await;
    assert_eq!((status, &gone["reason"]), (404, &json!("NotFound")));
    assert_eq!(get(&server, "/apis/apps/v1/replicasets").await.0, 200);
    let names = |list: &Value, member: &str| -> Vec<String> {
        let all = list[member].as_array().expect("a list").iter();
        let names = all.map(|it| it["name"].as_str().expect("a name").to_owned());
        names.collect()
    };
    let (_, groups) = get(&server, "/apis").await;
    let groups = names(&groups, "groups");
    assert!(groups.contains(&"apps".to_owned()) && !groups.contains(&"batch".to_owned()));
    let (_, apps) = get(&server, "/apis/apps/v1").await;
    let apps = names(&apps, "resources");
    assert!(
        !apps.iter().any(|it| it.starts_with("deployments")),
        "{apps:?}"
    );
    let (_, services) = get(&server, "/apis/apiregistration.k8s.io/v1/apiservices").await;
    let services = services["items"].as_array().expect("a list").iter();
    let services: Vec<_> = services.map(|it| &it["metadata"]["name"]).collect();
    assert!(!services.contains(&&json!("v1.batch")), "{services:?}");
}

#[tokio::test]
async fn some_resources_lie_in_another_etcd() {
    let (Some(main), Some(other)) = (
        Etcd::start("resources in another etcd"),
        Etcd::start("resources in another etcd, the other"),
    ) else {
        return;
    };
    let overrides = format!(
        "--etcd-servers-overrides=/events#{0},/configmaps#{0}",
        other.endpoint()
    );
    let flags = ["--etcd-servers", &main.endpoint(), &overrides];
    let (_server, client) = Server::ready(&flags).await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let map = json!({"metadata": {"name": "elsewhere"}});
    let account = json!({"metadata": {"name": "here"}});
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    for (path, object) in [(maps, &map), (accounts, &account)] {
        ask(&client, Method::POST, path, object)
            .await
            .expect("created");
    }
    let list = ask(&client, Method::GET, maps, &Value::Null).await;
    assert!(list.expect("a list").contains("elsewhere"));
    let keys = |etcd: &Etcd| etcd.etcdctl(&["get", "--prefix", "--keys-only", "/registry"]);
    let (here, there) = (keys(&main), keys(&other));
    assert!(
        there.contains("/registry/configmaps/default/elsewhere"),
        "{there}"
    );
    assert!(!here.contains("/registry/configmaps/"), "{here}");
    assert!(
        here.contains("/registry/serviceaccounts/default/here"),
        "{here}"
    );
    assert!(!there.contains("/registry/serviceaccounts/"), "{there}");
    let path = format!("{maps}/elsewhere");
    ask(&client, Method::DELETE, &path, &Value::Null)
        .await
        .expect("deleted");
    let health = ask(&client, Method::GET, "/readyz?verbose", &Value::Null).await;
    let health = health.expect("ready");
    for check in ["etcd-override-0", "etcd-override-readiness-0"] {
        assert!(health.contains(&format!("[+]{check} ok")), "{health}");
    }
    assert!(
        !health.contains("etcd-override-1"),
        "one for each set of servers"
    );
}
