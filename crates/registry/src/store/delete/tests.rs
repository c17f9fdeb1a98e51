//! Tests of deletions: grace periods, finalizers, dependents and preconditions.

use ringwatch::codec;
use ringwatch_apimachinery::accessor::{later, time};
use serde_json::{Value, json};

use super::*;
use crate::testing::{Fixture, NOW, OtherWrite, TestStrategy, config_map, patch};
use crate::{GarbageCollection, PropagationPolicy};

impl Fixture {
    async fn delete(&self, name: &str, options: DeleteOptions) -> Result<DeletionResult, Error> {
        self.store.delete(&self.context, "ns", name, options).await
    }

    /// Deletes what may be deleted, or begins to.
    async fn deleted(&self, name: &str, options: DeleteOptions) -> DeletionResult {
        let deleted = self.delete(name, options).await;
        deleted.expect("it is not refused")
    }

    /// Returns the error of a deletion that is refused.
    async fn deletion_error(&self, name: &str, options: DeleteOptions) -> String {
        let refused = self.delete(name, options).await;
        refused.expect_err("it is refused").to_string()
    }
}

fn metadata(deleted: &DeletionResult) -> Value {
    codec::tree(&deleted.object).expect("an object")["metadata"].take()
}

fn grace(seconds: i64) -> DeleteOptions {
    DeleteOptions {
        grace_period_seconds: Some(seconds),
        ..DeleteOptions::default()
    }
}

fn with_grace() -> TestStrategy {
    TestStrategy {
        grace: Some(30),
        ..TestStrategy::default()
    }
}

fn policy(policy: PropagationPolicy) -> DeleteOptions {
    DeleteOptions {
        propagation_policy: Some(policy),
        ..DeleteOptions::default()
    }
}

#[tokio::test]
async fn a_simple_object_goes_at_once() {
    let fixture = Fixture::with_a(TestStrategy::default()).await;
    let deleted = fixture.deleted("a", DeleteOptions::default()).await;
    assert!(deleted.finished && !deleted.returns_object);
    assert_eq!(deleted.object.revision(), 3);
    assert_eq!(fixture.stored("a").await, None);
    let error = fixture.deletion_error("a", DeleteOptions::default()).await;
    assert_eq!(error, "configmaps \"a\" not found");
}

#[tokio::test]
async fn preconditions_must_hold() {
    let fixture = Fixture::new(TestStrategy::default());
    let uid = fixture.create(json!({"name": "c05"})).await["metadata"]["uid"].clone();
    let uid = uid.as_str().unwrap();
    let wanted = "11111111-2222-3333-4444-555555555555";
    let options = DeleteOptions {
        precondition_uid: Some(wanted.into()),
        ..DeleteOptions::default()
    };
    assert_eq!(
        fixture.deletion_error("c05", options).await,
        format!(
            "Operation cannot be fulfilled on ConfigMap \"c05\": the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
        )
    );
    let options = DeleteOptions {
        precondition_resource_version: Some("7".into()),
        ..DeleteOptions::default()
    };
    assert_eq!(
        fixture.deletion_error("c05", options).await,
        "Operation cannot be fulfilled on ConfigMap \"c05\": the ResourceVersion in the precondition (7) does not match the ResourceVersion in record (2). The object might have been modified"
    );
    let options = DeleteOptions {
        precondition_uid: Some(uid.to_owned()),
        precondition_resource_version: Some("2".into()),
        ..DeleteOptions::default()
    };
    assert!(fixture.deleted("c05", options).await.finished);
}

#[tokio::test]
async fn contradicting_options_are_refused() {
    let fixture = Fixture::new(TestStrategy::default());
    let options = DeleteOptions {
        orphan_dependents: Some(true),
        ..policy(PropagationPolicy::Orphan)
    };
    let error = fixture.deletion_error("a", options).await;
    assert_eq!(
        error,
        "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Invalid value: \"Orphan\": orphanDependents and deletionPropagation cannot be both set"
    );
}

#[tokio::test]
async fn a_finalizer_that_comes_at_the_last_moment_is_waited_for() {
    let fixture = Fixture::with_a(TestStrategy::default()).await;
    fixture.storage.write_before_deletion(OtherWrite::Finalizes);
    let deleted = fixture.deleted("a", DeleteOptions::default()).await;
    assert!(!deleted.finished);
    assert_eq!(metadata(&deleted)["finalizers"], json!(["late/finalizer"]));
    assert!(metadata(&deleted)["deletionTimestamp"].is_string());
}

