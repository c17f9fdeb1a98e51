//! Keeps as many pods of each ReplicaSet or ReplicationController as it is to have, and tells in its status how many
//! it has.
//!
//! Source of the semantics: `pkg/controller/replicaset` of kube-controller-manager 1.36. What has been written is seen
//! in the next look, since pods are listed from the store as they are then, and no key is looked at twice at a time.
//! No record is kept of pods that are expected to appear or to go, which kube-controller-manager needs.

mod deletion_order;
mod status;

use async_trait::async_trait;
use futures::future;
use ringwatch::clock::Clock;
use ringwatch_apimachinery::accessor::{self, is_terminating};
use ringwatch_apimachinery::{Error, path};
use ringwatch_registry::DeleteOptions;
use ringwatch_registry::informer::InformerChange;
use serde_json::Value;

use self::deletion_order::DeletionOrder;
use self::status::PodCounts;
use crate::ServedStores;
use crate::controller::{self, Controller, Next, object_of};
use crate::objects::ControllerObjects;
use crate::owned::{NamespacedName, Owners, controller_of};
use crate::pods;

/// Maximum number of pods that one look creates or deletes.
const BURST_MAX: usize = 500;

/// Maximum number of pods that are created or deleted at the same time for one look.
const PODS_AT_A_TIME: usize = 16;

/// A kind of objects with replicas, and the controller of its pods.
#[derive(Debug)]
pub(super) struct ReplicaKind {
    resource: (&'static str, &'static str),
    api_version: &'static str,
    kind: &'static str,
    /// The service account of the controller.
    account: &'static str,
    /// True if the status tells how many pods are ending.
    tells_terminating: bool,
}

/// ReplicaSets.
pub(super) const REPLICA_SETS: ReplicaKind = ReplicaKind {
    resource: ("apps", "replicasets"),
    api_version: "apps/v1",
    kind: "ReplicaSet",
    account: "replicaset-controller",
    tells_terminating: true,
};

/// ReplicationControllers.
pub(super) const REPLICATION_CONTROLLERS: ReplicaKind = ReplicaKind {
    resource: ("", "replicationcontrollers"),
    api_version: "v1",
    kind: "ReplicationController",
    account: "replication-controller",
    tells_terminating: false,
};

/// The controller of the pods of one kind.
#[derive(Debug)]
pub(super) struct ReplicaSets<'a> {
    kind: &'a ReplicaKind,
    sets: ControllerObjects<'a>,
    pods: ControllerObjects<'a>,
    owners: Owners,
    clock: &'a Clock,
}

/// The store that an object is of.
#[derive(Clone, Copy, Debug)]
pub(super) enum ReplicaSource {
    Sets,
    Pods,
}

