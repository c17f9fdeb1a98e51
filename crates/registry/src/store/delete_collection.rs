//! Deletes a collection: the objects that a list selects.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use ringwatch::meta::Object;
use ringwatch::storage::{List, ListOptions};
use ringwatch_apimachinery::Error;

use super::Store;
use super::delete::DeletionTarget;
use crate::{DeleteOptions, RequestContext};

/// Number of objects in a page of the list, unless the client sets a limit.
const PAGE_OBJECTS: u64 = 10_000;

impl Store {
    /// Deletes the objects that a list selects, and returns the list. With a limit it deletes one page. Not atomic:
    /// objects deleted before an error stay deleted.
    ///
    /// # Errors
    /// Those of [`Store::list`] and [`Store::delete`]; objects that are gone are no error.
    pub async fn delete_collection(
        &self,
        context: &RequestContext,
        namespace: &str,
        options: DeleteOptions,
        mut list: ListOptions,
    ) -> Result<List, Error> {
        let one_page = list.predicate.limit > 0;
        if !one_page {
            list.predicate.limit = PAGE_OBJECTS;
        }
        self.delete_pages(context, namespace, &options, list, one_page)
            .await
    }

    /// Deletes objects, as many at a time as there are workers. After an error no further deletion begins, and those in
    /// progress are finished.
    async fn delete_objects(
        &self,
        context: &RequestContext,
        objects: &[Arc<Object>],
        options: &DeleteOptions,
    ) -> Result<(), Error> {
        let mut objects = objects.iter();
        let mut deletions = FuturesUnordered::new();
        let mut result = Ok(());
        loop {
            while result.is_ok()
                && deletions.len() < self.deletion.collection_workers.max(1)
                && let Some(object) = objects.next()
            {
                let target = DeletionTarget {
                    namespace: object.namespace(),
                    name: object.name(),
                    requested_name: "",
                };
                deletions.push(self.delete_as(context, target, options.clone()));
            }
            match deletions.next().await {
                None => return result,
                Some(Ok(_) | Err(Error::NotFound { .. })) => {}
                Some(Err(error)) => result = result.and(Err(error)),
            }
        }
    }

