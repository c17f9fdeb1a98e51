//! Writing, reading one object, deleting.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ringwatch::codec;
use ringwatch::meta::{Object, ResourceVersion};
use ringwatch::storage::{
    DeleteOptions, DeletionCheck, GetOptions, ListOptions, NoCheck, Preconditions, Rejection,
    StorageError, TryUpdate, UpdateOptions, Updated,
};
use serde_json::json;

use super::Subject;
use super::objects::{key, pod, with_node};

pub(super) async fn create_returns_what_is_stored(subject: Subject) {
    let created = subject.create("ns", "a").await;
    assert!(created.revision() > 0);
    let json = codec::tree(&created).unwrap();
    assert_eq!(
        json["metadata"]["resourceVersion"],
        created.revision().to_string()
    );
    assert_eq!(
        json["metadata"]["labels"],
        pod("ns", "a")["metadata"]["labels"]
    );
    assert_eq!(
        subject.get("ns", "a").await.unwrap().bytes(),
        created.bytes()
    );
}

pub(super) async fn create_refuses_a_version(subject: Subject) {
    let mut object = pod("ns", "a");
    object["metadata"]["resourceVersion"] = json!("7");
    let refused = subject
        .interface
        .create(&key("ns", "a"), &object, None)
        .await;
    assert!(
        matches!(refused, Err(StorageError::VersionOnCreate)),
        "{refused:?}"
    );
}

pub(super) async fn create_refuses_what_exists(subject: Subject) {
    let created = subject.create("ns", "a").await;
    let again = subject
        .interface
        .create(&key("ns", "a"), &pod("ns", "a"), None)
        .await;
    assert!(
        matches!(again, Err(StorageError::KeyExists { .. })),
        "{again:?}"
    );
    assert_eq!(
        subject.get("ns", "a").await.unwrap().revision(),
        created.revision()
    );
}

pub(super) async fn create_with_a_ttl_expires(subject: Subject) {
    subject
        .interface
        .create(&key("ns", "a"), &pod("ns", "a"), Some(1))
        .await
        .unwrap();
    subject.create("ns", "stays").await;
    subject
        .eventually("the object expires", || async {
            subject
                .get("ns", "a")
                .await
                .is_err_and(|error| error.is_not_found())
        })
        .await;
    subject.get("ns", "stays").await.unwrap();
}

pub(super) async fn get_reads_by_version(subject: Subject) {
    let created = subject.create("ns", "a").await;
    let newer = subject.create("ns", "b").await.revision();
    subject.catch_up().await;
    for version in [None, Some(0), Some(created.revision()), Some(newer)] {
        let options = GetOptions {
            resource_version: version.map(ResourceVersion),
        };
        let found = subject
            .interface
            .get(&key("ns", "a"), options)
            .await
            .unwrap();
        assert_eq!(found.bytes(), created.bytes(), "at {version:?}");
    }
    let options = GetOptions {
        resource_version: Some(ResourceVersion(newer + 1_000_000)),
    };
    let future = subject.interface.get(&key("ns", "a"), options).await;
    assert!(
        matches!(future, Err(StorageError::TooLargeResourceVersion { .. })),
        "{future:?}"
    );
}

pub(super) async fn get_of_nothing_is_not_found(subject: Subject) {
    subject.create("ns", "a").await;
    for version in [None, Some(ResourceVersion(0))] {
        let options = GetOptions {
            resource_version: version,
        };
        let found = subject.interface.get(&key("ns", "none"), options).await;
        assert!(
            matches!(found, Err(StorageError::KeyNotFound { .. })),
            "{found:?}"
        );
    }
}

pub(super) async fn delete_returns_the_last_content_at_its_own_revision(subject: Subject) {
    let created = subject.create("ns", "a").await;
    let deleted = subject
        .delete("ns", "a", DeleteOptions::default())
        .await
        .unwrap();
    assert!(deleted.revision() > created.revision());
    assert_eq!(deleted.stored(), created.stored());
    assert!(subject.get("ns", "a").await.unwrap_err().is_not_found());
    let again = subject.delete("ns", "a", DeleteOptions::default()).await;
    assert!(again.unwrap_err().is_not_found());
}

