//! The condition of an APIService, and the answers to its requests.

use serde_json::{Value, json};

use super::{Front, Proxy, SERVICES};

const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

#[tokio::test]
async fn an_api_says_what_its_service_lacks() {
    let folder = tempfile::tempdir().expect("a folder");
    let front = Front::start(&Proxy::new(folder.path()), &[]).await;
    let insecure = json!({"insecureSkipTLSVerify": true});
    let of_ip = |name: &str| json!({"metadata": {"name": name}, "spec": {"ports": [{"name": "https", "port": 443}]}});
    front
        .aggregate("a.example.com", "none", 443, &insecure)
        .await;
    for (group, service, port) in [("b.example.com", "b", 1), ("c.example.com", "c", 443)] {
        front.create(SERVICES, &of_ip(service)).await;
        front.aggregate(group, service, port, &insecure).await;
    }
    front.local_service("local").await;
    front
        .aggregate("d.example.com", "local", 443, &insecure)
        .await;
    for (group, reason, message) in [
        (
            "a",
            "ServiceNotFound",
            "service/none in \"default\" is not present",
        ),
        (
            "b",
            "ServicePortError",
            "service/b in \"default\" is not listening on port 1",
        ),
        (
            "c",
            "EndpointsNotFound",
            "cannot find endpointslices for service/c in \"default\"",
        ),
    ] {
        let said = front
            .condition(&format!("{group}.example.com"), "False", reason)
            .await;
        assert_eq!(said, message);
    }
    // Whoever need not prove who it is must not be what listens for this machine alone.
    let said = front
        .condition("d.example.com", "False", "FailedDiscoveryCheck")
        .await;
    assert!(said.ends_with(":443: address not allowed"), "{said}");

    let slice = json!({"metadata": {"name": "c-1", "labels": {"kubernetes.io/service-name": "c"}},
        "addressType": "IPv4", "ports": [{"name": "https", "port": 443}],
        "endpoints": [{"addresses": ["10.1.0.1"], "conditions": {"ready": false}}]});
    front.create(SLICES, &slice).await;
    let said = front
        .condition("c.example.com", "False", "MissingEndpoints")
        .await;
    let expected =
        "endpointslices for service/c in \"default\" have no addresses with port name \"https\"";
    assert_eq!(said, expected);

    let answer = front.raw("secret", "GET /apis/a.example.com/v1/things", "");
    let answer = answer.await;
    let told = (answer.status, answer.body.as_str());
    assert_eq!(told, (503, "service unavailable\n"));
    let group = front.discovered("a.example.com").await;
    assert_eq!(
        group["versions"],
        json!([{"version": "v1", "freshness": "Stale"}])
    );
    let refused = front
        .ask("GET", "/apis/a.example.com/v2/things", &Value::Null)
        .await;
    assert_eq!(refused.expect_err("no such version").0, 404);
}
