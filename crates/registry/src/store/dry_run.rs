//! Dry-run writes: every lookup and check is done, nothing is stored.
//!
//! The answer has the revision of the existing object. That of a new object has the one that the client gave, if any:
//! only the storage would refuse it.

use std::sync::Arc;

use ringwatch::meta::Object;
use ringwatch::storage::{
    DeletionCheck, GetOptions, Interface, Preconditions, StorageError, TryUpdate,
};
use ringwatch_apimachinery::accessor::text;
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
        Err(StorageError::KeyNotFound { .. }) => storage.preview(object, version_of(object)).await,
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
    let revision = match existing {
        Some(existing) => existing.revision(),
        None => version_of(&updated.object),
    };
    storage.preview(&updated.object, revision).await
}

/// Returns the resource version in an object from a client; 0 if it is none.
fn version_of(object: &Value) -> u64 {
    let version = text(object, "resourceVersion");
    version.parse().unwrap_or_default()
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
