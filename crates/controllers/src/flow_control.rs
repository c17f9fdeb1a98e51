//! The FlowSchema and PriorityLevelConfiguration controller: configures API Priority and Fairness by these objects, and
//! sets the condition of schemas whose level is missing.

use std::collections::BTreeSet;
use std::sync::Arc;

use ringwatch::clock::Clock;
use ringwatch::meta::Object;
use ringwatch_apimachinery::{Error, User};
use ringwatch_flowcontrol::Fairness;
use ringwatch_flowcontrol::{FlowTable, Level, Schema, with_dangling_condition};
use ringwatch_registry::{
    FunctionUpdate, Informer, ListWatch, RequestContext, Store, Stores, UpdateOptions,
};
use serde_json::Value;

/// The group of both.
const GROUP: &str = "flowcontrol.apiserver.k8s.io";

/// The field manager of writes of FlowSchemas' status, as in kube-apiserver.
const MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";

/// The kinds of objects that are followed.
#[derive(Clone, Copy, Debug)]
enum FlowControlKind {
    Schemas,
    Levels,
}

/// The stores of flow schemas and priority levels.
#[derive(Clone, Debug)]
pub struct FlowStores {
    /// The store of FlowSchemas.
    pub schemas: Arc<Store>,
    /// The store of PriorityLevelConfigurations.
    pub levels: Arc<Store>,
}

impl FlowStores {
    /// Returns the stores of a server; `None` if it lacks one.
    #[must_use]
    pub fn new(all: &Stores) -> Option<Self> {
        Some(Self {
            schemas: all.get(GROUP, "flowschemas").cloned()?,
            levels: all.get(GROUP, "prioritylevelconfigurations").cloned()?,
        })
    }

    fn sources(&self) -> [(FlowControlKind, &dyn ListWatch); 2] {
        [
            (FlowControlKind::Schemas, self.schemas.as_ref()),
            (FlowControlKind::Levels, self.levels.as_ref()),
        ]
    }

    /// Returns the served form of schemas and of levels.
    fn served(
        &self,
        objects: &[(FlowControlKind, Arc<Object>)],
    ) -> Result<(Vec<Value>, Vec<Value>), Error> {
        let (mut schemas, mut levels) = (Vec::new(), Vec::new());
        for (kind, object) in objects {
            match kind {
                FlowControlKind::Schemas => schemas.push(self.schemas.served_value(object)?),
                FlowControlKind::Levels => levels.push(self.levels.served_value(object)?),
            }
        }
        Ok((schemas, levels))
    }

    /// Writes into the status of all FlowSchemas whether their priority levels are there.
    ///
    /// # Errors
    /// They cannot be read.
    pub async fn write_references(&self, clock: &Clock) -> Result<(), Error> {
        let schemas = read(&self.schemas).await?;
        let levels = read(&self.levels).await?;
        self.write_references_of(&schemas, &levels, clock).await;
        Ok(())
    }

    /// Writes it into the status of these. A failed write is retried at the next change.
    async fn write_references_of(&self, schemas: &[Value], levels: &[Value], clock: &Clock) {
        let levels = levels
            .iter()
            .filter_map(|it| it["metadata"]["name"].as_str());
        let levels: BTreeSet<&str> = levels.collect();
        let next = |schema: &Value| with_dangling_condition(schema, &levels, clock.wall());
        let mut tell = FunctionUpdate::new(|schema| {
            if let Some(next) = next(schema) {
                *schema = next;
            }
            Ok(())
        });
        let context = RequestContext::new(User::default(), MANAGER.to_owned(), clock.clone());
        let context = context.on_subresource("status");
        for schema in schemas {
            let name = schema["metadata"]["name"].as_str().unwrap_or_default();
            if next(schema).is_none() {
                continue;
            }
            let options = UpdateOptions::default();
            let updated = self.schemas.update(&context, "", name, &mut tell, &options);
            match updated.await {
                Ok(_) | Err(Error::NotFound { .. }) => {}
                Err(error) => {
                    tracing::warn!(%error, name, "cannot write the status of a FlowSchema");
                }
            }
        }
    }
}

/// Follows flow schemas and priority levels.
#[derive(Debug)]
pub struct Flows {
    /// The stores of FlowSchemas and PriorityLevelConfigurations.
    pub stores: FlowStores,
    /// The filter that is configured by them.
    pub fairness: Arc<Fairness>,
    /// The time.
    pub clock: Clock,
}

impl Flows {
    /// Follows them until it is dropped. The last configuration stays in effect while they cannot be read, and the
    /// default one while there are none.
    pub async fn run(self) {
        let what = "flow schemas and priority levels";
        let informer = Informer::new(what, self.stores.sources(), self.clock.clone());
        loop {
            if let failed @ Err(_) = self.follow(&informer).await {
                informer.pause_after(failed).await;
            }
        }
    }

    /// Reads all of them, and waits until something has changed. Then all are read again, rather than the change
    /// applied: a schema that was written after its level must not be seen before it, or its status would be written
    /// twice.
    async fn follow(&self, informer: &Informer<'_, FlowControlKind>) -> Result<(), Error> {
        let mut listed = informer.list().await?;
        let (schemas, levels) = self.stores.served(&listed.objects)?;
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
            let written = self
                .stores
                .write_references_of(&schemas, &levels, &self.clock);
            written.await;
        }
        listed.changes.next().await.map(drop)
    }
}

/// Reads all objects of a store that can be decoded, in their served form.
async fn read(store: &Store) -> Result<Vec<Value>, Error> {
    let list = store.list_all().await?;
    let objects = list.items.iter().map(|object| store.served_value(object));
    objects.collect()
}
