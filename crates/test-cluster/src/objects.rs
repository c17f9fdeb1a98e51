//! The objects of a built-in type as a controller reads and writes them.

use std::fmt;
use std::sync::Arc;

use ringwatch::clock::Clock;
use ringwatch::storage::{GetOptions, ListOptions};
use ringwatch_apimachinery::Error;
use ringwatch_apimachinery::accessor;
use ringwatch_registry::{
    CreateOptions, DeleteOptions, FunctionUpdate, ListWatch, Store, UpdateOptions,
};
use serde_json::Value;

use crate::ServedStores;
use crate::account::context;
use crate::controller::found;

/// Number of objects of a list that are decoded at a time, before other tasks have their turn.
const DECODED_AT_A_TIME: usize = 64;

/// The objects of a type, written as the service account of a controller.
pub(crate) struct ControllerObjects<'a> {
    store: &'a Arc<Store>,
    account: &'static str,
    clock: &'a Clock,
}

impl<'a> ControllerObjects<'a> {
    /// Returns the objects of a type, named by group and plural; `None` if it is not served.
    pub(crate) fn new(
        stores: &'a ServedStores,
        (group, plural): (&str, &str),
        account: &'static str,
        clock: &'a Clock,
    ) -> Option<Self> {
        Some(Self {
            store: stores.built_in(group, plural)?,
            account,
            clock,
        })
    }

    /// Returns what an informer follows.
    pub(crate) fn source(&self) -> &'a dyn ListWatch {
        self.store.as_ref()
    }

    /// Returns an object; `None` if there is none.
    pub(crate) async fn get(&self, namespace: &str, name: &str) -> Result<Option<Value>, Error> {
        let object = self.store.get(namespace, name, GetOptions::default()).await;
        let object = found(object)?;
        object.map(|it| self.store.served_value(&it)).transpose()
    }

    /// Returns the objects of a namespace, or all of them for an empty one. They are the newest: the list has all that
    /// was written before it began, by this controller and by others.
    pub(crate) async fn list(&self, namespace: &str) -> Result<Vec<Value>, Error> {
        let listed = self.store.list(namespace, ListOptions::default()).await?;
        let mut objects = Vec::with_capacity(listed.items.len());
        for some in listed.items.chunks(DECODED_AT_A_TIME) {
            for object in some {
                objects.push(self.store.served_value(object)?);
            }
            tokio::task::yield_now().await;
        }
        Ok(objects)
    }

    /// Returns the content of an object that an informer told of. One that cannot be read is null, which has no fields.
    pub(crate) fn content(&self, object: &ringwatch::meta::Object) -> Value {
        self.store.served_value(object).unwrap_or_default()
    }

    /// Creates an object, and returns it; `None` if its namespace is gone or goes.
    ///
    /// # Errors
    /// Errors of the store, `AlreadyExists` among them.
    pub(crate) async fn create(&self, object: Value) -> Result<Option<Value>, Error> {
        let namespace = accessor::text(&object, "namespace").to_owned();
        let (context, options) = (context(self.account, self.clock), CreateOptions::default());
        let created = self.store.create(&context, &namespace, object, &options);
        match created.await {
            Ok(object) => self.store.served_value(&object).map(Some),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(Error::Forbidden {
                cause: Some(("NamespaceTerminating", _)),
                ..
            }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Changes an object, or its subresource, and returns it; `None` if it is gone, or another one has its name now.
    pub(crate) async fn update(
        &self,
        object: &Value,
        subresource: &'static str,
        mut change: impl FnMut(&mut Value) + Send,
    ) -> Result<Option<Value>, Error> {
        let (namespace, name) = names(object);
        let uid = accessor::text(object, "uid");
        let mut change = FunctionUpdate::new(|object: &mut Value| {
            if accessor::text(object, "uid") == uid {
                change(object);
            }
            Ok(())
        });
        let context = context(self.account, self.clock).on_subresource(subresource);
        let options = UpdateOptions::default();
        let updated = self
            .store
            .update(&context, namespace, name, &mut change, &options);
        let updated = found(updated.await.map(|(object, _)| object))?;
        let updated = updated.map(|it| self.store.served_value(&it)).transpose()?;
        Ok(updated.filter(|it| accessor::text(it, "uid") == uid))
    }

    /// Deletes an object, unless it is gone already.
    ///
    /// # Errors
    /// Errors of the store, `Conflict` if another one has its name now.
    pub(crate) async fn delete(&self, object: &Value, options: DeleteOptions) -> Result<(), Error> {
        let (namespace, name) = names(object);
        let options = DeleteOptions {
            precondition_uid: Some(accessor::text(object, "uid").to_owned()),
            ..options
        };
        let context = context(self.account, self.clock);
        let deleted = self.store.delete(&context, namespace, name, options);
        match deleted.await {
            Ok(_) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Returns the namespace and the name of an object.
fn names(object: &Value) -> (&str, &str) {
    (
        accessor::text(object, "namespace"),
        accessor::text(object, "name"),
    )
}

impl fmt::Debug for ControllerObjects<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ControllerObjects")
            .field("resource", &self.store.resource().plural)
            .finish_non_exhaustive()
    }
}
