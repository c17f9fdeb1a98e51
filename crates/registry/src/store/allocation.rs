//! Calls the [`Allocator`] of a store around its writes.
//!
//! Allocations are themselves recorded in stores, so these futures are boxed.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use ringwatch::meta::Object;
use ringwatch::storage::StorageError;
use ringwatch_apimachinery::Error;
use serde_json::Value;

use super::Store;
use super::read::tree_of;
use crate::allocator::{Allocation, Allocator, WriteResult};

impl Store {
    /// Returns the store with an allocator for values that one object at a time can have, such as cluster IPs.
    #[must_use]
    pub fn with_allocator(self, allocator: Arc<dyn Allocator>) -> Self {
        Self {
            allocator: Some(allocator),
            ..self
        }
    }

    /// Allocates what an object needs, before it is validated. The caller passes the allocation to
    /// [`Store::finish_allocation`] after the write.
    pub(super) fn allocate<'a>(
        &'a self,
        object: &'a mut Value,
        old: Option<&'a Value>,
        dry_run: bool,
    ) -> BoxFuture<'a, Result<Option<Box<dyn Allocation>>, Error>> {
        match &self.allocator {
            Some(allocator) => {
                let allocator = Arc::clone(allocator);
                async move { allocator.allocate(object, old, dry_run).await.map(Some) }.boxed()
            }
            None => ready(Ok(None)).boxed(),
        }
    }

    /// Finishes an allocation after the write: releases the values that are not in use by then.
    pub(super) fn finish_allocation(
        allocation: Option<Box<dyn Allocation>>,
        outcome: WriteResult,
    ) -> BoxFuture<'static, ()> {
        match allocation {
            Some(allocation) => allocation.finish(outcome).boxed(),
            None => ready(()).boxed(),
        }
    }

    /// Releases the values of an object that has been removed from the storage.
    pub(super) fn release<'a>(&'a self, object: &'a Object) -> BoxFuture<'a, ()> {
        let Some(allocator) = &self.allocator else {
            return ready(()).boxed();
        };
        async move {
            if let Ok(object) = tree_of(object).await {
                allocator.release(&object).await;
            }
        }
        .boxed()
    }
}

