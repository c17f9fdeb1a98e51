//! The RBAC authorizer's table, kept by informers of roles and bindings, so that no request reads the store.
//!
//! A change builds a new table of all roles and bindings; pending changes share one.

use std::collections::HashMap;
use std::sync::Arc;

use ringwatch::clock::Clock;
use ringwatch::meta::Object;
use ringwatch_apimachinery::Error;
use ringwatch_authorization::{Authorizer, Binding, Role, RoleTable};
use ringwatch_endpoints::health::Done;
use ringwatch_registry::informer::{Handler, InformerChange};
use ringwatch_registry::{Informer, ListWatch, Store, Stores};
use ringwatch_resources::RolesAndBindings;
use serde::de::DeserializeOwned;

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
    /// Returns the stores of a server; `None` if it lacks one.
    #[must_use]
    pub fn new(all: &Stores) -> Option<Self> {
        let store = |plural| all.get(GROUP, plural).cloned();
        Some(Self {
            cluster_roles: store("clusterroles")?,
            cluster_role_bindings: store("clusterrolebindings")?,
            roles: store("roles")?,
            role_bindings: store("rolebindings")?,
        })
    }

    /// Returns all four, as the bootstrap of default roles takes them.
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

/// The controller that keeps the authorizer's table of roles.
#[derive(Debug)]
pub struct Roles {
    /// The stores of roles and bindings.
    pub stores: RoleStores,
    /// The authorizer that decides by them.
    pub authorizer: Arc<Authorizer>,
    /// Set when the authorizer knows the stored roles and bindings.
    pub synced: Done,
    /// The time.
    pub clock: Clock,
}

/// Objects of two types, by namespace (empty for cluster-scoped ones) and name.
type ObjectsByName<T> = HashMap<(String, String), Arc<T>>;

/// The stored roles and bindings, and the authorizer that decides by them.
#[derive(Debug)]
struct RoleState<'a> {
    authorizer: &'a Authorizer,
    synced: &'a Done,
    roles: ObjectsByName<Role>,
    bindings: ObjectsByName<Binding>,
}

/// The kind of objects in a store.
#[derive(Clone, Copy, Debug)]
enum RoleKind {
    Roles,
    Bindings,
}

/// A kind and a store of it.
type RoleSource<'a> = (RoleKind, &'a Store);

impl Roles {
    /// Follows roles and bindings until it is dropped. The last table stays in effect while they cannot be read.
    pub async fn run(self) {
        let stores = &self.stores;
        let sources = [
            (RoleKind::Roles, &stores.cluster_roles),
            (RoleKind::Roles, &stores.roles),
            (RoleKind::Bindings, &stores.cluster_role_bindings),
            (RoleKind::Bindings, &stores.role_bindings),
        ];
        let sources = sources.map(|(kind, store)| {
            let store = store.as_ref();
            ((kind, store), store as &dyn ListWatch)
        });
        let informer = Informer::new("roles and bindings", sources, self.clock.clone());
        let mut state = RoleState {
            authorizer: &self.authorizer,
            synced: &self.synced,
            roles: ObjectsByName::new(),
            bindings: ObjectsByName::new(),
        };
        informer.run(&mut state).await;
    }
}

/// Returns all in the order of their names, so that the first binding that allows something is always the same.
fn in_order<T>(filed: &ObjectsByName<T>) -> Vec<Arc<T>> {
    let mut all: Vec<_> = filed.iter().collect();
    all.sort_by_key(|(key, _)| *key);
    all.into_iter().map(|(_, it)| Arc::clone(it)).collect()
}

impl Handler<RoleSource<'_>> for RoleState<'_> {
    fn replace(&mut self, objects: Vec<(RoleSource<'_>, Arc<Object>)>) {
        self.roles.clear();
        self.bindings.clear();
        for (source, object) in objects {
            self.add(source, &object);
        }
    }

    fn apply(&mut self, source: RoleSource<'_>, change: InformerChange) {
        match change {
            InformerChange::Upserted(object) => self.add(source, &object),
            InformerChange::Deleted(object) => self.remove(source.0, &object),
        }
    }

    fn publish(&mut self) {
        self.authorizer.set_roles(RoleTable::new(
            &in_order(&self.roles),
            &in_order(&self.bindings),
        ));
        self.synced.set();
    }
}

impl RoleState<'_> {
    /// Applies the current state of an object. One that cannot be read is ignored.
    fn add(&mut self, (kind, store): RoleSource<'_>, object: &Object) {
        let read = match kind {
            RoleKind::Roles => file(&mut self.roles, store, object),
            RoleKind::Bindings => file(&mut self.bindings, store, object),
        };
        if let Err(error) = read {
            let name = object.name();
            tracing::warn!(%error, name, "a role or binding cannot be read and is ignored");
            self.remove(kind, object);
        }
    }

    fn remove(&mut self, kind: RoleKind, object: &Object) {
        match kind {
            RoleKind::Roles => drop(self.roles.remove(&key(object))),
            RoleKind::Bindings => drop(self.bindings.remove(&key(object))),
        }
    }
}

fn file<T: DeserializeOwned>(
    filed: &mut ObjectsByName<T>,
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
