//! ReplicaSets and ReplicationControllers.

use super::*;

const CONTROLLERS: &str = "/api/v1/namespaces/default/replicationcontrollers";

fn controller_name(pod: &Value) -> &Value {
    let references = pod["metadata"]["ownerReferences"].as_array();
    let mut references = references.into_iter().flatten();
    let controller = references.find(|it| it["controller"] == true);
    controller.map_or(&Value::Null, |it| &it["name"])
}

fn controller(name: &str, replicas: u32) -> Value {
    json!({"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"app": "web"}, "template": template("one")}})
}

/// Limits the pods of the namespace. Nobody counts in a test cluster, so that the test says how many there are.
async fn limit_pods(cluster: &Cluster, count: &str) {
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"},
        "spec": {"hard": {"pods": count}}});
    cluster.create(quotas, quota).await;
    let status = json!({"status": {"hard": {"pods": count}, "used": {"pods": "0"}}});
    patch(cluster, &format!("{quotas}/few/status"), status).await;
}

#[tokio::test]
async fn matching_pods_are_adopted_and_released_when_they_do_not_match_any_more() {
    let cluster = start().await;
    for (path, owner) in [
        (SETS, replica_set("web", 1)),
        (CONTROLLERS, controller("web", 1)),
    ] {
        let orphan = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "orphan", "labels": {"app": "web"}}, "spec": template("one")["spec"]});
        cluster.create(PODS, orphan).await;
        cluster.create(path, owner).await;
        let orphan = format!("{PODS}/orphan");
        let adopted = cluster
            .expect(&orphan, |it| controller_name(it) == "web")
            .await;
        assert_eq!(
            adopted["metadata"]["ownerReferences"][0]["blockOwnerDeletion"],
            true
        );
        assert_eq!(
            expect_pods(&cluster, 1).await.len(),
            1,
            "none is made besides"
        );
        let released = json!({"metadata": {"labels": {"app": "other"}}});
        patch(&cluster, &orphan, released).await;
        cluster
            .expect(&orphan, |it| controller_name(it).is_null())
            .await;
        let pods = expect_pods(&cluster, 2).await;
        let instead = pods
            .iter()
            .find(|it| name(it) != "orphan")
            .expect("another");
        assert_eq!(controller_name(instead), "web");
        assert!(name(instead).starts_with("web-"), "{instead}");
        cluster.delete(&format!("{path}/web"), "Background").await;
        cluster
            .expect_gone(&format!("{PODS}/{}", name(instead)))
            .await;
        cluster.delete(&orphan, "Background").await;
        cluster.expect_gone(&orphan).await;
    }
}

#[tokio::test]
async fn the_scale_and_the_status_tell_of_the_pods() {
    let cluster = start().await;
    let mut set = replica_set("web", 1);
    set["spec"]["template"]["spec"]["nodeName"] = "n".into();
    cluster.create(SETS, set).await;
    let path = format!("{SETS}/web");
    let (scale, status) = (format!("{path}/scale"), format!("{path}/status"));
    cluster
        .expect(&scale, |it| it["status"]["replicas"] == 1)
        .await;
    let mut wanted = cluster.get(&scale).await.expect("a scale");
    assert_eq!(wanted["status"]["selector"], "app=web");
    wanted["spec"]["replicas"] = 3.into();
    cluster.write(Method::PUT, &scale, wanted).await;
    let pods = expect_pods(&cluster, 3).await;
    // Two pods are ready, of which one does not look like the template any more.
    let label = json!({"metadata": {"labels": {"more": "x"}}, "spec": {"template": {"metadata": {"labels": {"more": "x"}}}}});
    patch(&cluster, &path, label.clone()).await;
    let more = json!({"metadata": {"labels": {"more": "x"}}});
    patch(&cluster, &format!("{PODS}/{}", name(&pods[0])), more).await;
    run_pods(&cluster, |it| name(it) != name(&pods[2])).await;
    let counts = cluster
        .expect(&status, |it| {
            it["status"]["readyReplicas"] == 2 && it["status"]["fullyLabeledReplicas"] == 1
        })
        .await;
    assert_eq!(
        counts["status"],
        json!({"replicas": 3, "fullyLabeledReplicas": 1, "readyReplicas": 2, "availableReplicas": 2,
            "terminatingReplicas": 0, "observedGeneration": counts["metadata"]["generation"]})
    );
    // The pod that is not ready goes first, and ends when the kubelet says so.
    let fewer = json!({"spec": {"replicas": 2}});
    patch(&cluster, &scale, fewer).await;
    let ending = format!("{PODS}/{}", name(&pods[2]));
    cluster
        .expect(&ending, |it| !it["metadata"]["deletionTimestamp"].is_null())
        .await;
    cluster
        .expect(&status, |it| {
            it["status"]["terminatingReplicas"] == 1 && it["status"]["replicas"] == 2
        })
        .await;
    run_pods(&cluster, |it| name(it) == name(&pods[2])).await;
    cluster
        .expect(&status, |it| it["status"]["terminatingReplicas"] == 0)
        .await;
    assert_eq!(expect_pods(&cluster, 2).await.len(), 2);
}

