//! Cases of stores whose objects can be given a time to live and corrupted: those that keep the bytes themselves.

use ringwatch::storage::{DeleteOptions, StorageError, UpdateOptions};
use ringwatch_testing::eventually::{DEADLINE, eventually};

use super::Subject;
use super::objects::key;
use super::updates::SetNode;

pub async fn create_with_a_ttl_expires(subject: Subject) {
    subject
        .interface
        .create(&key("ns", "a"), &subject.pod("ns", "a"), Some(1))
        .await
        .unwrap();
    subject.create("ns", "stays").await;
    expires(&subject, "ns", "a").await;
    subject.get("ns", "stays").await.unwrap();
}

/// Waits until an object has expired.
async fn expires(subject: &Subject, namespace: &str, name: &str) {
    eventually(DEADLINE, "the object expires", async || {
        let read = subject.get(namespace, name).await;
        read.is_err_and(|error| error.is_not_found())
    })
    .await;
}

pub async fn update_can_set_a_ttl(subject: Subject) {
    subject.create("ns", "a").await;
    let mut update = SetNode::to("n1").expiring(1);
    subject
        .update("ns", "a", UpdateOptions::default(), &mut update)
        .await
        .unwrap();
    expires(&subject, "ns", "a").await;
}

pub async fn corrupt_objects_are_named_and_stop_no_other(subject: Subject) {
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
    eventually(DEADLINE, "lists work again", async || {
        subject.list("/pods/", |_| {}).await.is_ok()
    })
    .await;
}
