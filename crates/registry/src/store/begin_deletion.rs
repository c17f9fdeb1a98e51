//! Marks an object as being deleted, when finalizers or a grace period delay its deletion.

use std::sync::Arc;

use async_trait::async_trait;
use ringwatch::meta::Object;
use ringwatch::storage::{
    self, DeletionCheck, NextContent, Preconditions, Rejection, StorageError, TryUpdate,
};
use ringwatch_apimachinery::Error;
use ringwatch_apimachinery::accessor::{
    bump_generation, finalizers, format_time, is_terminating, set, set_finalizers, time,
};
use serde_json::Value;

use super::Store;
use super::admit::AdmittedDeletion;
use super::before_delete::Grace;
use super::read::tree_of;
use super::request_error::{StoreOperation, to_request_error};
use crate::{DeleteOptions, RequestContext};

/// The outcome of marking an object as deleted.
pub(super) enum DeletionStart {
    /// The object is marked, and its deletion waits.
    Waiting(Arc<Object>),
    /// The object was marked before, and its deletion still waits.
    AlreadyWaiting,
    /// The recorded grace period is zero, so the object can be deleted now. Another client may have deleted it since.
    Expired(Arc<Object>),
    /// The object has no finalizers and no grace period: it can be deleted at once.
    Now,
}

/// The reason why the object is not updated.
#[derive(Debug, thiserror::Error)]
enum UnchangedReason {
    #[error("abort delete")]
    AlreadyDeleting,
    #[error("delete now")]
    DeleteNow,
}

/// The update that marks an object as deleted, as the storage tries it.
struct Attempt<'a, 'b> {
    admission: &'a mut AdmittedDeletion<'b>,
    options: &'a mut DeleteOptions,
    /// True if the object of the last attempt waits for finalizers or a grace period.
    waits: bool,
}

impl Store {
    /// Updates a stored object to mark it as being deleted.
    pub(super) async fn begin_deletion(
        &self,
        key: &str,
        name: &str,
        options: &mut DeleteOptions,
        preconditions: &Preconditions,
        admission: &mut AdmittedDeletion<'_>,
    ) -> Result<DeletionStart, Error> {
        let dry_run = options.dry_run;
        let mut attempt = Attempt {
            admission,
            options,
            waits: false,
        };
        let storage_options = storage::UpdateOptions {
            preconditions: preconditions.clone(),
            ..storage::UpdateOptions::default()
        };
        let result = self
            .guaranteed_update(key, storage_options, &mut attempt, dry_run)
            .await;
        match result {
            Ok(object) if attempt.waits => Ok(DeletionStart::Waiting(object)),
            Ok(object) => Ok(DeletionStart::Expired(object)),
            Err(StorageError::Rejected(rejection)) => match rejection.downcast::<UnchangedReason>()
            {
                Ok(unchanged) => Ok(match *unchanged {
                    UnchangedReason::AlreadyDeleting => DeletionStart::AlreadyWaiting,
                    UnchangedReason::DeleteNow => DeletionStart::Now,
                }),
                Err(other) => {
                    let error = StorageError::Rejected(other);
                    Err(to_request_error(
                        error,
                        StoreOperation::Update,
                        &self.resource,
                        name,
                    ))
                }
            },
            Err(error) => Err(to_request_error(
                error,
                StoreOperation::Update,
                &self.resource,
                name,
            )),
        }
    }
}

#[async_trait]
impl TryUpdate for Attempt<'_, '_> {
    async fn try_update(&mut self, existing: Option<&Object>) -> Result<NextContent, Rejection> {
        let existing = existing.ok_or("an update of nothing")?;
        self.admission.check(existing).await?;
        let store = self.admission.store;
        let context = self.admission.write.context;
        let mut object = tree_of(existing).await?;
        let grace = store.before_delete(context, &mut object, self.options)?;
        if grace == Grace::Pending {
            return Err(Box::new(UnchangedReason::AlreadyDeleting));
        }
        if let Some(next) = store.deletion_finalizers(&object, self.options) {
            set_finalizers(&mut object, next);
        }
        let finalizes = !finalizers(&object).is_empty();
        if grace == Grace::None {
            if !finalizes {
                return Err(Box::new(UnchangedReason::DeleteNow));
            }
            mark_as_deleting(context, &mut object);
        }
        self.waits = finalizes || self.options.grace_period_seconds.unwrap_or(0) > 0;
        Ok(NextContent {
            object,
            ttl: store.ttl_seconds,
        })
    }
}

/// Ends the grace period of an object: sets its deletion timestamp to now, unless that has passed, and the period to 0.
fn mark_as_deleting(context: &RequestContext, object: &mut Value) {
    if !is_terminating(object) {
        bump_generation(object);
    }
    let now = context.clock.wall();
    if time(object, "deletionTimestamp").is_none_or(|end| end > now) {
        set(object, "deletionTimestamp", format_time(now));
    }
    set(object, "deletionGracePeriodSeconds", 0);
}