#[tokio::test]
async fn sets_are_replaced_and_patched_and_pods_that_end_are_made_again() {
    let cluster = start().await;
    cluster.create(SETS, replica_set("web", 1)).await;
    let path = format!("{SETS}/web");
    let first = expect_pods(&cluster, 1).await;
    let change = json!({"metadata": {"labels": {"test-rs": "patched"}}, "spec": {"replicas": 3,
        "template": {"spec": {"terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "two"}]}}}});
    patch(&cluster, &path, change).await;
    let pods = expect_pods(&cluster, 3).await;
    let old = pods
        .iter()
        .find(|it| name(it) == name(&first[0]))
        .expect("the first pod");
    assert_eq!(image(old), "one");
    assert_eq!(pods.iter().filter(|it| image(it) == "two").count(), 2);
    let mut set =
        expect_while_running(&cluster, &path, |it| it["status"]["readyReplicas"] == 3).await;
    set["spec"]["replicas"] = 0.into();
    cluster.write(Method::PUT, &path, set).await;
    expect_pods(&cluster, 0).await;
    cluster
        .expect(&path, |it| it["status"]["replicas"] == 0)
        .await;
    patch(&cluster, &path, json!({"spec": {"replicas": 1}})).await;
    let pod = expect_pods(&cluster, 1).await;
    // A pod that has failed does not count, and stays.
    let failed = json!({"status": {"phase": "Failed"}});
    patch(
        &cluster,
        &format!("{PODS}/{}/status", name(&pod[0])),
        failed,
    )
    .await;
    let pods = expect_pods(&cluster, 2).await;
    assert!(pods.iter().any(|it| name(it) == name(&pod[0])));
    cluster
        .expect(&path, |it| it["status"]["replicas"] == 1)
        .await;
}

#[tokio::test]
async fn a_quota_that_keeps_pods_from_being_made_is_told() {
    for (path, owner) in [
        (SETS, replica_set("web", 3)),
        (CONTROLLERS, controller("web", 3)),
    ] {
        let cluster = start().await;
        limit_pods(&cluster, "2").await;
        cluster.create(path, owner).await;
        let path = format!("{path}/web");
        let failing = cluster
            .expect(&path, |it| {
                condition(it, "ReplicaFailure")["status"] == "True" && it["status"]["replicas"] == 2
            })
            .await;
        let failure = condition(&failing, "ReplicaFailure");
        assert_eq!(failure["reason"], "FailedCreate");
        let message = failure["message"].as_str().expect("a message");
        assert!(
            message.contains("is forbidden: exceeded quota: few, requested: pods=1, used: pods=2"),
            "{message}"
        );
        assert_eq!(expect_pods(&cluster, 2).await.len(), 2);
        patch(&cluster, &path, json!({"spec": {"replicas": 2}})).await;
        cluster
            .expect(&path, |it| condition(it, "ReplicaFailure").is_null())
            .await;
    }
}

#[tokio::test]
async fn a_pod_is_available_once_it_has_been_ready_for_long_enough() {
    let cluster = start().await;
    let mut set = replica_set("web", 2);
    set["spec"]["minReadySeconds"] = 2.into();
    cluster.create(SETS, set).await;
    let path = format!("{SETS}/web");
    let pods = expect_pods(&cluster, 2).await;
    // One pod becomes ready in the distant future, as far as the clock goes.
    let ready =
        json!({"type": "Ready", "status": "True", "lastTransitionTime": "2200-01-01T00:00:00Z"});
    let status = json!({"status": {"phase": "Running", "conditions": [ready]}});
    patch(
        &cluster,
        &format!("{PODS}/{}/status", name(&pods[0])),
        status,
    )
    .await;
    run_pods(&cluster, |it| name(it) == name(&pods[1])).await;
    // Nothing but the time changes after that.
    let available = cluster
        .expect(&path, |it| it["status"]["availableReplicas"] == 1)
        .await;
    assert_eq!(available["status"]["readyReplicas"], 2);
}

#[tokio::test]
async fn many_pods_are_made_once_and_as_many_as_there_are_to_be() {
    let cluster = start().await;
    cluster.create(SETS, replica_set("web", 120)).await;
    let path = format!("{SETS}/web");
    cluster
        .expect(&path, |it| it["status"]["replicas"] == 120)
        .await;
    let made = expect_pods(&cluster, 120).await;
    patch(&cluster, &path, json!({"spec": {"replicas": 40}})).await;
    cluster
        .expect(&path, |it| it["status"]["replicas"] == 40)
        .await;
    patch(&cluster, &path, json!({"spec": {"replicas": 50}})).await;
    cluster
        .expect(&path, |it| it["status"]["replicas"] == 50)
        .await;
    let left = expect_pods(&cluster, 50).await;
    let known = left
        .iter()
        .filter(|it| made.iter().any(|other| name(other) == name(it)));
    assert_eq!(known.count(), 40, "no pod was made that had to go again");
}
