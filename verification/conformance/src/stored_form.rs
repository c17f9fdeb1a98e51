//! Cases of stores whose objects can be given a time to live and corrupted: those that keep the bytes themselves.

use ringwatch::meta::WatchEvent;
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

/// The one that is made again has no time to live, and its time must not be that of the one before it.
pub async fn an_object_that_is_made_again_outlives_its_former_time(subject: Subject) {
    let create = async |name: &str| {
        let (key, pod) = (key("ns", name), subject.pod("ns", name));
        subject.interface.create(&key, &pod, Some(1)).await.unwrap();
    };
    create("again").await;
    create("updated").await;
    let deleted = subject
        .delete("ns", "again", DeleteOptions::default())
        .await;
    deleted.unwrap();
    subject.create("ns", "again").await;
    subject.set_node("ns", "updated", "n1").await;
    create("goes").await;
    // It was granted its time last.
    expires(&subject, "ns", "goes").await;
    subject.get("ns", "again").await.unwrap();
    subject.get("ns", "updated").await.unwrap();
}

/// They share a revision, of which a watch tells every part.
pub async fn objects_that_expire_together_are_all_told(subject: Subject) {
    const NAMES: [&str; 3] = ["a", "b", "c"];
    let mut watch = subject.watch_from_now("/pods/").await;
    let lease = subject.backend.grant_lease(4).await.unwrap();
    let mut written = Vec::new();
    for name in NAMES {
        written.push(subject.put_leased("ns", name, lease).await);
    }
    let other = subject.create("other", "d").await.revision();
    for (name, revision) in NAMES.into_iter().zip(written) {
        watch.added(name, revision).await;
    }
    watch.added("d", other).await;
    let mut gone = Vec::new();
    for _ in NAMES {
        let WatchEvent::Deleted(object) = watch.change().await else {
            panic!("nothing else happens");
        };
        gone.push((object.name().to_owned(), object.revision()));
    }
    gone.sort_unstable();
    let together = gone[0].1;
    assert_eq!(gone, NAMES.map(|name| (name.to_owned(), together)));
    watch.nothing(&subject).await;
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
