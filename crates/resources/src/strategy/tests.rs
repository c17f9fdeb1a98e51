//! Tests of updates through a store that write equal quantities in another way, which change nothing.

use ringwatch::codec;
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
    let mut update = patch(|it| *it.pointer_mut(at).expect("a value") = value.clone());
    let options = UpdateOptions::default();
    let context = context();
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
