//! The generic store of one resource.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::{CreateOptions, DeleteOptions, Error, RequestContext, Resource, UpdateOptions};
use crate::meta::Object;
use crate::storage::{GetOptions, Interface, List, ListOptions, WatchStream};

/// What an update makes of the current object.
#[async_trait]
pub trait UpdatedObject: Send {
    /// Gives the next content for the current one, both in the served version; `None` if there is
    /// no object. May be called again when somebody else writes in between.
    ///
    /// # Errors
    /// Whatever is wrong with the request.
    async fn updated(
        &mut self,
        context: &RequestContext,
        existing: Option<&Value>,
    ) -> Result<Value, Error>;

    /// The uid that the current object must have: that in the body of a PUT.
    fn precondition_uid(&self) -> Option<String> {
        None
    }

    /// Whether the next content's managedFields are up to date (server-side apply); if not, the
    /// store tracks the changes for the context's field manager.
    fn tracks_fields(&self) -> bool {
        false
    }
}

/// Whether objects may be created in a namespace.
#[async_trait]
pub trait NamespaceLifecycle: Send + Sync + Debug {
    /// Agrees to the creation of an object.
    ///
    /// # Errors
    /// [`Error::NotFound`] without such a namespace, [`Error::Forbidden`] while it terminates.
    async fn admit_create(
        &self,
        namespace: &str,
        resource: &Resource,
        name: &str,
    ) -> Result<(), Error>;

    /// Agrees to the deletion of an object.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for a namespace that may not be deleted.
    fn admit_delete(&self, resource: &Resource, name: &str) -> Result<(), Error>;
}

/// The outcome of a deletion.
#[derive(Clone, Debug)]
pub struct Deleted {
    /// The object's last content, or its content while it is being deleted.
    pub object: Arc<Object>,
    /// Whether it is gone, rather than waiting for its grace period or its finalizers.
    pub finished: bool,
    /// Whether the client is answered with the object, rather than with a Status about it.
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
    lifecycle: Option<Arc<dyn NamespaceLifecycle>>,
}

impl Store {
    /// A store of a resource. The lifecycle guards creation in namespaces.
    #[must_use]
    pub fn new(
        resource: Arc<Resource>,
        storage: Arc<dyn Interface>,
        lifecycle: Option<Arc<dyn NamespaceLifecycle>>,
    ) -> Self {
        Self {
            resource,
            storage,
            lifecycle,
        }
    }

    /// What is stored here.
    #[must_use]
    pub fn resource(&self) -> &Arc<Resource> {
        &self.resource
    }

    /// Where it is stored.
    #[must_use]
    pub fn storage(&self) -> &Arc<dyn Interface> {
        &self.storage
    }
}

#[allow(unused_variables, reason = "skeleton, to be written")]
impl Store {
    /// Creates an object in `namespace` (empty if the resource has none).
    pub async fn create(
        &self,
        context: &RequestContext,
        namespace: &str,
        object: Value,
        options: &CreateOptions,
    ) -> Result<Arc<Object>, Error> {
        Err(Error::Internal("skeleton".into()))
    }
    /// Reads an object.
    pub async fn get(
        &self,
        namespace: &str,
        name: &str,
        options: GetOptions,
    ) -> Result<Arc<Object>, Error> {
        Err(Error::Internal("skeleton".into()))
    }
    /// Lists the objects of a namespace, or of all (empty).
    pub async fn list(&self, namespace: &str, options: ListOptions) -> Result<List, Error> {
        Err(Error::Internal("skeleton".into()))
    }
    /// Watches the objects of a namespace, or of all (empty). Events carry objects as stored.
    pub async fn watch(&self, namespace: &str, options: ListOptions) -> Result<WatchStream, Error> {
        Err(Error::Internal("skeleton".into()))
    }
    /// Updates an object; the flag says whether it was created.
    pub async fn update(
        &self,
        context: &RequestContext,
        namespace: &str,
        name: &str,
        updated: &mut dyn UpdatedObject,
        options: &UpdateOptions,
    ) -> Result<(Arc<Object>, bool), Error> {
        Err(Error::Internal("skeleton".into()))
    }
    /// Deletes an object, or begins to.
    pub async fn delete(
        &self,
        context: &RequestContext,
        namespace: &str,
        name: &str,
        options: DeleteOptions,
    ) -> Result<Deleted, Error> {
        Err(Error::Internal("skeleton".into()))
    }
    /// Deletes what a list selects and returns it.
    pub async fn delete_collection(
        &self,
        context: &RequestContext,
        namespace: &str,
        options: DeleteOptions,
        list: ListOptions,
    ) -> Result<List, Error> {
        Err(Error::Internal("skeleton".into()))
    }
    /// A stored object in the served version; itself if that is how it is stored.
    pub fn to_served(&self, object: Arc<Object>) -> Result<Arc<Object>, Error> {
        Err(Error::Internal("skeleton".into()))
    }
}
