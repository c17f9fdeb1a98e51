//! Endpoints and EndpointSlices of Services under `--test-cluster=endpoints,kubelet`.

use http::Method;
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::pod;

const WITHIN: &str = "/api/v1/namespaces/default";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

async fn started() -> Cluster {
    let cluster = Cluster::with(&["--test-cluster=endpoints,kubelet"]).await;
    cluster
        .expect_there(&format!("{WITHIN}/serviceaccounts/default"))
        .await;
    cluster
}

/// Returns a pod with this label and a port by name.
fn labelled(name: &str, label: &str) -> Value {
    let mut pod = pod(name);
    pod["metadata"]["labels"] = json!({ "app": label });
    pod["spec"]["containers"][0]["ports"] = json!([{"name": "web", "containerPort": 8080}]);
    pod
}

fn service(name: &str, selector: Value, ports: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "labels": {"of": name}},
        "spec": {"selector": selector, "ports": ports}})
}

/// Waits until the slices of a Service are as expected, and returns them.
async fn expect_slices(cluster: &Cluster, of: &str, is: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let path = format!("{SLICES}?labelSelector=kubernetes.io/service-name%3D{of}");
    let what = format!("slices of {of} are as expected");
    eventually(DEADLINE, what, async || {
        let found = cluster.get(&path).await.unwrap_or_default();
        let slices = found["items"].as_array().cloned().unwrap_or_default();
        if is(&slices) { Ok(slices) } else { Err(slices) }
    })
    .await
}

