//! The garbage collector: deletes objects whose owners are all gone, and carries out how dependents of a deleted object
//! are to be treated.
//!
//! The rules are those of kube-controller-manager 1.36 (`pkg/controller/garbagecollector`). An object that is deleted
//! in the foreground waits, by a finalizer, for the dependents that block it; one whose dependents are orphaned waits
//! until they have lost their reference to it. The graph only tells what to look at, and who depends on whom; whether
//! an owner is there is asked of the stores.

mod collected_type;
mod graph;
mod owners;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use ringwatch::clock::Clock;
use ringwatch::meta::Object;
use ringwatch::storage::GetOptions;
use ringwatch_apimachinery::Error;
use ringwatch_apimachinery::accessor::{self, finalizers, is_terminating};
use ringwatch_registry::informer::InformerChange;
use ringwatch_registry::{
    DeleteOptions, FunctionUpdate, ListWatch, PropagationPolicy, Store, UpdateOptions,
};
use serde_json::Value;

use self::collected_type::CollectedType;
use self::graph::{Deletion, Graph, Node};
use self::owners::{Owner, Uid, owners, remove_owners, unblock_owners};
use crate::ServedStores;
use crate::account::context;
use crate::controller::{self, Controller, Next, found, object_of};

/// The service account of the controller.
const ACCOUNT: &str = "generic-garbage-collector";

/// The finalizer of an object whose dependents lose their reference to it.
const ORPHAN: &str = "orphan";

/// The finalizer of an object that waits for its dependents to be deleted.
const FOREGROUND: &str = "foregroundDeletion";

/// The plural and the groups of what is never collected, as by kube-controller-manager: Events are many, and go by
/// themselves.
const IGNORED: (&str, [&str; 2]) = ("events", ["", "events.k8s.io"]);

/// The garbage collector.
#[derive(Debug)]
pub(crate) struct Garbage<'a> {
    stores: &'a ServedStores,
    /// The types of what is collected, by which sources are numbered.
    types: Vec<CollectedType>,
    graph: Mutex<Graph>,
    clock: &'a Clock,
}

/// Uids of an object's owners, by whether these are there.
#[derive(Debug, Default)]
struct OwnersByState {
    /// The owners that exist, and do not wait for their dependents.
    solid: Vec<Uid>,
    /// The owners that do not exist.
    dangling: Vec<Uid>,
    /// The owners that wait for their dependents to be deleted.
    waiting: Vec<Uid>,
    /// True if that cannot be told of one: its kind is not served here, or an object without a namespace names one that
    /// has a namespace.
    unknown: bool,
}

