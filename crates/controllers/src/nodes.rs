//! The Node authorizer's graph, kept by informers of pods, PersistentVolumes, VolumeAttachments and ResourceSlices.

use std::sync::Arc;

use ringwatch::clock::Clock;
use ringwatch::meta::Object;
use ringwatch_authorization::NodeGraph;
use ringwatch_endpoints::health::Done;
use ringwatch_registry::informer::{Handler, InformerChange};
use ringwatch_registry::{Informer, ListWatch, Store, Stores};

/// The kinds of objects that are followed.
#[derive(Clone, Copy, Debug)]
enum GraphKind {
    Pods,
    Volumes,
    Attachments,
    Slices,
}

/// The kind of followed objects, and their store.
type NodeSource<'a> = (GraphKind, &'a Store);

/// The controller that keeps the Node authorizer's graph.
#[derive(Debug)]
pub struct Nodes {
    stores: Vec<(GraphKind, Arc<Store>)>,
    graph: Arc<NodeGraph>,
    synced: Done,
    clock: Clock,
}

impl Nodes {
    /// Returns the controller over those of the stores of a server that it follows. `synced` is set once the graph is
    /// complete.
    #[must_use]
    pub fn new(all: &Stores, graph: Arc<NodeGraph>, synced: Done, clock: Clock) -> Self {
        let of = |kind, group, plural| all.get(group, plural).map(|it| (kind, Arc::clone(it)));
        let stores = [
            of(GraphKind::Pods, "", "pods"),
            of(GraphKind::Volumes, "", "persistentvolumes"),
            of(
                GraphKind::Attachments,
                "storage.k8s.io",
                "volumeattachments",
            ),
            of(GraphKind::Slices, "resource.k8s.io", "resourceslices"),
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

impl Handler<NodeSource<'_>> for &Nodes {
    /// Replaces the graph atomically, so that no request is decided by a partial graph.
    fn replace(&mut self, objects: Vec<(NodeSource<'_>, Arc<Object>)>) {
        let graph = NodeGraph::default();
        for (source, object) in objects {
            set(&graph, source, &object);
        }
        self.graph.replace(graph);
        self.synced.set();
    }

    fn apply(&mut self, source: NodeSource<'_>, change: InformerChange) {
        match change {
            InformerChange::Upserted(object) => set(&self.graph, source, &object),
            InformerChange::Deleted(object) => remove(&self.graph, source.0, &object),
        }
    }

    fn publish(&mut self) {}
}

/// Applies the current state of an object. One that cannot be read grants no rights.
fn set(graph: &NodeGraph, (kind, store): NodeSource<'_>, object: &Object) {
    let Ok(value) = store.served_value(object) else {
        return remove(graph, kind, object);
    };
    match kind {
        GraphKind::Pods => graph.add_pod(&value),
        GraphKind::Volumes => graph.set_volume(object.name(), &value),
        GraphKind::Attachments => graph.set_attachment(object.name(), &value),
        GraphKind::Slices => graph.set_slice(object.name(), &value),
    }
}

fn remove(graph: &NodeGraph, kind: GraphKind, object: &Object) {
    let nothing = serde_json::Value::Null;
    match kind {
        GraphKind::Pods => graph.remove_pod(object.namespace(), object.name()),
        GraphKind::Volumes => graph.set_volume(object.name(), &nothing),
        GraphKind::Attachments => graph.set_attachment(object.name(), &nothing),
        GraphKind::Slices => graph.set_slice(object.name(), &nothing),
    }
}
