//! Deployments: their life, their ReplicaSets and their status.

use super::*;

const REVISION: &str = "deployment.kubernetes.io/revision";

#[tokio::test]
async fn a_deployment_lives_from_its_first_pod_to_its_deletion() {
    let cluster = start().await;
    let path = format!("{DEPLOYMENTS}/web");
    cluster.create(DEPLOYMENTS, deployment(2)).await;
    let begun = cluster
        .expect(&path, |it| {
            it["status"]["unavailableReplicas"] == 2 && it["status"]["updatedReplicas"] == 2
        })
        .await;
    assert_eq!(
        condition(&begun, "Available")["reason"],
        "MinimumReplicasUnavailable"
    );
    assert_eq!(condition(&begun, "Progressing")["status"], "True");
    let complete = expect_while_running(&cluster, &path, is_complete).await;
    let set = &list(&cluster, SETS).await[0];
    assert_eq!(
        condition(&complete, "Progressing")["message"],
        format!("ReplicaSet {:?} has successfully progressed.", name(set))
    );
    assert_eq!(complete["status"]["terminatingReplicas"], 0);
    assert_eq!(complete["metadata"]["annotations"][REVISION], "1");

    // The set, its selector and its pods have the hash that is in its name.
    let hash = &set["metadata"]["labels"]["pod-template-hash"];
    assert_eq!(name(set), format!("web-{}", hash.as_str().expect("a hash")));
    assert_eq!(
        set["spec"]["selector"]["matchLabels"],
        json!({"app": "web", "pod-template-hash": hash})
    );
    assert_eq!(
        set["spec"]["template"]["metadata"]["labels"],
        json!({"app": "web", "pod-template-hash": hash})
    );
    let annotations = json!({REVISION: "1", "deployment.kubernetes.io/desired-replicas": "2",
        "deployment.kubernetes.io/max-replicas": "3"});
    assert_eq!(set["metadata"]["annotations"], annotations);
    let owner = &set["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["uid"], &owner["controller"]),
        (&complete["metadata"]["uid"], &json!(true))
    );

    let change = json!({"metadata": {"annotations": {"note": "x"}}, "spec": {"replicas": 3, "minReadySeconds": 1}});
    patch(&cluster, &path, change).await;
    expect_while_running(&cluster, &path, is_complete).await;
    let sets = list(&cluster, SETS).await;
    assert_eq!(sets.len(), 1, "the template is the same");
    assert_eq!(sets[0]["metadata"]["annotations"]["note"], "x");
    assert_eq!(sets[0]["spec"]["minReadySeconds"], 1);
    patch(
        &cluster,
        &path,
        json!({"spec": {"minReadySeconds": 0, "template": template("two")}}),
    )
    .await;
    let complete = expect_while_running(&cluster, &path, is_complete).await;
    assert_eq!(complete["metadata"]["annotations"][REVISION], "2");
    cluster.delete(&path, "Foreground").await;
    cluster.expect_gone(&path).await;
    assert_eq!(list(&cluster, SETS).await.len(), 0);
    assert_eq!(list(&cluster, PODS).await.len(), 0);
}

#[tokio::test]
async fn a_set_that_is_there_is_adopted_and_its_revision_exceeded() {
    let cluster = start().await;
    let mut set = replica_set("before", 1);
    set["metadata"]["annotations"] = json!({REVISION: "3546343826724305832"});
    cluster.create(SETS, set).await;
    expect_pods(&cluster, 1).await;
    let path = format!("{DEPLOYMENTS}/web");
    let mut new = deployment(1);
    new["spec"]["template"] = template("two");
    cluster.create(DEPLOYMENTS, new).await;
    let complete = expect_while_running(&cluster, &path, is_complete).await;
    assert_eq!(
        complete["metadata"]["annotations"][REVISION],
        "3546343826724305833"
    );
    let old = cluster
        .expect(&format!("{SETS}/before"), |it| {
            it["status"]["replicas"] == 0
        })
        .await;
    assert_eq!(old["metadata"]["ownerReferences"][0]["name"], "web");
    let sets = list(&cluster, SETS).await;
    let new = sets
        .iter()
        .find(|it| name(it) != "before")
        .expect("a new one");
    assert_eq!(
        new["metadata"]["annotations"][REVISION],
        "3546343826724305833"
    );
    assert_eq!(
        expect_pods(&cluster, 1)
            .await
            .iter()
            .map(image)
            .collect::<Vec<_>>(),
        ["two"]
    );
}

