//! Updates objects, creates them if the update may, and deletes them if it removes the last finalizer.
//!
//! The storage calls [`Attempt`] with the current content, several times if other writers interfere; only the last
//! attempt takes effect.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use ringwatch::meta::Object;
use ringwatch::storage::{
    self, NextContent, NoCheck, Preconditions, Rejection, StorageError, TryUpdate,
};
use ringwatch_apimachinery::Error;
use ringwatch_apimachinery::path::empties;
use ringwatch_authorization::Attributes;
use ringwatch_spans::step;
use serde_json::Value;

use super::admit::Write;
use super::create::CreateSteps;
use super::read::tree_of;
use super::request_error::{StoreOperation, to_request_error};
use super::{Store, UpdatedObject, allocation, dry_run};
use crate::allocator::{Allocation, WriteResult as WriteOutcome};
use crate::{RequestContext, UpdateOptions};

/// One update, called by the storage for each attempt.
struct Attempt<'a> {
    store: &'a Store,
    context: &'a RequestContext,
    namespace: &'a str,
    name: &'a str,
    dry_run: bool,
    updated: &'a mut dyn UpdatedObject,
    outcome: UpdateResult,
    /// The allocation of the last attempt.
    allocation: Option<Box<dyn Allocation>>,
}

/// The outcome of the last attempt.
enum UpdateResult {
    /// Nothing yet, or a refusal.
    Undecided,
    /// A new object with this content.
    Create(Value),
    /// An update of the existing object.
    Update,
    /// A deletion of the object, with its content and the revision before.
    Delete(Value, u64),
}

/// The update turned out to be a deletion; see the outcome.
#[derive(Debug, thiserror::Error)]
#[error("the last finalizer is gone")]
struct EmptiedFinalizers;

impl Store {
    /// Updates an object; the flag is true if it was created.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Invalid`], [`Error::Conflict`] when a precondition or the
    /// resource version does not hold, whatever `updated` says.
    pub async fn update(
        &self,
        context: &RequestContext,
        namespace: &str,
        name: &str,
        updated: &mut dyn UpdatedObject,
        options: &UpdateOptions,
    ) -> Result<(Arc<Object>, bool), Error> {
        let key = self.key(namespace, name)?;
        let may_create = self.strategy().allow_create_on_update() || options.force_allow_create;
        let preconditions = Preconditions {
            uid: updated.precondition_uid(),
            resource_version: updated.precondition_resource_version(),
        };
        let storage_options = storage::UpdateOptions {
            ignore_not_found: may_create && context.subresource.is_empty(),
            preconditions: preconditions.clone(),
            cached_existing: None,
        };
        let mut attempt = Attempt {
            store: self,
            context,
            namespace,
            name,
            dry_run: options.dry_run,
            updated,
            outcome: UpdateResult::Undecided,
            allocation: None,
        };
        let result = self
            .guaranteed_update(&key, storage_options, &mut attempt, options.dry_run)
            .await;
        Self::finish_allocation(attempt.allocation.take(), allocation::outcome(&result)).await;
        let outcome = attempt.outcome;
        if let UpdateResult::Create(object) = outcome {
            let created = self.finish_create(result, &key, &object);
            return Ok((created.await?, true));
        }
        if let (Err(StorageError::Rejected(rejection)), UpdateResult::Delete(object, revision)) =
            (&result, outcome)
            && rejection.is::<EmptiedFinalizers>()
        {
            let last = self.storage.preview(&object, revision).await;
            let last = last.map_err(Error::Storage)?;
            self.delete_emptied(&key, last, preconditions, options.dry_run)
                .await
                .map(|object| (object, false))
        } else {
            let object = result.map_err(|error| {
                to_request_error(error, StoreOperation::Update, &self.resource, name)
            })?;
            Ok((object, false))
        }
    }

    /// Updates in the storage; a dry run only checks.
    pub(super) async fn guaranteed_update(
        &self,
        key: &str,
        options: storage::UpdateOptions,
        update: &mut dyn TryUpdate,
        dry_run: bool,
    ) -> Result<Arc<Object>, StorageError> {
        if dry_run {
            let storage::UpdateOptions {
                ignore_not_found,
                preconditions,
                ..
            } = options;
            let storage = &*self.storage;
            dry_run::guaranteed_update(storage, key, ignore_not_found, &preconditions, update).await
        } else {
            let _step = step("Store object in database");
            self.storage.guaranteed_update(key, options, update).await
        }
    }

