//! Serves what CustomResourceDefinitions define, from when one is there until it is gone.
//!
//! ```text
//!   definitions --watch--> accept names --> status
//!                               |
//!                               +--> a storage that joins the feed --> stores --> Api::serve_custom
//!                               |
//!        being deleted: delete the objects, leave the feed, let the definition go
//! ```
//!
//! Everything is decided by what definitions say now, so it does not matter how many changes of one
//! are seen as one, and after a failure it is all looked at again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use serde_json::Value;

use super::health::Done;
use super::storage_factory::{Joined, StorageFactory};
use crate::clock::Clock;
use crate::endpoints::Api;
use crate::meta::{Object, ResourceVersion, WatchEvent};
use crate::registry::custom_resources::{CLEAN_UP, Definition, accept};
use crate::registry::{
    DeleteOptions, Error, NamespaceLifecycle, RequestContext, Store, UpdateOptions, UpdatedObject,
    User,
};
use crate::storage::cacher::Feed;
use crate::storage::{ListOptions, StorageMediaType, Versioner};

/// How long after a failure everything is looked at again.
const RETRY_PERIOD: Duration = Duration::from_secs(1);

/// How often it is looked whether the objects of a definition that is being deleted are gone.
const CLEAN_UP_PERIOD: Duration = Duration::from_secs(1);

/// How many changes of definitions are handled at a time.
const CHANGES_MAX: usize = 256;

/// A type that joins the feed is served when its cache is filled, but at the latest after this time.
const FILLED_SECONDS_MAX: Duration = Duration::from_secs(10);

/// Who writes the status of definitions.
const MANAGER: &str = "kube-apiserver";

/// Follows the definitions.
#[derive(Debug)]
pub struct CustomResources {
    /// Where definitions are.
    pub definitions: Arc<Store>,
    /// Makes storages.
    pub factory: StorageFactory,
    /// What caches are fed by.
    pub feed: Feed,
    /// Guards creation in namespaces.
    pub lifecycle: Option<Arc<dyn NamespaceLifecycle>>,
    /// What serves them.
    pub api: Arc<Api>,
    /// Told when all definitions of the start are served.
    pub synced: Done,
    /// The time.
    pub clock: Clock,
}

/// What is known and done at one time.
#[derive(Debug, Default)]
struct State {
    /// All definitions by name.
    definitions: BTreeMap<String, Definition>,
    /// What is served, by the name of its definition.
    served: BTreeMap<String, Serving>,
}

/// The resources of one definition, being served.
#[derive(Debug)]
struct Serving {
    /// As the definition was when the stores were made.
    definition: Definition,
    joined: Joined,
    /// One for each served version.
    stores: Vec<Arc<Store>>,
}

impl CustomResources {
    /// Serves custom resources until it is dropped.
    pub async fn run(self) {
        let mut state = State::default();
        loop {
            match self.follow(&mut state).await {
                Ok(()) => tracing::debug!("the watch of definitions ended"),
                Err(error) => tracing::warn!(%error, "cannot follow custom resource definitions"),
            }
            self.clock.sleep(RETRY_PERIOD).await;
        }
    }

    /// Lists the definitions and follows their changes until the watch ends.
    async fn follow(&self, state: &mut State) -> Result<(), Error> {
        let list = self.definitions.list("", ListOptions::default()).await?;
        state.definitions.clear();
        for object in list.items {
            let definition = self.read(&object)?;
            let name = definition.name().to_owned();
            state.definitions.insert(name, definition);
        }
        self.reconcile(state).await?;
        self.synced.set();
        let options = ListOptions {
            resource_version: Some(ResourceVersion(list.revision)),
            ..ListOptions::default()
        };
        let changes = self.definitions.watch("", options).await?;
        let mut changes = changes.ready_chunks(CHANGES_MAX);
        loop {
            let cleaning = state.definitions.values().any(Definition::is_terminating);
            tokio::select! {
                changes = changes.next() => {
                    let Some(changes) = changes else { return Ok(()) };
                    for change in changes {
                        self.note(state, change.map_err(Error::Storage)?)?;
                    }
                }
                () = self.clock.sleep(CLEAN_UP_PERIOD), if cleaning => {}
            }
            self.reconcile(state).await?;
        }
    }