#[tokio::test]
async fn old_sets_are_kept_as_far_as_the_history_goes() {
    let cluster = start().await;
    let path = format!("{DEPLOYMENTS}/web");
    let mut first = deployment(1);
    first["spec"]["revisionHistoryLimit"] = 1.into();
    cluster.create(DEPLOYMENTS, first).await;
    for image in ["two", "three", "four"] {
        expect_while_running(&cluster, &path, is_complete).await;
        patch(
            &cluster,
            &path,
            json!({"spec": {"template": template(image)}}),
        )
        .await;
    }
    expect_while_running(&cluster, &path, is_complete).await;
    let kept = async |count: usize| {
        eventually(DEADLINE, format!("{count} sets are kept"), async || {
            let sets = list(&cluster, SETS).await;
            let mut images: Vec<_> = sets.iter().map(|it| image(it).clone()).collect();
            images.sort_by_key(ToString::to_string);
            if images.len() == count {
                Ok(images)
            } else {
                Err(images)
            }
        })
        .await
    };
    assert_eq!(kept(2).await, ["four", "three"]);
    patch(
        &cluster,
        &path,
        json!({"spec": {"revisionHistoryLimit": 0}}),
    )
    .await;
    assert_eq!(kept(1).await, ["four"]);
}

#[tokio::test]
async fn the_scale_of_a_deployment_is_that_of_its_pods() {
    let cluster = start().await;
    let path = format!("{DEPLOYMENTS}/web");
    let scale = format!("{path}/scale");
    cluster.create(DEPLOYMENTS, deployment(1)).await;
    cluster
        .expect(&scale, |it| it["status"]["replicas"] == 1)
        .await;
    let mut wanted = cluster.get(&scale).await.expect("a scale");
    assert_eq!(wanted["status"]["selector"], "app=web");
    wanted["spec"]["replicas"] = 2.into();
    cluster.write(Method::PUT, &scale, wanted).await;
    cluster
        .expect(&scale, |it| it["status"]["replicas"] == 2)
        .await;
    patch(&cluster, &scale, json!({"spec": {"replicas": 4}})).await;
    let scaled = expect_while_running(&cluster, &path, is_complete).await;
    assert_eq!(scaled["status"]["replicas"], 4);
    assert_eq!(expect_pods(&cluster, 4).await.len(), 4);
    patch(&cluster, &scale, json!({"spec": {"replicas": 0}})).await;
    expect_while_running(&cluster, &path, is_complete).await;
    expect_pods(&cluster, 0).await;
    let sets = list(&cluster, SETS).await;
    assert_eq!((sets.len(), &sets[0]["spec"]["replicas"]), (1, &json!(0)));
}

#[tokio::test]
async fn conditions_that_others_write_stay() {
    let cluster = start().await;
    let path = format!("{DEPLOYMENTS}/web");
    let status = format!("{path}/status");
    cluster.create(DEPLOYMENTS, deployment(1)).await;
    expect_while_running(&cluster, &path, is_complete).await;
    let mut updated = cluster.get(&status).await.expect("a status");
    let conditions = updated["status"]["conditions"]
        .as_array_mut()
        .expect("conditions");
    conditions.push(json!({"type": "StatusUpdate", "status": "True", "reason": "E2E", "message": "Set from a test"}));
    cluster.write(Method::PUT, &status, updated).await;
    // A rollout writes all the rest anew.
    patch(
        &cluster,
        &path,
        json!({"spec": {"template": template("two")}}),
    )
    .await;
    let complete = expect_while_running(&cluster, &path, |it| {
        is_complete(it) && it["metadata"]["annotations"][REVISION] == "2"
    })
    .await;
    assert_eq!(condition(&complete, "StatusUpdate")["reason"], "E2E");
    // Of those that it keeps itself it writes again what somebody else has written over.
    let only = json!({"status": {"replicas": 7, "conditions": [{"type": "StatusPatched", "status": "True"}]}});
    patch(&cluster, &status, only).await;
    let mended = cluster
        .expect(&path, |it| {
            it["status"]["replicas"] == 1 && condition(it, "Available")["status"] == "True"
        })
        .await;
    assert_eq!(condition(&mended, "StatusPatched")["status"], "True");
}

#[tokio::test]
async fn a_name_that_is_taken_is_no_obstacle() {
    let cluster = start().await;
    let path = format!("{DEPLOYMENTS}/web");
    cluster.create(DEPLOYMENTS, deployment(1)).await;
    expect_while_running(&cluster, &path, is_complete).await;
    let taken = list(&cluster, SETS).await.remove(0);
    cluster.delete(&path, "Foreground").await;
    cluster.expect_gone(&path).await;
    let mut other = replica_set(name(&taken), 0);
    other["spec"]["selector"]["matchLabels"] = json!({"app": "other"});
    other["spec"]["template"]["metadata"]["labels"] = json!({"app": "other"});
    other["metadata"]["labels"] = json!({"app": "other"});
    cluster.create(SETS, other).await;
    cluster.create(DEPLOYMENTS, deployment(1)).await;
    let complete = expect_while_running(&cluster, &path, is_complete).await;
    assert_eq!(complete["status"]["collisionCount"], 1);
    assert_eq!(list(&cluster, SETS).await.len(), 2);
}
