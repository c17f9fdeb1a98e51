//! Deleting objects.

use std::sync::Arc;

use async_trait::async_trait;

use super::before_delete::Grace;
use super::begin_deletion::Begun;
use super::garbage_collection::deletion_finalizers;
use super::interpret::{Operation, interpret};
use super::read::value_of;
use super::{Deleted, Store, dry_run};
use crate::meta::Object;
use crate::registry::accessor::{finalizers, format_time, is_terminating, set, set_finalizers};
use crate::registry::{DeleteOptions, Error, RequestContext};
use crate::storage::{
    self, DeletionCheck, GetOptions, NoCheck, Preconditions, Rejection, StorageError, TryUpdate,
    Updated,
};

impl Store {
    /// Deletes an object, or begins to.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Invalid`] for the options, [`Error::Conflict`] when a
    /// precondition does not hold, [`Error::Forbidden`] for what may not be deleted.
    pub async fn delete(
        &self,
        context: &RequestContext,
        namespace: &str,
        name: &str,
        mut options: DeleteOptions,
    ) -> Result<Deleted, Error> {
        let wrong = options.validate();
        if !wrong.is_empty() {
            return Err(Error::Invalid {
                kind: "DeleteOptions.meta.k8s.io".to_owned(),
                name: String::new(),
                errors: wrong,
            });
        }
        let key = self.key(namespace, name)?;
        let existing = self.storage.get(&key, GetOptions::default()).await;
        let existing = existing.map_err(|error| self.undeletable(error, name))?;
        if let Some(lifecycle) = &self.lifecycle {
            lifecycle.admit_delete(&self.resource, name)?;
        }
        let mut object = value_of(&existing)?;
        if self.strategy().holds_deletion(&object) {
            return self.delete_held(context, &key, existing, &options).await;
        }
        let mut preconditions = preconditions(&options);
        let grace = self.before_delete(context, &mut object, &mut options)?;
        if grace == Grace::Pending {
            return Ok(self.waiting(existing));
        }
        let default = self.strategy().default_garbage_collection();
        let mut last = None;
        if grace == Grace::Begun
            || !finalizers(&object).is_empty()
            || deletion_finalizers(&object, &options, default).is_some()
        {
            let begun = self
                .begin_deletion(context, &key, name, &mut options, preconditions.clone())
                .await?;
            match begun {
                Begun::Waiting(object) => {
                    return Ok(Deleted {
                        object,
                        finished: false,
                        returns_object: true,
                    });
                }
                Begun::AlreadyWaiting => return Ok(self.waiting(existing)),
                Begun::Expired(object) => last = Some(object),
                Begun::Now => {}
            }
            if options.dry_run {
                return Ok(Deleted {
                    object: last.unwrap_or(existing),
                    finished: true,
                    returns_object: true,
                });
            }
        }
        if let (Some(last), Some(version)) = (&last, &mut preconditions.resource_version) {
            *version = last.revision().to_string();
        }
        self.finish(&key, name, preconditions, last, options.dry_run)
            .await
    }

    /// Takes the object out of the storage. `last` is its content if its grace period had been
    /// noted: then somebody else may take it out first.
    async fn finish(
        &self,
        key: &str,
        name: &str,
        preconditions: Preconditions,
        last: Option<Arc<Object>>,
        dry_run: bool,
    ) -> Result<Deleted, Error> {
        let removed = self.remove(key, preconditions, &mut NoCheck, dry_run).await;
        let object = match (removed, last) {
            (Ok(object), _) | (Err(StorageError::KeyNotFound { .. }), Some(object)) => object,
            (Err(error), _) => return Err(self.undeletable(error, name)),
        };
        self.after_delete(&object, dry_run)?;
        Ok(Deleted {
            object,
            finished: true,
            returns_object: self.strategy().returns_deleted_object(),
        })
    }

    /// Takes an object out of the storage, or pretends to.
    pub(super) async fn remove(
        &self,
        key: &str,
        preconditions: Preconditions,
        check: &mut dyn DeletionCheck,
        dry_run: bool,
    ) -> Result<Arc<Object>, StorageError> {
        if dry_run {
            return dry_run::delete(&*self.storage, key, &preconditions, check).await;
        }
        let options = storage::DeleteOptions {
            preconditions,
            ..storage::DeleteOptions::default()
        };
        self.storage.delete(key, options, check).await
    }