    fn note(&self, state: &mut State, change: WatchEvent) -> Result<(), Error> {
        match change {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                let definition = self.read(&object)?;
                let name = definition.name().to_owned();
                state.definitions.insert(name, definition);
            }
            WatchEvent::Deleted(object) => {
                state.definitions.remove(object.name());
            }
            WatchEvent::Bookmark { .. } => {}
        }
        Ok(())
    }

    fn read(&self, object: &Object) -> Result<Definition, Error> {
        let value = self.definitions.served_value(object)?;
        Ok(Definition::new(value))
    }

    /// Makes everything as the definitions say.
    async fn reconcile(&self, state: &mut State) -> Result<(), Error> {
        self.accept_names(state).await?;
        let left = self.leave(state);
        let joined = self.join(state).await;
        if left || joined {
            let mut served: Vec<&Serving> = state.served.values().collect();
            served.sort_by_key(|it| (it.definition.group(), it.definition.name()));
            let stores = served.into_iter().flat_map(|it| &it.stores);
            self.api.serve_custom(&stores.cloned().collect::<Vec<_>>());
        }
        self.clean_up(state).await
    }

    /// Writes the status of definitions whose names are accepted, or refused, now.
    async fn accept_names(&self, state: &mut State) -> Result<(), Error> {
        let names: Vec<String> = state.definitions.keys().cloned().collect();
        for name in names {
            let definition = &state.definitions[&name];
            let known = state.definitions.values();
            if definition.is_terminating() || accept(definition, known, self.clock.wall()).is_none()
            {
                continue;
            }
            let mut change = Change(|object: &Value| {
                let definition = Definition::new(object.clone());
                accept(&definition, state.definitions.values(), self.clock.wall())
            });
            if let Some(changed) = self.update(&name, "status", &mut change).await? {
                state.definitions.insert(name, changed);
            }
        }
        Ok(())
    }

    /// Takes away what is not defined any more, or lies elsewhere now.
    fn leave(&self, state: &mut State) -> bool {
        let before = state.served.len();
        let definitions = &state.definitions;
        state.served.retain(|name, serving| {
            let stays = definitions.get(name).is_some_and(|now| {
                now.uid() == serving.definition.uid()
                    && now.selectable_names() == serving.definition.selectable_names()
            });
            if !stays {
                self.factory.leave(&self.feed, &serving.joined);
            }
            stays
        });
        state.served.len() != before
    }

    /// Makes the stores of definitions that are new or have changed.
    async fn join(&self, state: &mut State) -> bool {
        let mut changed = false;
        for (name, definition) in &state.definitions {
            let known = state.served.get(name);
            if known.is_some_and(|it| it.definition.defines_the_same(definition))
                || !definition.has("Established")
            {
                continue;
            }
            let resources = match definition.resources() {
                Ok(resources) => resources,
                Err(error) => {
                    tracing::warn!(%error, definition = name, "a definition cannot be served");
                    continue;
                }
            };
            let joined = match state.served.remove(name) {
                Some(serving) => serving.joined,
                None => self.factory.join(
                    &self.feed,
                    &definition.storage_prefix(),
                    (definition.group(), definition.plural()),
                    Versioner::new(definition.selectable_fields()).writing(StorageMediaType::Json),
                ),
            };
            let stores = resources.into_iter().map(|resource| {
                let storage = Arc::clone(&joined.storage);
                Arc::new(Store::new(
                    Arc::new(resource),
                    storage,
                    self.lifecycle.clone(),
                ))
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
            wait_until_filled(state).await;
        }
        changed
    }

    /// Deletes the objects of definitions that are being deleted, and lets go those that have none.
    async fn clean_up(&self, state: &mut State) -> Result<(), Error> {
        for (name, definition) in &state.definitions {
            if !definition.is_terminating() || !definition.is_to_be_cleaned_up() {
                continue;
            }
            let store = state.served.get(name).and_then(|it| it.stores.first());
            if let Some(store) = store {
                let context = self.context("");
                let options = DeleteOptions::default();
                store
                    .delete_collection(&context, "", options, ListOptions::default())
                    .await?;
                let left = store.list("", ListOptions::default()).await?;
                if !left.items.is_empty() {
                    continue;
                }
            }
            let mut change = Change(|object: &Value| {
                let mut next = object.clone();
                let finalizers = next.pointer_mut("/metadata/finalizers");
                let finalizers = finalizers.and_then(Value::as_array_mut)?;
                finalizers.retain(|it| it != CLEAN_UP);
                Some(next)
            });
            self.update(name, "", &mut change).await?;
        }
        Ok(())
    }

    /// Changes a definition; `None` if it is gone.
    async fn update(
        &self,
        name: &str,
        subresource: &str,
        change: &mut dyn UpdatedObject,
    ) -> Result<Option<Definition>, Error> {
        let context = self.context(subresource);
        let options = UpdateOptions::default();
        let updated = self
            .definitions
            .update(&context, "", name, change, &options);
        match updated.await {
            Ok((object, _)) => self.read(&object).map(Some),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn context(&self, subresource: &str) -> RequestContext {
        let user = User::default();
        let mut context = RequestContext::new(user, MANAGER.to_owned(), self.clock.clone());
        subresource.clone_into(&mut context.subresource);
        context
    }
}

/// Waits until what has joined can be read from memory.
async fn wait_until_filled(state: &State) {
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
    if tokio::time::timeout(FILLED_SECONDS_MAX, all).await.is_err() {
        tracing::warn!("caches of custom resources are still being filled");
    }
}

/// A change of a definition as it is when it is written; nothing if there is nothing to change.
struct Change<F>(F);

#[async_trait]
impl<F: Fn(&Value) -> Option<Value> + Send> UpdatedObject for Change<F> {
    async fn updated(
        &mut self,
        _context: &RequestContext,
        existing: Option<&Value>,
    ) -> Result<Value, Error> {
        let existing =
            existing.ok_or_else(|| Error::Internal("an update of nothing".to_owned()))?;
        Ok((self.0)(existing).unwrap_or_else(|| existing.clone()))
    }
}
