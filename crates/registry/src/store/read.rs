//! Reads objects, lists and watches.
//!
//! A selector that matches one namespace or one object narrows the key range.

use std::borrow::Cow;
use std::sync::Arc;

use ringwatch::codec;
use ringwatch::meta::Object;
use ringwatch::storage::{GetOptions, List, ListOptions, SelectionPredicate, WatchStream};
use ringwatch_apimachinery::Error;
use ringwatch_apimachinery::validation::formats;
use ringwatch_offload::{Work, offload_if_large};
use ringwatch_spans::step;

use super::Store;
use super::request_error::{StoreOperation, to_request_error};

impl Store {
    /// Reads an object in the served version.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Storage`] when the requested version is not reached in time.
    pub async fn get(
        &self,
        namespace: &str,
        name: &str,
        options: GetOptions,
    ) -> Result<Arc<Object>, Error> {
        let key = self.key(namespace, name)?;
        let _step = step("Get from storage");
        self.storage
            .get(&key, options)
            .await
            .map_err(|error| to_request_error(error, StoreOperation::Get, &self.resource, name))
    }

    /// Lists the objects of a namespace, or of all (empty).
    ///
    /// # Errors
    /// [`Error::BadRequest`] when there can be no such namespace,
    /// [`Error::Storage`] with what [`ringwatch::storage::Interface::get_list`] says.
    pub async fn list(&self, namespace: &str, mut options: ListOptions) -> Result<List, Error> {
        let (key, recursive) = self.scope(namespace, &options.predicate)?;
        options.recursive = recursive;
        let _step = step("List from storage");
        self.storage
            .get_list(&key, options)
            .await
            .map_err(|error| to_request_error(error, StoreOperation::List, &self.resource, ""))
    }

    /// Watches the objects of a namespace, or of all (empty).
    ///
    /// # Errors
    /// [`Error::BadRequest`] when there can be no such namespace,
    /// [`Error::Storage`] with what [`ringwatch::storage::Interface::watch`] says.
    pub async fn watch(
        &self,
        namespace: &str,
        mut options: ListOptions,
    ) -> Result<WatchStream, Error> {
        let (key, recursive) = self.scope(namespace, &options.predicate)?;
        options.recursive = recursive;
        let stream = self.storage.watch(&key, options).await;
        stream.map_err(Error::Storage)
    }

    /// Returns true if the served version differs from the stored one.
    #[must_use]
    pub fn converts_objects(&self) -> bool {
        self.strategy().converts()
    }

    /// Returns a stored object in the served version; the object itself if that is its stored version.
    ///
    /// # Errors
    /// [`Error::Internal`] when it cannot be converted.
    pub fn to_served(&self, object: Arc<Object>) -> Result<Arc<Object>, Error> {
        let strategy = self.strategy();
        if !strategy.converts() {
            return Ok(object);
        }
        let served = strategy.to_served(codec::tree(&object)?);
        Object::from_value(&served, object.revision(), &self.resource.schema)
            .map(Arc::new)
            .map_err(|error| Error::Internal(error.to_string()))
    }

    /// Returns a stored object as a tree, in the served version.
    ///
    /// # Errors
    /// [`Error::Internal`] when it cannot be converted or read.
    pub fn served_value(&self, object: &Object) -> Result<serde_json::Value, Error> {
        Ok(self.strategy().to_served(codec::tree(object)?))
    }

    /// Returns the narrowest key that holds all a predicate can select, and whether it is that of a list.
    ///
    /// # Errors
    /// [`Error::BadRequest`] when there can be no such namespace.
    fn scope(
        &self,
        namespace: &str,
        predicate: &SelectionPredicate,
    ) -> Result<(String, bool), Error> {
        let mut namespace = Cow::Borrowed(namespace);
        if namespace.is_empty()
            && let Some(single) = predicate.single_namespace()
            && formats::dns_label(single).is_empty()
        {
            namespace = Cow::Owned(single.to_owned());
        }
        // A list with a continue token reads many objects, whatever its selector.
        if predicate.continue_token.is_empty()
            && let Some(name) = predicate.single_name()
            && let Ok(key) = self.key(&namespace, name)
        {
            return Ok((key, false));
        }
        Ok((self.root_key(&namespace)?, true))
    }
}

/// Returns a stored object as a tree. Parses a large object on the threads for large work.
pub(super) async fn tree_of(object: &Object) -> Result<serde_json::Value, Error> {
    offload_if_large(Work::Object, object.stored()).await;
    Ok(codec::tree(object)?)
}

