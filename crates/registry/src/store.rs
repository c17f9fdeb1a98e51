//! The generic store of one resource: Kubernetes' registry store.
//!
//! Every write takes the same steps. The object from the client is converted to the storage version, passes admission
//! and the resource's [`Strategy`] in kube-apiserver's order, and is handed to the storage; an update repeats this
//! while other writers are faster. The hard part is deletion: while finalizers or a grace period delay it, it is an
//! update.
//!
//! Objects inside are JSON trees in the storage version.

mod admit;
mod allocation;
mod before_create;
mod before_delete;
mod before_update;
mod begin_deletion;
mod create;
mod delete;
mod delete_collection;
mod delete_unreadable;
mod dry_run;
mod garbage_collection;
mod incoming;
mod read;
mod request_error;
mod update;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

pub use self::admit::SubresourceCall;
pub use self::incoming::{
    admitted_to_storage_version, ensure_namespace, normalize_sent_metadata, to_storage_version,
    wipe_system_fields,
};
use ringwatch::meta::Object;
use ringwatch::storage::Interface;
use ringwatch_apimachinery::Error;
use ringwatch_offload::{Work, offload};

use super::Admission;
use super::allocator::Allocator;
use super::object_names::check_names;
use super::{DeletionSettings, RequestContext, Resource, Strategy, WriteGuard};

/// An update: a function from the current object to the next one.
#[async_trait]
pub trait UpdatedObject: Send {
    /// Returns the next content for the current one, both in the served version; `None` if there is no object. Called
    /// again when another writer changed the object meanwhile.
    ///
    /// # Errors
    /// The error of a change that cannot be made to the current object, such as [`Error::Invalid`] or
    /// [`Error::Conflict`].
    async fn updated(
        &mut self,
        context: &RequestContext,
        existing: Option<&Value>,
    ) -> Result<Value, Error>;

    /// Returns the uid that the current object must have: that in the body of a PUT.
    fn precondition_uid(&self) -> Option<String> {
        None
    }

    /// Returns the resource version that the current object must have, where another one fails at once: that of a
    /// binding.
    fn precondition_resource_version(&self) -> Option<String> {
        None
    }

    /// Returns true if the next content's managedFields are to stay as they are: after a server-side apply, which has
    /// brought them up to date, as a write of a Scale has, and for bindings and evictions, which claim no fields.
    /// `Strategy::default_applied` gives such content its defaults. If not, the store makes the context's field manager
    /// the owner of the changed fields.
    fn managed_fields_are_current(&self) -> bool {
        false
    }
}

/// The outcome of a deletion.
#[derive(Clone, Debug)]
pub struct DeletionResult {
    /// The object's last content, or its content while it is being deleted.
    pub object: Arc<Object>,
    /// True if the object has been deleted, rather than waiting for its grace period or its finalizers.
    pub finished: bool,
    /// True if the client is answered with the object, rather than with a Status about it.
    pub returns_object: bool,
}

/// The generic store of one resource in one served version.
///
/// It takes objects in the served version and gives them back as they are stored;
/// [`Store::to_served`] converts.
#[derive(Clone, Debug)]
pub struct Store {
    resource: Arc<Resource>,
    storage: Arc<dyn Interface>,
    admission: Option<Arc<dyn Admission>>,
    guard: Option<Arc<dyn WriteGuard>>,
    /// Seconds for which an object is kept after each write; `None` is unlimited.
    ttl_seconds: Option<u64>,
    allocator: Option<Arc<dyn Allocator>>,
    deletion: DeletionSettings,
}

impl Store {
    /// Makes the store of a resource, without admission, guard and allocator.
    #[must_use]
    pub fn new(resource: Arc<Resource>, storage: Arc<dyn Interface>) -> Self {
        Self {
            resource,
            storage,
            admission: None,
            guard: None,
            ttl_seconds: None,
            allocator: None,
            deletion: DeletionSettings::default(),
        }
    }

    /// Returns the store with a lifetime of its objects, in seconds after their last write; `None` or 0 is unlimited.
    #[must_use]
    pub fn with_ttl(self, seconds: Option<u64>) -> Self {
        Self {
            ttl_seconds: seconds.filter(|seconds| *seconds > 0),
            ..self
        }
    }

    /// Returns the store with these settings of deletions.
    #[must_use]
    pub fn with_deletion(self, deletion: DeletionSettings) -> Self {
        Self { deletion, ..self }
    }

    /// Returns the store with admission plugins.
    #[must_use]
    pub fn with_admission(self, admission: Arc<dyn Admission>) -> Self {
        Self {
            admission: Some(admission),
            ..self
        }
    }

    /// Returns the store with a guard of its writes, such as the check of privilege escalation.
    #[must_use]
    pub fn with_guard(self, guard: Option<Arc<dyn WriteGuard>>) -> Self {
        Self { guard, ..self }
    }

    /// Returns the resource whose objects are stored here.
    #[must_use]
    pub fn resource(&self) -> &Arc<Resource> {
        &self.resource
    }

    /// Returns the storage of its objects.
    #[must_use]
    pub fn storage(&self) -> &Arc<dyn Interface> {
        &self.storage
    }

    fn strategy(&self) -> &dyn Strategy {
        &*self.resource.strategy
    }

    /// Moves the request to the threads for large work if the cost of checking an object does not follow from its size,
    /// as with custom resources that have CEL rules.
    async fn offload_if_costly(&self) {
        if self.strategy().is_costly() {
            offload(Work::Expressions).await;
        }
    }

    /// Returns the strategy of what the request writes: that of the subresource if it has its own.
    fn strategy_of(&self, context: &RequestContext) -> &dyn Strategy {
        let strategy = self.strategy();
        strategy
            .subresource(&context.subresource)
            .unwrap_or(strategy)
    }

    /// Returns the key prefix of the objects of a namespace, or of all namespaces if it is empty.
    ///
    /// # Errors
    /// [`Error::BadRequest`] when the namespace cannot be a path segment.
    fn root_key(&self, namespace: &str) -> Result<String, Error> {
        let prefix = &self.resource.storage_prefix;
        if !self.resource.namespaced || namespace.is_empty() {
            return Ok(["/", prefix, "/"].concat());
        }
        // kube-apiserver lets its storage refuse the key, which is a 500 there.
        if matches!(namespace, "." | "..") {
            let why =
                format!("Namespace parameter invalid: {namespace:?}: may not be '{namespace}'");
            return Err(Error::BadRequest(why));
        }
        Ok(["/", prefix, "/", namespace, "/"].concat())
    }

    /// Returns the key of an object.
    ///
    /// # Errors
    /// [`Error::BadRequest`] when there can be no such name or namespace.
    fn key(&self, namespace: &str, name: &str) -> Result<String, Error> {
        let namespace_of = self.resource.namespaced.then_some(namespace);
        check_names(namespace_of, name)?;
        Ok(self.root_key(namespace)? + name)
    }
}
