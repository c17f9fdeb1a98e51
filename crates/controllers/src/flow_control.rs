//! Keeps what requests wait by as the stored flow schemas and priority levels say, and tells in the schemas whether their
//! levels are there.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use ringwatch::clock::Clock;
use ringwatch::meta::ResourceVersion;
use ringwatch::storage::{ListOptions, WatchStream};
use ringwatch_apimachinery::{Error, User};
use ringwatch_flowcontrol::Fairness;
use ringwatch_flowcontrol::{FlowTable, Level, Schema, with_reference_told};
use ringwatch_registry::{RequestContext, Store, Stores, UpdateOptions, UpdatedObject};
use serde_json::Value;

use super::following::pause_after;

/// The group of both.
const GROUP: &str = "flowcontrol.apiserver.k8s.io";

/// The field manager of writes of FlowSchemas' status, as in kube-apiserver.
const MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";

/// The stores of flow schemas and priority levels.
#[derive(Clone, Debug)]
pub struct FlowStores {
    /// The store of FlowSchemas.
    pub schemas: Arc<Store>,
    /// The store of PriorityLevelConfigurations.
    pub levels: Arc<Store>,
}

impl FlowStores {
    /// Returns the stores of a server that has them.
    #[must_use]
    pub fn of(all: &Stores) -> Option<Self> {
        Some(Self {
            schemas: all.of((GROUP, "flowschemas")).cloned()?,
            levels: all.of((GROUP, "prioritylevelconfigurations")).cloned()?,
        })
    }

    /// Tells in the status of all schemas whether their levels are there.
    ///
    /// # Errors
    /// They cannot be read.
    pub async fn tell_references(&self, clock: &Clock) -> Result<(), Error> {
        let (schemas, _) = read(&self.schemas).await?;
        let (levels, _) = read(&self.levels).await?;
        self.tell_references_of(&schemas, &levels, clock).await;
        Ok(())
    }

    /// The same of these. What cannot be written is told when something changes again.
    async fn tell_references_of(&self, schemas: &[Value], levels: &[Value], clock: &Clock) {
        let levels = levels
            .iter()
            .filter_map(|it| it["metadata"]["name"].as_str());
        let mut told = References {
            levels: levels.collect(),
            clock,
        };
        let mut context = RequestContext::new(User::default(), MANAGER.to_owned(), clock.clone());
        "status".clone_into(&mut context.subresource);
        for schema in schemas {
            let name = schema["metadata"]["name"].as_str().unwrap_or_default();
            if told.next(schema).is_none() {
                continue;
            }
            let options = UpdateOptions::default();
            let updated = self.schemas.update(&context, "", name, &mut told, &options);
            match updated.await {
                Ok(_) | Err(Error::NotFound { .. }) => {}
                Err(error) => {
                    tracing::warn!(%error, name, "cannot write the status of a FlowSchema");
                }
            }
        }
    }
}

/// An update of a schema's status.
struct References<'a> {
    /// The names of all levels.
    levels: BTreeSet<&'a str>,
    clock: &'a Clock,
}

impl References<'_> {
    fn next(&self, schema: &Value) -> Option<Value> {
        with_reference_told(schema, &self.levels, self.clock.wall())
    }
}

#[async_trait]
impl UpdatedObject for References<'_> {
    async fn updated(
        &mut self,
        _context: &RequestContext,
        existing: Option<&Value>,
    ) -> Result<Value, Error> {
        let existing =
            existing.ok_or_else(|| Error::Internal("an update of nothing".to_owned()))?;
        Ok(self.next(existing).unwrap_or_else(|| existing.clone()))
    }
}

/// Follows flow schemas and priority levels.
#[derive(Debug)]
pub struct Flows {
    /// Where they are.
    pub stores: FlowStores,
    /// The filter that is configured by them.
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
        let read_schemas =
            schemas
                .iter()
                .cloned()
                .filter_map(|schema| match Schema::read(schema) {
                    Ok(schema) => Some(schema),
                    Err(error) => {
                        tracing::warn!(%error, "a FlowSchema or PriorityLevelConfiguration cannot be read and is ignored");
                        None
                    }
                });
        if !levels.is_empty() {
            let read_levels = levels.iter().map(Level::read).collect();
            self.fairness
                .set_flows(FlowTable::new(read_schemas, read_levels));
            let told = self
                .stores
                .tell_references_of(&schemas, &levels, &self.clock);
            told.await;
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
