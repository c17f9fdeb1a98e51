//! The CustomResourceDefinition controller: serves the resources of each definition as long as it is there.
//!
//! ```text
//!   definitions --watch--> accept names --> status --> established once served --> status
//!                               |
//!                               +--> a storage that joins the feed --> stores --> Api::serve_custom
//!                               |
//!        being deleted: delete the objects, leave the feed, let the definition go
//! ```
//!
//! Each step uses the current state of definitions, so several changes may be observed as one. A definition that cannot
//! be read, written or cleaned up does not affect the others; it is retried with backoff.

mod clean_up;
pub mod joined_types;
mod retries;
mod writes;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ringwatch::clock::{Clock, Instant};
use ringwatch::meta::Object;
use ringwatch::storage::cacher::Feed;
use ringwatch_admission::ServedTypes;
use ringwatch_apiextensions::Definition;
use ringwatch_apiextensions::conversion::{ConvertedStorage, Converter, SharedConversions};
use ringwatch_apimachinery::Error;
use ringwatch_endpoints::Api;
use ringwatch_endpoints::health::Done;
use ringwatch_registry::informer::{InformerChange, InformerList};
use ringwatch_registry::storage_factory::{JoinedStorage, StorageFactory};
use ringwatch_registry::{Admission, DeletionSettings, Informer, ListWatch, Store};
use ringwatch_webhook::WebhookClient;
use tokio::sync::{oneshot, watch};

use self::clean_up::{CleanUpEnd, CleanUps};
use self::joined_types::JoinedTypes;
use self::retries::Retries;
use super::api_services::CustomApis;
use super::work_queue::WorkQueueMetrics;

/// Maximum time that a type that joins the feed waits for its cache before it is served.
const FILLED_TIMEOUT: Duration = Duration::from_secs(10);

/// The controller of CustomResourceDefinitions.
#[derive(Debug)]
pub struct CustomResources {
    /// The store of CustomResourceDefinitions.
    pub definitions: Arc<Store>,
    /// Makes the storages of custom resources.
    pub factory: Arc<StorageFactory>,
    /// The feed of the caches.
    pub feed: Feed,
    /// The admission plugins.
    pub admission: Arc<dyn Admission>,
    /// The settings of deletions.
    pub deletion: DeletionSettings,
    /// The client of conversion webhooks.
    pub webhooks: Arc<dyn WebhookClient>,
    /// The served types that admission matches equivalent versions by.
    pub types: Arc<ServedTypes>,
    /// The API that serves custom resources.
    pub api: Arc<Api>,
    /// The types of stored definitions, which join the feed before it begins.
    pub joined_types: oneshot::Receiver<JoinedTypes>,
    /// Publishes which versions of groups are served.
    pub custom_apis: watch::Sender<CustomApis>,
    /// Publishes the stores of what is served.
    pub stores: watch::Sender<Vec<Arc<Store>>>,
    /// Set when all stored definitions are served that can be.
    pub synced: Done,
    /// Measures the queue of definitions that are cleaned up.
    pub queues: WorkQueueMetrics,
    /// The time.
    pub clock: Clock,
}

/// The state of the controller.
#[derive(Debug)]
struct ControllerState {
    /// All definitions by name.
    definitions: BTreeMap<String, Definition>,
    /// The served resources, by the name of their definition.
    served: BTreeMap<String, Serving>,
    /// The types that have joined the feed and from which nothing is served yet.
    joined_types: JoinedTypes,
    /// Failed attempts that are to be repeated.
    retries: Retries,
    /// The conversions that watches share.
    conversions: SharedConversions,
}

/// The resources of one definition, being served.
#[derive(Debug)]
struct Serving {
    /// The definition for which the stores were made.
    definition: Definition,
    joined: JoinedStorage,
    /// One for each served version.
    stores: Vec<Arc<Store>>,
}

