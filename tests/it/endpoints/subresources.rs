//! Scales, evictions and logs.

use super::*;

#[tokio::test]
async fn a_deployment_is_scaled_through_its_subresource() {
    let fixture = Fixture::start(true).await;
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let object = json!({"metadata": {"name": "d"}, "spec": {"replicas": 2,
        "selector": {"matchLabels": {"app": "d"}}, "template": {"metadata": {"labels": {"app": "d"}},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]}}}});
    let created = fixture.post(deployments, object).await;
    assert_eq!(
        created.head.status,
        StatusCode::CREATED,
        "{}",
        created.text()
    );
    let path = format!("{deployments}/d/scale");
    let scale = fixture.get(&path).await.json();
    assert_eq!(scale["spec"], json!({"replicas": 2}));
    assert_eq!(scale["status"]["selector"], "app=d");
    let patch = json!({"spec": {"replicas": 5}});
    let scaled = fixture.patch(&path, "merge-patch+json", patch).await.json();
    assert_eq!(
        (&scaled["kind"], &scaled["spec"]["replicas"]),
        (&json!("Scale"), &json!(5))
    );
    let deployment = fixture.get(&format!("{deployments}/d")).await.json();
    assert_eq!(deployment["spec"]["replicas"], 5);
    assert_eq!(
        deployment["spec"]["selector"],
        json!({"matchLabels": {"app": "d"}})
    );
}

#[tokio::test]
async fn pods_are_evicted() {
    let fixture = Fixture::start(true).await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n",
        "containers": [{"name": "c", "image": "nginx"}]}});
    let created = fixture.post(pods, pod).await;
    assert_eq!(
        created.head.status,
        StatusCode::CREATED,
        "{}",
        created.text()
    );
    let path = format!("{pods}/p");
    let running = json!({"status": {"phase": "Running"}});
    let status = format!("{path}/status");
    fixture.patch(&status, "merge-patch+json", running).await;
    let evict = |options: Value| {
        let eviction = json!({"kind": "Eviction", "apiVersion": "policy/v1",
            "metadata": {"name": "p"}, "deleteOptions": options});
        let path = format!("{path}/eviction");
        async { fixture.post(&{ path }, eviction).await }
    };
    let before = fixture.get(&path).await.json();
    let dry = evict(json!({"dryRun": ["All"]})).await;
    assert_eq!(
        dry.json(),
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
            "code": 201})
    );
    for wrong in [
        json!({"preconditions": {"resourceVersion": "1"}}),
        json!({"preconditions": {"uid": "11111111-2222-3333-4444-555555555555"}}),
    ] {
        assert_eq!(evict(wrong).await.failure().0, 409);
    }
    assert_eq!(fixture.get(&path).await.json(), before);
    let version = before["metadata"]["resourceVersion"].clone();
    let done = evict(json!({"preconditions": {"resourceVersion": version}})).await;
    assert_eq!(done.head.status, StatusCode::CREATED, "{}", done.text());
    let after = fixture.get(&path).await.json();
    assert_eq!(after["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(
        after["metadata"]["managedFields"],
        before["metadata"]["managedFields"]
    );
    let conditions = after["status"]["conditions"]
        .as_array()
        .expect("conditions");
    let last = conditions.last().expect("a condition");
    assert_eq!(last["type"], "DisruptionTarget");
    let other = json!({"metadata": {"name": "q"}});
    let refused = fixture.post(&format!("{path}/eviction"), other).await;
    assert_eq!(refused.failure().0, 400);
    evict(json!({"gracePeriodSeconds": 0})).await;
    assert_eq!(fixture.get(&path).await.failure().0, 404);
    assert_eq!(evict(json!({})).await.failure().0, 404);
}

#[tokio::test]
async fn pods_without_a_node_have_logged_nothing() {
    let fixture = Fixture::start(false).await;
    let pods = "/api/v1/namespaces/default/pods";
    let containers = |names: &[&str]| -> Vec<Value> {
        let container = |name: &&str| json!({"name": name, "image": "nginx"});
        names.iter().map(container).collect()
    };
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": containers(&["a"])}});
    fixture.post(pods, pod).await;
    let log = fixture.get(&format!("{pods}/p/log")).await;
    assert_eq!(log.head.status, StatusCode::NO_CONTENT);
    assert!(log.body.is_empty());
    let refused = fixture.get(&format!("{pods}/p/log?container=x")).await;
    assert_eq!(
        refused.failure(),
        (400, "container x is not valid for pod p".to_owned())
    );
    let pod = json!({"metadata": {"name": "q"}, "spec": {"nodeName": "n",
        "containers": containers(&["a", "b"])}});
    fixture.post(pods, pod).await;
    let unclear = fixture.get(&format!("{pods}/q/log")).await.failure();
    let words = "a container name must be specified for pod q, choose one of: [a b]";
    assert_eq!(unclear, (400, words.to_owned()));
    let remote = fixture.get(&format!("{pods}/q/log?container=b")).await;
    let unknown = (404, "nodes \"n\" not found".to_owned());
    assert_eq!(remote.failure(), unknown);
    assert_eq!(fixture.get(&format!("{pods}/r/log")).await.failure().0, 404);
}