#[cfg(test)]
mod tests {
    use ringwatch::meta::FieldSelector;
    use serde_json::json;

    use super::*;
    use crate::testing::{Fixture, TestStrategy, resource};

    fn by_fields(selector: &str) -> ListOptions {
        let mut options = ListOptions::default();
        options.predicate.field = FieldSelector::parse(selector).expect("a selector");
        options
    }

    #[tokio::test]
    async fn an_object_is_read_by_its_name() {
        let fixture = Fixture::new(TestStrategy::default());
        let created = fixture.create(json!({"name": "a"})).await;
        let found = fixture
            .store
            .get("ns", "a", GetOptions::default())
            .await
            .expect("found");
        assert_eq!(codec::tree(&found).expect("an object"), created);
        let error = fixture
            .store
            .get("ns", "b", GetOptions::default())
            .await
            .expect_err("missing");
        assert_eq!(error.to_string(), "configmaps \"b\" not found");
    }

    #[tokio::test]
    async fn names_that_are_no_segments_are_refused() {
        let fixture = Fixture::new(TestStrategy::default());
        for (namespace, name, words) in [
            ("ns", "", "Name parameter required."),
            ("", "a", "Namespace parameter required."),
            (
                "ns",
                "a/b",
                "Name parameter invalid: \"a/b\": may not contain '/'",
            ),
            (
                "ns",
                "..",
                "Name parameter invalid: \"..\": may not be '..'",
            ),
            (
                "..",
                "a",
                "Namespace parameter invalid: \"..\": may not be '..'",
            ),
        ] {
            let error = fixture
                .store
                .get(namespace, name, GetOptions::default())
                .await;
            assert_eq!(error.expect_err("refused").to_string(), words);
        }
    }

    #[tokio::test]
    async fn selectors_narrow_what_is_read() {
        let fixture = Fixture::new(TestStrategy::default());
        fixture.create(json!({"name": "a"})).await;
        fixture.create(json!({"name": "b"})).await;
        let mut first = ListOptions::default();
        first.predicate.limit = 1;
        let page = fixture.store.list("ns", first).await.expect("a list");
        let mut continued = by_fields("metadata.name=a");
        continued.predicate.continue_token = page.continue_token.expect("there are more");
        fixture.storage.take_lists();
        for (namespace, options, key, recursive) in [
            ("", ListOptions::default(), "/configmaps/", true),
            ("ns", ListOptions::default(), "/configmaps/ns/", true),
            (
                "",
                by_fields("metadata.namespace=ns"),
                "/configmaps/ns/",
                true,
            ),
            (
                "",
                by_fields("metadata.namespace=Not_One"),
                "/configmaps/",
                true,
            ),
            (
                "other",
                by_fields("metadata.namespace=ns"),
                "/configmaps/other/",
                true,
            ),
            (
                "ns",
                by_fields("metadata.name=a"),
                "/configmaps/ns/a",
                false,
            ),
            ("", by_fields("metadata.name=a"), "/configmaps/", true),
            (
                "",
                by_fields("metadata.name=a,metadata.namespace=ns"),
                "/configmaps/ns/a",
                false,
            ),
            ("ns", by_fields("metadata.name=.."), "/configmaps/ns/", true),
            ("ns", by_fields("metadata.name!=a"), "/configmaps/ns/", true),
            ("ns", continued, "/configmaps/ns/", true),
        ] {
            fixture
                .store
                .list(namespace, options.clone())
                .await
                .expect("a list");
            drop(
                fixture
                    .store
                    .watch(namespace, options)
                    .await
                    .expect("a watch"),
            );
            let expected = (key.to_owned(), recursive);
            let lists = fixture.storage.take_lists();
            assert_eq!(lists, [expected.clone(), expected]);
        }
    }

    #[tokio::test]
    async fn cluster_scoped_objects_lie_below_the_prefix() {
        let fixture = Fixture::new(TestStrategy::default());
        let strategy = Arc::clone(&fixture.strategy);
        let nodes = resource("nodes", "Node", false, strategy);
        let store = Store::new(nodes, Arc::clone(fixture.store.storage()));
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "namespace": "dropped"}});
        let created = store
            .create(&fixture.context, "", node, &Default::default())
            .await;
        assert_eq!(created.expect("created").namespace(), "");
        store
            .storage()
            .get("/nodes/n", GetOptions::default())
            .await
            .expect("there");
        store
            .list("", by_fields("metadata.name=n"))
            .await
            .expect("a list");
        assert_eq!(
            fixture.storage.take_lists(),
            [("/nodes/n".to_owned(), false)]
        );
    }
}
