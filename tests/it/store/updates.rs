//! Guaranteed updates.

use std::sync::Arc;

use async_trait::async_trait;
use ringwatch::meta::Object;
use ringwatch::storage::backend::RangeRequest;
use ringwatch::storage::{
    Interface as _, NextContent, Preconditions, Rejection, StorageError, TryUpdate, UpdateOptions,
};
use serde_json::json;

use super::{Become, Fixture, app, key, map, over_backends};

over_backends!(
    a_change_is_written_at_a_new_revision,
    a_version_in_the_new_content_is_ignored,
    nothing_is_written_when_nothing_changes,
    nothing_changes_is_believed_only_of_the_store,
    foreign_layout_is_rewritten,
    missing_objects_are_created_if_asked,
    preconditions_hold_of_stored_content,
    an_outdated_copy_costs_one_more_try,
    a_refusal_of_an_outdated_copy_is_not_believed,
    a_write_in_between_is_seen,
    a_ttl_is_attached_and_taken_away,
    content_that_could_not_be_read_back_is_refused,
);

/// Content from a cache to try first.
fn cached(object: &Arc<Object>) -> UpdateOptions {
    UpdateOptions {
        cached_existing: Some(Arc::clone(object)),
        ..UpdateOptions::default()
    }
}

async fn a_change_is_written_at_a_new_revision(fixture: Fixture) {
    let created = fixture.create("a", "x").await;
    let updated = fixture.label("a", "y").await;
    assert_eq!(app(&updated), "y");
    assert_eq!(updated.revision(), created.revision() + 1);
    let read = fixture.store.get(&key("a"), Default::default()).await;
    assert_eq!(read.expect("the object").bytes(), updated.bytes());
}

async fn a_version_in_the_new_content_is_ignored(fixture: Fixture) {
    let created = fixture.create("a", "x").await;
    let mut next = map("a", "y");
    next["metadata"]["resourceVersion"] = json!("1");
    let mut update = Become::new(next);
    let updated = fixture
        .store
        .guaranteed_update(&key("a"), Default::default(), &mut update)
        .await;
    assert_eq!(updated.expect("a write").revision(), created.revision() + 1);
}

async fn nothing_is_written_when_nothing_changes(fixture: Fixture) {
    let created = fixture.create("a", "x").await;
    for options in [UpdateOptions::default(), cached(&created)] {
        let mut update = Become::new(map("a", "x"));
        let same = fixture
            .store
            .guaranteed_update(&key("a"), options, &mut update)
            .await;
        assert_eq!(same.expect("no write").bytes(), created.bytes());
        assert_eq!(update.calls, 1);
    }
    let now = fixture.store.current_resource_version().await;
    assert_eq!(now.expect("a revision").0, created.revision());
}

async fn nothing_changes_is_believed_only_of_the_store(fixture: Fixture) {
    let outdated = fixture.create("a", "x").await;
    fixture.label("a", "y").await;
    let mut update = Become::new(map("a", "x"));
    let written = fixture
        .store
        .guaranteed_update(&key("a"), cached(&outdated), &mut update)
        .await;
    let written = written.expect("a write after all");
    assert_eq!(app(&written), "x");
    assert_eq!(written.revision(), outdated.revision() + 2);
}

async fn foreign_layout_is_rewritten(fixture: Fixture) {
    let full = "/registry/configmaps/default/a";
    let text = r#"{ "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a",
        "namespace": "default", "uid": "uid-a", "labels": {"app": "x"}} }"#;
    let written = fixture.write_raw(full, text).await;
    let same = fixture.label("a", "x").await;
    assert_eq!(same.revision(), written + 1);
    let again = fixture.label("a", "x").await;
    assert_eq!(again.revision(), written + 1);
}

async fn missing_objects_are_created_if_asked(fixture: Fixture) {
    let mut update = Become::new(map("a", "x"));
    let missing = fixture
        .store
        .guaranteed_update(&key("a"), Default::default(), &mut update)
        .await;
    assert!(missing.expect_err("nothing there").is_not_found());
    assert_eq!(update.calls, 0);
    let options = UpdateOptions {
        ignore_not_found: true,
        ..UpdateOptions::default()
    };
    let created = fixture
        .store
        .guaranteed_update(&key("a"), options.clone(), &mut update)
        .await;
    assert_eq!(app(&created.expect("a new object")), "x");
    let conditional = UpdateOptions {
        preconditions: Preconditions {
            uid: Some("u".to_owned()),
            resource_version: None,
        },
        ..options
    };
    let refused = fixture
        .store
        .guaranteed_update(&key("b"), conditional, &mut update)
        .await;
    let refused = refused.expect_err("an absent object has no uid");
    assert!(
        refused.to_string().ends_with("UID in object meta: "),
        "{refused}"
    );
}

