//! Deletes objects: BeforeDelete of kube-apiserver, graceful deletion, finalizers, and the write.

use std::sync::Arc;

use async_trait::async_trait;
use ringwatch::meta::Object;
use ringwatch::storage::{
    self, DeletionCheck, GetOptions, NextContent, Preconditions, Rejection, StorageError, TryUpdate,
};
use ringwatch_apimachinery::Error;
use ringwatch_apimachinery::accessor::{
    finalizers, format_time, is_terminating, set, set_finalizers,
};
use ringwatch_spans::step;

use super::admit::{AdmittedDeletion, Write};
use super::before_delete::Grace;
use super::begin_deletion::DeletionStart;
use super::read::tree_of;
use super::request_error::{StoreOperation, to_request_error};
use super::{DeletionResult, Store, dry_run};
use crate::{DeleteOptions, RequestContext};

/// Maximum number of times that a deletion starts over because the object got a finalizer just before its removal.
const ATTEMPTS_MAX: u32 = 10;

/// The rejection of a deletion because the object has a finalizer.
#[derive(Debug, thiserror::Error)]
#[error("it has got a finalizer")]
struct HasFinalizer;

/// Rejects the deletion if the object has a finalizer, which may have been added since the deletion was decided.
struct FinalizerCheck<'a> {
    options: DeleteOptions,
    admission: AdmittedDeletion<'a>,
}

#[async_trait]
impl DeletionCheck for FinalizerCheck<'_> {
    async fn check(&mut self, existing: &Object) -> Result<(), Rejection> {
        let object = tree_of(existing).await?;
        let store = self.admission.store;
        let left = store.deletion_finalizers(&object, &self.options);
        if !left.map_or_else(|| finalizers(&object).is_empty(), |left| left.is_empty()) {
            return Err(Box::new(HasFinalizer));
        }
        self.admission.check(existing).await
    }
}

/// The object that a deletion is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeletionTarget<'a> {
    /// The namespace of the object; empty if the resource has none.
    pub(super) namespace: &'a str,
    /// The name of the object.
    pub(super) name: &'a str,
    /// The name in the request, which admission sees: empty for the objects of a collection.
    pub(super) requested_name: &'a str,
}

impl Store {
    /// Deletes an object, or marks it as being deleted.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Invalid`] for the options, [`Error::Conflict`] when a
    /// precondition does not hold, [`Error::Forbidden`] for what may not be deleted.
    pub async fn delete(
        &self,
        context: &RequestContext,
        namespace: &str,
        name: &str,
        options: DeleteOptions,
    ) -> Result<DeletionResult, Error> {
        self.warn_of_default(context, &options);
        let target = DeletionTarget {
            namespace,
            name,
            requested_name: name,
        };
        self.delete_as(context, target, options).await
    }

    /// Warns of the default treatment of dependents, if the kind does and the options leave it (`Delete` and
    /// `DeleteCollection` of `registry/batch/job/storage/storage.go`, 1.36).
    pub fn warn_of_default(&self, context: &RequestContext, options: &DeleteOptions) {
        let is_default =
            options.propagation_policy.is_none() && options.orphan_dependents.is_none();
        let warning = self.strategy().warning_on_default_deletion();
        if let Some(warning) = warning.filter(|_| is_default) {
            context.warn(warning);
        }
    }

    /// Deletes an object; admission sees the name in the request, which is empty for a collection.
    pub(super) async fn delete_as(
        &self,
        context: &RequestContext,
        target: DeletionTarget<'_>,
        options: DeleteOptions,
    ) -> Result<DeletionResult, Error> {
        let DeletionTarget {
            namespace, name, ..
        } = target;
        let wrong = options.validate();
        if !wrong.is_empty() {
            return Err(Error::Invalid {
                kind: "DeleteOptions.meta.k8s.io".to_owned(),
                name: String::new(),
                errors: wrong,
            });
        }
        let key = self.key(namespace, name)?;
        if options.ignore_store_read_error {
            return self.delete_unreadable(&key, name).await;
        }
        for _ in 0..ATTEMPTS_MAX {
            let attempt = self.try_delete(context, &key, target, options.clone());
            if let Some(deleted) = attempt.await? {
                return Ok(deleted);
            }
        }
        Err(Error::Conflict {
            resource: self.resource.qualified_name(),
            name: name.to_owned(),
            message: "its finalizers change all the time".to_owned(),
        })
    }