    /// Gives back what a deleted object held, and tells who wants to know.
    pub(super) fn after_delete(&self, object: &Object, dry_run: bool) -> Result<(), Error> {
        if !dry_run {
            self.strategy().release(&value_of(object)?);
        }
        if let Some(after) = &self.after {
            after.after_delete(object, dry_run);
        }
        Ok(())
    }

    /// The answer to a deletion that changed nothing, as it is waited for already.
    fn waiting(&self, object: Arc<Object>) -> Deleted {
        Deleted {
            object,
            finished: false,
            returns_object: self.strategy().returns_deleted_object(),
        }
    }

    fn undeletable(&self, error: StorageError, name: &str) -> Error {
        interpret(error, Operation::Delete, &self.resource, name)
    }

    /// Begins the deletion of an object that its type holds until its content is gone.
    async fn delete_held(
        &self,
        context: &RequestContext,
        key: &str,
        existing: Arc<Object>,
        options: &DeleteOptions,
    ) -> Result<Deleted, Error> {
        let name = existing.name();
        let mut preconditions = preconditions(options);
        if let Err(StorageError::InvalidObject { message, .. }) =
            preconditions.check(key, &existing)
        {
            return Err(Error::Conflict {
                resource: self.resource.qualified_name(),
                name: name.to_owned(),
                message,
            });
        }
        let mut object = Arc::clone(&existing);
        if !is_terminating(&value_of(&existing)?) {
            preconditions.uid = Some(existing.uid().to_owned());
            let storage_options = storage::UpdateOptions {
                preconditions,
                ..storage::UpdateOptions::default()
            };
            let mut hold = Hold {
                store: self,
                context,
                options,
            };
            object = self
                .guaranteed_update(key, storage_options, &mut hold, options.dry_run)
                .await
                .map_err(|error| interpret(error, Operation::Update, &self.resource, name))?;
        }
        Ok(Deleted {
            object,
            finished: false,
            returns_object: true,
        })
    }
}

/// Marks an object that its type holds.
struct Hold<'a> {
    store: &'a Store,
    context: &'a RequestContext,
    options: &'a DeleteOptions,
}

#[async_trait]
impl TryUpdate for Hold<'_> {
    async fn try_update(&mut self, existing: Option<&Object>) -> Result<Updated, Rejection> {
        let mut object = value_of(existing.ok_or("an update of nothing")?)?;
        if !is_terminating(&object) {
            let now = format_time(self.context.clock.wall());
            set(&mut object, "deletionTimestamp", now);
        }
        let strategy = self.store.strategy();
        strategy.prepare_for_deletion(&mut object);
        let default = strategy.default_garbage_collection();
        if let Some(next) = deletion_finalizers(&object, self.options, default) {
            set_finalizers(&mut object, next);
        }
        Ok(Updated { object, ttl: None })
    }
}