/// The object is marked as deleted by this client and removed by another one before it can: it is gone, as was wanted.
/// One that was not marked is gone before this client has done anything.
#[tokio::test]
async fn an_object_that_another_client_removes_first_is_deleted_once_it_was_marked() {
    let fixture = Fixture::with_a(with_grace()).await;
    fixture.storage.write_before_deletion(OtherWrite::Removes);
    let deleted = fixture.deleted("a", grace(0)).await;
    assert!(deleted.finished);
    assert_eq!(metadata(&deleted)["deletionGracePeriodSeconds"], 0);
    assert_eq!(fixture.stored("a").await, None);

    let fixture = Fixture::with_a(TestStrategy::default()).await;
    fixture.storage.write_before_deletion(OtherWrite::Removes);
    let options = DeleteOptions::default();
    let error = fixture.deletion_error("a", options).await;
    assert_eq!(error, "configmaps \"a\" not found");
}

#[tokio::test]
async fn finalizers_are_waited_for() {
    let fixture = Fixture::new(TestStrategy::default());
    fixture
        .create(json!({"name": "a", "finalizers": ["x/y"]}))
        .await;
    let deleted = fixture.deleted("a", DeleteOptions::default()).await;
    assert!(!deleted.finished && deleted.returns_object);
    let first = metadata(&deleted);
    assert!(first["deletionTimestamp"].as_str().unwrap() >= NOW);
    assert_eq!(
        (&first["deletionGracePeriodSeconds"], &first["generation"]),
        (&json!(0), &json!(2))
    );
    let again = fixture.deleted("a", DeleteOptions::default()).await;
    assert!(!again.finished);
    assert_eq!(
        (metadata(&again), fixture.storage.revision().await),
        (first, 3)
    );
}

