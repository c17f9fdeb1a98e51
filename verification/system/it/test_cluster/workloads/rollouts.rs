//! Rollouts of Deployments: from one template to the next, over several, paused, stuck and back.

use super::*;

const REVISION: &str = "deployment.kubernetes.io/revision";

/// Returns the numbers of pods that the sets with these images are to have.
async fn sizes(cluster: &Cluster, images: [&str; 2]) -> [i64; 2] {
    let sets = list(cluster, SETS).await;
    images.map(|wanted| {
        let set = sets.iter().find(|it| image(it) == wanted);
        set.map_or(-1, |it| it["spec"]["replicas"].as_i64().expect("a number"))
    })
}

async fn expect_sizes(cluster: &Cluster, images: [&str; 2], expected: [i64; 2]) {
    eventually(
        DEADLINE,
        format!("{images:?} have {expected:?} pods"),
        async || {
            let found = sizes(cluster, images).await;
            if found == expected {
                Ok(())
            } else {
                Err(found)
            }
        },
    )
    .await;
}

/// Returns a Deployment of ten pods, as the conformance test of proportional scaling has it.
fn ten() -> Value {
    let mut ten = deployment(10);
    ten["spec"]["strategy"] =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}});
    ten
}

#[tokio::test]
async fn pods_are_made_anew_once_all_old_ones_have_ended() {
    let cluster = start().await;
    let path = format!("{DEPLOYMENTS}/web");
    let mut recreated = deployment(2);
    recreated["spec"]["strategy"] = json!({"type": "Recreate"});
    // Pods with a node end when its kubelet says so.
    recreated["spec"]["template"]["spec"]["nodeName"] = "n".into();
    cluster.create(DEPLOYMENTS, recreated).await;
    expect_while_running(&cluster, &path, is_complete).await;
    let old = expect_pods(&cluster, 2).await;
    let two =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "two"}]}}}});
    patch(&cluster, &path, two).await;
    let waiting = cluster
        .expect(&path, |it| {
            it["status"]["terminatingReplicas"] == 2
                && it["status"]["observedGeneration"] == it["metadata"]["generation"]
        })
        .await;
    assert_eq!(condition(&waiting, "Available")["status"], "False");
    run_pods(&cluster, |it| name(it) == name(&old[0])).await;
    cluster
        .expect(&path, |it| it["status"]["terminatingReplicas"] == 1)
        .await;
    let pods = list(&cluster, PODS).await;
    assert_eq!(
        pods.iter().map(image).collect::<Vec<_>>(),
        ["one"],
        "none runs beside an old one"
    );
    expect_while_running(&cluster, &path, is_complete).await;
    let pods = expect_pods(&cluster, 2).await;
    assert!(pods.iter().all(|it| image(it) == "two"));
}

#[tokio::test]
async fn a_rolling_update_keeps_its_limits_and_another_takes_over() {
    let cluster = start().await;
    let path = format!("{DEPLOYMENTS}/web");
    cluster.create(DEPLOYMENTS, ten()).await;
    expect_while_running(&cluster, &path, is_complete).await;
    patch(
        &cluster,
        &path,
        json!({"spec": {"template": template("two")}}),
    )
    .await;
    expect_sizes(&cluster, ["one", "two"], [8, 5]).await;
    // As no new pod is ready, it stays at that until there is another template.
    cluster
        .expect(&path, |it| {
            it["status"]["replicas"] == 13 && it["status"]["updatedReplicas"] == 5
        })
        .await;
    patch(
        &cluster,
        &path,
        json!({"spec": {"template": template("three")}}),
    )
    .await;
    expect_sizes(&cluster, ["two", "three"], [0, 5]).await;
    let complete = eventually(DEADLINE, "the second takes over", async || {
        run_pods(&cluster, |_| true).await;
        let pods = list(&cluster, PODS).await;
        let is_ready = |pod: &&Value| pod["status"]["phase"] == "Running";
        let ready = pods.iter().filter(is_ready).count();
        assert!(ready >= 8, "{ready} pods are ready");
        // The pods that a set has too many may still be there when another gets more.
        let sets = list(&cluster, SETS).await;
        let sizes = sets
            .iter()
            .map(|it| it["spec"]["replicas"].as_i64().expect("a number"));
        let wanted: i64 = sizes.sum();
        assert!(wanted <= 13, "{wanted} pods are wanted");
        cluster.get(&path).await.filter(is_complete)
    })
    .await;
    assert_eq!(complete["metadata"]["annotations"][REVISION], "3");
    let pods = expect_pods(&cluster, 10).await;
    assert!(pods.iter().all(|it| image(it) == "three"));
}

