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
    created.has_created();
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
async fn who_applies_a_scale_manages_the_replicas() {
    let fixture = Fixture::start(true).await;
    let sets = "/apis/apps/v1/namespaces/default/replicasets";
    let object = json!({"metadata": {"name": "r"}, "spec": {"replicas": 2,
        "selector": {"matchLabels": {"app": "r"}}, "template": {"metadata": {"labels": {"app": "r"}},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]}}}});
    let created = fixture.post(sets, object).await;
    assert_eq!(created.head.status, StatusCode::CREATED);
    let apply = async |query: &str, scale: Value| {
        let path = format!("{sets}/r/scale?fieldManager=me{query}");
        fixture.patch(&path, "apply-patch+yaml", scale).await
    };
    let scale = |replicas: u32| {
        json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "r"},
            "spec": {"replicas": replicas}})
    };
    let conflict = apply("", scale(3)).await;
    let (code, message) = conflict.failure();
    assert_eq!(code, 409);
    let creator = &fixture.get(&format!("{sets}/r")).await.json()["metadata"]["managedFields"][0];
    let expected = format!(
        "Apply failed with 1 conflict: conflict with {} using autoscaling/v1: .spec.replicas",
        creator["manager"]
    );
    assert_eq!(message, expected);
    let scaled = apply("&force=true", scale(3)).await.json();
    assert_eq!(
        (&scaled["kind"], &scaled["spec"]),
        (&json!("Scale"), &json!({"replicas": 3}))
    );
    let set = fixture.get(&format!("{sets}/r")).await.json();
    assert_eq!(set["spec"]["replicas"], 3);
    let entry = &set["metadata"]["managedFields"][0];
    assert_eq!(
        [
            &entry["manager"],
            &entry["operation"],
            &entry["subresource"],
            &entry["apiVersion"]
        ],
        ["me", "Apply", "scale", "apps/v1"]
    );
    assert_eq!(entry["fieldsV1"], json!({"f:spec": {"f:replicas": {}}}));
    assert_eq!(entry["time"], Value::Null);
    let mut wrong = scale(4);
    wrong["kind"] = json!("ReplicaSet");
    assert_eq!(apply("", wrong).await.failure().0, 400);
    let mut old = scale(4);
    old["metadata"]["resourceVersion"] = json!("1");
    assert_eq!(apply("", old).await.failure().0, 409);
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

#[tokio::test]
async fn pods_are_bound_in_two_ways() {
    let fixture = Fixture::start(true).await;
    let namespace = "/api/v1/namespaces/default";
    let binding = |pod: &str| {
        json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod},
            "target": {"kind": "Node", "name": "n"}})
    };
    for (pod, path) in [("p", "pods/p/binding"), ("q", "bindings")] {
        let object = json!({"metadata": {"name": pod},
            "spec": {"containers": [{"name": "c", "image": "nginx"}]}});
        fixture.post(&format!("{namespace}/pods"), object).await;
        let path = format!("{namespace}/{path}");
        let dry = format!("{path}?dryRun=All");
        for path in [&dry, &path] {
            let bound = fixture.post(path, binding(pod)).await;
            assert_eq!(
                bound.json(),
                json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                    "code": 201})
            );
        }
        let found = fixture.get(&format!("{namespace}/pods/{pod}")).await;
        assert_eq!(found.json()["spec"]["nodeName"], "n");
        let again = fixture.post(&path, binding(pod)).await;
        let words = format!(
            "Operation cannot be fulfilled on pods/binding {pod:?}: pod {pod} is already assigned to node \"n\""
        );
        assert_eq!(again.failure(), (409, words));
    }
    let path = format!("{namespace}/pods/p/binding");
    let other = fixture.post(&path, binding("q")).await;
    let words = "name in URL does not match name in Binding object".to_owned();
    assert_eq!(other.failure(), (400, words));
    let path = format!("{namespace}/bindings");
    let absent = fixture.post(&path, binding("r")).await;
    let words = "pods \"r\" not found".to_owned();
    assert_eq!(absent.failure(), (404, words));
}
