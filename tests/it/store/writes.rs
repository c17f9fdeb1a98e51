//! Creating, reading and deleting.

use async_trait::async_trait;
use ringwatch::meta::{Object, ResourceVersion};
use ringwatch::storage::backend::RangeRequest;
use ringwatch::storage::{
    DeleteOptions, DeletionCheck, GetOptions, Interface as _, NoCheck, Preconditions, Rejection,
    StorageError,
};
use serde_json::json;

use super::{Fixture, app, key, map, over_backends};

over_backends!(
    create_stores_without_a_version_and_returns_with_it,
    create_refuses_what_exists_and_what_has_a_version,
    create_with_ttl_attaches_a_lease,
    get_honours_the_minimum_version,
    get_of_a_corrupt_value_is_an_error,
    keys_cannot_lead_out,
    delete_checks_its_preconditions,
    delete_asks_again_when_the_cached_copy_is_outdated,
    delete_believes_a_refusal_of_current_content,
    delete_of_what_is_gone_is_not_found,
    delete_sees_what_is_written_in_between,
    only_corrupt_values_are_deleted_as_corrupt,
);

async fn create_stores_without_a_version_and_returns_with_it(fixture: Fixture) {
    let created = fixture.create("a", "x").await;
    let full = "/registry/configmaps/default/a";
    let stored = fixture.backend.range(RangeRequest::key(full)).await;
    let stored = stored.expect("a read").kvs.remove(0);
    assert_eq!(stored.mod_revision, created.revision());
    assert_eq!(stored.value, *created.stored());
    assert!(!String::from_utf8_lossy(&stored.value).contains("resourceVersion"));
    let read = fixture.store.get(&key("a"), GetOptions::default()).await;
    assert_eq!(read.expect("the object").bytes(), created.bytes());
}

async fn create_refuses_what_exists_and_what_has_a_version(fixture: Fixture) {
    fixture.create("a", "x").await;
    let again = fixture.store.create(&key("a"), &map("a", "y"), None).await;
    assert!(matches!(again, Err(StorageError::KeyExists { key })
        if key == "/registry/configmaps/default/a"));
    let mut versioned = map("b", "x");
    versioned["metadata"]["resourceVersion"] = json!("5");
    let refused = fixture.store.create(&key("b"), &versioned, None).await;
    assert!(matches!(refused, Err(StorageError::VersionOnCreate)));
}

async fn create_with_ttl_attaches_a_lease(fixture: Fixture) {
    for (name, ttl) in [("a", Some(3_600)), ("b", Some(3_600)), ("c", None)] {
        let created = fixture.store.create(&key(name), &map(name, "x"), ttl).await;
        created.expect("a new object");
    }
    let mut leases = Vec::new();
    for name in ["a", "b", "c"] {
        let full = format!("/registry{}", key(name));
        let read = fixture.backend.range(RangeRequest::key(full)).await;
        leases.push(read.expect("a read").kvs[0].lease);
    }
    assert!(leases[0].is_some());
    assert_eq!(leases[0], leases[1], "leases are shared");
    assert_eq!(leases[2], None);
}

async fn get_honours_the_minimum_version(fixture: Fixture) {
    let created = fixture.create("a", "x").await;
    let at = |revision| GetOptions {
        resource_version: Some(ResourceVersion(revision)),
    };
    for revision in [0, 1, created.revision()] {
        let read = fixture.store.get(&key("a"), at(revision)).await;
        assert_eq!(read.expect("the object").revision(), created.revision());
    }
    let future = fixture
        .store
        .get(&key("a"), at(created.revision() + 10))
        .await;
    assert!(matches!(future, Err(StorageError::TooLargeResourceVersion {
        requested, current, retry_after_seconds: 0,
    }) if requested == current + 10 && current == created.revision()));
    let missing = fixture.store.get(&key("b"), GetOptions::default()).await;
    assert!(missing.expect_err("nothing there").is_not_found());
}

async fn get_of_a_corrupt_value_is_an_error(fixture: Fixture) {
    let full = "/registry/configmaps/default/bad";
    fixture.write_raw(full, "garbage").await;
    let read = fixture.store.get(&key("bad"), GetOptions::default()).await;
    assert!(matches!(read, Err(StorageError::Corrupt { keys }) if keys[0].0 == full));
}

async fn keys_cannot_lead_out(fixture: Fixture) {
    for key in [
        "",
        "/",
        "..",
        "/configmaps/..",
        "/configmaps/../secrets/a",
        "/configmaps//a",
    ] {
        let read = fixture.store.get(key, GetOptions::default()).await;
        assert!(matches!(read, Err(StorageError::InvalidKey(_))), "{key:?}");
    }
}