impl Serving {
    /// Returns a store of the objects in their stored version, for the server's own clean-up: neither admission nor a
    /// conversion webhook is called, which may be gone or slow.
    fn unasked(&self) -> Option<Store> {
        let resources = self.stores.iter().map(|store| store.resource());
        let stored = resources
            .clone()
            .find(|it| it.group_version == it.storage_version);
        let resource = stored.or_else(|| resources.clone().next())?;
        Some(Store::new(
            Arc::clone(resource),
            Arc::clone(&self.joined.storage),
        ))
    }
}

impl CustomResources {
    /// Serves custom resources until it is dropped.
    pub async fn run(mut self) {
        let mut state = ControllerState {
            definitions: BTreeMap::new(),
            served: BTreeMap::new(),
            // The sender is dropped when the server ends before they have joined.
            joined_types: (&mut self.joined_types).await.unwrap_or_default(),
            retries: Retries::default(),
            conversions: SharedConversions::new(&self.factory.ledger),
        };
        let sources = [((), self.definitions.as_ref() as &dyn ListWatch)];
        let what = "custom resource definitions";
        let informer = Informer::new(what, sources, self.clock.clone());
        loop {
            let ended = self.follow(&informer, &mut state).await;
            informer.pause_after(ended).await;
        }
    }