pub(super) async fn delete_checks_its_preconditions(subject: Subject) {
    let created = subject.create("ns", "a").await;
    let wrong = [
        Preconditions {
            uid: Some("other".to_owned()),
            resource_version: None,
        },
        Preconditions {
            uid: None,
            resource_version: Some("1".to_owned()),
        },
    ];
    for preconditions in wrong {
        let options = DeleteOptions {
            preconditions,
            ..DeleteOptions::default()
        };
        let refused = subject.delete("ns", "a", options).await;
        assert!(
            matches!(refused, Err(StorageError::InvalidObject { .. })),
            "{refused:?}"
        );
    }
    let preconditions = Preconditions {
        uid: Some(created.uid().to_owned()),
        resource_version: Some(created.revision().to_string()),
    };
    let options = DeleteOptions {
        preconditions,
        ..DeleteOptions::default()
    };
    subject.delete("ns", "a", options).await.unwrap();
}

pub(super) async fn delete_with_an_outdated_suggestion_deletes_the_newest(subject: Subject) {
    let old = subject.create("ns", "a").await;
    let newest = subject.set_node("ns", "a", "n1").await;
    let options = DeleteOptions {
        cached_existing: Some(old),
        ..DeleteOptions::default()
    };
    let deleted = subject.delete("ns", "a", options).await.unwrap();
    assert_eq!(deleted.stored(), newest.stored());
}

pub(super) async fn delete_with_a_suggestion_of_a_deleted_object_is_not_found(subject: Subject) {
    let old = subject.create("ns", "a").await;
    subject
        .delete("ns", "a", DeleteOptions::default())
        .await
        .unwrap();
    let options = DeleteOptions {
        cached_existing: Some(old),
        ..DeleteOptions::default()
    };
    let again = subject.delete("ns", "a", options).await;
    assert!(again.unwrap_err().is_not_found());
}

pub(super) async fn a_deletion_check_decides_on_the_newest_content(subject: Subject) {
    let old = subject.create("ns", "a").await;
    let newest = subject.set_node("ns", "a", "n1").await;
    for (wanted, suggestion) in [
        ("n2", Some(Arc::clone(&old))),
        ("n1", Some(old)),
        ("n1", None),
    ] {
        let options = DeleteOptions {
            cached_existing: suggestion,
            ..DeleteOptions::default()
        };
        let mut check = OnNode {
            wanted,
            seen: Vec::new(),
        };
        let outcome = subject
            .interface
            .delete(&key("ns", "a"), options, &mut check)
            .await;
        assert_eq!(
            check.seen.last(),
            Some(&newest.revision()),
            "the newest was looked at last"
        );
        if wanted == "n2" {
            assert!(
                matches!(outcome, Err(StorageError::Rejected(_))),
                "{outcome:?}"
            );
        } else {
            outcome.unwrap();
            return;
        }
    }
}

struct OnNode {
    wanted: &'static str,
    seen: Vec<u64>,
}

#[async_trait]
impl DeletionCheck for OnNode {
    async fn check(&mut self, existing: &Object) -> Result<(), Rejection> {
        self.seen.push(existing.revision());
        let found = existing.attributes().field("spec.nodeName") == Some(self.wanted);
        if found {
            Ok(())
        } else {
            Err("another node".into())
        }
    }
}

pub(super) async fn update_creates_if_it_may(subject: Subject) {
    let mut update = SetNode::to("n1");
    let refused = subject
        .update("ns", "a", UpdateOptions::default(), &mut update)
        .await;
    assert!(refused.unwrap_err().is_not_found());
    let options = UpdateOptions {
        ignore_not_found: true,
        ..UpdateOptions::default()
    };
    let created = subject
        .update("ns", "a", options, &mut update)
        .await
        .unwrap();
    assert_eq!(update.seen, [None]);
    assert_eq!(
        subject.get("ns", "a").await.unwrap().bytes(),
        created.bytes()
    );
}

pub(super) async fn update_that_changes_nothing_writes_nothing(subject: Subject) {
    let created = subject.create("ns", "a").await;
    for suggestion in [None, Some(Arc::clone(&created))] {
        let options = UpdateOptions {
            cached_existing: suggestion,
            ..UpdateOptions::default()
        };
        let mut update = SetNode::to("");
        let unchanged = subject
            .update("ns", "a", options, &mut update)
            .await
            .unwrap();
        assert_eq!(unchanged.bytes(), created.bytes());
    }
    assert_eq!(
        subject.get("ns", "a").await.unwrap().revision(),
        created.revision()
    );
}

