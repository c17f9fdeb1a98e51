//! Webhook configurations and admission policies, as the admission plugins read them: kept by an informer, so that no
//! request reads the store.

use std::collections::BTreeMap;
use std::sync::Arc;

use ringwatch::clock::Clock;
use ringwatch::meta::Object;
use ringwatch_admission::ParsedObjects;
use ringwatch_registry::informer::{Handler, InformerChange};
use ringwatch_registry::{Informer, ListWatch, Store};

/// The controller that keeps the objects of an admission plugin up to date.
#[derive(Debug)]
pub struct AdmissionObjects<T> {
    /// The name of the objects, in messages.
    pub what: &'static str,
    /// The stores of the objects.
    pub stores: Vec<Arc<Store>>,
    /// Parses an object; the error says why it is ignored.
    pub read: fn(&serde_json::Value) -> Result<T, String>,
    /// The plugin's objects, which are set in the order of stores, namespaces and names.
    pub into: Arc<ParsedObjects<T>>,
    /// The time.
    pub clock: Clock,
}

/// The objects read so far, by the index of their store, namespace and name.
#[derive(Debug)]
struct Objects<'a, T> {
    of: &'a AdmissionObjects<T>,
    read: BTreeMap<(usize, String, String), Arc<T>>,
}

impl<T: Send + Sync> AdmissionObjects<T> {
    /// Runs the controller until it is dropped. While the stores cannot be read, the last objects are kept.
    pub async fn run(self) {
        let stores = self.stores.iter().enumerate();
        let sources = stores.map(|(index, store)| (index, store.as_ref() as &dyn ListWatch));
        let informer = Informer::new(self.what, sources, self.clock.clone());
        let mut objects = Objects {
            of: &self,
            read: BTreeMap::new(),
        };
        informer.run(&mut objects).await;
    }
}

impl<T> Handler<usize> for Objects<'_, T> {
    fn replace(&mut self, objects: Vec<(usize, Arc<Object>)>) {
        self.read.clear();
        for (index, object) in objects {
            self.set(index, &object);
        }
    }

    fn apply(&mut self, index: usize, change: InformerChange) {
        match change {
            InformerChange::Upserted(object) => self.set(index, &object),
            InformerChange::Deleted(object) => drop(self.read.remove(&key(index, &object))),
        }
    }

    fn publish(&mut self) {
        self.of.into.set(self.read.values().cloned().collect());
    }
}

impl<T> Objects<'_, T> {
    /// Applies the current state of an object. One that cannot be read is ignored.
    fn set(&mut self, index: usize, object: &Object) {
        let value = self.of.stores[index].served_value(object);
        let read = value
            .map_err(|error| error.to_string())
            .and_then(|value| (self.of.read)(&value));
        match read {
            Ok(read) => drop(self.read.insert(key(index, object), Arc::new(read))),
            Err(error) => {
                let (what, name) = (self.of.what, object.name());
                tracing::warn!(what, name, error, "an object cannot be read and is ignored");
                self.read.remove(&key(index, object));
            }
        }
    }
}

fn key(index: usize, object: &Object) -> (usize, String, String) {
    (
        index,
        object.namespace().to_owned(),
        object.name().to_owned(),
    )
}
