//! Writes through the upstream's API.
//!
//! The upstream's conditional writes stand in for transactions: a create fails where there is an object, an update has
//! the version that it was made of, and a deletion has it as a precondition. What another writer has changed meanwhile
//! is read again, and the caller decides anew.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::Method;
use ringwatch::codec::{self, ObjectError};
use ringwatch::meta::{Object, ResourceVersion, WatchEvent};
use ringwatch::storage::{
    DeleteOptions, DeletionCheck, GetOptions, Interface, ListOptions, StorageError, TryUpdate,
    UpdateOptions, WatchStream,
};
use serde_json::{Value, json};

use super::error::too_late;
use super::refusal::{Refusal, RefusedRequest};
use super::resource::ResourcePath;
use super::store::{UpstreamStore, unsupported};

/// Maximum number of attempts at a write that others overtake.
const ATTEMPTS_MAX: u32 = 100;

/// Maximum time until an object is gone whose deletion the upstream has accepted. One with finalizers stays longer.
const GONE_TIMEOUT: Duration = Duration::from_secs(30);

impl UpstreamStore {
    pub(crate) async fn create_upstream(
        &self,
        key: &str,
        object: &Value,
        ttl: Option<u64>,
    ) -> Result<Arc<Object>, StorageError> {
        let place = self.remote.resource.object(key)?;
        if self.versioner().object_resource_version(object)?.is_some() {
            return Err(StorageError::VersionOnCreate);
        }
        if ttl.is_some() {
            return Err(unsupported("give objects a time to live"));
        }
        let place = ResourcePath {
            name: None,
            ..place
        };
        match self.write(Method::POST, place, object).await? {
            Ok(created) => self.object(created),
            Err(refusal) if refusal.already_exists() => Err(StorageError::KeyExists {
                key: key.to_owned(),
            }),
            Err(refusal) => Err(refusal.error(RefusedRequest::Object(key))),
        }
    }

    /// Updates an object as [`Interface::guaranteed_update`] does. A content to try first is not used, since the read
    /// that it saves is less than the request that it costs when it is outdated.
    pub(crate) async fn update_upstream(
        &self,
        key: &str,
        options: UpdateOptions,
        update: &mut dyn TryUpdate,
    ) -> Result<Arc<Object>, StorageError> {
        for _ in 0..ATTEMPTS_MAX {
            let existing = match self.get(key, GetOptions::default()).await {
                Err(StorageError::KeyNotFound { .. }) if options.ignore_not_found => None,
                read => Some(read?),
            };
            match &existing {
                Some(existing) => options.preconditions.check(key, existing)?,
                None => options.preconditions.check_absent(key)?,
            }
            let updated = update.try_update(existing.as_deref()).await;
            let updated = updated.map_err(StorageError::Rejected)?;
            if updated.ttl.is_some() {
                return Err(unsupported("give objects a time to live"));
            }
            let replaces = existing.is_some();
            let written = match existing {
                None => self.create_upstream(key, &updated.object, None).await,
                Some(existing) => self.replace(key, existing, updated.object).await,
            };
            match written {
                // Another writer was faster.
                Err(StorageError::KeyExists { .. } | StorageError::Conflict { .. }) => {}
                Err(StorageError::KeyNotFound { .. }) if replaces && options.ignore_not_found => {}
                written => return written,
            }
        }
        Err(overtaken(key))
    }

    /// Replaces an object by its next content, unless that is the same.
    ///
    /// # Errors
    /// [`StorageError::Conflict`] when the object has changed meanwhile.
    async fn replace(
        &self,
        key: &str,
        existing: Arc<Object>,
        mut next: Value,
    ) -> Result<Arc<Object>, StorageError> {
        let version = ResourceVersion(existing.revision());
        if let Some(metadata) = next.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("resourceVersion".to_owned(), json!(version.to_string()));
        }
        if codec::tree(&existing).map_err(|error| unreadable(key, &error))? == next {
            return Ok(existing);
        }
        let place = self.remote.resource.object(key)?;
        match self.write(Method::PUT, place, &next).await? {
            Ok(written) => self.object(written),
            Err(refusal) if refusal.conflicts() => Err(StorageError::Conflict {
                key: key.to_owned(),
                revision: existing.revision(),
            }),
            Err(refusal) => Err(refusal.error(RefusedRequest::Object(key))),
        }
    }

    /// Deletes an object as [`Interface::delete`] does. The answer to a deletion does not say at which version it
    /// happened, so that is read from a watch of the object.
    pub(crate) async fn delete_upstream(
        &self,
        key: &str,
        options: DeleteOptions,
        check: &mut dyn DeletionCheck,
    ) -> Result<Arc<Object>, StorageError> {
        let place = self.remote.resource.object(key)?;
        if options.expect_decode_error {
            return Err(unsupported("delete an object because it cannot be decoded"));
        }
        for _ in 0..ATTEMPTS_MAX {
            let existing = self.get(key, GetOptions::default()).await?;
            options.preconditions.check(key, &existing)?;
            check
                .check(&existing)
                .await
                .map_err(StorageError::Rejected)?;
            let version = ResourceVersion(existing.revision());
            let from = ListOptions {
                resource_version: Some(version),
                ..ListOptions::default()
            };
            let watch = self.watch(key, from).await?;
            let body = json!({
                "kind": "DeleteOptions",
                "apiVersion": "v1",
                "preconditions": {
                    "uid": existing.uid(),
                    "resourceVersion": version.to_string(),
                },
            });
            match self.write(Method::DELETE, place, &body).await? {
                Ok(_) => return self.gone(watch).await,
                Err(refusal) if refusal.conflicts() => {}
                Err(refusal) => return Err(refusal.error(RefusedRequest::Object(key))),
            }
        }
        Err(overtaken(key))
    }

    /// Waits until a watch of an object tells of its deletion, and returns the last content.
    async fn gone(&self, mut watch: WatchStream) -> Result<Arc<Object>, StorageError> {
        let deleted = async {
            while let Some(event) = watch.next().await {
                if let WatchEvent::Deleted(object) = event? {
                    return Ok(object);
                }
            }
            Err(too_late())
        };
        let deleted = self.remote.upstream.clock().timeout(GONE_TIMEOUT, deleted);
        deleted.await.map_err(|_| too_late())?
    }

    /// Sends an object or options in JSON. Returns the body of the answer, or the refusal.
    async fn write(
        &self,
        method: Method,
        place: ResourcePath<'_>,
        content: &Value,
    ) -> Result<Result<Bytes, Refusal>, StorageError> {
        let resource = &self.remote.resource;
        let path = resource.path(place);
        let content = Bytes::from(content.to_string());
        let upstream = &self.remote.upstream;
        let answer = upstream.ask(method, &path, resource.accept(), Some(content));
        let answer = answer.await?;
        Ok(match answer.status.is_success() {
            true => Ok(answer.body),
            false => Err(Refusal::answer(&answer)),
        })
    }
}

fn overtaken(key: &str) -> StorageError {
    StorageError::Timeout {
        message: format!("other writers of {key} were faster {ATTEMPTS_MAX} times in a row"),
    }
}

fn unreadable(key: &str, error: &ObjectError) -> StorageError {
    StorageError::Corrupt {
        keys: vec![(key.to_owned(), error.to_string())],
    }
}
