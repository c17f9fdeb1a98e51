//! Keeps what kubelets may read as pods, volumes, their attachments and the slices of devices say.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::SelectAll;
use ringwatch::clock::Clock;
use ringwatch::meta::{Object, ResourceVersion, WatchEvent};
use ringwatch::storage::ListOptions;
use ringwatch_apimachinery::Error;
use ringwatch_apiserver::health::Done;
use ringwatch_authorization::NodeGraph;
use ringwatch_registry::{Store, Stores};

use super::following::pause_after;

/// The kinds of objects that are followed.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Pods,
    Volumes,
    Attachments,
    Slices,
}

/// Follows what kubelets may read.
#[derive(Debug)]
pub struct Nodes {
    stores: Vec<(Kind, Arc<Store>)>,
    graph: Arc<NodeGraph>,
    synced: Done,
    clock: Clock,
}

impl Nodes {
    /// By what a server has.
    #[must_use]
    pub fn new(all: &Stores, graph: Arc<NodeGraph>, synced: Done, clock: Clock) -> Self {
        let of = |kind, group, plural| all.of((group, plural)).map(|it| (kind, Arc::clone(it)));
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

    /// Follows them until it is dropped. What held last holds while they cannot be read.
    pub async fn run(self) {
        loop {
            let pause = pause_after("pods and volumes", self.follow().await);
            self.clock.sleep(pause).await;
        }
    }

    /// Lists everything and follows its changes until a watch ends.
    async fn follow(&self) -> Result<(), Error> {
        let (mut lists, mut changes) = (Vec::new(), SelectAll::new());
        for (kind, store) in &self.stores {
            let options = ListOptions {
                skip_corrupt: true,
                ..ListOptions::default()
            };
            let list = store.list("", options).await?;
            let options = ListOptions {
                resource_version: Some(ResourceVersion(list.revision)),
                ..ListOptions::default()
            };
            let watch = store.watch("", options).await?;
            let ended = futures::stream::once(std::future::ready(None));
            let watch = watch.map(Some).chain(ended);
            changes.push(watch.map(move |change| (*kind, store, change)).boxed());
            lists.push((*kind, store, list.items));
        }
        let graph = NodeGraph::default();
        for (kind, store, objects) in &lists {
            for object in objects {
                set(&graph, *kind, store, object);
            }
        }
        self.graph.replace(graph);
        self.synced.set();
        while let Some((kind, store, change)) = changes.next().await {
            let Some(change) = change else { return Ok(()) };
            match change.map_err(Error::Storage)? {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    set(&self.graph, kind, store, &object)
                }
                WatchEvent::Deleted(object) => remove(&self.graph, kind, &object),
                WatchEvent::Bookmark { .. } => {}
            }
        }
        Ok(())
    }
}

/// Takes an object as it is now. One that cannot be read gives no rights.
fn set(graph: &NodeGraph, kind: Kind, store: &Store, object: &Object) {
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