#[tokio::test]
async fn a_grace_period_is_waited_for() {
    let fixture = Fixture::with_a(with_grace()).await;
    let deleted = fixture.deleted("a", DeleteOptions::default()).await;
    assert!(!deleted.finished && deleted.returns_object);
    let object = codec::tree(&deleted.object).expect("an object");
    assert!(time(&object, "deletionTimestamp").unwrap() >= later(NOW.parse().unwrap(), 30));
    assert_eq!(object["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(object["metadata"]["generation"], 2);
}

#[tokio::test]
async fn a_grace_period_only_becomes_shorter() {
    let fixture = Fixture::with_a(with_grace()).await;
    fixture.deleted("a", DeleteOptions::default()).await;
    let begun = fixture.stored("a").await.unwrap();
    let end = time(&begun, "deletionTimestamp").unwrap();
    for options in [grace(60), grace(30), DeleteOptions::default()] {
        let pending = fixture.deleted("a", options).await;
        assert!(!pending.finished && !pending.returns_object);
        assert_eq!(fixture.storage.revision().await, 3, "nothing is written");
    }
    let shorter = fixture.deleted("a", grace(10)).await;
    assert!(!shorter.finished && shorter.returns_object);
    let object = codec::tree(&shorter.object).expect("an object");
    assert_eq!(time(&object, "deletionTimestamp"), Some(later(end, -20)));
    assert_eq!(object["metadata"]["deletionGracePeriodSeconds"], 10);
    assert_eq!(object["metadata"]["generation"], 2, "it rises once");

    let now = fixture.deleted("a", grace(0)).await;
    assert!(now.finished);
    assert_eq!(metadata(&now)["deletionGracePeriodSeconds"], 0);
    assert_eq!(now.object.revision(), fixture.storage.revision().await);
    assert_eq!(fixture.stored("a").await, None);
}

#[tokio::test]
async fn a_negative_grace_period_is_one_second() {
    let fixture = Fixture::with_a(with_grace()).await;
    let deleted = fixture.deleted("a", grace(-5)).await;
    assert_eq!(metadata(&deleted)["deletionGracePeriodSeconds"], 1);
    assert!(!deleted.finished);
}

#[tokio::test]
async fn a_version_that_held_before_the_grace_period_holds_after_it() {
    let fixture = Fixture::with_a(with_grace()).await;
    let options = DeleteOptions {
        precondition_resource_version: Some("2".into()),
        ..grace(0)
    };
    assert!(fixture.deleted("a", options).await.finished);
    assert_eq!(fixture.stored("a").await, None);
}

#[tokio::test]
async fn the_policy_becomes_a_finalizer() {
    let fixture = Fixture::new(TestStrategy::default());
    for (name, policy_asked, finalizer) in [
        ("a", PropagationPolicy::Foreground, "foregroundDeletion"),
        ("b", PropagationPolicy::Orphan, "orphan"),
    ] {
        fixture.create(json!({"name": name})).await;
        let deleted = fixture.deleted(name, policy(policy_asked)).await;
        assert!(!deleted.finished);
        assert_eq!(metadata(&deleted)["finalizers"], json!([finalizer]));
    }
    fixture
        .create(json!({"name": "c", "finalizers": ["orphan"]}))
        .await;
    let deleted = fixture
        .deleted("c", policy(PropagationPolicy::Background))
        .await;
    assert!(deleted.finished);
    assert_eq!(fixture.stored("c").await, None);
}

#[tokio::test]
async fn a_type_may_orphan_by_default() {
    let garbage_collection = GarbageCollection::OrphanDependents;
    let fixture = Fixture::with_a(TestStrategy {
        garbage_collection,
        ..TestStrategy::default()
    })
    .await;
    let deleted = fixture.deleted("a", DeleteOptions::default()).await;
    assert_eq!(metadata(&deleted)["finalizers"], json!(["orphan"]));
}

#[tokio::test]
async fn some_types_answer_with_the_object() {
    let fixture = Fixture::with_a(TestStrategy {
        returns_deleted_object: true,
        ..TestStrategy::default()
    })
    .await;
    let deleted = fixture.deleted("a", DeleteOptions::default()).await;
    assert!(deleted.finished && deleted.returns_object);
}

#[tokio::test]
async fn a_dry_run_deletes_nothing() {
    let fixture = Fixture::with_a(TestStrategy::default()).await;
    fixture
        .create(json!({"name": "b", "finalizers": ["x/y"]}))
        .await;
    let dry = DeleteOptions {
        dry_run: true,
        ..DeleteOptions::default()
    };
    let deleted = fixture.deleted("a", dry.clone()).await;
    assert!(deleted.finished && !deleted.returns_object);
    let deleted = fixture.deleted("b", dry.clone()).await;
    assert!(!deleted.finished && metadata(&deleted)["deletionTimestamp"].is_string());
    let dry = DeleteOptions {
        precondition_uid: Some("x".into()),
        ..dry
    };
    assert!(matches!(
        fixture.delete("a", dry).await,
        Err(Error::Conflict { .. })
    ));
    assert_eq!(fixture.storage.revision().await, 3);
    assert_eq!(fixture.strategy.take_calls(), Vec::<&str>::new());
}

#[tokio::test]
async fn a_dry_run_of_the_end_of_a_grace_period_answers_with_the_object() {
    let fixture = Fixture::with_a(with_grace()).await;
    let deleted = fixture
        .deleted(
            "a",
            DeleteOptions {
                dry_run: true,
                ..grace(0)
            },
        )
        .await;
    assert!(deleted.finished && deleted.returns_object);
    assert_eq!(metadata(&deleted)["deletionGracePeriodSeconds"], 0);
    assert_eq!(fixture.storage.revision().await, 2);
}

#[tokio::test]
async fn a_held_object_is_marked_until_it_is_let_go() {
    let fixture = Fixture::new(TestStrategy {
        holds: true,
        ..TestStrategy::default()
    });
    let mut object = config_map(json!({"name": "a"}));
    object["spec"] = json!({"finalizers": ["kubernetes"]});
    fixture.create_object(object).await;
    let wrong = DeleteOptions {
        precondition_uid: Some("x".into()),
        ..DeleteOptions::default()
    };
    let error = fixture.deletion_error("a", wrong).await;
    assert!(error.starts_with("Operation cannot be fulfilled on configmaps \"a\": Precondition failed: UID in precondition: x"), "{error}");

    let deleted = fixture.deleted("a", DeleteOptions::default()).await;
    assert!(!deleted.finished && deleted.returns_object);
    let marked = codec::tree(&deleted.object).expect("an object");
    assert_eq!(marked["status"]["phase"], "Terminating");
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    assert!(marked["metadata"]["deletionGracePeriodSeconds"].is_null());
    assert_eq!(marked["metadata"]["generation"], 1);
    fixture.deleted("a", DeleteOptions::default()).await;
    assert_eq!(fixture.storage.revision().await, 3);

    let mut unrelated = patch(|object| object["data"]["k"] = json!("w"));
    let options = Default::default();
    fixture
        .store
        .update(&fixture.context, "ns", "a", &mut unrelated, &options)
        .await
        .expect("updated");
    assert!(fixture.stored("a").await.is_some());
    let mut finalize = patch(|object| object["spec"] = json!({}));
    fixture
        .store
        .update(&fixture.context, "ns", "a", &mut finalize, &options)
        .await
        .expect("finalized");
    assert_eq!(fixture.stored("a").await, None);
}