    /// Deletes an object after an update removed its last finalizer, and returns the answer to that update.
    async fn delete_emptied(
        &self,
        key: &str,
        last: Arc<Object>,
        preconditions: Preconditions,
        dry_run: bool,
    ) -> Result<Arc<Object>, Error> {
        match self.remove(key, preconditions, &mut NoCheck, dry_run).await {
            // Another update has removed it first.
            Ok(_) | Err(StorageError::KeyNotFound { .. }) => {}
            Err(error) => {
                return Err(to_request_error(
                    error,
                    StoreOperation::Delete,
                    &self.resource,
                    last.name(),
                ));
            }
        }
        Ok(last)
    }
}

#[async_trait]
impl TryUpdate for Attempt<'_> {
    async fn try_update(&mut self, existing: Option<&Object>) -> Result<NextContent, Rejection> {
        self.store.offload_if_costly().await;
        // A repeated attempt means that the previous one was not written, so its allocation is released.
        self.outcome = UpdateResult::Undecided;
        let given = self.allocation.take();
        Store::finish_allocation(given, WriteOutcome::NotWritten).await;
        let object = match existing {
            None => self.create().await?,
            Some(existing) => self.change(existing).await?,
        };
        Ok(NextContent {
            object,
            ttl: self.store.ttl_seconds,
        })
    }
}

impl<'a> Attempt<'a> {
    fn write(&self) -> Write<'a> {
        Write {
            context: self.context,
            namespace: self.namespace,
            dry_run: self.dry_run,
        }
    }

    async fn create(&mut self) -> Result<Value, Rejection> {
        check_create(self.store, self.context, self.namespace, self.name).await?;
        let object = self.updated.updated(self.context, None).await?;
        let steps = CreateSteps {
            ensures_namespace: false,
            tracks_fields: !self.updated.managed_fields_are_current(),
        };
        let (store, write) = (self.store, self.write());
        let mut admitted = store.receive_new(write, object, steps).await?;
        store
            .prepare_new(write, &mut admitted, None, &mut self.allocation)
            .await?;
        let object = admitted.object;
        self.outcome = UpdateResult::Create(object.clone());
        Ok(object)
    }

    async fn change(&mut self, existing: &Object) -> Result<Value, Rejection> {
        let store = self.store;
        let mut old = tree_of(existing).await?;
        // The object may have been stored before a default existed. Defaults set here are not part of the update.
        // Custom resources have got those of the version in which they are stored, and kube-apiserver gives them no
        // others.
        if !store.resource.is_custom() {
            store.strategy().default(&mut old);
        }
        let served = if store.strategy().converts() {
            Cow::Owned(store.strategy().to_served(old.clone()))
        } else {
            Cow::Borrowed(&old)
        };
        let object = self.updated.updated(self.context, Some(&served)).await?;
        let is_applied = self.updated.managed_fields_are_current();
        let empty = empties(store.strategy().judged_if_empty(), &object);
        let mut object = store.incoming(self.context, object, is_applied)?;
        if !is_applied {
            store.track_fields(self.context, Some(&served), &mut object);
        }
        store.complete(&mut object);
        let write = self.write();
        let is_changed = store
            .admit_change(write, self.name, &mut object, &old)
            .await?;
        store.check_version(&mut object, &old, self.name)?;
        store.ensure_namespace(self.namespace, &mut object)?;
        // Subresources leave alone what is allocated.
        if self.context.subresource.is_empty() {
            self.allocation = store
                .allocate(&mut object, Some(&old), self.dry_run)
                .await?;
        }
        let of_guard = store
            .wrong_for_guard(write, self.name, &object, Some(&old))
            .await?;
        store.before_update(self.context, &mut object, &old, (of_guard, empty))?;
        store
            .guard_valid(write, self.name, &object, Some(&old))
            .await?;
        store
            .validate_change(write, self.name, &object, &old)
            .await?;
        if is_changed {
            store.strategy().prepare_to_store(&mut object);
        }
        if store.deletes(&object, &old) {
            self.outcome = UpdateResult::Delete(object, existing.revision());
            return Err(Box::new(EmptiedFinalizers));
        }
        self.outcome = UpdateResult::Update;
        Ok(object)
    }
}

/// Checks that the user may create the object, which the permission to update it does not include.
async fn check_create(
    store: &Store,
    context: &RequestContext,
    namespace: &str,
    name: &str,
) -> Result<(), Error> {
    let version = &store.resource.group_version;
    let attributes = Attributes {
        namespace,
        name,
        version: &version.version,
        ..Attributes::of_resource(
            &context.user,
            "create",
            &version.group,
            &store.resource.plural,
        )
    };
    context.check(&attributes).await
}

#[cfg(test)]
mod tests;
