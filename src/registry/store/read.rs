//! Reading: an object, a list, a watch.
//!
//! Selectors that name one namespace or one object narrow what is read.

use std::borrow::Cow;
use std::sync::Arc;

use super::Store;
use super::interpret::{Operation, interpret};
use crate::meta::Object;
use crate::registry::Error;
use crate::registry::validation::formats;
use crate::storage::{GetOptions, List, ListOptions, SelectionPredicate, WatchStream};

impl Store {
    /// Reads an object.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Storage`] when the version asked for is not reached in time.
    pub async fn get(
        &self,
        namespace: &str,
        name: &str,
        options: GetOptions,
    ) -> Result<Arc<Object>, Error> {
        let key = self.key(namespace, name)?;
        self.storage
            .get(&key, options)
            .await
            .map_err(|error| interpret(error, Operation::Get, &self.resource, name))
    }

    /// Lists the objects of a namespace, or of all (empty).
    ///
    /// # Errors
    /// [`Error::Storage`] with what [`crate::storage::Interface::get_list`] says.
    pub async fn list(&self, namespace: &str, mut options: ListOptions) -> Result<List, Error> {
        let (key, recursive) = self.scope(namespace, &options.predicate);
        options.recursive = recursive;
        self.storage
            .get_list(&key, options)
            .await
            .map_err(|error| interpret(error, Operation::List, &self.resource, ""))
    }

    /// Watches the objects of a namespace, or of all (empty).
    ///
    /// # Errors
    /// [`Error::Storage`] with what [`crate::storage::Interface::watch`] says.
    pub async fn watch(
        &self,
        namespace: &str,
        mut options: ListOptions,
    ) -> Result<WatchStream, Error> {
        let (key, recursive) = self.scope(namespace, &options.predicate);
        options.recursive = recursive;
        let stream = self.storage.watch(&key, options).await;
        stream.map_err(Error::Storage)
    }

    /// A stored object in the served version; itself if that is how it is stored.
    ///
    /// # Errors
    /// [`Error::Internal`] when it cannot be converted.
    pub fn to_served(&self, object: Arc<Object>) -> Result<Arc<Object>, Error> {
        let strategy = self.strategy();
        if !strategy.converts() {
            return Ok(object);
        }
        let served = strategy.to_served(value_of(&object)?);
        Object::from_value(&served, object.revision(), &self.resource.schema)
            .map(Arc::new)
            .map_err(|error| Error::Internal(error.to_string()))
    }

    /// The narrowest key that holds all a predicate can select, and whether it is that of a list.
    fn scope(&self, namespace: &str, predicate: &SelectionPredicate) -> (String, bool) {
        let mut namespace = Cow::Borrowed(namespace);
        if namespace.is_empty()
            && let Some(single) = predicate.single_namespace()
            && formats::dns_label(single).is_empty()
        {
            namespace = Cow::Owned(single.to_owned());
        }
        // A continued list is one of many objects whatever its selector says.
        if predicate.continue_token.is_empty()
            && let Some(name) = predicate.single_name()
            && let Ok(key) = self.key(&namespace, name)
        {
            return (key, false);
        }
        (self.root_key(&namespace), true)
    }
}

/// A stored object as a tree.
pub(super) fn value_of(object: &Object) -> Result<serde_json::Value, Error> {
    object
        .to_value()
        .map_err(|error| Error::Internal(error.to_string()))
}