/// Returns the outcome of a write by the result of the storage.
pub(super) fn outcome<T>(result: &Result<T, StorageError>) -> WriteResult {
    match result {
        Ok(_) => WriteResult::Written,
        Err(
            StorageError::Timeout { .. }
            | StorageError::Unreachable { .. }
            | StorageError::Internal { .. },
        ) => WriteResult::Unknown,
        Err(_) => WriteResult::NotWritten,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    use async_trait::async_trait;
    use ringwatch_apimachinery::FieldError;
    use serde_json::json;

    use super::*;
    use crate::testing::{Failure, Fixture, Put, TestStrategy, config_map, patch};
    use crate::{RequestContext, UpdateOptions, UpdatedObject};

    /// Addresses of which each belongs to one object, at `data.address`.
    #[derive(Debug, Default)]
    struct Addresses(Mutex<BTreeSet<String>>);

    impl Addresses {
        fn taken(&self) -> Vec<String> {
            self.0.lock().expect("sound").iter().cloned().collect()
        }
    }

    fn address(object: &Value) -> Option<String> {
        object["data"]["address"].as_str().map(str::to_owned)
    }

    #[async_trait]
    impl Allocator for Addresses {
        async fn allocate(
            self: Arc<Self>,
            object: &mut Value,
            old: Option<&Value>,
            _dry_run: bool,
        ) -> Result<Box<dyn Allocation>, Error> {
            let (before, after) = (old.and_then(address), address(object));
            let (gained, given_up) = match before == after {
                true => (None, None),
                false => (after, before),
            };
            let mut taken = self.0.lock().expect("sound");
            if let Some(gained) = &gained
                && !taken.insert(gained.clone())
            {
                return Err(Error::Invalid {
                    kind: "ConfigMap".to_owned(),
                    name: String::new(),
                    errors: vec![FieldError::forbidden("data.address", "it is taken")],
                });
            }
            drop(taken);
            Ok(Box::new(Change {
                addresses: self,
                gained,
                given_up,
            }))
        }

        async fn release(&self, object: &Value) {
            if let Some(address) = address(object) {
                assert!(self.0.lock().expect("sound").remove(&address), "{address}");
            }
        }
    }

    #[derive(Debug)]
    struct Change {
        addresses: Arc<Addresses>,
        gained: Option<String>,
        given_up: Option<String>,
    }

    #[async_trait]
    impl Allocation for Change {
        async fn finish(self: Box<Self>, outcome: WriteResult) {
            let unused = match outcome {
                WriteResult::Written => self.given_up,
                WriteResult::NotWritten => self.gained,
                WriteResult::Unknown => None,
            };
            if let Some(unused) = unused {
                self.addresses.0.lock().expect("sound").remove(&unused);
            }
        }
    }

    fn fixture() -> (Fixture, Arc<Addresses>) {
        let mut fixture = Fixture::new(TestStrategy::default());
        let addresses = Arc::new(Addresses::default());
        fixture.store = fixture.store.with_allocator(Arc::clone(&addresses) as _);
        (fixture, addresses)
    }

    impl Fixture {
        async fn put(&self, name: &str, updated: &mut dyn UpdatedObject) -> Result<(), Error> {
            let options = UpdateOptions::default();
            let store = &self.store;
            let updated = store.update(&self.context, "ns", name, updated, &options);
            updated.await.map(drop)
        }

        async fn create_at(&self, name: &str, address: &str) -> Result<(), Error> {
            let mut object = config_map(json!({ "name": name }));
            object["data"]["address"] = json!(address);
            let options = Default::default();
            let store = &self.store;
            let created = store.create(&self.context, "ns", object, &options);
            created.await.map(drop)
        }
    }

    /// The end of an update that has lost some races.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum End {
        Written,
        /// Its last attempt is not valid.
        Refused,
        /// The object goes before its last attempt is written.
        Removed,
    }

    /// An update that asks for another address at each attempt.
    struct Racing<'a> {
        fixture: &'a Fixture,
        races: usize,
        attempt: usize,
        end: End,
    }

    #[async_trait]
    impl UpdatedObject for Racing<'_> {
        async fn updated(
            &mut self,
            context: &RequestContext,
            existing: Option<&Value>,
        ) -> Result<Value, Error> {
            let mut object = existing.cloned().expect("it exists");
            object["data"]["address"] = json!(self.attempt.to_string());
            let is_last = self.attempt == self.races;
            if !is_last {
                let theirs = self.attempt;
                let mut theirs =
                    patch(|object| object["data"]["theirs"] = json!(theirs.to_string()));
                self.fixture.put("a", &mut theirs).await?;
            } else if self.end == End::Refused {
                object["data"]["bad"] = json!("x");
            } else if self.end == End::Removed {
                let store = &self.fixture.store;
                let deleted = store.delete(context, "ns", "a", Default::default());
                deleted.await?;
            }
            self.attempt += 1;
            Ok(object)
        }
    }

    #[tokio::test]
    async fn an_update_keeps_only_what_it_has_written_however_many_races_it_loses() {
        for end in [End::Written, End::Refused, End::Removed] {
            for races in 0..3 {
                let (fixture, addresses) = fixture();
                fixture.create_at("a", "first").await.expect("created");
                let mut racing = Racing {
                    fixture: &fixture,
                    races,
                    attempt: 0,
                    end,
                };
                let updated = fixture.put("a", &mut racing).await;
                assert_eq!(updated.is_ok(), end == End::Written, "{updated:?}");
                assert_eq!(racing.attempt, races + 1);
                let kept = fixture.stored("a").await;
                let kept: Vec<_> = kept.as_ref().and_then(address).into_iter().collect();
                assert_eq!(addresses.taken(), kept, "{end:?} after {races} races");
            }
        }
    }

    /// Another object must not get an address that is in use, and must get one that is not.
    #[tokio::test]
    async fn an_address_is_free_only_if_it_was_certainly_not_written() {
        let message = || "lost".to_owned();
        for by_update in [false, true] {
            for (error, is_free) in [
                (StorageError::Timeout { message: message() }, false),
                (StorageError::Unreachable { message: message() }, false),
                (StorageError::Internal { message: message() }, false),
                (StorageError::NoSpace { message: message() }, true),
            ] {
                let (fixture, _) = fixture();
                fixture.create(json!({"name": "b"})).await;
                let failure = format!("{error:?}");
                fixture.storage.fail_next_write(Failure {
                    error,
                    is_written: !is_free,
                });
                let (name, failed) = if by_update {
                    let mut put = config_map(json!({"name": "b"}));
                    put["data"]["address"] = json!("x");
                    ("b", fixture.put("b", &mut Put(put)).await)
                } else {
                    ("a", fixture.create_at("a", "x").await)
                };
                failed.expect_err("the answer");
                let stored = fixture.stored(name).await;
                assert_eq!(stored.as_ref().and_then(address).is_none(), is_free);
                let other = fixture.create_at("c", "x").await;
                assert_eq!(other.is_ok(), is_free, "{failure}");
            }
        }
    }
}
