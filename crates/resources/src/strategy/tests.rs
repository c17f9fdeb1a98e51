//! Tests of updates through a store that write equal quantities in another way, which change nothing.

use ringwatch::codec;
use ringwatch_apimachinery::Error;
use ringwatch_registry::testing::{MemoryStorage, context, patch};
use ringwatch_registry::{CreateOptions, Store, UpdateOptions};
use serde_json::{Value, json};

async fn created(plural: &str, object: Value) -> Store {
    let mut all = crate::built_in().into_iter();
    let resource = all.find(|it| it.plural == plural).expect("built in");
    let prefix = format!("/{}", resource.storage_prefix);
    let store = Store::new(resource, MemoryStorage::new(&prefix));
    let options = CreateOptions::default();
    let created = store.create(&context(), "a", object, &options).await;
    created.expect("created");
    store
}

async fn changed(store: &Store, at: &str, value: Value) -> Result<Value, String> {
    updated(store, "", |it| {
        *it.pointer_mut(at).expect("a value") = value.clone()
    })
    .await
}

/// Updates the object, or a subresource of it.
async fn updated(
    store: &Store,
    subresource: &str,
    change: impl Fn(&mut Value) + Send + Sync,
) -> Result<Value, String> {
    let mut update = patch(change);
    let options = UpdateOptions::default();
    let mut context = context();
    context.subresource = subresource.to_owned();
    let updated = store
        .update(&context, "a", "o", &mut update, &options)
        .await;
    let (updated, _) = updated.map_err(|error| error.to_string())?;
    Ok(codec::tree(&updated).expect("an object"))
}

fn pod_spec(policy: &str) -> Value {
    json!({"restartPolicy": policy, "containers": [{"name": "c", "image": "i", "resources":
        {"limits": {"memory": "1Gi"}, "requests": {"memory": "1Gi"}}}]})
}

#[tokio::test]
async fn what_is_immutable_may_be_written_in_another_way() {
    let metadata = json!({"name": "o", "namespace": "a"});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec("Always")});
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata,
        "spec": {"template": {"spec": pod_spec("Never")}}});
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata,
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let limit = "/containers/0/resources/limits/memory";
    for (plural, object, at) in [
        ("pods", pod, format!("/spec{limit}")),
        ("jobs", job, format!("/spec/template/spec{limit}")),
        (
            "persistentvolumeclaims",
            claim,
            "/spec/resources/requests/storage".to_owned(),
        ),
    ] {
        let store = created(plural, object).await;
        let written = changed(&store, &at, json!("1073741824")).await;
        let written = written.expect(plural);
        assert_eq!(written.pointer(&at), Some(&json!("1073741824")), "{plural}");
        let other = changed(&store, &at, json!("1073741825")).await;
        assert!(other.is_err(), "{plural}");
    }
}

#[tokio::test]
async fn the_metadata_of_a_budget_is_judged_if_the_rest_is_right() {
    let budget = |least: i64| {
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": "o", "namespace": "a", "labels": {"a": "b c"}}, "spec": {"minAvailable": least}})
    };
    let mut all = crate::built_in().into_iter();
    let resource = all.find(|it| it.plural == "poddisruptionbudgets");
    let store = Store::new(
        resource.expect("built in"),
        MemoryStorage::new("/poddisruptionbudgets"),
    );
    for (least, field) in [(-1, "spec.minAvailable"), (1, "metadata.labels")] {
        let options = CreateOptions::default();
        let refused = store.create(&context(), "a", budget(least), &options).await;
        let Err(Error::Invalid { errors, .. }) = refused else {
            panic!("{least} is accepted");
        };
        let fields: Vec<_> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, [field]);
    }
}

#[tokio::test]
async fn the_generation_counts_other_quantities_alone() {
    let labels = json!({"app": "d"});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "o", "namespace": "a"},
        "spec": {"selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec("Always")}}});
    let store = created("deployments", deployment).await;
    let at = "/spec/template/spec/containers/0/resources/limits/memory";
    for (memory, generation) in [("1073741824", 1), ("1Gi", 1), ("2Gi", 2), ("2147483648", 2)] {
        let changed = changed(&store, at, json!(memory)).await.expect("changed");
        assert_eq!(changed["metadata"]["generation"], generation, "{memory}");
    }
}

#[tokio::test]
async fn what_is_not_the_clients_to_change_stays_as_it_is_written() {
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "o", "namespace": "a"},
        "spec": {"hard": {"requests.memory": "1Gi"}}});
    let store = created("resourcequotas", quota).await;
    let with_status = updated(&store, "status", |it| {
        it["status"] =
            json!({"hard": {"requests.memory": "1Gi"}, "used": {"requests.memory": "1Mi"}});
    });
    with_status.await.expect("a status");
    let written = updated(&store, "", |it| {
        it["spec"]["hard"]["requests.memory"] = json!("1073741824");
        it["status"]["used"]["requests.memory"] = json!("1048576");
    });
    let written = written.await.expect("written");
    assert_eq!(written["spec"]["hard"]["requests.memory"], "1073741824");
    assert_eq!(written["status"]["used"]["requests.memory"], "1Mi");

    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "o", "namespace": "a"}, "spec": pod_spec("Always")});
    pod["spec"]["volumes"] = json!([{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}]);
    let store = created("pods", pod).await;
    let resized = updated(&store, "resize", |it| {
        it["spec"]["volumes"][0]["emptyDir"]["sizeLimit"] = json!("1073741824");
        for which in ["limits", "requests"] {
            it["spec"]["containers"][0]["resources"][which]["memory"] = json!("1073741824");
        }
    });
    let resized = resized.await.expect("resized");
    let container = &resized["spec"]["containers"][0];
    assert_eq!(container["resources"]["limits"]["memory"], "1073741824");
    assert_eq!(
        resized["spec"]["volumes"][0]["emptyDir"]["sizeLimit"],
        "1Gi"
    );
    assert_eq!(resized["metadata"]["generation"], 1);
}
