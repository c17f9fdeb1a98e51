//! Dry-run writes: every lookup and check is done, nothing is stored.
//!
//! The answer has the revision of the existing object, and none for a new object.

use std::sync::Arc;

use ringwatch::meta::Object;
use ringwatch::storage::{
    DeletionCheck, GetOptions, Interface, Preconditions, StorageError, TryUpdate,
};
use serde_json::Value;

/// Dry-runs a creation.
pub(super) async fn create(
    storage: &dyn Interface,
    key: &str,
    object: &Value,
) -> Result<Arc<Object>, StorageError> {
    match storage.get(key, GetOptions::default()).await {
        Ok(_) => Err(StorageError::KeyExists {
            key: key.to_owned(),
        }),
        Err(StorageError::KeyNotFound { .. }) => storage.preview(object, 0).await,
        Err(error) => Err(error),
    }
}

/// Dry-runs an update, or a creation if `ignore_not_found` allows that.
pub(super) async fn guaranteed_update(
    storage: &dyn Interface,
    key: &str,
    ignore_not_found: bool,
    preconditions: &Preconditions,
    update: &mut dyn TryUpdate,
) -> Result<Arc<Object>, StorageError> {
    let existing = match storage.get(key, GetOptions::default()).await {
        Ok(existing) => Some(existing),
        Err(StorageError::KeyNotFound { .. }) if ignore_not_found => None,
        Err(error) => return Err(error),
    };
    if let Some(existing) = &existing {
        preconditions.check(key, existing)?;
    }
    let updated = update
        .try_update(existing.as_deref())
        .await
        .map_err(StorageError::Rejected)?;
    let revision = existing.map_or(0, |existing| existing.revision());
    storage.preview(&updated.object, revision).await
}

/// Dry-runs a deletion.
pub(super) async fn delete(
    storage: &dyn Interface,
    key: &str,
    preconditions: &Preconditions,
    check: &mut dyn DeletionCheck,
) -> Result<Arc<Object>, StorageError> {
    let existing = storage.get(key, GetOptions::default()).await?;
    preconditions.check(key, &existing)?;
    check
        .check(&existing)
        .await
        .map_err(StorageError::Rejected)?;
    Ok(existing)
}