    /// Lists the definitions and follows their changes until the watch ends.
    async fn follow(
        &self,
        informer: &Informer<'_, ()>,
        state: &mut ControllerState,
    ) -> Result<(), Error> {
        let InformerList {
            objects,
            mut changes,
            ..
        } = informer.list().await?;
        state.definitions.clear();
        state.retries.clear();
        for ((), object) in &objects {
            self.define(state, object);
        }
        self.serve(state).await;
        joined_types::leave(&mut state.joined_types, &self.factory, &self.feed);
        self.synced.set();
        let mut clean_ups = CleanUps::new(&self.queues);
        loop {
            clean_ups.begin(self, state);
            let next = next_look(state, &clean_ups);
            let at_next = async {
                match next {
                    Some(next) => self.clock.sleep_until(next).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                changes = changes.next() => {
                    let Some(changes) = changes? else { return Ok(()) };
                    for ((), change) in changes {
                        self.note(state, change);
                    }
                }
                ended = clean_ups.ended(&self.clock) => self.note_clean_up(state, &mut clean_ups, ended),
                () = at_next => {}
            }
            self.serve(state).await;
        }
    }

    fn note_clean_up(
        &self,
        state: &mut ControllerState,
        clean_ups: &mut CleanUps<'_>,
        (name, ended): CleanUpEnd,
    ) {
        match ended {
            Ok(()) => {
                state.retries.forget(&name);
                clean_ups.look_again(name, self.clock.now());
            }
            Err(error) => self.try_later(state, &name, &error),
        }
    }

    fn note(&self, state: &mut ControllerState, change: InformerChange) {
        match change {
            InformerChange::Upserted(object) => self.define(state, &object),
            InformerChange::Deleted(object) => {
                state.definitions.remove(object.name());
                state.retries.forget(object.name());
            }
        }
    }

    /// Applies the current state of a definition.
    fn define(&self, state: &mut ControllerState, object: &Object) {
        state.retries.forget(object.name());
        match self.read(object) {
            Ok(definition) => {
                let name = definition.name().to_owned();
                state.definitions.insert(name, definition);
            }
            Err(error) => {
                let definition = object.name();
                tracing::warn!(%error, definition, "a CustomResourceDefinition cannot be read and is not served");
                state.definitions.remove(definition);
            }
        }
    }

    fn read(&self, object: &Object) -> Result<Definition, Error> {
        let value = self.definitions.served_value(object)?;
        Ok(Definition::new(value))
    }

    /// Serves all definitions in their current state, and retries failed ones that are due.
    async fn serve(&self, state: &mut ControllerState) {
        self.write_statuses(state).await;
        let left = self.leave(state);
        let joined = self.join(state).await;
        if left || joined {
            let mut served: Vec<&Serving> = state.served.values().collect();
            served.sort_by_key(|it| (it.definition.group(), it.definition.name()));
            let stores = served.into_iter().flat_map(|it| &it.stores);
            let stores: Vec<Arc<Store>> = stores.cloned().collect();
            let served =
                |store: &Arc<Store>| (Arc::clone(store.resource()), Arc::clone(store.storage()));
            self.types.set_custom(stores.iter().map(served).collect());
            self.api.serve_custom(&stores);
            self.stores.send_replace(stores);
        }
        self.publish_apis(state);
    }

    /// Publishes which versions of groups are served, if that has changed.
    fn publish_apis(&self, state: &ControllerState) {
        let stores = state.served.values().flat_map(|it| &it.stores);
        let served = stores.map(|store| store.resource().group_version.clone());
        let served = Some(served.collect());
        self.custom_apis.send_if_modified(|published| {
            let differs = *published != served;
            *published = served;
            differs
        });
    }

    /// Removes resources that are no longer defined or accepted, or are stored elsewhere now.
    fn leave(&self, state: &mut ControllerState) -> bool {
        let before = state.served.len();
        let definitions = &state.definitions;
        state.served.retain(|name, serving| {
            let stays = definitions
                .get(name)
                .is_some_and(|now| now.is_served() && now.is_stored_as(&serving.definition));
            if !stays {
                self.factory.leave(&self.feed, &serving.joined);
            }
            stays
        });
        state.served.len() != before
    }

    /// Makes the stores of definitions that are new or have changed.
    async fn join(&self, state: &mut ControllerState) -> bool {
        let mut changed = false;
        for (name, definition) in &state.definitions {
            let serving = state.served.get(name);
            if serving.is_some_and(|it| it.definition.defines_the_same(definition))
                || !definition.is_served()
            {
                continue;
            }
            let resources = match definition.resources() {
                Ok(resources) => resources,
                Err(error) => {
                    tracing::warn!(%error, definition = name, "a CustomResourceDefinition cannot be served");
                    continue;
                }
            };
            let served = state.served.remove(name).map(|serving| serving.joined);
            let joined = served
                .or_else(|| joined_types::take(&mut state.joined_types, definition))
                .unwrap_or_else(|| joined_types::join(&self.factory, &self.feed, definition));
            let resources = resources.into_iter().map(Arc::new);
            let converter = Converter::new(definition, &self.webhooks);
            let stores = resources.map(|resource| {
                let storage = ConvertedStorage::new(
                    Arc::clone(&joined.storage),
                    converter.clone(),
                    Arc::clone(&resource),
                    &state.conversions,
                );
                let store = Store::new(resource, Arc::new(storage));
                let store = store.with_admission(Arc::clone(&self.admission));
                Arc::new(store.with_deletion(self.deletion))
            });
            let stores = stores.collect();
            let serving = Serving {
                definition: definition.clone(),
                joined,
                stores,
            };
            state.served.insert(name.clone(), serving);
            changed = true;
        }
        if changed {
            wait_until_filled(state, &self.clock).await;
        }
        changed
    }
}

/// Returns when everything is checked again without a change of a definition.
fn next_look(state: &ControllerState, clean_ups: &CleanUps<'_>) -> Option<Instant> {
    let staying = state.definitions.iter();
    let staying = staying.filter(|(_, it)| !it.is_terminating());
    let retried = staying.filter_map(|(name, _)| state.retries.due(name));
    retried.chain(clean_ups.next_due(state)).min()
}

/// Waits until the caches of joined types are filled.
async fn wait_until_filled(state: &ControllerState, clock: &Clock) {
    let cachers = state
        .served
        .values()
        .filter_map(|it| it.joined.cacher.as_ref());
    let all = async {
        for cacher in cachers {
            if let Err(error) = cacher.ready().await {
                tracing::warn!(%error, "the cache of a custom resource is not filled");
            }
        }
    };
    tokio::select! {
        biased;
        () = all => {}
        () = clock.sleep(FILLED_TIMEOUT) => {
            tracing::warn!("the caches of custom resources are still being filled");
        }
    }
}