async fn delete_checks_its_preconditions(fixture: Fixture) {
    let created = fixture.create("a", "x").await;
    for preconditions in [
        Preconditions {
            uid: Some("other".to_owned()),
            resource_version: None,
        },
        Preconditions {
            uid: None,
            resource_version: Some("1".to_owned()),
        },
    ] {
        let options = DeleteOptions {
            preconditions,
            ..DeleteOptions::default()
        };
        let refused = fixture.store.delete(&key("a"), options, &mut NoCheck).await;
        assert!(matches!(refused, Err(StorageError::InvalidObject { .. })));
    }
    let options = DeleteOptions {
        preconditions: Preconditions {
            uid: Some("uid-a".to_owned()),
            resource_version: Some(created.revision().to_string()),
        },
        ..DeleteOptions::default()
    };
    let deleted = fixture.store.delete(&key("a"), options, &mut NoCheck).await;
    let deleted = deleted.expect("conditions that hold");
    assert_eq!(deleted.stored(), created.stored());
    assert_eq!(deleted.revision(), created.revision() + 1);
}

/// Agrees only to the label `y`, and counts.
struct OnlyY(u32);

#[async_trait]
impl DeletionCheck for OnlyY {
    async fn check(&mut self, existing: &Object) -> Result<(), Rejection> {
        self.0 += 1;
        if app(existing) == "y" {
            return Ok(());
        }
        Err("not y".into())
    }
}

async fn delete_asks_again_when_the_cached_copy_is_outdated(fixture: Fixture) {
    let outdated = fixture.create("a", "x").await;
    let current = fixture.label("a", "y").await;
    let options = DeleteOptions {
        cached_existing: Some(outdated),
        ..DeleteOptions::default()
    };
    let mut check = OnlyY(0);
    let deleted = fixture.store.delete(&key("a"), options, &mut check).await;
    assert_eq!(deleted.expect("a second look").stored(), current.stored());
    assert_eq!(check.0, 2);
}

async fn delete_believes_a_refusal_of_current_content(fixture: Fixture) {
    let outdated = fixture.create("a", "y").await;
    let current = fixture.label("a", "x").await;
    // An outdated copy that would do does not help: the deletion compares revisions.
    for cached in [Some(outdated), Some(current), None] {
        let options = DeleteOptions {
            cached_existing: cached,
            ..DeleteOptions::default()
        };
        let refused = fixture
            .store
            .delete(&key("a"), options, &mut OnlyY(0))
            .await;
        assert!(matches!(refused, Err(StorageError::Rejected(error))
            if error.to_string() == "not y"));
    }
    assert!(
        fixture
            .store
            .get(&key("a"), GetOptions::default())
            .await
            .is_ok()
    );
}

async fn delete_of_what_is_gone_is_not_found(fixture: Fixture) {
    let cached = fixture.create("a", "x").await;
    fixture.delete("a").await;
    for cached_existing in [Some(cached), None] {
        let options = DeleteOptions {
            cached_existing,
            ..DeleteOptions::default()
        };
        let missing = fixture.store.delete(&key("a"), options, &mut NoCheck).await;
        assert!(missing.expect_err("it is gone").is_not_found());
    }
}

/// Changes the object behind the deletion's back, once.
struct WriteInBetween<'a>(&'a Fixture, Vec<String>);

#[async_trait]
impl DeletionCheck for WriteInBetween<'_> {
    async fn check(&mut self, existing: &Object) -> Result<(), Rejection> {
        if self.1.is_empty() {
            self.0.label("a", "y").await;
        }
        self.1.push(app(existing).to_owned());
        Ok(())
    }
}

async fn delete_sees_what_is_written_in_between(fixture: Fixture) {
    fixture.create("a", "x").await;
    let mut check = WriteInBetween(&fixture, Vec::new());
    let options = DeleteOptions::default();
    let deleted = fixture.store.delete(&key("a"), options, &mut check).await;
    assert_eq!(app(&deleted.expect("the second try")), "y");
    assert_eq!(check.1, ["x", "y"]);
}

async fn only_corrupt_values_are_deleted_as_corrupt(fixture: Fixture) {
    let revision = fixture
        .write_raw("/registry/configmaps/default/bad", "garbage")
        .await;
    fixture.create("good", "x").await;
    let unsafe_deletion = DeleteOptions {
        expect_decode_error: true,
        ..DeleteOptions::default()
    };
    let plain = DeleteOptions::default();
    let refused = fixture.store.delete(&key("bad"), plain, &mut NoCheck).await;
    assert!(matches!(refused, Err(StorageError::Corrupt { .. })));
    let options = unsafe_deletion.clone();
    let refused = fixture
        .store
        .delete(&key("good"), options, &mut NoCheck)
        .await;
    assert!(matches!(refused, Err(StorageError::InvalidObject { .. })));
    let options = unsafe_deletion.clone();
    let deleted = fixture
        .store
        .delete(&key("bad"), options, &mut NoCheck)
        .await;
    let deleted = deleted.expect("what cannot be read may go");
    assert_eq!((deleted.name(), deleted.revision()), ("bad", revision + 2));
    let missing = fixture
        .store
        .delete(&key("bad"), unsafe_deletion, &mut NoCheck)
        .await;
    assert!(missing.expect_err("it is gone").is_not_found());
}
