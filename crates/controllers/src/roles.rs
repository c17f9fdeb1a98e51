//! Keeps what the authorizer decides by as the stored roles and bindings say.
//!
//! The four types are followed by watches of their caches, so that no request reads the store. A
//! change makes a new table of all roles and bindings; changes that come together make one.

use std::collections::HashMap;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::SelectAll;
use ringwatch::clock::Clock;
use ringwatch::meta::{Object, ResourceVersion, WatchEvent};
use ringwatch::storage::ListOptions;
use ringwatch_apimachinery::Error;
use ringwatch_apiserver::health::Done;
use ringwatch_authorization::{Authorizer, Binding, Role, RoleTable};
use ringwatch_registry::{Store, Stores};
use ringwatch_resources::RolesAndBindings;
use serde::de::DeserializeOwned;

use super::following::pause_after;

/// How many changes are handled at a time.
const CHANGES_MAX: usize = 256;

/// The group of roles and bindings.
const GROUP: &str = "rbac.authorization.k8s.io";

/// The stores of roles and bindings.
#[derive(Clone, Debug)]
pub struct RoleStores {
    /// The store of ClusterRoles.
    pub cluster_roles: Arc<Store>,
    /// The store of ClusterRoleBindings.
    pub cluster_role_bindings: Arc<Store>,
    /// The store of Roles.
    pub roles: Arc<Store>,
    /// The store of RoleBindings.
    pub role_bindings: Arc<Store>,
}

impl RoleStores {
    /// Returns the stores of a server that has them.
    #[must_use]
    pub fn of(all: &Stores) -> Option<Self> {
        let store = |plural| all.of((GROUP, plural)).cloned();
        Some(Self {
            cluster_roles: store("clusterroles")?,
            cluster_role_bindings: store("clusterrolebindings")?,
            roles: store("roles")?,
            role_bindings: store("rolebindings")?,
        })
    }

    /// All of them, for what must be in them from the start.
    #[must_use]
    pub fn all(&self) -> RolesAndBindings<'_> {
        RolesAndBindings {
            cluster_roles: &self.cluster_roles,
            cluster_role_bindings: &self.cluster_role_bindings,
            roles: &self.roles,
            role_bindings: &self.role_bindings,
        }
    }
}

/// Follows roles and bindings.
#[derive(Debug)]
pub struct Roles {
    /// Where they are.
    pub stores: RoleStores,
    /// The authorizer that decides by them.
    pub authorizer: Arc<Authorizer>,
    /// The authorizer knows them.
    pub synced: Done,
    /// The time.
    pub clock: Clock,
}

/// Objects of two types that are filed alike: by namespace, which is empty for the cluster's, and name.
type Filed<T> = HashMap<(String, String), Arc<T>>;

/// The stored roles and bindings.
#[derive(Debug, Default)]
struct State {
    roles: Filed<Role>,
    bindings: Filed<Binding>,
}

/// The content of a store.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Roles,
    Bindings,
}

impl Roles {
    /// Follows roles and bindings until it is dropped. What held last holds while they cannot be read.
    pub async fn run(self) {
        loop {
            let pause = pause_after("roles and bindings", self.follow().await);
            self.clock.sleep(pause).await;
        }
    }

    /// Lists everything and follows its changes until a watch ends.
    async fn follow(&self) -> Result<(), Error> {
        let mut state = State::default();
        let mut changes = SelectAll::new();
        let stores = &self.stores;
        for (store, kind) in [
            (&stores.cluster_roles, Kind::Roles),
            (&stores.roles, Kind::Roles),
            (&stores.cluster_role_bindings, Kind::Bindings),
            (&stores.role_bindings, Kind::Bindings),
        ] {
            let options = ListOptions {
                skip_corrupt: true,
                ..ListOptions::default()
            };
            let list = store.list("", options).await?;
            for (key, error) in &list.corrupt {
                tracing::warn!(
                    key,
                    error,
                    "a role or binding cannot be read and is ignored"
                );
            }
            for object in &list.items {
                state.add(store, kind, object);
            }
            let options = ListOptions {
                resource_version: Some(ResourceVersion(list.revision)),
                ..ListOptions::default()
            };
            let watch = store.watch("", options).await?;
            let ended = futures::stream::once(std::future::ready(None));
            let watch = watch.map(Some).chain(ended);
            changes.push(watch.map(move |change| (store, kind, change)).boxed());
        }
        self.publish(&state);
        self.synced.set();
        let mut changes = changes.ready_chunks(CHANGES_MAX);
        while let Some(chunk) = changes.next().await {
            for (store, kind, change) in chunk {
                let Some(change) = change else { return Ok(()) };
                state.note(store, kind, change.map_err(Error::Storage)?);
            }
            self.publish(&state);
        }
        Ok(())
    }

    fn publish(&self, state: &State) {
        self.authorizer.set_roles(RoleTable::new(
            &in_order(&state.roles),
            &in_order(&state.bindings),
        ));
    }
}

/// All in the order of their names, so that the first binding that allows something is always the same.
fn in_order<T>(filed: &Filed<T>) -> Vec<Arc<T>> {
    let mut all: Vec<_> = filed.iter().collect();
    all.sort_by_key(|(key, _)| *key);
    all.into_iter().map(|(_, it)| Arc::clone(it)).collect()
}

impl State {
    fn note(&mut self, store: &Store, kind: Kind, change: WatchEvent) {
        match change {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                self.add(store, kind, &object);
            }
            WatchEvent::Deleted(object) => self.remove(kind, &object),
            WatchEvent::Bookmark { .. } => {}
        }
    }

    /// Takes an object as it is now. One that cannot be read does not count.
    fn add(&mut self, store: &Store, kind: Kind, object: &Object) {
        let read = match kind {
            Kind::Roles => file(&mut self.roles, store, object),
            Kind::Bindings => file(&mut self.bindings, store, object),
        };
        if let Err(error) = read {
            let name = object.name();
            tracing::warn!(%error, name, "a role or binding cannot be read and is ignored");
            self.remove(kind, object);
        }
    }

    fn remove(&mut self, kind: Kind, object: &Object) {
        match kind {
            Kind::Roles => drop(self.roles.remove(&key(object))),
            Kind::Bindings => drop(self.bindings.remove(&key(object))),
        }
    }
}

fn file<T: DeserializeOwned>(
    filed: &mut Filed<T>,
    store: &Store,
    object: &Object,
) -> Result<(), Error> {
    let value = store.served_value(object)?;
    let read = serde_json::from_value(value).map_err(|error| Error::Internal(error.to_string()))?;
    filed.insert(key(object), Arc::new(read));
    Ok(())
}

fn key(object: &Object) -> (String, String) {
    (object.namespace().to_owned(), object.name().to_owned())
}