pub(super) async fn update_with_an_outdated_suggestion_tries_twice(subject: Subject) {
    let old = subject.create("ns", "a").await;
    let newest = subject.set_node("ns", "a", "n1").await;
    let options = UpdateOptions {
        cached_existing: Some(old),
        ..UpdateOptions::default()
    };
    let mut update = SetNode::to("n2");
    let updated = subject
        .update("ns", "a", options, &mut update)
        .await
        .unwrap();
    assert!(updated.revision() > newest.revision());
    assert!(update.seen.len() <= 2, "{:?}", update.seen);
    assert_eq!(update.seen.last(), Some(&Some(newest.revision())));
}

pub(super) async fn update_with_a_suggestion_of_a_deleted_object_is_not_found(subject: Subject) {
    let old = subject.create("ns", "a").await;
    subject
        .delete("ns", "a", DeleteOptions::default())
        .await
        .unwrap();
    let options = UpdateOptions {
        cached_existing: Some(old),
        ..UpdateOptions::default()
    };
    let outcome = subject
        .update("ns", "a", options, &mut SetNode::to("n2"))
        .await;
    assert!(outcome.unwrap_err().is_not_found());
}

pub(super) async fn update_retries_when_somebody_writes_in_between(subject: Subject) {
    let created = subject.create("ns", "a").await;
    let mut update = Interrupted {
        subject: &subject,
        seen: Vec::new(),
    };
    let updated = subject
        .update("ns", "a", UpdateOptions::default(), &mut update)
        .await
        .unwrap();
    assert_eq!(update.seen.first(), Some(&created.revision()));
    assert_eq!(
        update.seen.len(),
        2,
        "one try each before and after the other's write"
    );
    let value = codec::tree(&updated).unwrap();
    assert_eq!(
        value["spec"]["nodeName"], "other",
        "the other's write is kept"
    );
    assert_eq!(value["metadata"]["labels"]["mine"], "yes");
}

/// Sets a label; somebody else sets the node during the first try.
struct Interrupted<'a> {
    subject: &'a Subject,
    seen: Vec<u64>,
}

#[async_trait]
impl TryUpdate for Interrupted<'_> {
    async fn try_update(&mut self, existing: Option<&Object>) -> Result<Updated, Rejection> {
        let existing = existing.ok_or("gone")?;
        self.seen.push(existing.revision());
        if self.seen.len() == 1 {
            self.subject.set_node("ns", "a", "other").await;
        }
        let mut object = codec::tree(existing)?;
        object["metadata"]["labels"]["mine"] = json!("yes");
        Ok(Updated { object, ttl: None })
    }
}

pub(super) async fn update_checks_its_preconditions(subject: Subject) {
    let created = subject.create("ns", "a").await;
    let with_uid = |uid: &str| UpdateOptions {
        preconditions: Preconditions {
            uid: Some(uid.to_owned()),
            resource_version: None,
        },
        ..UpdateOptions::default()
    };
    let refused = subject
        .update("ns", "a", with_uid("other"), &mut SetNode::to("n1"))
        .await;
    assert!(
        matches!(refused, Err(StorageError::InvalidObject { .. })),
        "{refused:?}"
    );
    let mut update = SetNode::to("n1");
    subject
        .update("ns", "a", with_uid(created.uid()), &mut update)
        .await
        .unwrap();
}

pub(super) async fn a_rejection_of_outdated_content_is_not_believed(subject: Subject) {
    let old = subject.create("ns", "a").await;
    subject.set_node("ns", "a", "n1").await;
    let options = UpdateOptions {
        cached_existing: Some(old),
        ..UpdateOptions::default()
    };
    let mut update = SetNode {
        only_from: Some("n1"),
        ..SetNode::to("n2")
    };
    subject
        .update("ns", "a", options, &mut update)
        .await
        .unwrap();
    let mut update = SetNode {
        only_from: Some("n7"),
        ..SetNode::to("n2")
    };
    let refused = subject
        .update("ns", "a", UpdateOptions::default(), &mut update)
        .await;
    assert!(
        matches!(refused, Err(StorageError::Rejected(_))),
        "{refused:?}"
    );
}

pub(super) async fn update_can_set_a_ttl(subject: Subject) {
    subject.create("ns", "a").await;
    let mut update = SetNode {
        ttl: Some(1),
        ..SetNode::to("n1")
    };
    subject
        .update("ns", "a", UpdateOptions::default(), &mut update)
        .await
        .unwrap();
    subject
        .eventually("the object expires", || async {
            subject
                .get("ns", "a")
                .await
                .is_err_and(|error| error.is_not_found())
        })
        .await;
}