fn preconditions(options: &DeleteOptions) -> Preconditions {
    Preconditions {
        uid: options.precondition_uid.clone(),
        resource_version: options.precondition_resource_version.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::registry::accessor::{later, time};
    use crate::registry::testing::{Fixture, NOW, TestStrategy, config_map, patch};
    use crate::registry::{GarbageCollection, PropagationPolicy};

    impl Fixture {
        async fn delete(&self, name: &str, options: DeleteOptions) -> Result<Deleted, Error> {
            self.store.delete(&self.context, "ns", name, options).await
        }
    }

    fn metadata(deleted: &Deleted) -> Value {
        deleted.object.to_value().expect("an object")["metadata"].take()
    }

    fn grace(seconds: i64) -> DeleteOptions {
        DeleteOptions {
            grace_period_seconds: Some(seconds),
            ..DeleteOptions::default()
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
        let fixture = Fixture::new(TestStrategy::default());
        fixture.create(json!({"name": "a"})).await;
        let deleted = fixture
            .delete("a", DeleteOptions::default())
            .await
            .expect("deleted");
        assert!(deleted.finished && !deleted.returns_object);
        assert_eq!(deleted.object.revision(), 3);
        assert_eq!(fixture.stored("a").await, None);
        assert_eq!(fixture.strategy.take_calls(), ["release"]);
        let error = fixture
            .delete("a", DeleteOptions::default())
            .await
            .expect_err("gone");
        assert_eq!(error.to_string(), "configmaps \"a\" not found");
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
            fixture
                .delete("c05", options)
                .await
                .expect_err("refused")
                .to_string(),
            format!(
                "Operation cannot be fulfilled on ConfigMap \"c05\": the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
            )
        );
        let options = DeleteOptions {
            precondition_resource_version: Some("7".into()),
            ..DeleteOptions::default()
        };
        assert_eq!(
            fixture
                .delete("c05", options)
                .await
                .expect_err("refused")
                .to_string(),
            "Operation cannot be fulfilled on ConfigMap \"c05\": the ResourceVersion in the precondition (7) does not match the ResourceVersion in record (2). The object might have been modified"
        );
        let options = DeleteOptions {
            precondition_uid: Some(uid.to_owned()),
            precondition_resource_version: Some("2".into()),
            ..DeleteOptions::default()
        };
        assert!(
            fixture
                .delete("c05", options)
                .await
                .expect("deleted")
                .finished
        );
    }

    #[tokio::test]
    async fn contradicting_options_are_refused() {
        let fixture = Fixture::new(TestStrategy::default());
        let options = DeleteOptions {
            orphan_dependents: Some(true),
            ..policy(PropagationPolicy::Orphan)
        };
        let error = fixture.delete("a", options).await.expect_err("refused");
        assert_eq!(
            error.to_string(),
            "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Invalid value: \"Orphan\": orphanDependents and deletionPropagation cannot be both set"
        );
    }

    #[tokio::test]
    async fn finalizers_are_waited_for() {
        let fixture = Fixture::new(TestStrategy::default());
        fixture
            .create(json!({"name": "a", "finalizers": ["x/y"]}))
            .await;
        let deleted = fixture
            .delete("a", DeleteOptions::default())
            .await
            .expect("it begins");
        assert!(!deleted.finished && deleted.returns_object);
        let first = metadata(&deleted);
        assert!(first["deletionTimestamp"].as_str().unwrap() >= NOW);
        assert_eq!(
            (&first["deletionGracePeriodSeconds"], &first["generation"]),
            (&json!(0), &json!(2))
        );
        let again = fixture
            .delete("a", DeleteOptions::default())
            .await
            .expect("it goes on");
        assert!(!again.finished);
        assert_eq!(
            (metadata(&again), fixture.storage.revision().await),
            (first, 3)
        );
    }

    #[tokio::test]
    async fn a_grace_period_is_waited_for() {
        let fixture = Fixture::new(TestStrategy {
            grace: Some(30),
            ..TestStrategy::default()
        });
        fixture.create(json!({"name": "a"})).await;
        let deleted = fixture
            .delete("a", DeleteOptions::default())
            .await
            .expect("it begins");
        assert!(!deleted.finished && deleted.returns_object);
        let object = deleted.object.to_value().expect("an object");
        assert!(time(&object, "deletionTimestamp").unwrap() >= later(NOW.parse().unwrap(), 30));
        assert_eq!(object["metadata"]["deletionGracePeriodSeconds"], 30);
        assert_eq!(object["metadata"]["generation"], 2);
    }

    #[tokio::test]
    async fn a_grace_period_only_becomes_shorter() {
        let fixture = Fixture::new(TestStrategy {
            grace: Some(30),
            ..TestStrategy::default()
        });
        fixture.create(json!({"name": "a"})).await;
        fixture
            .delete("a", DeleteOptions::default())
            .await
            .expect("it begins");
        let begun = fixture.stored("a").await.unwrap();
        let end = time(&begun, "deletionTimestamp").unwrap();
        for options in [grace(60), grace(30), DeleteOptions::default()] {
            let pending = fixture.delete("a", options).await.expect("it goes on");
            assert!(!pending.finished && !pending.returns_object);
            assert_eq!(fixture.storage.revision().await, 3, "nothing is written");
        }
        let shorter = fixture.delete("a", grace(10)).await.expect("it goes on");
        assert!(!shorter.finished && shorter.returns_object);
        let object = shorter.object.to_value().expect("an object");
        assert_eq!(time(&object, "deletionTimestamp"), Some(later(end, -20)));
        assert_eq!(object["metadata"]["deletionGracePeriodSeconds"], 10);
        assert_eq!(object["metadata"]["generation"], 2, "it rises once");

        let now = fixture.delete("a", grace(0)).await.expect("deleted");
        assert!(now.finished);
        assert_eq!(metadata(&now)["deletionGracePeriodSeconds"], 0);
        assert_eq!(now.object.revision(), fixture.storage.revision().await);
        assert_eq!(fixture.stored("a").await, None);
    }

    #[tokio::test]
    async fn a_negative_grace_period_is_one_second() {
        let fixture = Fixture::new(TestStrategy {
            grace: Some(30),
            ..TestStrategy::default()
        });
        fixture.create(json!({"name": "a"})).await;
        let deleted = fixture.delete("a", grace(-5)).await.expect("it begins");
        assert_eq!(metadata(&deleted)["deletionGracePeriodSeconds"], 1);
        assert!(!deleted.finished);
    }

    #[tokio::test]
    async fn a_version_that_held_before_the_grace_period_holds_after_it() {
        let fixture = Fixture::new(TestStrategy {
            grace: Some(30),
            ..TestStrategy::default()
        });
        fixture.create(json!({"name": "a"})).await;
        let options = DeleteOptions {
            precondition_resource_version: Some("2".into()),
            ..grace(0)
        };
        assert!(
            fixture
                .delete("a", options)
                .await
                .expect("deleted")
                .finished
        );
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
            let deleted = fixture
                .delete(name, policy(policy_asked))
                .await
                .expect("it begins");
            assert!(!deleted.finished);
            assert_eq!(metadata(&deleted)["finalizers"], json!([finalizer]));
        }
        fixture
            .create(json!({"name": "c", "finalizers": ["orphan"]}))
            .await;
        let deleted = fixture
            .delete("c", policy(PropagationPolicy::Background))
            .await;
        assert!(deleted.expect("deleted").finished);
        assert_eq!(fixture.stored("c").await, None);
    }

    #[tokio::test]
    async fn a_type_may_orphan_by_default() {
        let garbage_collection = GarbageCollection::OrphanDependents;
        let fixture = Fixture::new(TestStrategy {
            garbage_collection,
            ..TestStrategy::default()
        });
        fixture.create(json!({"name": "a"})).await;
        let deleted = fixture
            .delete("a", DeleteOptions::default())
            .await
            .expect("it begins");
        assert_eq!(metadata(&deleted)["finalizers"], json!(["orphan"]));
    }

    #[tokio::test]
    async fn some_types_answer_with_the_object() {
        let fixture = Fixture::new(TestStrategy {
            returns_deleted_object: true,
            ..TestStrategy::default()
        });
        fixture.create(json!({"name": "a"})).await;
        let deleted = fixture
            .delete("a", DeleteOptions::default())
            .await
            .expect("deleted");
        assert!(deleted.finished && deleted.returns_object);
    }

    #[tokio::test]
    async fn a_dry_run_deletes_nothing() {
        let fixture = Fixture::new(TestStrategy::default());
        fixture.create(json!({"name": "a"})).await;
        fixture
            .create(json!({"name": "b", "finalizers": ["x/y"]}))
            .await;
        let dry = DeleteOptions {
            dry_run: true,
            ..DeleteOptions::default()
        };
        let deleted = fixture.delete("a", dry.clone()).await.expect("it could be");
        assert!(deleted.finished && !deleted.returns_object);
        let deleted = fixture.delete("b", dry.clone()).await.expect("it could be");
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
        let fixture = Fixture::new(TestStrategy {
            grace: Some(30),
            ..TestStrategy::default()
        });
        fixture.create(json!({"name": "a"})).await;
        let deleted = fixture
            .delete(
                "a",
                DeleteOptions {
                    dry_run: true,
                    ..grace(0)
                },
            )
            .await
            .expect("it could be");
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
        let options = Default::default();
        fixture
            .store
            .create(&fixture.context, "ns", object, &options)
            .await
            .expect("created");
        let wrong = DeleteOptions {
            precondition_uid: Some("x".into()),
            ..DeleteOptions::default()
        };
        let error = fixture
            .delete("a", wrong)
            .await
            .expect_err("refused")
            .to_string();
        assert!(error.starts_with("Operation cannot be fulfilled on configmaps \"a\": Precondition failed: UID in precondition: x"), "{error}");

        let deleted = fixture
            .delete("a", DeleteOptions::default())
            .await
            .expect("it begins");
        assert!(!deleted.finished && deleted.returns_object);
        let marked = deleted.object.to_value().expect("an object");
        assert_eq!(marked["status"]["phase"], "Terminating");
        assert!(marked["metadata"]["deletionTimestamp"].is_string());
        assert!(marked["metadata"]["deletionGracePeriodSeconds"].is_null());
        assert_eq!(marked["metadata"]["generation"], 1);
        fixture
            .delete("a", DeleteOptions::default())
            .await
            .expect("it goes on");
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
}
