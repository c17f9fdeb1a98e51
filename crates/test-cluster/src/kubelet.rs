//! Pretends a node: the Node `test-cluster` is there, pods get a node, and those that have one run.
//!
//! ```text
//!   pod without a node --placement, binding--> pod with a node --status--> Started --> Ready --> Succeeded
//!                                                                 (a while)   (a while, if it is to end)
//! ```
//!
//! No container runs: a status says what kubelet and kube-scheduler 1.36 would have written, had everything gone well.
//! Pods of any node run, since there is no other kubelet. The step that follows is read from a status that was written
//! here: one that a test has written, or changed, is left as it is.

mod addresses;
mod binding;
mod node;
mod placement;
mod pod_status;
mod stage;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use ringwatch::clock::{Clock, Instant};
use ringwatch_apimachinery::accessor::{self, finalizers, is_terminating};
use ringwatch_apimachinery::{Error, path};
use ringwatch_registry::informer::InformerChange;
use ringwatch_registry::{DeleteOptions, Store};
use serde_json::Value;

use self::addresses::Addresses;
use self::stage::Stage;
use crate::ServedStores;
use crate::controller::{self, Controller, Next, object_of};
use crate::objects::ControllerObjects;
use crate::owned::NamespacedName;

/// The account that writes what a kubelet writes. A kubelet is the user of its node, who may write about that alone.
const KUBELET: &str = "kubelet";

/// The account that chooses nodes; kube-scheduler is a user of its own, not a controller.
const SCHEDULER: &str = "kube-scheduler";

/// The pretended kubelet, and the scheduler before it.
#[derive(Debug)]
pub(crate) struct Kubelet<'a> {
    nodes: ControllerObjects<'a>,
    pods: ControllerObjects<'a>,
    pod_store: &'a Store,
    ready_after: Duration,
    addresses: Addresses,
    known: Mutex<KnownPods>,
    clock: &'a Clock,
}

/// The facts about pods that are not in their statuses. There are at most as many as pods.
#[derive(Debug, Default)]
struct KnownPods {
    /// Pods without a node, which may get one when nodes change.
    unbound: BTreeSet<NamespacedName>,
    /// The stage in which one was last seen, and since when: the uid tells pods of the same name apart.
    since: BTreeMap<NamespacedName, (String, Stage, Instant)>,
}

/// The kind of objects in a store.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KubeletSource {
    Nodes,
    Pods,
}

/// The Node, or a pod by namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum KubeletObject {
    Node,
    Pod(NamespacedName),
}

