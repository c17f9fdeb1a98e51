//! Updates: attempts, preconditions, rejections.

use std::sync::Arc;

use async_trait::async_trait;
use ringwatch::codec;
use ringwatch::meta::Object;
use ringwatch::storage::{
    DeleteOptions, NextContent, Preconditions, Rejection, StorageError, TryUpdate, UpdateOptions,
};
use serde_json::{Value, json};

use super::Subject;
use super::objects::with_node;

pub async fn update_creates_if_it_may(subject: Subject) {
    let mut update = SetNode::to("n1");
    let refused = subject
        .update("ns", "a", UpdateOptions::default(), &mut update)
        .await;
    assert!(refused.unwrap_err().is_not_found());
    update.new = Some(subject.pod("ns", "a"));
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

pub async fn update_that_changes_nothing_writes_nothing(subject: Subject) {
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

pub async fn update_with_an_outdated_suggestion_tries_twice(subject: Subject) {
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

pub async fn update_with_a_suggestion_of_a_deleted_object_is_not_found(subject: Subject) {
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

pub async fn update_retries_when_somebody_writes_in_between(subject: Subject) {
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
    async fn try_update(&mut self, existing: Option<&Object>) -> Result<NextContent, Rejection> {
        let existing = existing.ok_or("gone")?;
        self.seen.push(existing.revision());
        if self.seen.len() == 1 {
            self.subject.set_node("ns", "a", "other").await;
        }
        let mut object = codec::tree(existing)?;
        object["metadata"]["labels"]["mine"] = json!("yes");
        Ok(NextContent { object, ttl: None })
    }
}

pub async fn update_checks_its_preconditions(subject: Subject) {
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

pub async fn a_rejection_of_outdated_content_is_not_believed(subject: Subject) {
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

/// Sets the node name.
pub(crate) struct SetNode {
    node: &'static str,
    /// The object to create where there is none.
    new: Option<Value>,
    only_from: Option<&'static str>,
    ttl: Option<u64>,
    /// The revisions that it was called with.
    seen: Vec<Option<u64>>,
}

impl SetNode {
    pub(crate) fn to(node: &'static str) -> Self {
        Self {
            node,
            new: None,
            only_from: None,
            ttl: None,
            seen: Vec::new(),
        }
    }

    /// Gives the object a time to live in seconds.
    pub(crate) fn expiring(self, seconds: u64) -> Self {
        Self {
            ttl: Some(seconds),
            ..self
        }
    }
}

#[async_trait]
impl TryUpdate for SetNode {
    async fn try_update(&mut self, existing: Option<&Object>) -> Result<NextContent, Rejection> {
        self.seen.push(existing.map(Object::revision));
        let object = match existing {
            None => self.new.clone().ok_or("nothing to create")?,
            Some(existing) => codec::tree(existing)?,
        };
        let from = object["spec"]["nodeName"].as_str().unwrap_or_default();
        if self.only_from.is_some_and(|only| only != from) {
            return Err("not from there".into());
        }
        Ok(NextContent {
            object: with_node(object, self.node),
            ttl: self.ttl,
        })
    }
}