    async fn delete_pages(
        &self,
        context: &RequestContext,
        namespace: &str,
        options: &DeleteOptions,
        mut list: ListOptions,
        one_page: bool,
    ) -> Result<List, Error> {
        let mut deleted: Option<List> = None;
        loop {
            let page = self.list(namespace, list.clone()).await?;
            self.delete_objects(context, &page.items, options).await?;
            if one_page {
                return Ok(page);
            }
            let next = page.continue_token.clone();
            list.resource_version = None;
            list.version_match = None;
            let all = match &mut deleted {
                None => deleted.insert(List {
                    continue_token: None,
                    remaining_item_count: None,
                    ..page
                }),
                Some(all) => {
                    all.items.extend(page.items);
                    all
                }
            };
            match next {
                Some(next) => list.predicate.continue_token = next,
                None => return Ok(std::mem::take(all)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ringwatch::meta::{LabelSelector, ResourceVersion, VersionMatch};
    use serde_json::json;

    use super::*;
    use crate::DeletionSettings;
    use crate::testing::{Fixture, TestStrategy};

    #[tokio::test]
    async fn what_is_selected_is_deleted_and_returned() {
        let fixture = Fixture::new(TestStrategy::default());
        for (name, app) in [("a", "x"), ("b", "x"), ("c", "y")] {
            fixture
                .create(json!({"name": name, "labels": {"app": app}}))
                .await;
        }
        let mut list = ListOptions::default();
        list.predicate.label = LabelSelector::parse("app=x").expect("a selector");
        let options = DeleteOptions::default();
        let deleted = fixture
            .store
            .delete_collection(&fixture.context, "ns", options, list)
            .await;
        let deleted = deleted.expect("deleted");
        let found: Vec<_> = deleted
            .items
            .iter()
            .map(|object| (object.name(), object.revision()))
            .collect();
        assert_eq!(found, [("a", 2), ("b", 3)]);
        assert_eq!((deleted.revision, deleted.continue_token), (4, None));
        let left = fixture
            .store
            .list("ns", ListOptions::default())
            .await
            .expect("a list");
        assert_eq!(left.items.len(), 1);
    }

    #[tokio::test]
    async fn a_limit_deletes_one_page() {
        let fixture = Fixture::new(TestStrategy::default());
        for name in ["a", "b", "c"] {
            fixture.create(json!({"name": name})).await;
        }
        let mut list = ListOptions::default();
        list.predicate.limit = 2;
        let options = DeleteOptions::default();
        let deleted = fixture
            .store
            .delete_collection(&fixture.context, "ns", options, list)
            .await;
        let deleted = deleted.expect("deleted");
        assert_eq!(deleted.items.len(), 2);
        assert!(deleted.continue_token.is_some());
        assert!(fixture.stored("c").await.is_some() && fixture.stored("b").await.is_none());
    }

    #[tokio::test]
    async fn all_pages_are_deleted_and_returned() {
        let fixture = Fixture::new(TestStrategy::default());
        for name in ["a", "b", "c", "d", "e"] {
            fixture.create(json!({"name": name})).await;
        }
        let (store, options) = (&fixture.store, DeleteOptions::default());
        let mut list = ListOptions::default();
        list.predicate.limit = 2;
        let deleted = store.delete_pages(&fixture.context, "ns", &options, list, false);
        let deleted = deleted.await.expect("deleted");
        let names: Vec<_> = deleted.items.iter().map(|object| object.name()).collect();
        assert_eq!(names, ["a", "b", "c", "d", "e"]);
        assert_eq!((deleted.revision, deleted.continue_token), (6, None));
        let left = store
            .list("ns", ListOptions::default())
            .await
            .expect("a list");
        assert!(left.items.is_empty());
    }

    /// The version says how old the first page may be; the pages after it are of the revision in their token.
    #[tokio::test]
    async fn all_pages_are_deleted_whatever_version_the_client_asks_for() {
        let newest = ResourceVersion(6);
        for (version, version_match) in [
            (None, None),
            (Some(ResourceVersion(0)), None),
            (Some(ResourceVersion(0)), Some(VersionMatch::NotOlderThan)),
            (Some(newest), Some(VersionMatch::NotOlderThan)),
            (Some(newest), Some(VersionMatch::Exact)),
        ] {
            let fixture = Fixture::new(TestStrategy::default());
            for name in ["a", "b", "c", "d", "e"] {
                fixture.create(json!({"name": name})).await;
            }
            let (store, options) = (&fixture.store, DeleteOptions::default());
            let mut list = ListOptions {
                resource_version: version,
                version_match,
                ..ListOptions::default()
            };
            list.predicate.limit = 2;
            let deleted = store.delete_pages(&fixture.context, "ns", &options, list, false);
            let deleted = deleted.await.expect("deleted");
            assert_eq!((deleted.items.len(), deleted.revision), (5, 6));
            let left = store.list("ns", ListOptions::default()).await;
            assert!(left.expect("a list").items.is_empty());
        }
    }

    #[tokio::test]
    async fn several_workers_delete_each_object_once() {
        let fixture = Fixture::new(TestStrategy::default());
        let names: Vec<String> = (0..20).map(|number| format!("n{number:02}")).collect();
        for name in &names {
            fixture.create(json!({"name": name})).await;
        }
        let store = fixture.store.clone().with_deletion(DeletionSettings {
            collection_workers: 7,
            ..DeletionSettings::default()
        });
        let (options, list) = (DeleteOptions::default(), ListOptions::default());
        let deleted = store.delete_collection(&fixture.context, "ns", options, list);
        let deleted = deleted.await.expect("deleted");
        let found: Vec<_> = deleted.items.iter().map(|object| object.name()).collect();
        assert_eq!(found, names);
        for name in &names {
            assert!(fixture.stored(name).await.is_none(), "{name}");
        }
    }

    #[tokio::test]
    async fn grace_periods_are_each_objects_own() {
        let fixture = Fixture::new(TestStrategy {
            grace: Some(30),
            ..TestStrategy::default()
        });
        fixture.create(json!({"name": "a"})).await;
        fixture.create(json!({"name": "b"})).await;
        let (options, list) = (DeleteOptions::default(), ListOptions::default());
        let deleted = fixture
            .store
            .delete_collection(&fixture.context, "ns", options, list)
            .await;
        let deleted = deleted.expect("they begin");
        assert_eq!(deleted.items.len(), 2);
        for name in ["a", "b"] {
            let stored = fixture.stored(name).await.expect("it waits");
            assert_eq!(stored["metadata"]["deletionGracePeriodSeconds"], 30);
        }
    }
}