impl Kubelet<'_> {
    /// Runs the kubelet until it is dropped. A pod is ready after this time.
    pub(crate) async fn run(stores: &ServedStores, ready_after: Duration, clock: &Clock) {
        let objects = |plural| ControllerObjects::new(stores, ("", plural), KUBELET, clock);
        let (Some(nodes), Some(pods), Some(pod_store)) = (
            objects("nodes"),
            objects("pods"),
            stores.built_in("", "pods"),
        ) else {
            return;
        };
        let kubelet = Kubelet {
            nodes,
            pods,
            pod_store,
            ready_after,
            addresses: Addresses::default(),
            known: Mutex::default(),
            clock,
        };
        let sources = vec![
            (KubeletSource::Nodes, kubelet.nodes.source()),
            (KubeletSource::Pods, kubelet.pods.source()),
        ];
        controller::run(&kubelet, "the pretended kubelet", sources, clock).await;
    }

    /// Binds a pod to a node that takes it, or says that none does.
    async fn schedule(&self, pod: &Value) -> Result<Next, Error> {
        if !placement::is_to_be_placed(pod) {
            return Ok(Next::Done);
        }
        let nodes = self.nodes.list("").await?;
        if let Some(node) = placement::choose(pod, &nodes) {
            binding::bind(self.pod_store, pod, node, self.clock).await?;
            return Ok(Next::Done);
        }
        let message = placement::refusal(pod, &nodes);
        if !placement::is_refused(pod, &message) {
            let now = self.clock.wall();
            let refused = |pod: &mut Value| {
                if path::text(pod, "spec.nodeName").is_empty() {
                    placement::refuse(pod, &message, now);
                }
            };
            self.pods.update(pod, "status", refused).await?;
        }
        Ok(Next::Done)
    }

    /// Does the next step about a pod that has a node.
    async fn run_pod(&self, name: &NamespacedName, pod: &Value) -> Result<Next, Error> {
        if is_terminating(pod) {
            return self.stop(pod).await;
        }
        let stage = Stage::of(pod);
        let next = match stage {
            Stage::New => return self.start(name, pod).await,
            Stage::Started => Some(Stage::Ready),
            Stage::Ready => pod_status::is_to_end(pod).then_some(Stage::Ended),
            Stage::Ended | Stage::Others => {
                self.known().since.remove(name);
                return Ok(Next::Done);
            }
        };
        let (now, wall) = (self.clock.now(), self.clock.wall());
        let left = pod_status::deadline(pod).map(|it| it.duration_since(wall));
        let left = left.map(|it| Duration::try_from(it).unwrap_or_default());
        let due = next.map(|_| self.since(name, pod, stage) + self.ready_after);
        let is_over = left.is_some_and(|it| it.is_zero());
        if !is_over && due.is_none_or(|it| now < it) {
            self.renew(pod).await?;
            let deadline = left.map(|it| now + it);
            let first = due.into_iter().chain(deadline).min();
            return Ok(first.map_or(Next::Done, Next::At));
        }
        let step = |pod: &mut Value| {
            if Stage::of(pod) == stage {
                match next {
                    _ if is_over => pod_status::expire(pod, wall),
                    Some(Stage::Ready) => pod_status::make_ready(pod, wall),
                    _ => pod_status::end(pod, wall),
                }
            }
        };
        self.pods.update(pod, "status", step).await?;
        Ok(Next::Done)
    }

    /// Starts a pod: gives it an address, and has its containers run.
    async fn start(&self, name: &NamespacedName, pod: &Value) -> Result<Next, Error> {
        let host = self.host_address(pod).await?;
        let address = if path::get(pod, "spec.hostNetwork") == Some(&Value::Bool(true)) {
            host.clone()
        } else if let Some(address) = self.addresses.allocate(name) {
            address.to_string()
        } else {
            // All are taken. Pods that go free some.
            return Ok(Next::Again);
        };
        let (now, is_ready) = (self.clock.wall(), self.ready_after.is_zero());
        let start = |pod: &mut Value| {
            if Stage::of(pod) == Stage::New {
                pod_status::start(pod, (&address, &host), now);
                if is_ready {
                    pod_status::make_ready(pod, now);
                }
            }
        };
        if self.pods.update(pod, "status", start).await?.is_none() {
            self.addresses.free(name);
        }
        Ok(Next::Done)
    }

    /// Writes the conditions anew that follow from others, such as those of readiness gates.
    async fn renew(&self, pod: &Value) -> Result<(), Error> {
        let now = self.clock.wall();
        let mut renewed = pod.clone();
        pod_status::renew(&mut renewed, now);
        if renewed != *pod {
            let renew = |pod: &mut Value| {
                if matches!(Stage::of(pod), Stage::Started | Stage::Ready) {
                    pod_status::renew(pod, now);
                }
            };
            self.pods.update(pod, "status", renew).await?;
        }
        Ok(())
    }

    /// Stops the containers of a pod that is being deleted, and deletes it. With finalizers it stays, and has failed.
    async fn stop(&self, pod: &Value) -> Result<Next, Error> {
        if !finalizers(pod).is_empty() && matches!(Stage::of(pod), Stage::Started | Stage::Ready) {
            let now = self.clock.wall();
            let kill = |pod: &mut Value| {
                if matches!(Stage::of(pod), Stage::Started | Stage::Ready) {
                    pod_status::kill(pod, now);
                }
            };
            self.pods.update(pod, "status", kill).await?;
        }
        if accessor::integer(pod, "deletionGracePeriodSeconds") == Some(0) {
            return Ok(Next::Done);
        }
        let options = DeleteOptions {
            grace_period_seconds: Some(0),
            ..DeleteOptions::default()
        };
        self.pods.delete(pod, options).await?;
        Ok(Next::Done)
    }

    /// Returns the address of the node of a pod: another node may be made by a test, and have one or none.
    async fn host_address(&self, pod: &Value) -> Result<String, Error> {
        let node = path::text(pod, "spec.nodeName");
        let node = self.nodes.get("", node).await?;
        Ok(node
            .as_ref()
            .map_or(node::ADDRESS, node::address)
            .to_owned())
    }

    /// Returns since when a pod is known to be in this stage.
    fn since(&self, name: &NamespacedName, pod: &Value, stage: Stage) -> Instant {
        let uid = accessor::text(pod, "uid");
        let mut known = self.known();
        match known.since.get(name) {
            Some((same, seen, since)) if same == uid && *seen == stage => *since,
            _ => {
                let now = self.clock.now();
                known
                    .since
                    .insert(name.clone(), (uid.to_owned(), stage, now));
                now
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, KnownPods> {
        // Maps are whole after every step.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Controller for Kubelet<'_> {
    type Source = KubeletSource;
    type Key = KubeletObject;

    fn reset(&self) {
        self.addresses.reset();
        self.known().unbound.clear();
    }

    /// Returns the Node: no change tells that there has been none.
    fn standing_keys(&self) -> Vec<KubeletObject> {
        vec![KubeletObject::Node]
    }

    fn keys(&self, source: KubeletSource, change: &InformerChange) -> Vec<KubeletObject> {
        if matches!(source, KubeletSource::Nodes) {
            let unbound = self.known().unbound.clone().into_iter();
            let mut keys: Vec<KubeletObject> = unbound.map(KubeletObject::Pod).collect();
            keys.extend((object_of(change).name() == node::NAME).then_some(KubeletObject::Node));
            return keys;
        }
        let object = object_of(change);
        let name = (object.namespace().to_owned(), object.name().to_owned());
        let pod = match change {
            InformerChange::Upserted(object) => self.pods.content(object),
            InformerChange::Deleted(_) => {
                self.addresses.free(&name);
                let mut known = self.known();
                known.unbound.remove(&name);
                known.since.remove(&name);
                return Vec::new();
            }
        };
        self.addresses.note(&name, &pod);
        if path::text(&pod, "spec.nodeName").is_empty() {
            self.known().unbound.insert(name.clone());
        } else {
            self.known().unbound.remove(&name);
        }
        vec![KubeletObject::Pod(name)]
    }

    async fn reconcile(&self, key: &KubeletObject) -> Result<Next, Error> {
        let KubeletObject::Pod(name) = key else {
            return node::ensure(&self.nodes, self.clock).await;
        };
        let (namespace, pod) = name;
        let Some(pod) = self.pods.get(namespace, pod).await? else {
            return Ok(Next::Done);
        };
        if path::text(&pod, "spec.nodeName").is_empty() {
            return self.schedule(&pod).await;
        }
        self.run_pod(name, &pod).await
    }
}