async fn preconditions_hold_of_stored_content(fixture: Fixture) {
    let outdated = fixture.create("a", "x").await;
    let current = fixture.label("a", "y").await;
    let with_version = |object: &Object| UpdateOptions {
        preconditions: Preconditions {
            uid: Some("uid-a".to_owned()),
            resource_version: Some(object.revision().to_string()),
        },
        ..cached(&outdated)
    };
    let mut update = Become::new(map("a", "z"));
    // The cached copy fails, the stored one does not.
    let updated = fixture
        .store
        .guaranteed_update(&key("a"), with_version(&current), &mut update)
        .await;
    assert_eq!(app(&updated.expect("the condition holds")), "z");
    // The cached copy passes, the stored one does not.
    let refused = fixture
        .store
        .guaranteed_update(&key("a"), with_version(&outdated), &mut update)
        .await;
    assert!(matches!(refused, Err(StorageError::InvalidObject { .. })));
}

async fn an_outdated_copy_costs_one_more_try(fixture: Fixture) {
    let outdated = fixture.create("a", "x").await;
    fixture.label("a", "y").await;
    let mut update = Become::new(map("a", "z"));
    let updated = fixture
        .store
        .guaranteed_update(&key("a"), cached(&outdated), &mut update)
        .await;
    assert_eq!(app(&updated.expect("a write")), "z");
    assert_eq!(update.calls, 2);
}

/// Turns `y` into `z` and refuses all else.
struct OnlyFromY(u32);

#[async_trait]
impl TryUpdate for OnlyFromY {
    async fn try_update(&mut self, existing: Option<&Object>) -> Result<NextContent, Rejection> {
        self.0 += 1;
        if existing.is_some_and(|object| app(object) == "y") {
            let (object, ttl) = (map("a", "z"), None);
            return Ok(NextContent { object, ttl });
        }
        Err("not y".into())
    }
}

async fn a_refusal_of_an_outdated_copy_is_not_believed(fixture: Fixture) {
    let outdated = fixture.create("a", "x").await;
    fixture.label("a", "y").await;
    let mut update = OnlyFromY(0);
    let updated = fixture
        .store
        .guaranteed_update(&key("a"), cached(&outdated), &mut update)
        .await;
    let updated = updated.expect("a second look");
    assert_eq!((app(&updated), update.0), ("z", 2));
    // A copy that is current is refused once, and the refusal stands.
    let mut update = OnlyFromY(0);
    let refused = fixture
        .store
        .guaranteed_update(&key("a"), cached(&updated), &mut update)
        .await;
    assert!(matches!(refused, Err(StorageError::Rejected(error)) if error.to_string() == "not y"));
    assert_eq!(update.0, 1);
}

/// Lets somebody else write first, once.
struct Overtaken<'a>(&'a Fixture, Vec<String>);

#[async_trait]
impl TryUpdate for Overtaken<'_> {
    async fn try_update(&mut self, existing: Option<&Object>) -> Result<NextContent, Rejection> {
        if self.1.is_empty() {
            self.0.label("a", "y").await;
        }
        self.1
            .push(existing.map(app).unwrap_or_default().to_owned());
        let (object, ttl) = (map("a", "z"), None);
        Ok(NextContent { object, ttl })
    }
}

async fn a_write_in_between_is_seen(fixture: Fixture) {
    fixture.create("a", "x").await;
    let mut update = Overtaken(&fixture, Vec::new());
    let updated = fixture
        .store
        .guaranteed_update(&key("a"), Default::default(), &mut update)
        .await;
    assert_eq!(app(&updated.expect("the second try")), "z");
    assert_eq!(update.1, ["x", "y"]);
}

async fn a_ttl_is_attached_and_taken_away(fixture: Fixture) {
    fixture.create("a", "x").await;
    for (label, ttl) in [("y", Some(3_600)), ("z", None)] {
        let mut update = Become::new(map("a", label));
        update.ttl = ttl;
        let updated = fixture
            .store
            .guaranteed_update(&key("a"), Default::default(), &mut update)
            .await;
        updated.expect("a write");
        let full = "/registry/configmaps/default/a";
        let read = fixture.backend.range(RangeRequest::key(full)).await;
        assert_eq!(read.expect("a read").kvs[0].lease.is_some(), ttl.is_some());
    }
}

async fn content_that_could_not_be_read_back_is_refused(fixture: Fixture) {
    let created = fixture.create("a", "x").await;
    for broken in [json!("text"), json!({"kind": "ConfigMap", "metadata": 1})] {
        let mut update = Become::new(broken);
        let refused = fixture
            .store
            .guaranteed_update(&key("a"), Default::default(), &mut update)
            .await;
        assert!(matches!(refused, Err(StorageError::Internal { .. })));
    }
    let read = fixture.store.get(&key("a"), Default::default()).await;
    assert_eq!(read.expect("untouched").revision(), created.revision());
}