/// Returns the names of the pods in slices that are ready.
fn ready(slices: &[Value]) -> Vec<&str> {
    let endpoints = slices.iter().filter_map(|it| it["endpoints"].as_array());
    let ready = endpoints
        .flatten()
        .filter(|it| it["conditions"]["ready"] == true);
    let mut names: Vec<&str> = ready
        .filter_map(|it| it["targetRef"]["name"].as_str())
        .collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn a_service_has_the_pods_that_it_selects() {
    let cluster = started().await;
    let pods = format!("{WITHIN}/pods");
    for (name, label) in [("a", "x"), ("b", "x"), ("c", "y")] {
        cluster.create(&pods, labelled(name, label)).await;
    }
    let ports = json!([
        {"name": "named", "port": 80, "targetPort": "web"},
        {"name": "number", "port": 81, "targetPort": 9090},
    ]);
    let created = service("s", json!({"app": "x"}), ports);
    let created = cluster.create(&format!("{WITHIN}/services"), created).await;
    let slices = expect_slices(&cluster, "s", |it| ready(it) == ["a", "b"]).await;
    let [slice] = slices.as_slice() else {
        panic!("not one slice: {slices:?}");
    };
    let owner = &slice["metadata"]["ownerReferences"][0];
    assert_eq!(owner["uid"], created["metadata"]["uid"]);
    assert_eq!(owner["controller"], true);
    let labels = &slice["metadata"]["labels"];
    assert_eq!(
        labels["endpointslice.kubernetes.io/managed-by"],
        "endpointslice-controller.k8s.io"
    );
    assert_eq!(labels["of"], "s");
    assert_eq!(slice["addressType"], "IPv4");
    let expected = json!([
        {"name": "named", "port": 8080, "protocol": "TCP"},
        {"name": "number", "port": 9090, "protocol": "TCP"},
    ]);
    assert_eq!(slice["ports"], expected);
    let a = cluster.get(&format!("{pods}/a")).await.expect("a pod");
    let endpoint = slice["endpoints"].as_array().into_iter().flatten();
    let mut endpoint = endpoint.filter(|it| it["targetRef"]["name"] == "a");
    let endpoint = endpoint.next().expect("an endpoint");
    assert_eq!(endpoint["addresses"], json!([a["status"]["podIP"]]));
    assert_eq!(endpoint["nodeName"], "test-cluster");
    assert_eq!(endpoint["targetRef"]["uid"], a["metadata"]["uid"]);

    let path = format!("{WITHIN}/endpoints/s");
    let addresses = |it: &Value| it["subsets"][0]["addresses"].as_array().map_or(0, Vec::len);
    let endpoints = cluster.expect(&path, |it| addresses(it) == 2).await;
    assert_eq!(endpoints["subsets"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        endpoints["metadata"]["labels"]["endpoints.kubernetes.io/managed-by"],
        "endpoint-controller"
    );
}

#[tokio::test]
async fn endpoints_follow_pods_and_go_with_their_service() {
    let cluster = started().await;
    let pods = format!("{WITHIN}/pods");
    for (name, label) in [("a", "x"), ("b", "x"), ("c", "y")] {
        cluster.create(&pods, labelled(name, label)).await;
    }
    let ports = json!([{"port": 80, "targetPort": "web"}]);
    let selecting = service("s", json!({"app": "x"}), ports);
    cluster
        .create(&format!("{WITHIN}/services"), selecting)
        .await;
    let path = format!("{WITHIN}/endpoints/s");
    expect_slices(&cluster, "s", |it| ready(it) == ["a", "b"]).await;

    // Pods that are labelled anew, that are not ready, and that go.
    let label = json!({"metadata": {"labels": {"app": "x"}}});
    cluster
        .write(Method::PATCH, &format!("{pods}/c"), label)
        .await;
    let label = json!({"metadata": {"labels": {"app": "y"}}});
    cluster
        .write(Method::PATCH, &format!("{pods}/a"), label)
        .await;
    expect_slices(&cluster, "s", |it| ready(it) == ["b", "c"]).await;
    let failing = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
    cluster
        .patch_strategically(&format!("{pods}/b/status"), &failing)
        .await;
    let slices = expect_slices(&cluster, "s", |it| ready(it) == ["c"]).await;
    assert_eq!(slices[0]["endpoints"].as_array().map(Vec::len), Some(2));
    cluster
        .expect(&path, |it| {
            it["subsets"][0]["notReadyAddresses"][0]["targetRef"]["name"] == "b"
        })
        .await;
    for name in ["b", "c"] {
        cluster
            .delete(&format!("{pods}/{name}"), "Background")
            .await;
    }
    let slices = expect_slices(&cluster, "s", |it| ready(it).is_empty()).await;
    assert_eq!(slices.len(), 1, "an empty one stays");

    // What is deleted by others comes back, and all goes with the Service.
    cluster.delete(&path, "Background").await;
    cluster.expect_there(&path).await;
    cluster.delete(SLICES, "Background").await;
    expect_slices(&cluster, "s", |it| it.len() == 1).await;
    cluster
        .delete(&format!("{WITHIN}/services/s"), "Background")
        .await;
    cluster.expect_gone(&path).await;
    expect_slices(&cluster, "s", <[Value]>::is_empty).await;
}

#[tokio::test]
async fn a_headless_service_names_its_pods_ready_or_not() {
    let cluster = started().await;
    let mut headless = service("h", json!({"app": "x"}), Value::Null);
    headless["spec"]["clusterIP"] = "None".into();
    headless["spec"]["publishNotReadyAddresses"] = true.into();
    cluster
        .create(&format!("{WITHIN}/services"), headless)
        .await;
    let mut gated = labelled("a", "x");
    gated["spec"]["hostname"] = "host".into();
    gated["spec"]["subdomain"] = "h".into();
    gated["spec"]["readinessGates"] = json!([{"conditionType": "example.com/open"}]);
    cluster.create(&format!("{WITHIN}/pods"), gated).await;
    let slices = expect_slices(&cluster, "h", |it| ready(it) == ["a"]).await;
    assert_eq!(slices.len(), 1, "the empty one is used: {slices:?}");
    let endpoint = &slices[0]["endpoints"][0];
    assert_eq!(endpoint["hostname"], "host");
    assert_eq!(endpoint["conditions"]["serving"], false);
    assert_eq!(
        slices[0]["metadata"]["labels"]["service.kubernetes.io/headless"],
        ""
    );
    let endpoints = cluster
        .expect(&format!("{WITHIN}/endpoints/h"), |it| {
            it["subsets"][0]["addresses"][0]["hostname"] == "host"
        })
        .await;
    assert!(endpoints["subsets"][0]["ports"].is_null(), "{endpoints}");
}

#[tokio::test]
async fn endpoints_of_users_are_mirrored_for_a_service_without_a_selector() {
    let cluster = started().await;
    let mut unselected = service("m", Value::Null, json!([{"name": "p", "port": 80}]));
    unselected["metadata"]["labels"] = Value::Null;
    cluster
        .create(&format!("{WITHIN}/services"), unselected)
        .await;
    let endpoints = json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "m", "labels": {"l": "1"}},
        "subsets": [{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"name": "p", "port": 8080}]}]});
    let path = format!("{WITHIN}/endpoints/m");
    cluster
        .create(&format!("{WITHIN}/endpoints"), endpoints)
        .await;
    let address = |it: &[Value]| match it {
        [slice] => slice["endpoints"][0]["addresses"][0].clone(),
        _ => Value::Null,
    };
    let slices = expect_slices(&cluster, "m", |it| address(it) == "10.1.2.3").await;
    let labels = &slices[0]["metadata"]["labels"];
    assert_eq!(
        labels["endpointslice.kubernetes.io/managed-by"],
        "endpointslicemirroring-controller.k8s.io"
    );
    assert_eq!(labels["l"], "1");
    assert_eq!(slices[0]["ports"][0]["port"], 8080);

    let changed = json!({"subsets": [{"addresses": [{"ip": "10.2.3.4"}], "ports": [{"name": "p", "port": 8081}]}]});
    cluster.write(Method::PATCH, &path, changed).await;
    let same = expect_slices(&cluster, "m", |it| address(it) == "10.2.3.4").await;
    assert_eq!(same[0]["metadata"]["uid"], slices[0]["metadata"]["uid"]);
    assert_eq!(same[0]["ports"][0]["port"], 8081);
    cluster.delete(&path, "Background").await;
    expect_slices(&cluster, "m", <[Value]>::is_empty).await;
}
