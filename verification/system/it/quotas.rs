//! The resources of a namespace: limit ranges, quotas, and the defaults of claims by their classes.
//!
//! No controller runs here, so what the controller of quotas writes into their status is written by the tests.

use http::Method;
use serde_json::{Value, json};

use crate::support::requests;
use crate::support::server::Server;

const NAMESPACE: &str = "/api/v1/namespaces/default";

async fn ask(
    client: &kube::Client,
    method: Method,
    path: &str,
    body: &Value,
) -> Result<Value, String> {
    let request = requests::request(method, path, body);
    client.request(request).await.map_err(requests::refusal)
}

async fn create(client: &kube::Client, plural: &str, object: &Value) -> Result<Value, String> {
    let path = format!("{NAMESPACE}/{plural}");
    ask(client, Method::POST, &path, object).await
}

fn named(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn pod(name: &str, resources: Value) -> Value {
    named(
        "Pod",
        name,
        json!({"containers": [{"name": "c", "image": "i", "resources": resources}]}),
    )
}

/// A quota as its controller leaves it: its limits are known, and nothing is used.
async fn quota(client: &kube::Client, name: &str, hard: Value, more: Value) {
    let mut spec = more;
    spec["hard"] = hard.clone();
    let mut quota = create(
        client,
        "resourcequotas",
        &named("ResourceQuota", name, spec),
    )
    .await
    .expect("created");
    let used = hard.as_object().expect("limits").keys();
    let used: serde_json::Map<_, _> = used.map(|name| (name.clone(), json!("0"))).collect();
    quota["status"] = json!({"hard": hard, "used": used});
    let path = format!("{NAMESPACE}/resourcequotas/{name}/status");
    ask(client, Method::PUT, &path, &quota)
        .await
        .expect("counted");
}

async fn used(client: &kube::Client, name: &str) -> Value {
    let path = format!("{NAMESPACE}/resourcequotas/{name}");
    let quota = ask(client, Method::GET, &path, &Value::Null)
        .await
        .expect("there");
    quota["status"]["used"].clone()
}

#[tokio::test]
async fn pods_get_what_the_range_says_and_stay_within_it() {
    let (_server, client) = Server::ready(&[]).await;
    let range = json!({"limits": [
        {"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "250m", "memory": "64Mi"},
            "min": {"memory": "32Mi"}, "max": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "4"}},
        {"type": "Pod", "max": {"cpu": "1500m"}},
        {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "5Gi"}},
    ]});
    create(&client, "limitranges", &named("LimitRange", "range", range))
        .await
        .expect("created");
    let created = create(&client, "pods", &pod("plain", json!({})))
        .await
        .expect("it gets what it needs");
    assert_eq!(
        created["spec"]["containers"][0]["resources"],
        json!({"limits": {"cpu": "500m"}, "requests": {"cpu": "250m", "memory": "64Mi"}})
    );
    assert_eq!(
        created["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: cpu, memory request for container c; cpu limit for container c"
    );
    for (resources, words) in [
        (
            json!({"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}),
            "[maximum cpu usage per Container is 1, but limit is 2, maximum cpu usage per Pod is 1500m, but limit is 2]",
        ),
        (
            json!({"requests": {"memory": "16Mi"}}),
            "minimum memory usage per Container is 32Mi, but request is 16Mi",
        ),
        (
            json!({"limits": {"cpu": "1"}, "requests": {"cpu": "100m"}}),
            "cpu max limit to request ratio per Container is 4, but provided ratio is 10.000000",
        ),
    ] {
        let refused = create(&client, "pods", &pod("p", resources)).await;
        assert_eq!(
            refused,
            Err(format!("403 pods \"p\" is forbidden: {words}"))
        );
    }
    let claim = |size: &str| {
        named(
            "PersistentVolumeClaim",
            "c",
            json!({"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}}}),
        )
    };
    for (size, words) in [
        (
            "6Gi",
            "maximum storage usage per PersistentVolumeClaim is 5Gi, but request is 6Gi",
        ),
        (
            "512Mi",
            "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 512Mi",
        ),
    ] {
        let refused = create(&client, "persistentvolumeclaims", &claim(size)).await;
        let words = format!("403 persistentvolumeclaims \"c\" is forbidden: {words}");
        assert_eq!(refused, Err(words));
    }
    create(&client, "persistentvolumeclaims", &claim("2Gi"))
        .await
        .expect("within the range");
}

#[tokio::test]
async fn no_more_is_created_than_quotas_allow() {
    let (_server, client) = Server::ready(&[]).await;
    quota(
        &client,
        "compute",
        json!({"requests.cpu": "1", "memory": "1Gi", "pods": "5"}),
        json!({}),
    )
    .await;
    quota(&client, "counts", json!({"count/configmaps": "1", "services.nodeports": "1", "count/leases.coordination.k8s.io": "1"}), json!({})).await;
    let refused = create(
        &client,
        "pods",
        &pod("p", json!({"requests": {"cpu": "100m"}})),
    )
    .await;
    let words = r#"403 pods "p" is forbidden: failed quota: compute: must specify memory for: c"#;
    assert_eq!(refused, Err(words.to_owned()));
    let small = json!({"requests": {"cpu": "600m", "memory": "512Mi"}});
    let path = format!("{NAMESPACE}/pods?dryRun=All");
    let dry = ask(&client, Method::POST, &path, &pod("dry", small.clone())).await;
    dry.expect("there is room");
    create(&client, "pods", &pod("one", small.clone()))
        .await
        .expect("there is room");
    assert_eq!(
        used(&client, "compute").await,
        json!({"memory": "512Mi", "pods": "1", "requests.cpu": "600m"})
    );
    let words = "exceeded quota: compute, requested: requests.cpu=600m, used: requests.cpu=600m, limited: requests.cpu=1";
    for path in [format!("{NAMESPACE}/pods"), path] {
        let refused = ask(&client, Method::POST, &path, &pod("two", small.clone())).await;
        assert_eq!(
            refused,
            Err(format!("403 pods \"two\" is forbidden: {words}"))
        );
    }
    let map =
        |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    create(&client, "configmaps", &map("a")).await.expect("one");
    let refused = create(&client, "configmaps", &map("b")).await;
    let words = r#"403 configmaps "b" is forbidden: exceeded quota: counts, requested: count/configmaps=1, used: count/configmaps=1, limited: count/configmaps=1"#;
    assert_eq!(refused, Err(words.to_owned()));
    let service = |kind: &str| {
        named(
            "Service",
            "s",
            json!({"type": kind, "ports": [
        {"name": "a", "port": 80}, {"name": "b", "port": 81}]}),
        )
    };
    create(&client, "services", &service("ClusterIP"))
        .await
        .expect("no port of a node");
    let path = format!("{NAMESPACE}/services/s");
    let patch = json!({"metadata": {}, "spec": {"type": "NodePort"}});
    let mut current = ask(&client, Method::GET, &path, &Value::Null)
        .await
        .expect("there");
    current["spec"]["type"] = patch["spec"]["type"].clone();
    let refused = ask(&client, Method::PUT, &path, &current).await;
    let words = r#"403 services "s" is forbidden: exceeded quota: counts, requested: services.nodeports=2, used: services.nodeports=0, limited: services.nodeports=1"#;
    assert_eq!(refused, Err(words.to_owned()));
}

/// However many clients write at once, a quota is not overdrawn.
#[tokio::test]
async fn writes_at_once_do_not_overdraw_a_quota() {
    const ALLOWED: usize = 7;
    let (_server, client) = Server::ready(&[]).await;
    quota(
        &client,
        "pods",
        json!({"pods": ALLOWED.to_string()}),
        json!({}),
    )
    .await;
    let pods = (0..20).map(|number| {
        let client = client.clone();
        async move { create(&client, "pods", &pod(&format!("p{number}"), json!({}))).await }
    });
    let answers = futures::future::join_all(pods).await;
    let created = answers.iter().filter(|answer| answer.is_ok()).count();
    assert_eq!(created, ALLOWED, "{answers:?}");
    assert_eq!(
        used(&client, "pods").await,
        json!({"pods": ALLOWED.to_string()})
    );
}

#[tokio::test]
async fn quotas_count_what_is_in_their_scope() {
    let (_server, client) = Server::ready(&[]).await;
    let of_class = json!({"scopeSelector": {"matchExpressions":
        [{"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]}]}});
    quota(&client, "critical", json!({"pods": "0"}), of_class).await;
    quota(
        &client,
        "effortless",
        json!({"pods": "1"}),
        json!({"scopes": ["BestEffort"]}),
    )
    .await;
    let mut critical = pod("critical", json!({"requests": {"cpu": "1"}}));
    critical["spec"]["priorityClassName"] = json!("system-node-critical");
    let refused = create(&client, "pods", &critical)
        .await
        .expect_err("none of that class");
    assert!(
        refused
            .contains("exceeded quota: critical, requested: pods=1, used: pods=0, limited: pods=0"),
        "{refused}"
    );
    for name in ["a", "b"] {
        let created = create(
            &client,
            "pods",
            &pod(name, json!({"requests": {"cpu": "1"}})),
        )
        .await;
        created.expect("it makes an effort");
    }
    create(&client, "pods", &pod("c", json!({})))
        .await
        .expect("one");
    let refused = create(&client, "pods", &pod("d", json!({})))
        .await
        .expect_err("two");
    assert!(refused.contains("exceeded quota: effortless"), "{refused}");
}

#[tokio::test]
async fn claims_count_by_their_classes() {
    let (_server, client) = Server::ready(&[]).await;
    let of_class = json!({"scopeSelector": {"matchExpressions":
        [{"scopeName": "VolumeAttributesClass", "operator": "In", "values": ["gold"]}]}});
    quota(
        &client,
        "gold",
        json!({"persistentvolumeclaims": "1"}),
        of_class,
    )
    .await;
    let claim = |name: &str, class: &str| {
        let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "fast", "volumeAttributesClassName": class});
        named("PersistentVolumeClaim", name, spec)
    };
    let claims = "persistentvolumeclaims";
    let first = create(&client, claims, &claim("a", "gold")).await;
    first.expect("one");
    let exceeded = "is forbidden: exceeded quota: gold, requested: persistentvolumeclaims=1, \
        used: persistentvolumeclaims=1, limited: persistentvolumeclaims=1";
    let refused = create(&client, claims, &claim("b", "gold")).await;
    assert_eq!(
        refused,
        Err(format!("403 persistentvolumeclaims \"b\" {exceeded}"))
    );
    let other = create(&client, claims, &claim("c", "tin")).await;
    let mut other = other.expect("of another class");
    // The class of a bound claim may be changed: then it counts as a new one.
    other["status"] = json!({"phase": "Bound"});
    let path = format!("{NAMESPACE}/{claims}/c");
    let status = format!("{path}/status");
    let mut bound = ask(&client, Method::PUT, &status, &other)
        .await
        .expect("bound");
    bound["spec"]["volumeAttributesClassName"] = json!("gold");
    let refused = ask(&client, Method::PUT, &path, &bound).await;
    assert_eq!(
        refused,
        Err(format!("403 persistentvolumeclaims \"c\" {exceeded}"))
    );
    // What a claim has been given is counted, and not refused.
    bound["spec"]["volumeAttributesClassName"] = json!("tin");
    bound["status"]["currentVolumeAttributesClassName"] = json!("gold");
    let given = ask(&client, Method::PUT, &status, &bound).await;
    given.expect("it has been given");
    assert_eq!(
        used(&client, "gold").await,
        json!({"persistentvolumeclaims": "2"})
    );
}

#[tokio::test]
async fn claims_to_devices_count_by_their_classes() {
    let (_server, client) = Server::ready(&[]).await;
    let devices = "gpu.deviceclass.resource.k8s.io/devices";
    quota(&client, "devices", json!({devices: "3"}), json!({})).await;
    let path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
    let claim = |name: &str, count: u32| {
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name}, "spec":
            {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": count}}]}}})
    };
    let first = ask(&client, Method::POST, path, &claim("a", 2)).await;
    first.expect("two devices");
    let refused = ask(&client, Method::POST, path, &claim("b", 2)).await;
    let words = format!(
        "exceeded quota: devices, requested: {devices}=2, used: {devices}=2, limited: {devices}=3"
    );
    assert_eq!(
        refused,
        Err(format!(
            "403 resourceclaims.resource.k8s.io \"b\" is forbidden: {words}"
        ))
    );
    let second = ask(&client, Method::POST, path, &claim("b", 1)).await;
    second.expect("one device");
    assert_eq!(used(&client, "devices").await, json!({devices: "3"}));
}

#[tokio::test]
async fn claims_and_ingresses_get_default_classes_and_claims_are_protected() {
    let (_server, client) =
        Server::ready(&["--disable-admission-plugins=DefaultIngressClass"]).await;
    for (kind, group, path, annotation, spec) in [
        (
            "StorageClass",
            "storage.k8s.io",
            "storageclasses",
            "storageclass",
            json!({"provisioner": "p"}),
        ),
        (
            "IngressClass",
            "networking.k8s.io",
            "ingressclasses",
            "ingressclass",
            json!({"spec": {"controller": "c.io/c"}}),
        ),
    ] {
        let mut class = json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {"name": "usual",
            "annotations": {format!("{annotation}.kubernetes.io/is-default-class"): "true"}}});
        for (member, value) in spec.as_object().expect("members") {
            class[member] = value.clone();
        }
        let path = format!("/apis/{group}/v1/{path}");
        ask(&client, Method::POST, &path, &class)
            .await
            .expect("created");
    }
    let spec =
        json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let claim = create(
        &client,
        "persistentvolumeclaims",
        &named("PersistentVolumeClaim", "c", spec.clone()),
    )
    .await;
    let claim = claim.expect("created");
    assert_eq!(claim["spec"]["storageClassName"], "usual");
    assert_eq!(
        claim["metadata"]["finalizers"],
        json!(["kubernetes.io/pvc-protection"])
    );
    let mut classless = spec;
    classless["storageClassName"] = json!("");
    let claim = create(
        &client,
        "persistentvolumeclaims",
        &named("PersistentVolumeClaim", "d", classless),
    )
    .await;
    assert_eq!(claim.expect("created")["spec"]["storageClassName"], "");
    let ingress = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i"},
        "spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}});
    let path = "/apis/networking.k8s.io/v1/namespaces/default/ingresses";
    let ingress = ask(&client, Method::POST, path, &ingress)
        .await
        .expect("created");
    assert!(
        ingress["spec"]["ingressClassName"].is_null(),
        "that plugin is switched off"
    );
}