/// Sets the node name.
pub(super) struct SetNode {
    node: &'static str,
    only_from: Option<&'static str>,
    ttl: Option<u64>,
    /// The revisions that it was called with.
    seen: Vec<Option<u64>>,
}

impl SetNode {
    pub(super) fn to(node: &'static str) -> Self {
        Self {
            node,
            only_from: None,
            ttl: None,
            seen: Vec::new(),
        }
    }
}

#[async_trait]
impl TryUpdate for SetNode {
    async fn try_update(&mut self, existing: Option<&Object>) -> Result<Updated, Rejection> {
        self.seen.push(existing.map(Object::revision));
        let object = match existing {
            None => pod("ns", "a"),
            Some(existing) => codec::tree(existing)?,
        };
        let from = object["spec"]["nodeName"].as_str().unwrap_or_default();
        if self.only_from.is_some_and(|only| only != from) {
            return Err("not from there".into());
        }
        Ok(Updated {
            object: with_node(object, self.node),
            ttl: self.ttl,
        })
    }
}

pub(super) async fn keys_cannot_lead_out_of_their_type(subject: Subject) {
    for bad in ["", ".", "..", "/pods/../secrets/a", "/pods/./a"] {
        let refused = subject.interface.create(bad, &pod("ns", "a"), None).await;
        assert!(
            matches!(refused, Err(StorageError::InvalidKey(_))),
            "{bad:?}: {refused:?}"
        );
        let refused = subject
            .interface
            .delete(bad, DeleteOptions::default(), &mut NoCheck)
            .await;
        assert!(
            matches!(refused, Err(StorageError::InvalidKey(_))),
            "{bad:?}: {refused:?}"
        );
    }
    for bad in ["/pods/../", "/pods/./", "/pods/a/../"] {
        let options = || ListOptions {
            recursive: true,
            ..ListOptions::default()
        };
        let refused = subject.interface.get_list(bad, options()).await;
        assert!(
            matches!(refused, Err(StorageError::InvalidKey(_))),
            "{bad:?}: {refused:?}"
        );
        let refused = subject.interface.watch(bad, options()).await.err();
        assert!(
            matches!(refused, Some(StorageError::InvalidKey(_))),
            "{bad:?}: {refused:?}"
        );
    }
}

pub(super) async fn stats_count_objects(subject: Subject) {
    assert_eq!(subject.interface.stats().await.unwrap().object_count, 0);
    for name in ["a", "b", "c"] {
        subject.create("ns", name).await;
    }
    let stats = subject.interface.stats().await.unwrap();
    assert_eq!(stats.object_count, 3);
    let size = subject.get("ns", "a").await.unwrap().stored().len() as u64;
    assert_eq!(stats.estimated_average_object_size_bytes, size);
}

pub(super) async fn corrupt_objects_are_named_and_stop_no_other(subject: Subject) {
    subject.create("ns", "good").await;
    subject.put_raw("ns", "bad", "not an object").await;
    let read = subject.get("ns", "bad").await;
    assert!(
        matches!(read, Err(StorageError::Corrupt { .. })),
        "{read:?}"
    );
    subject.get("ns", "good").await.unwrap();
    let Err(StorageError::Corrupt { keys }) = subject.list("/pods/", |_| {}).await else {
        panic!("a list cannot leave out what it cannot read");
    };
    assert_eq!(keys.len(), 1, "{keys:?}");
    assert!(keys[0].0.ends_with("/pods/ns/bad"), "{keys:?}");

    let unsafely = DeleteOptions {
        expect_decode_error: true,
        ..DeleteOptions::default()
    };
    let refused = subject.delete("ns", "good", unsafely.clone()).await;
    refused.expect_err("what can be read is not deleted unsafely");
    subject.delete("ns", "bad", unsafely).await.unwrap();
    subject
        .eventually("lists work again", || async {
            subject.list("/pods/", |_| {}).await.is_ok()
        })
        .await;
}

pub(super) async fn the_current_version_is_that_of_the_last_write(subject: Subject) {
    let created = subject.create("ns", "a").await;
    let current = subject.interface.current_resource_version().await.unwrap();
    assert_eq!(current, ResourceVersion(created.revision()));
    let deadline = Duration::from_secs(10);
    tokio::time::timeout(deadline, subject.interface.request_watch_progress())
        .await
        .expect("an answer")
        .unwrap();
}