    /// Deletes an object as it is now; `None` if it got a finalizer meanwhile.
    async fn try_delete(
        &self,
        context: &RequestContext,
        key: &str,
        target: DeletionTarget<'_>,
        mut options: DeleteOptions,
    ) -> Result<Option<DeletionResult>, Error> {
        let name = target.name;
        let existing = self.storage.get(key, GetOptions::default()).await;
        let existing = existing.map_err(|error| self.undeletable(error, name))?;
        let mut object = tree_of(&existing).await?;
        let mut admission = AdmittedDeletion {
            store: self,
            write: Write {
                context,
                namespace: target.namespace,
                dry_run: options.dry_run,
            },
            name: target.requested_name,
        };
        if self.strategy().holds_deletion(&object) {
            let held = self.delete_held(key, existing, &options, &mut admission);
            return held.await.map(Some);
        }
        let mut preconditions = preconditions(&options);
        let grace = self.before_delete(context, &mut object, &mut options)?;
        if grace == Grace::Pending {
            return Ok(Some(self.waiting(existing)));
        }
        let mut last = None;
        if grace == Grace::Begun
            || !finalizers(&object).is_empty()
            || self.deletion_finalizers(&object, &options).is_some()
        {
            let begun = self
                .begin_deletion(key, name, &mut options, &preconditions, &mut admission)
                .await?;
            match begun {
                DeletionStart::Waiting(object) => {
                    return Ok(Some(DeletionResult {
                        object,
                        finished: false,
                        returns_object: true,
                    }));
                }
                DeletionStart::AlreadyWaiting => return Ok(Some(self.waiting(existing))),
                DeletionStart::Expired(object) => last = Some(object),
                DeletionStart::Now => {}
            }
            if options.dry_run {
                return Ok(Some(DeletionResult {
                    object: last.unwrap_or(existing),
                    finished: true,
                    returns_object: true,
                }));
            }
        }
        if let (Some(last), Some(version)) = (&last, &mut preconditions.resource_version) {
            *version = last.revision().to_string();
        }
        let check = FinalizerCheck { options, admission };
        self.finish(key, name, preconditions, last, check).await
    }

    /// Removes the object from the storage. `last` is its content if it was already marked; another client may then
    /// remove it first. Returns `None` if it got a finalizer meanwhile, which kube-apiserver may overlook.
    async fn finish(
        &self,
        key: &str,
        name: &str,
        preconditions: Preconditions,
        last: Option<Arc<Object>>,
        mut check: FinalizerCheck<'_>,
    ) -> Result<Option<DeletionResult>, Error> {
        let dry_run = check.options.dry_run;
        let removed = self.remove(key, preconditions, &mut check, dry_run).await;
        let object = match (removed, last) {
            (Err(StorageError::Rejected(why)), _) if why.is::<HasFinalizer>() => return Ok(None),
            (Ok(object), _) | (Err(StorageError::KeyNotFound { .. }), Some(object)) => object,
            (Err(error), _) => return Err(self.undeletable(error, name)),
        };
        Ok(Some(DeletionResult {
            object,
            finished: true,
            returns_object: self.strategy().returns_deleted_object(),
        }))
    }

    /// Removes an object from the storage; a dry run only checks.
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
        let step = step("Delete object from database");
        let removed = self.storage.delete(key, options, check).await?;
        drop(step);
        self.release(&removed).await;
        Ok(removed)
    }

    /// Returns the answer to a deletion of an object that is already being deleted.
    fn waiting(&self, object: Arc<Object>) -> DeletionResult {
        DeletionResult {
            object,
            finished: false,
            returns_object: self.strategy().returns_deleted_object(),
        }
    }

    fn undeletable(&self, error: StorageError, name: &str) -> Error {
        to_request_error(error, StoreOperation::Delete, &self.resource, name)
    }

    /// Marks an object for deletion that its type keeps until its content is gone, such as a namespace.
    async fn delete_held(
        &self,
        key: &str,
        existing: Arc<Object>,
        options: &DeleteOptions,
        admission: &mut AdmittedDeletion<'_>,
    ) -> Result<DeletionResult, Error> {
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
        if !is_terminating(&tree_of(&existing).await?) {
            preconditions.uid = Some(existing.uid().to_owned());
            let storage_options = storage::UpdateOptions {
                preconditions,
                ..storage::UpdateOptions::default()
            };
            let mut hold = Hold { options, admission };
            object = self
                .guaranteed_update(key, storage_options, &mut hold, options.dry_run)
                .await
                .map_err(|error| {
                    to_request_error(error, StoreOperation::Update, &self.resource, name)
                })?;
        }
        Ok(DeletionResult {
            object,
            finished: false,
            returns_object: true,
        })
    }
}

/// Marks an object that its type keeps.
struct Hold<'a, 'b> {
    options: &'a DeleteOptions,
    admission: &'a mut AdmittedDeletion<'b>,
}

#[async_trait]
impl TryUpdate for Hold<'_, '_> {
    async fn try_update(&mut self, existing: Option<&Object>) -> Result<NextContent, Rejection> {
        let existing = existing.ok_or("an update of nothing")?;
        self.admission.check(existing).await?;
        let mut object = tree_of(existing).await?;
        let AdmittedDeletion { store, write, .. } = self.admission;
        if !is_terminating(&object) {
            let now = format_time(write.context.clock.wall());
            set(&mut object, "deletionTimestamp", now);
        }
        store.strategy().prepare_for_deletion(&mut object);
        if let Some(next) = store.deletion_finalizers(&object, self.options) {
            set_finalizers(&mut object, next);
        }
        Ok(NextContent { object, ttl: None })
    }
}

fn preconditions(options: &DeleteOptions) -> Preconditions {
    Preconditions {
        uid: options.precondition_uid.clone(),
        resource_version: options.precondition_resource_version.clone(),
    }
}

#[cfg(test)]
mod tests;
