//! Namespaces have a life: nothing is created in one that does not exist or is ending, and some
//! never end. Kubernetes' NamespaceLifecycle admission.
//!
//! Namespaces are read as a cache has them, which may lag behind. So a namespace that the cache
//! does not have, or that was lately asked to be deleted, is read from the store itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use super::{Error, NamespaceLifecycle, Resource};
use crate::clock::{Clock, Instant};
use crate::meta::{Object, ResourceVersion};
use crate::storage::{GetOptions, Interface, StorageError};

/// Namespaces that may not be deleted.
const IMMORTAL: &[&str] = &["default", "kube-system", "kube-public"];
/// For how long after a deletion a namespace is read from the store itself.
const LIVE_LOOKUP: Duration = Duration::from_secs(30);
/// How many deleted namespaces are remembered; beyond that the oldest are forgotten.
const DELETED_NAMESPACES_MAX: usize = 100;

/// Namespaces, as they are stored.
#[derive(Debug)]
pub struct Lifecycle {
    namespaces: Arc<dyn Interface>,
    clock: Clock,
    /// When each namespace was lately asked to be deleted.
    deleted: Mutex<HashMap<String, Instant>>,
}

impl Lifecycle {
    /// The life of the namespaces in this storage.
    #[must_use]
    pub fn new(namespaces: Arc<dyn Interface>, clock: Clock) -> Self {
        Self {
            namespaces,
            clock,
            deleted: Mutex::default(),
        }
    }

    async fn get(&self, name: &str) -> Result<Arc<Object>, StorageError> {
        let key = format!("/namespaces/{name}");
        if !self.is_lately_deleted(name) {
            let cached = GetOptions {
                resource_version: Some(ResourceVersion(0)),
            };
            match self.namespaces.get(&key, cached).await {
                Err(StorageError::KeyNotFound { .. }) => {}
                result => return result,
            }
        }
        self.namespaces.get(&key, GetOptions::default()).await
    }

    fn is_lately_deleted(&self, name: &str) -> bool {
        let deleted = self.deleted.lock().unwrap_or_else(PoisonError::into_inner);
        deleted
            .get(name)
            .is_some_and(|at| self.clock.now().duration_since(*at) < LIVE_LOOKUP)
    }

    fn remember_deletion(&self, name: &str) {
        let now = self.clock.now();
        let mut deleted = self.deleted.lock().unwrap_or_else(PoisonError::into_inner);
        deleted.retain(|_, at| now.duration_since(*at) < LIVE_LOOKUP);
        if deleted.len() >= DELETED_NAMESPACES_MAX
            && let Some(oldest) = deleted.iter().min_by_key(|(_, at)| **at)
        {
            let oldest = oldest.0.clone();
            deleted.remove(&oldest);
        }
        deleted.insert(name.to_owned(), now);
    }
}

#[async_trait]
impl NamespaceLifecycle for Lifecycle {
    async fn admit_create(
        &self,
        namespace: &str,
        resource: &Resource,
        name: &str,
    ) -> Result<(), Error> {
        let found = match self.get(namespace).await {
            Ok(found) => found,
            Err(StorageError::KeyNotFound { .. }) => {
                return Err(Error::NotFound {
                    resource: "namespaces".to_owned(),
                    name: namespace.to_owned(),
                });
            }
            Err(error) => return Err(Error::Storage(error)),
        };
        let found = found
            .to_value()
            .map_err(|error| Error::Internal(error.to_string()))?;
        if found["status"]["phase"] != "Terminating" {
            return Ok(());
        }
        Err(Error::Forbidden {
            resource: resource.qualified_name(),
            name: name.to_owned(),
            message: format!(
                "unable to create new content in namespace {namespace} because it is being terminated"
            ),
            cause: Some(("NamespaceTerminating", "metadata.namespace".to_owned())),
        })
    }

    fn admit_delete(&self, resource: &Resource, name: &str) -> Result<(), Error> {
        if resource.plural != "namespaces" || !resource.group_version.group.is_empty() {
            return Ok(());
        }
        if IMMORTAL.contains(&name) {
            return Err(Error::Forbidden {
                resource: resource.qualified_name(),
                name: name.to_owned(),
                message: "this namespace may not be deleted".to_owned(),
                cause: None,
            });
        }
        self.remember_deletion(name);
        Ok(())
    }
}
