//! Creating, reading one object, deleting; keys and counts.

use std::sync::Arc;

use async_trait::async_trait;
use ringwatch::codec;
use ringwatch::meta::{Object, ResourceVersion};
use ringwatch::storage::{
    DeleteOptions, DeletionCheck, GetOptions, ListOptions, NoCheck, Preconditions, Rejection,
    StorageError,
};
use ringwatch_testing::eventually::DEADLINE;
use serde_json::json;

use super::Subject;
use super::objects::key;

pub async fn create_returns_what_is_stored(subject: Subject) {
    let created = subject.create("ns", "a").await;
    assert!(created.revision() > 0);
    let json = codec::tree(&created).unwrap();
    assert_eq!(
        json["metadata"]["resourceVersion"],
        created.revision().to_string()
    );
    assert_eq!(
        json["metadata"]["labels"],
        subject.pod("ns", "a")["metadata"]["labels"]
    );
    assert_eq!(
        subject.get("ns", "a").await.unwrap().bytes(),
        created.bytes()
    );
}

pub async fn create_refuses_a_version(subject: Subject) {
    let mut object = subject.pod("ns", "a");
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

pub async fn create_refuses_what_exists(subject: Subject) {
    let created = subject.create("ns", "a").await;
    let again = subject
        .interface
        .create(&key("ns", "a"), &subject.pod("ns", "a"), None)
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

pub async fn get_reads_by_version(subject: Subject) {
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

pub async fn get_of_nothing_is_not_found(subject: Subject) {
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

pub async fn delete_returns_the_last_content_at_its_own_revision(subject: Subject) {
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

pub async fn delete_checks_its_preconditions(subject: Subject) {
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

pub async fn delete_with_an_outdated_suggestion_deletes_the_newest(subject: Subject) {
    let old = subject.create("ns", "a").await;
    let newest = subject.set_node("ns", "a", "n1").await;
    let options = DeleteOptions {
        cached_existing: Some(old),
        ..DeleteOptions::default()
    };
    let deleted = subject.delete("ns", "a", options).await.unwrap();
    assert_eq!(deleted.stored(), newest.stored());
}

pub async fn delete_with_a_suggestion_of_a_deleted_object_is_not_found(subject: Subject) {
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

pub async fn a_deletion_check_decides_on_the_newest_content(subject: Subject) {
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

pub async fn keys_cannot_lead_out_of_their_type(subject: Subject) {
    for bad in ["", ".", "..", "/pods/../secrets/a", "/pods/./a"] {
        let refused = subject
            .interface
            .create(bad, &subject.pod("ns", "a"), None)
            .await;
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

pub async fn stats_count_objects(subject: Subject) {
    assert_eq!(subject.interface.stats().await.unwrap().object_count, 0);
    for name in ["a", "b", "c"] {
        subject.create("ns", name).await;
    }
    let stats = subject.interface.stats().await.unwrap();
    assert_eq!(stats.object_count, 3);
    let size = subject.get("ns", "a").await.unwrap().stored().len() as u64;
    assert_eq!(stats.estimated_average_object_size_bytes, size);
}

pub async fn the_current_version_is_that_of_the_last_write(subject: Subject) {
    let created = subject.create("ns", "a").await;
    let current = subject.interface.current_resource_version().await.unwrap();
    assert!(current >= ResourceVersion(created.revision()));
    if subject.is_alone {
        assert_eq!(current, ResourceVersion(created.revision()));
    }
    tokio::time::timeout(DEADLINE, subject.interface.request_watch_progress())
        .await
        .expect("an answer")
        .unwrap();
}