#[tokio::test]
async fn a_rollout_that_is_scaled_keeps_its_proportions() {
    let cluster = start().await;
    let path = format!("{DEPLOYMENTS}/web");
    cluster.create(DEPLOYMENTS, ten()).await;
    expect_while_running(&cluster, &path, is_complete).await;
    patch(
        &cluster,
        &path,
        json!({"spec": {"template": template("two")}}),
    )
    .await;
    expect_sizes(&cluster, ["one", "two"], [8, 5]).await;
    patch(&cluster, &path, json!({"spec": {"replicas": 30}})).await;
    expect_sizes(&cluster, ["one", "two"], [20, 13]).await;
    for set in list(&cluster, SETS).await {
        let annotations = &set["metadata"]["annotations"];
        assert_eq!(
            annotations["deployment.kubernetes.io/desired-replicas"],
            "30"
        );
        assert_eq!(annotations["deployment.kubernetes.io/max-replicas"], "33");
    }
    expect_pods(&cluster, 33).await;
}

#[tokio::test]
async fn a_paused_deployment_is_scaled_but_does_not_roll() {
    let cluster = start().await;
    let path = format!("{DEPLOYMENTS}/web");
    cluster.create(DEPLOYMENTS, deployment(1)).await;
    expect_while_running(&cluster, &path, is_complete).await;
    patch(
        &cluster,
        &path,
        json!({"spec": {"paused": true, "replicas": 2, "template": template("two")}}),
    )
    .await;
    let paused = cluster
        .expect(&path, |it| it["status"]["replicas"] == 2)
        .await;
    let told = condition(&paused, "Progressing");
    assert_eq!(
        (&told["status"], &told["reason"]),
        (&json!("Unknown"), &json!("DeploymentPaused"))
    );
    assert_eq!(sizes(&cluster, ["one", "two"]).await, [2, -1]);
    assert_eq!(paused["status"]["updatedReplicas"], Value::Null);
    patch(&cluster, &path, json!({"spec": {"paused": null}})).await;
    expect_while_running(&cluster, &path, is_complete).await;
    assert_eq!(sizes(&cluster, ["one", "two"]).await, [0, 2]);
}

#[tokio::test]
async fn a_rollout_that_is_stuck_is_told_and_goes_back() {
    let cluster = start().await;
    let path = format!("{DEPLOYMENTS}/web");
    let mut impatient = deployment(1);
    impatient["spec"]["progressDeadlineSeconds"] = 1.into();
    cluster.create(DEPLOYMENTS, impatient).await;
    expect_while_running(&cluster, &path, is_complete).await;
    patch(
        &cluster,
        &path,
        json!({"spec": {"template": template("two")}}),
    )
    .await;
    // Nothing but the time changes.
    let stuck = cluster
        .expect(&path, |it| {
            condition(it, "Progressing")["reason"] == "ProgressDeadlineExceeded"
        })
        .await;
    assert_eq!(condition(&stuck, "Progressing")["status"], "False");
    assert_eq!(condition(&stuck, "Available")["status"], "True");
    patch(
        &cluster,
        &path,
        json!({"spec": {"template": template("one")}}),
    )
    .await;
    let back = cluster
        .expect(&path, |it| {
            is_complete(it) && it["metadata"]["annotations"][REVISION] == "3"
        })
        .await;
    let sets = list(&cluster, SETS).await;
    let old = sets
        .iter()
        .find(|it| image(it) == "one")
        .expect("the first set");
    assert_eq!(
        old["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"],
        "1"
    );
    assert_eq!(back["status"]["replicas"], 1);
}

#[tokio::test]
async fn a_set_that_somebody_else_has_scaled_does_not_keep_a_deployment_from_rolling() {
    let cluster = start().await;
    let path = format!("{DEPLOYMENTS}/web");
    cluster.create(DEPLOYMENTS, deployment(1)).await;
    expect_while_running(&cluster, &path, is_complete).await;
    patch(&cluster, &path, json!({"spec": {"paused": true}})).await;
    let set = list(&cluster, SETS).await.remove(0);
    patch(
        &cluster,
        &format!("{SETS}/{}", name(&set)),
        json!({"spec": {"replicas": 3}}),
    )
    .await;
    patch(
        &cluster,
        &path,
        json!({"spec": {"replicas": 3, "paused": false, "template": template("two")}}),
    )
    .await;
    let complete = expect_while_running(&cluster, &path, is_complete).await;
    assert_eq!(complete["metadata"]["annotations"][REVISION], "2");
    assert_eq!(sizes(&cluster, ["one", "two"]).await, [0, 3]);
}