impl Garbage<'_> {
    /// Runs the collector until it is dropped. When other custom resources are served it begins anew.
    pub(crate) async fn run(stores: &ServedStores, clock: &Clock) {
        let mut served = stores.changes();
        loop {
            served.mark_unchanged();
            let mut types = stores.deletable();
            types.retain(|store| !is_ignored(store));
            let types = types.into_iter();
            let types = types.map(|store| CollectedType::new(store, clock));
            let controller = Garbage {
                stores,
                types: types.collect(),
                graph: Mutex::default(),
                clock,
            };
            let sources = controller.types.iter().enumerate();
            let sources = sources.map(|(at, store)| (at, store as &dyn ListWatch));
            let running = controller::run(&controller, "garbage", sources.collect(), clock);
            tokio::select! {
                () = running => {}
                // Without the sender no more of them come.
                Ok(()) = served.changed() => {}
            }
        }
    }

    /// Returns true if there are types whose objects are not in the graph though they may be dependents.
    async fn is_incomplete(&self) -> Result<bool, Error> {
        if self.types.iter().any(CollectedType::is_unreadable) {
            return Ok(true);
        }
        let served: Vec<_> = self.types.iter().map(|it| Arc::clone(&it.store)).collect();
        Ok(!self.stores.missing(&served).await?.is_empty())
    }

    fn graph(&self) -> MutexGuard<'_, Graph> {
        self.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn node(&self, source: usize, object: &Object) -> Result<Node, Error> {
        let store = &self.types[source].store;
        let tree = store.served_value(object)?;
        let found = finalizers(&tree);
        let deletion = match is_terminating(&tree) {
            false => Deletion::None,
            true if found.contains(&ORPHAN) => Deletion::Orphaning,
            true if found.contains(&FOREGROUND) => Deletion::Foreground,
            true => Deletion::Begun,
        };
        Ok(Node {
            store: Arc::clone(store),
            namespace: object.namespace().to_owned(),
            name: object.name().to_owned(),
            owners: owners(&tree),
            deletion,
        })
    }

    /// Deletes an object if none of its owners is there, and drops its references to those that are not.
    async fn collect(&self, uid: &Uid, node: &Node) -> Result<(), Error> {
        let Node {
            store,
            namespace,
            name,
            ..
        } = node;
        let latest = store.get(namespace, name, GetOptions::default()).await;
        let Some(latest) = found(latest)? else {
            return Ok(());
        };
        let tree = store.served_value(&latest)?;
        // An object of another uid is another one, which has a node of its own.
        if accessor::text(&tree, "uid") != &**uid || is_terminating(&tree) {
            return Ok(());
        }
        let references = owners(&tree);
        if references.is_empty() {
            return Ok(());
        }
        let by_state = self.states(namespace, &references).await?;
        let OwnersByState {
            solid,
            mut dangling,
            waiting,
            unknown,
        } = by_state;
        if unknown {
            return Ok(());
        }
        if !solid.is_empty() {
            // One that waits is not to wait for what somebody else owns as well.
            dangling.extend(waiting);
            if dangling.is_empty() {
                return Ok(());
            }
            let change = |object: &mut Value| remove_owners(object, &dangling);
            return self.update(uid, node, change).await.map(drop);
        }
        let mut revision = latest.revision();
        let policy = if !waiting.is_empty() && self.graph().has_dependents(uid) {
            if self.graph().has_foreground_dependents(uid) {
                // They may own each other in a circle, where each would wait for the others.
                let unblocked = self.update(uid, node, unblock_owners).await?;
                revision = unblocked.map_or(revision, |it| it.revision());
            }
            PropagationPolicy::Foreground
        } else {
            match finalizers(&tree) {
                found if found.contains(&ORPHAN) => PropagationPolicy::Orphan,
                found if found.contains(&FOREGROUND) => PropagationPolicy::Foreground,
                _ => PropagationPolicy::Background,
            }
        };
        let options = DeleteOptions {
            precondition_uid: Some(uid.to_string()),
            precondition_resource_version: Some(revision.to_string()),
            propagation_policy: Some(policy),
            ..DeleteOptions::default()
        };
        let context = context(ACCOUNT, self.clock);
        match store.delete(&context, namespace, name, options).await {
            Ok(_) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Asks the stores which of the owners of an object in a namespace are there.
    async fn states(&self, namespace: &str, owners: &[Owner]) -> Result<OwnersByState, Error> {
        let mut states = OwnersByState::default();
        for owner in owners {
            let Some(store) = self.stores.of_kind(&owner.api_version, &owner.kind) else {
                states.unknown = true;
                continue;
            };
            let namespace = match store.resource().namespaced {
                true if namespace.is_empty() => {
                    states.unknown = true;
                    continue;
                }
                true => namespace,
                false => "",
            };
            let found = found(
                store
                    .get(namespace, &owner.name, GetOptions::default())
                    .await,
            )?;
            let tree = found.map(|it| store.served_value(&it)).transpose()?;
            let uid = Arc::clone(&owner.uid);
            match tree.filter(|it| accessor::text(it, "uid") == &*uid) {
                None => states.dangling.push(uid),
                Some(tree) if is_terminating(&tree) && finalizers(&tree).contains(&FOREGROUND) => {
                    states.waiting.push(uid);
                }
                Some(_) => states.solid.push(uid),
            }
        }
        Ok(states)
    }

    /// Takes from the dependents of an object their reference to it, then its finalizer.
    async fn orphan(&self, uid: &Uid, node: &Node) -> Result<(), Error> {
        let dependents = self.graph().dependents(uid);
        for (dependent, its_node) in dependents {
            let owner = [Arc::clone(uid)];
            let change = |object: &mut Value| remove_owners(object, &owner);
            self.update(&dependent, &its_node, change).await?;
        }
        self.remove_finalizer(uid, node, ORPHAN).await
    }

    async fn remove_finalizer(&self, uid: &Uid, node: &Node, name: &str) -> Result<(), Error> {
        let change = |object: &mut Value| {
            let left = finalizers(object).into_iter().filter(|it| *it != name);
            let left = left.map(str::to_owned).collect();
            accessor::set_finalizers(object, left);
        };
        self.update(uid, node, change).await.map(drop)
    }

    /// Changes an object; `None` if it is gone.
    async fn update(
        &self,
        uid: &Uid,
        node: &Node,
        change: impl Fn(&mut Value) + Send + Sync,
    ) -> Result<Option<Arc<Object>>, Error> {
        let Node {
            store,
            namespace,
            name,
            ..
        } = node;
        let mut change = FunctionUpdate::new(|object| {
            if accessor::text(object, "uid") != &**uid {
                return Err(Error::NotFound {
                    resource: store.resource().qualified_name(),
                    name: name.clone(),
                });
            }
            change(object);
            Ok(())
        });
        let context = context(ACCOUNT, self.clock);
        let options = UpdateOptions::default();
        let updated = store.update(&context, namespace, name, &mut change, &options);
        found(updated.await.map(|(object, _)| object))
    }
}

#[async_trait]
impl Controller for Garbage<'_> {
    type Source = usize;
    type Key = Uid;

    fn reset(&self) {
        *self.graph() = Graph::default();
    }

    fn keys(&self, source: usize, change: &InformerChange) -> Vec<Uid> {
        let object = object_of(change);
        let uid = Uid::from(object.uid());
        if let InformerChange::Deleted(_) = change {
            return self.graph().remove(&uid);
        }
        match self.node(source, object) {
            Ok(node) => self.graph().put(uid, node),
            Err(error) => {
                let name = object.name();
                tracing::warn!(%error, name, "an object cannot be read and is not collected");
                Vec::new()
            }
        }
    }

    async fn reconcile(&self, uid: &Uid) -> Result<Next, Error> {
        let Some(node) = self.graph().node(uid) else {
            return Ok(Next::Done);
        };
        match node.deletion {
            Deletion::None => self.collect(uid, &node).await?,
            Deletion::Begun => {}
            // It may have dependents that are not seen yet.
            Deletion::Orphaning | Deletion::Foreground if self.is_incomplete().await? => {
                return Ok(Next::Again);
            }
            Deletion::Orphaning => self.orphan(uid, &node).await?,
            Deletion::Foreground => {
                // The dependents are looked at for themselves, and this again when one is gone.
                if !self.graph().is_blocked(uid) {
                    self.remove_finalizer(uid, &node, FOREGROUND).await?;
                }
            }
        }
        Ok(Next::Done)
    }
}

fn is_ignored(store: &Store) -> bool {
    let (plural, groups) = IGNORED;
    let resource = store.resource();
    resource.plural == plural && groups.contains(&&*resource.group_version.group)
}

#[cfg(test)]
mod tests;
