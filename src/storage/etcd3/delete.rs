//! Deletion of an object, on condition of its content.

use std::sync::Arc;

use serde_json::json;

use super::request_metrics::BackendOperation;
use super::state::State;
use super::store::Store;
use crate::meta::Object;
use crate::storage::backend::{Compare, Op, RangeRequest, Txn, TxnResponse};
use crate::storage::{DeleteOptions, DeletionCheck, StorageError};

/// Maximum number of attempts of a deletion, each of which lost a race against another writer.
const ATTEMPTS_MAX: u32 = 1_000;

/// Deletes an object after its checks, and returns its last content at the deletion's revision.
///
/// A check that fails on cached content is repeated on the store's.
pub(super) async fn delete(
    store: &Store,
    key: &str,
    options: DeleteOptions,
    check: &mut dyn DeletionCheck,
) -> Result<Arc<Object>, StorageError> {
    let mut state = match State::cached(options.cached_existing) {
        Some(cached) => cached,
        None => State::read(store, key, false).await?,
    };
    for _ in 0..ATTEMPTS_MAX {
        let Some(object) = state.object.clone() else {
            let (key, revision) = (key.to_owned(), state.revision);
            return Err(StorageError::KeyNotFound { key, revision });
        };
        let mut checked = options.preconditions.check(key, &object);
        if checked.is_ok() {
            checked = check.check(&object).await.map_err(StorageError::Rejected);
        }
        if let Err(refusal) = checked {
            if state.current {
                return Err(refusal);
            }
            let fresh = State::read(store, key, false).await?;
            if fresh.revision == state.revision {
                return Err(refusal);
            }
            state = fresh;
            continue;
        }
        let response = delete_at(store, key, state.revision).await?;
        if response.succeeded {
            return Ok(Arc::new(object.at_revision(response.revision)));
        }
        state = State::from_response(store, key, response.found, response.revision, false).await?;
    }
    Err(conflict(key, state.revision))
}

/// Deletes a value that is not an object, and only such a one. No precondition can be checked of it. The returned
/// object has the name and the namespace of its key and nothing else.
pub(super) async fn delete_corrupt(store: &Store, key: &str) -> Result<Arc<Object>, StorageError> {
    let read = store.backend().range(RangeRequest::key(key));
    let read = store.requests().count(BackendOperation::Get, read).await?;
    let (mut found, mut seen_at) = (read.kvs.into_iter().next(), read.revision);
    for _ in 0..ATTEMPTS_MAX {
        let Some(kv) = found else {
            let (key, revision) = (key.to_owned(), seen_at);
            return Err(StorageError::KeyNotFound { key, revision });
        };
        match store.values().reader([&kv]).await.decode(&kv) {
            Ok(_) => {
                let message = "the object can be read, so it is not deleted as a corrupt one";
                return Err(StorageError::InvalidObject {
                    key: key.to_owned(),
                    message: message.to_owned(),
                });
            }
            Err(StorageError::Corrupt { .. }) => {}
            // It cannot be read now, but may be later.
            Err(error) => return Err(error),
        }
        let response = delete_at(store, key, kv.mod_revision).await?;
        if response.succeeded {
            let name = key.rsplit('/').next().unwrap_or_default();
            let remains = json!({"kind": "", "apiVersion": "", "metadata": {"name": name}});
            let (_, object) = store.encode(&remains, &[])?;
            return Ok(Arc::new(object.at_revision(response.revision)));
        }
        (found, seen_at) = (response.found, response.revision);
    }
    Err(conflict(key, seen_at))
}

/// Deletes the key if its last write was at `revision`; otherwise reads it.
async fn delete_at(store: &Store, key: &str, revision: u64) -> Result<TxnResponse, StorageError> {
    let key = key.to_owned();
    let txn = Txn {
        compare: Compare::ModRevision(key.clone(), revision),
        then: Op::Delete { key: key.clone() },
        otherwise: Some(Op::Get { key }),
    };
    let deleted = store.backend().txn(txn);
    Ok(store
        .requests()
        .count(BackendOperation::Delete, deleted)
        .await?)
}

fn conflict(key: &str, revision: u64) -> StorageError {
    let key = key.to_owned();
    StorageError::Conflict { key, revision }
}
