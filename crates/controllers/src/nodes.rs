//! The Node authorizer's graph, kept by informers of pods, PersistentVolumes, VolumeAttachments and ResourceSlices.

use std::sync::Arc;

use ringwatch::clock::Clock;
use ringwatch::meta::Object;
use ringwatch_authorization::NodeGraph;
use ringwatch_endpoints::health::Done;
use ringwatch_registry::informer::{Change, Handler};
use ringwatch_registry::{Informer, ListWatch, Store, Stores};

/// The kinds of objects that are followed.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Pods,
    Volumes,
    Attachments,
    Slices,
}

/// The kind of followed objects, and their store.
type Source<'a> = (Kind, &'a Store);

/// The controller that keeps the Node authorizer's graph.
#[derive(Debug)]
pub struct Nodes {
    stores: Vec<(Kind, Arc<Store>)>,
    graph: Arc<NodeGraph>,
    synced: Done,
    clock: Clock,
}

impl Nodes {
    /// Returns the controller over those of the stores of a server that it follows. `synced` is set once the graph is complete.
    #[must_use]
    pub fn new(all: &Stores, graph: Arc<NodeGraph>, synced: Done, clock: Clock) -> Self {
        let of = |kind, group, plural| all.get(group, plural).map(|it| (kind, Arc::clone(it)));
        let stores = [
            of(Kind::Pods, "", "pods"),
            of(Kind::Volumes, "", "persistentvolumes"),
            of(Kind::Attachments, "storage.k8s.io", "volumeattachments"),
            of(Kind::Slices, "resource.k8s.io", "resourceslices"),
        ];
        Self {
            stores: stores.into_iter().flatten().collect(),
            graph,
            synced,
            clock,
        }
    }

    /// Runs the controller until it is dropped. While the stores cannot be read, the last graph is kept.
    pub async fn run(self) {
        let stores = self.stores.iter();
        let sources = stores.map(|(kind, store)| {
            let store = store.as_ref();
            ((*kind, store), store as &dyn ListWatch)
        });
        let informer = Informer::new("pods and volumes", sources, self.clock.clone());
        informer.run(&mut &self).await;
    }
}

impl Handler<Source<'_>> for &Nodes {
    /// Replaces the graph atomically, so that no request is decided by a partial graph.
    fn replace(&mut self, objects: Vec<(Source<'_>, Arc<Object>)>) {
        let graph = NodeGraph::default();
        for (source, object) in objects {
            set(&graph, source, &object);
        }
        self.graph.replace(graph);
        self.synced.set();
    }

    fn apply(&mut self, source: Source<'_>, change: Change) {
        match change {
            Change::Upserted(object) => set(&self.graph, source, &object),
            Change::Deleted(object) => remove(&self.graph, source.0, &object),
        }
    }

    fn publish(&mut self) {}
}

/// Applies the current state of an object. One that cannot be read grants no rights.
fn set(graph: &NodeGraph, (kind, store): Source<'_>, object: &Object) {
    let Ok(value) = store.served_value(object) else {
        return remove(graph, kind, object);
    };
    match kind {
        Kind::Pods => graph.add_pod(&value),
        Kind::Volumes => graph.set_volume(object.name(), &value),
        Kind::Attachments => graph.set_attachment(object.name(), &value),
        Kind::Slices => graph.set_slice(object.name(), &value),
    }
}

fn remove(graph: &NodeGraph, kind: Kind, object: &Object) {
    let nothing = serde_json::Value::Null;
    match kind {
        Kind::Pods => graph.remove_pod(object.namespace(), object.name()),
        Kind::Volumes => graph.set_volume(object.name(), &nothing),
        Kind::Attachments => graph.set_attachment(object.name(), &nothing),
        Kind::Slices => graph.set_slice(object.name(), &nothing),
    }
}
