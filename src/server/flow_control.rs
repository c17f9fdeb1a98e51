//! Keeps what requests wait by as the stored flow schemas and priority levels say.

use std::sync::Arc;

use futures::StreamExt;
use serde_json::Value;

use super::filters::Fairness;
use super::following::pause_after;
use super::storage_factory::Storages;
use crate::clock::Clock;
use crate::meta::ResourceVersion;
use crate::registry::flow_control::{FlowTable, Level, Schema};
use crate::registry::{Error, Store};
use crate::storage::{ListOptions, WatchStream};

/// The group of both.
const GROUP: &str = "flowcontrol.apiserver.k8s.io";

/// The stores of flow schemas and priority levels.
#[derive(Clone, Debug)]
pub struct FlowStores {
    /// Of FlowSchemas.
    pub schemas: Arc<Store>,
    /// Of PriorityLevelConfigurations.
    pub levels: Arc<Store>,
}

impl FlowStores {
    /// Those of a server that has them.
    #[must_use]
    pub fn of(storages: &Storages) -> Option<Self> {
        Some(Self {
            schemas: storages.of((GROUP, "flowschemas")).cloned()?,
            levels: storages
                .of((GROUP, "prioritylevelconfigurations"))
                .cloned()?,
        })
    }
}

/// Follows flow schemas and priority levels.
#[derive(Debug)]
pub struct Flows {
    /// Where they are.
    pub stores: FlowStores,
    /// What goes by them.
    pub fairness: Arc<Fairness>,
    /// The time.
    pub clock: Clock,
}

impl Flows {
    /// Follows them until it is dropped. What held last holds while they cannot be read, and what every cluster begins
    /// with while there are none.
    pub async fn run(self) {
        loop {
            if let followed @ Err(_) = self.follow().await {
                let pause = pause_after("flow schemas and priority levels", followed);
                self.clock.sleep(pause).await;
            }
        }
    }

    /// Reads all of them, and waits until something has changed.
    async fn follow(&self) -> Result<(), Error> {
        let (schemas, mut schema_changes) = read(&self.stores.schemas).await?;
        let (levels, mut level_changes) = read(&self.stores.levels).await?;
        let schemas = schemas
            .into_iter()
            .filter_map(|schema| match Schema::read(schema) {
                Ok(schema) => Some(schema),
                Err(error) => {
                    tracing::warn!(%error, "a flow schema cannot be read, and does not count");
                    None
                }
            });
        if !levels.is_empty() {
            let levels = levels.iter().map(Level::read).collect();
            self.fairness.set_flows(FlowTable::new(schemas, levels));
        }
        let change = tokio::select! {
            change = schema_changes.next() => change,
            change = level_changes.next() => change,
        };
        match change {
            Some(change) => change.map(|_| ()).map_err(Error::Storage),
            None => Ok(()),
        }
    }
}

/// All objects of a store, and what changes after that.
async fn read(store: &Store) -> Result<(Vec<Value>, WatchStream), Error> {
    let options = ListOptions {
        skip_corrupt: true,
        ..ListOptions::default()
    };
    let list = store.list("", options).await?;
    let objects = list.items.iter().map(|object| store.served_value(object));
    let objects = objects.collect::<Result<_, _>>()?;
    let options = ListOptions {
        resource_version: Some(ResourceVersion(list.revision)),
        ..ListOptions::default()
    };
    Ok((objects, store.watch("", options).await?))
}
