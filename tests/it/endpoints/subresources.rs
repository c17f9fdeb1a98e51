//! Scales and logs.

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
