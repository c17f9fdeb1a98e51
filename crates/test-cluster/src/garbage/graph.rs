//! The graph of objects and their owners, as the objects that were seen say.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use ringwatch_registry::Store;

use super::owners::{Owner, Uid};

/// The objects by uid, and the dependents of each owner, which need not be there itself.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: HashMap<Uid, Arc<Node>>,
    dependents: HashMap<Uid, BTreeSet<Uid>>,
}

/// An object.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) store: Arc<Store>,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) owners: Vec<Owner>,
    pub(super) deletion: Deletion,
}

/// The stage of an object's deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deletion {
    /// It is not being deleted.
    None,
    /// It has begun, and nothing waits for dependents.
    Begun,
    /// It waits for the dependents to be deleted that block it.
    Foreground,
    /// It waits for its dependents to lose their reference to it.
    Orphaning,
}

impl Graph {
    /// Returns an object; `None` if it is gone.
    pub(super) fn node(&self, uid: &Uid) -> Option<Arc<Node>> {
        self.nodes.get(uid).cloned()
    }

    /// Returns the dependents of an object.
    pub(super) fn dependents(&self, uid: &Uid) -> Vec<(Uid, Arc<Node>)> {
        self.iter_dependents(uid)
            .map(|(uid, node)| (Arc::clone(uid), Arc::clone(node)))
            .collect()
    }

    /// Returns true if an object has dependents.
    pub(super) fn has_dependents(&self, uid: &Uid) -> bool {
        self.iter_dependents(uid).next().is_some()
    }

    /// Returns true if a dependent of an object waits for its own dependents to be deleted.
    pub(super) fn has_foreground_dependents(&self, uid: &Uid) -> bool {
        let mut dependents = self.iter_dependents(uid);
        dependents.any(|(_, node)| node.deletion == Deletion::Foreground)
    }

    /// Returns true if a dependent of an object blocks its deletion in the foreground.
    pub(super) fn is_blocked(&self, uid: &Uid) -> bool {
        let blocks = |node: &Node| node.owners.iter().any(|it| it.uid == *uid && it.blocks);
        self.iter_dependents(uid).any(|(_, node)| blocks(node))
    }

    /// Puts an object into the place of its older state, and returns the objects to look at.
    pub(super) fn put(&mut self, uid: Uid, node: Node) -> Vec<Uid> {
        let old = self.nodes.get(&uid).cloned();
        let old_owners = old.as_ref().map_or(&[][..], |it| &it.owners);
        let mut looked_at = Vec::new();
        if node.owners != old_owners {
            for owner in old_owners {
                if owner.blocks
                    && !node
                        .owners
                        .iter()
                        .any(|it| it.uid == owner.uid && it.blocks)
                {
                    looked_at.extend(self.foreground(&owner.uid));
                }
                self.drop_dependent(&owner.uid, &uid);
            }
            for owner in &node.owners {
                let dependents = self.dependents.entry(Arc::clone(&owner.uid)).or_default();
                dependents.insert(Arc::clone(&uid));
            }
            if !node.owners.is_empty() {
                looked_at.push(Arc::clone(&uid));
            }
        }
        let waits = matches!(node.deletion, Deletion::Foreground | Deletion::Orphaning);
        if waits && old.is_none_or(|it| it.deletion != node.deletion) {
            looked_at.push(Arc::clone(&uid));
            if node.deletion == Deletion::Foreground {
                let dependents = self.dependents.get(&uid).into_iter().flatten();
                looked_at.extend(dependents.cloned());
            }
        }
        self.nodes.insert(uid, Arc::new(node));
        looked_at
    }

    /// Removes an object that is gone, and returns the objects to look at: its dependents, and the owners that wait for
    /// it.
    pub(super) fn remove(&mut self, uid: &Uid) -> Vec<Uid> {
        let dependents = self.iter_dependents(uid);
        let mut looked_at: Vec<Uid> = dependents.map(|(uid, _)| Arc::clone(uid)).collect();
        if let Some(node) = self.nodes.remove(uid) {
            for owner in &node.owners {
                self.drop_dependent(&owner.uid, uid);
                looked_at.extend(self.foreground(&owner.uid));
            }
        }
        looked_at
    }

    /// Returns an object if it waits for its dependents to be deleted.
    fn foreground(&self, uid: &Uid) -> Option<Uid> {
        let waits = self.nodes.get(uid)?.deletion == Deletion::Foreground;
        waits.then(|| Arc::clone(uid))
    }

    fn drop_dependent(&mut self, owner: &Uid, dependent: &Uid) {
        if let Some(dependents) = self.dependents.get_mut(owner) {
            dependents.remove(dependent);
            if dependents.is_empty() {
                self.dependents.remove(owner);
            }
        }
    }

    fn iter_dependents<'a>(&'a self, uid: &Uid) -> impl Iterator<Item = (&'a Uid, &'a Arc<Node>)> {
        let dependents = self.dependents.get(uid).into_iter().flatten();
        dependents.filter_map(|uid| Some((uid, self.nodes.get(uid)?)))
    }
}