impl ReplicaSets<'_> {
    /// Runs the controller until it is dropped.
    pub(super) async fn run(kind: &ReplicaKind, stores: &ServedStores, clock: &Clock) {
        let objects = |resource| ControllerObjects::new(stores, resource, kind.account, clock);
        let (Some(sets), Some(pods)) = (objects(kind.resource), objects(("", "pods"))) else {
            return;
        };
        let sources = vec![
            (ReplicaSource::Sets, sets.source()),
            (ReplicaSource::Pods, pods.source()),
        ];
        let controller = ReplicaSets {
            kind,
            sets,
            pods,
            owners: Owners::new(kind.api_version, kind.kind),
            clock,
        };
        controller::run(&controller, kind.kind, sources, clock).await;
    }

    /// Creates the pods that a set has too few, or deletes those that it has too many.
    async fn manage(&self, set: &Value, active: &[Value], all: &[Value]) -> Result<(), Error> {
        let wanted = wanted(set);
        if active.len() < wanted {
            self.create(set, (wanted - active.len()).min(BURST_MAX))
                .await
        } else {
            let surplus = (active.len() - wanted).min(BURST_MAX);
            self.delete(set, active, all, surplus).await
        }
    }

    /// Creates pods, more at a time while none fails, until one fails.
    async fn create(&self, set: &Value, count: usize) -> Result<(), Error> {
        let template = &set["spec"]["template"];
        let pod = pods::of_template(template, set, self.owners.reference(set));
        let (mut left, mut batch) = (count, 1);
        while left > 0 {
            batch = batch.min(left);
            let created = (0..batch).map(|_| self.pods.create(pod.clone()));
            // All have ended before an error ends this look, so that the next one sees each pod.
            for created in future::join_all(created).await {
                if created?.is_none() {
                    return Ok(());
                }
            }
            left -= batch;
            batch = (batch * 2).min(PODS_AT_A_TIME);
        }
        Ok(())
    }

    async fn delete(
        &self,
        set: &Value,
        active: &[Value],
        all: &[Value],
        count: usize,
    ) -> Result<(), Error> {
        let mut doomed: Vec<&Value> = active.iter().collect();
        if count > 0 && count < active.len() {
            let siblings = self.siblings(set).await?;
            let now = self.clock.wall();
            let order = DeletionOrder::new(all, |uid| siblings.iter().any(|it| it == uid), now);
            doomed.sort_by_cached_key(|pod| order.place(pod));
        }
        for some in doomed[..count].chunks(PODS_AT_A_TIME) {
            let deleted = some
                .iter()
                .map(|pod| self.pods.delete(pod, DeleteOptions::default()));
            for deleted in future::join_all(deleted).await {
                deleted?;
            }
        }
        Ok(())
    }

    /// Returns the uids of the sets that the same object, such as a Deployment, controls.
    async fn siblings(&self, set: &Value) -> Result<Vec<String>, Error> {
        let Some(controller) = controller_of(set) else {
            return Ok(Vec::new());
        };
        let sets = self.sets.list(accessor::text(set, "namespace")).await?;
        let mut siblings = sets;
        siblings.retain(|it| controller_of(it).is_some_and(|it| it["uid"] == controller["uid"]));
        let uids = siblings
            .iter()
            .map(|it| accessor::text(it, "uid").to_owned());
        Ok(uids.collect())
    }

    /// Returns the time of the next look, which is when the next pod has been ready for long enough.
    fn next(&self, set: &Value, active: &[Value]) -> Next {
        let seconds = min_ready_seconds(set);
        let now = self.clock.wall();
        let times = active
            .iter()
            .filter_map(|pod| pods::available_from(pod, seconds));
        let next = times.filter(|it| *it > now).min();
        let left = next.and_then(|it| it.duration_since(now).try_into().ok());
        left.map_or(Next::Done, |left| Next::At(self.clock.now() + left))
    }
}

#[async_trait]
impl Controller for ReplicaSets<'_> {
    type Source = ReplicaSource;
    type Key = NamespacedName;

    fn reset(&self) {
        self.owners.reset();
    }

    fn keys(&self, source: ReplicaSource, change: &InformerChange) -> Vec<NamespacedName> {
        match source {
            ReplicaSource::Sets => {
                let set = self.sets.content(object_of(change));
                vec![self.owners.note(change, &set)]
            }
            ReplicaSource::Pods => self.owners.of(&self.pods.content(object_of(change))),
        }
    }

    async fn reconcile(&self, (namespace, name): &NamespacedName) -> Result<Next, Error> {
        let Some(set) = self.sets.get(namespace, name).await? else {
            return Ok(Next::Done);
        };
        let all = self.pods.list(namespace).await?;
        // Pods that have ended, or are ending, are neither adopted nor released.
        let active: Vec<Value> = all
            .iter()
            .filter(|it| pods::is_active(it))
            .cloned()
            .collect();
        let active = self.owners.claim_among(&set, active, &self.pods).await?;
        let is_ending = |pod: &Value| {
            is_terminating(pod) && !pods::has_ended(pod) && self.owners.has(&set, pod)
        };
        let ending = all.iter().filter(|pod| is_ending(pod)).count();
        let managed = if is_terminating(&set) {
            Ok(())
        } else {
            self.manage(&set, &active, &all).await
        };
        let counts = PodCounts {
            active: &active,
            ending: self.kind.tells_terminating.then_some(ending),
        };
        let status = status::next(&set, &counts, &managed, self.clock.wall());
        if status != set["status"] {
            let written = |set: &mut Value| set["status"] = status.clone();
            self.sets.update(&set, "status", written).await?;
        }
        managed?;
        Ok(self.next(&set, &active))
    }
}

/// Returns the number of pods that a set is to have.
fn wanted(set: &Value) -> usize {
    let wanted = path::get(set, "spec.replicas").and_then(Value::as_u64);
    usize::try_from(wanted.unwrap_or(1)).unwrap_or(usize::MAX)
}

/// Returns the seconds for which a pod of a set has to be ready until it is available.
fn min_ready_seconds(set: &Value) -> i64 {
    let seconds = path::get(set, "spec.minReadySeconds");
    seconds.and_then(Value::as_i64).unwrap_or_default()
}
