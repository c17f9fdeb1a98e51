//! Writes that lose a race: what was checked before somebody else was faster is checked again.

use async_trait::async_trait;
use ringwatch::codec;
use ringwatch::meta::Object;
use ringwatch::storage::{
    DeleteOptions, DeletionCheck, NextContent, Preconditions, Rejection, StorageError, TryUpdate,
    UpdateOptions,
};
use serde_json::{Value, json};

use super::Subject;
use super::objects::key;

/// The deed of somebody else to the object between a writer's look at it and its write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meanwhile {
    Changes,
    Deletes,
    /// Deletes it and creates another one under its name.
    Replaces,
}

const ALL: [Meanwhile; 3] = [Meanwhile::Changes, Meanwhile::Deletes, Meanwhile::Replaces];

/// A writer that is overtaken the first time that it looks. It may give its object a label.
struct Overtaken<'a> {
    subject: &'a Subject,
    name: &'a str,
    meanwhile: Meanwhile,
    /// The object to create where there is none.
    new: Option<Value>,
    /// The revisions that it has looked at.
    seen: Vec<u64>,
}

impl<'a> Overtaken<'a> {
    fn new(subject: &'a Subject, name: &'a str, meanwhile: Meanwhile) -> Self {
        Self {
            subject,
            name,
            meanwhile,
            new: None,
            seen: Vec::new(),
        }
    }

    async fn look(&mut self, existing: &Object) {
        self.seen.push(existing.revision());
        if self.seen.len() > 1 {
            return;
        }
        let (subject, name) = (self.subject, self.name);
        if self.meanwhile == Meanwhile::Changes {
            // Another value each time, or nothing would be written.
            let value = existing.revision().to_string();
            subject.label("ns", name, "other", &value).await;
            return;
        }
        let deleted = subject.delete("ns", name, DeleteOptions::default()).await;
        deleted.expect("it is there");
        if self.meanwhile == Meanwhile::Replaces {
            subject.create("ns", name).await;
        }
    }
}

#[async_trait]
impl DeletionCheck for Overtaken<'_> {
    async fn check(&mut self, existing: &Object) -> Result<(), Rejection> {
        self.look(existing).await;
        Ok(())
    }
}

#[async_trait]
impl TryUpdate for Overtaken<'_> {
    async fn try_update(&mut self, existing: Option<&Object>) -> Result<NextContent, Rejection> {
        let Some(existing) = existing else {
            let object = self.new.clone().ok_or("gone")?;
            return Ok(NextContent { object, ttl: None });
        };
        self.look(existing).await;
        let mut object = codec::tree(existing)?;
        object["metadata"]["labels"]["mine"] = json!("yes");
        Ok(NextContent { object, ttl: None })
    }
}

/// Returns the precondition that an object is still as it is.
fn unchanged(object: &Object) -> Preconditions {
    Preconditions {
        uid: None,
        resource_version: Some(object.revision().to_string()),
    }
}

/// Checks that a write was refused because the object is not what was demanded, or is there no more, and that it was
/// left alone.
async fn is_refused<T: std::fmt::Debug>(
    subject: &Subject,
    name: &str,
    meanwhile: Meanwhile,
    outcome: Result<T, StorageError>,
) {
    let refusal = outcome.expect_err("somebody else was faster");
    let left = subject.get("ns", name).await;
    if meanwhile == Meanwhile::Deletes {
        assert!(refusal.is_not_found(), "{refusal:?}");
        assert!(left.expect_err("deleted").is_not_found());
        return;
    }
    let is_unmet = matches!(refusal, StorageError::InvalidObject { .. });
    assert!(is_unmet, "{meanwhile:?}: {refusal:?}");
    let left = left.expect("nobody deleted this one");
    assert_eq!(left.attributes().labels().get("mine"), None);
}

pub async fn a_deletion_that_lost_a_race_checks_its_preconditions_again(subject: Subject) {
    for (name, meanwhile) in ["a", "b", "c"].into_iter().zip(ALL) {
        let created = subject.create("ns", name).await;
        for cached_existing in [None, Some(created.clone())] {
            let now = match subject.get("ns", name).await {
                Ok(now) => now,
                Err(_) => subject.create("ns", name).await,
            };
            let options = DeleteOptions {
                preconditions: unchanged(&now),
                cached_existing,
                ..DeleteOptions::default()
            };
            let mut check = Overtaken::new(&subject, name, meanwhile);
            let deleted = subject
                .interface
                .delete(&key("ns", name), options, &mut check)
                .await;
            assert_eq!(check.seen, [now.revision()], "{meanwhile:?}");
            is_refused(&subject, name, meanwhile, deleted).await;
        }
    }
}

pub async fn an_update_that_lost_a_race_checks_its_preconditions_again(subject: Subject) {
    for (name, meanwhile) in ["a", "b", "c"].into_iter().zip(ALL) {
        let created = subject.create("ns", name).await;
        let options = UpdateOptions {
            preconditions: unchanged(&created),
            ..UpdateOptions::default()
        };
        let mut update = Overtaken::new(&subject, name, meanwhile);
        let updated = subject.update("ns", name, options, &mut update).await;
        assert_eq!(update.seen, [created.revision()], "{meanwhile:?}");
        is_refused(&subject, name, meanwhile, updated).await;
    }
}

pub async fn an_update_that_may_create_does_so_after_a_deletion_that_was_faster(subject: Subject) {
    subject.create("ns", "a").await;
    let mut update = Overtaken::new(&subject, "a", Meanwhile::Deletes);
    update.new = Some(subject.pod("ns", "a"));
    let options = UpdateOptions {
        ignore_not_found: true,
        ..UpdateOptions::default()
    };
    let created = subject.update("ns", "a", options, &mut update).await;
    let created = created.expect("created anew").revision();
    assert_eq!(subject.get("ns", "a").await.unwrap().revision(), created);
}

/// Without a precondition the writer is asked again, and decides on what there is then.
pub async fn a_write_that_lost_a_race_is_decided_again(subject: Subject) {
    for (name, meanwhile) in ["a", "b", "c"].into_iter().zip(ALL) {
        let created = subject.create("ns", name).await;
        let mut update = Overtaken::new(&subject, name, meanwhile);
        let options = UpdateOptions::default();
        let updated = subject.update("ns", name, options, &mut update).await;
        if meanwhile == Meanwhile::Deletes {
            assert!(updated.expect_err("gone").is_not_found());
            continue;
        }
        let updated = updated.expect("decided again");
        assert_eq!(update.seen.len(), 2, "{meanwhile:?}");
        assert!(update.seen[1] > created.revision());
        assert_eq!(updated.attributes().labels().get("mine"), Some("yes"));
        let mut check = Overtaken::new(&subject, name, Meanwhile::Changes);
        let deleted = subject
            .interface
            .delete(&key("ns", name), DeleteOptions::default(), &mut check)
            .await;
        let deleted = deleted.expect("decided again");
        assert_eq!(check.seen.len(), 2);
        let other = check.seen[0].to_string();
        let labels = deleted.attributes().labels();
        assert_eq!(
            labels.get("other"),
            Some(&*other),
            "the other's write was seen"
        );
    }
}
