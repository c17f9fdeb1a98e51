//! Binds claims to volumes, and reclaims volumes whose claims are gone.
//!
//! ```text
//!   claim:   Pending ------------> Bound ------> (gone, or Lost: its volume is)
//!                                   |
//!   volume:  Pending -> Available -> Bound -> Released -> kept, deleted, or Available again, as its policy says
//! ```
//!
//! Source of the semantics: `pkg/controller/volume/persistentvolume` of kube-controller-manager 1.36, with provisioners
//! and deleters that run elsewhere. Nothing is behind volumes here: one to be deleted goes at once, and one to be
//! recycled is available again. Events are not made.

mod matching;
mod steps;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use ringwatch::clock::Clock;
use ringwatch_apimachinery::{Error, accessor, path};
use ringwatch_registry::DeleteOptions;
use ringwatch_registry::informer::InformerChange;
use serde_json::Value;

use crate::ServedStores;
use crate::controller::{self, Controller, Next, object_of};
use crate::objects::ControllerObjects;
use crate::owned::NamespacedName;
use crate::volumes::{VolumeObject, claims_of, has_node};

/// The service account of the controller.
const ACCOUNT: &str = "persistent-volume-binder";

/// The annotation of a claim for whose pods a scheduler has chosen a node.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// The annotation of a volume that was made for a claim.
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";

/// The provisioner of classes of which users make the volumes.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// The controller of claims and volumes.
#[derive(Debug)]
pub(crate) struct VolumeBinding<'a> {
    claims: ControllerObjects<'a>,
    volumes: ControllerObjects<'a>,
    pods: ControllerObjects<'a>,
    classes: ControllerObjects<'a>,
    /// The classes of the claims that are not bound, which wait for volumes.
    waiting: Mutex<BTreeMap<NamespacedName, String>>,
}

/// The kind of objects in a store.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BindingSource {
    Claims,
    Volumes,
    Pods,
    Classes,
}

impl VolumeBinding<'_> {
    /// Runs the controller until it is dropped.
    pub(crate) async fn run(stores: &ServedStores, clock: &Clock) {
        let objects =
            |group, plural| ControllerObjects::new(stores, (group, plural), ACCOUNT, clock);
        let (Some(claims), Some(volumes), Some(pods), Some(classes)) = (
            objects("", "persistentvolumeclaims"),
            objects("", "persistentvolumes"),
            objects("", "pods"),
            objects("storage.k8s.io", "storageclasses"),
        ) else {
            return;
        };
        let controller = VolumeBinding {
            claims,
            volumes,
            pods,
            classes,
            waiting: Mutex::default(),
        };
        let sources = vec![
            (BindingSource::Classes, controller.classes.source()),
            (BindingSource::Volumes, controller.volumes.source()),
            (BindingSource::Claims, controller.claims.source()),
            (BindingSource::Pods, controller.pods.source()),
        ];
        controller::run(&controller, "claims and volumes", sources, clock).await;
    }

    /// Does the next step about a claim that has not been bound.
    async fn bind_claim(&self, claim: &Value) -> Result<Next, Error> {
        let name = path::text(claim, "spec.volumeName");
        if !name.is_empty() {
            let volume = self.volumes.get("", name).await?;
            let is_right = |volume: &Value| {
                let is_free = volume["spec"]["claimRef"].is_null();
                matching::is_of(volume, claim) || (is_free && matching::suffices(volume, claim))
            };
            return match volume.filter(is_right) {
                Some(volume) => self.bind(&volume, claim).await,
                None => self.wait(claim).await,
            };
        }
        let class = matching::class(claim);
        let class = match class.is_empty() {
            true => None,
            false => self.classes.get("", class).await?,
        };
        let class = class.unwrap_or_default();
        let waits = class["volumeBindingMode"] == "WaitForFirstConsumer"
            && !self.has_consumer(claim).await?;
        let volumes = self.volumes.list("").await?;
        if let Some(volume) = matching::find(claim, &volumes, waits) {
            return self.bind(volume, claim).await;
        }
        let provisioner = class["provisioner"].as_str();
        if let Some(provisioner) = provisioner.filter(|it| !waits && *it != NO_PROVISIONER) {
            steps::ask(&self.claims, claim, provisioner).await?;
        }
        self.wait(claim).await
    }

    /// Returns true if a node is known on which a pod uses a claim.
    async fn has_consumer(&self, claim: &Value) -> Result<bool, Error> {
        if !claim["metadata"]["annotations"][SELECTED_NODE].is_null() {
            return Ok(true);
        }
        let name = accessor::text(claim, "name");
        let pods = self.pods.list(accessor::text(claim, "namespace")).await?;
        let mut pods = pods.iter().filter(|it| has_node(it));
        Ok(pods.any(|pod| claims_of(pod).iter().any(|it| it == name)))
    }

    async fn wait(&self, claim: &Value) -> Result<Next, Error> {
        steps::set_claim_phase(&self.claims, claim, "Pending", None).await?;
        Ok(Next::Done)
    }

    /// Does the next step about a claim that was bound before.
    async fn check_claim(&self, claim: &Value) -> Result<Next, Error> {
        let name = path::text(claim, "spec.volumeName");
        let volume = match name.is_empty() {
            true => None,
            false => self.volumes.get("", name).await?,
        };
        let uid = accessor::text(claim, "uid");
        let is_own = |volume: &Value| {
            let reference = &volume["spec"]["claimRef"];
            reference.is_null() || reference["uid"] == uid
        };
        if let Some(volume) = volume.filter(is_own) {
            return self.bind(&volume, claim).await;
        }
        if path::text(claim, "status.phase") != "Lost" {
            steps::set_claim_phase(&self.claims, claim, "Lost", None).await?;
        }
        Ok(Next::Done)
    }

    /// Binds a volume and a claim to each other, the volume first.
    async fn bind(&self, volume: &Value, claim: &Value) -> Result<Next, Error> {
        let Some(volume) = steps::take(&self.volumes, volume, claim).await? else {
            // Another claim was faster.
            return Ok(Next::Again);
        };
        steps::set_phase(&self.volumes, &volume, "Bound").await?;
        let Some(claim) = steps::complete(&self.claims, claim, &volume).await? else {
            return self.check_volume(&volume).await;
        };
        steps::set_claim_phase(&self.claims, &claim, "Bound", Some(&volume)).await?;
        Ok(Next::Done)
    }

    /// Does the next step about a volume.
    async fn check_volume(&self, volume: &Value) -> Result<Next, Error> {
        let reference = &volume["spec"]["claimRef"];
        let uid = path::text(reference, "uid");
        if uid.is_empty() {
            steps::set_phase(&self.volumes, volume, "Available").await?;
            return Ok(Next::Done);
        }
        let (namespace, name) = (
            path::text(reference, "namespace"),
            path::text(reference, "name"),
        );
        let claim = self.claims.get(namespace, name).await?;
        let Some(claim) = claim.filter(|it| accessor::text(it, "uid") == uid) else {
            return self.reclaim(volume).await;
        };
        let bound = path::text(&claim, "spec.volumeName");
        if bound == accessor::text(volume, "name") {
            steps::set_phase(&self.volumes, volume, "Bound").await?;
        } else if !bound.is_empty() {
            // The claim has another one.
            let was_made_for_it = !volume["metadata"]["annotations"][PROVISIONED_BY].is_null();
            if was_made_for_it && policy(volume) == "Delete" {
                return self.reclaim(volume).await;
            }
            steps::part(&self.volumes, volume).await?;
        }
        // Without one the claim takes this one.
        Ok(Next::Done)
    }

    /// Releases a volume whose claim is gone, and does with it what its policy says.
    async fn reclaim(&self, volume: &Value) -> Result<Next, Error> {
        if path::text(volume, "status.phase") != "Failed" {
            steps::set_phase(&self.volumes, volume, "Released").await?;
        }
        match policy(volume) {
            "Delete" => {
                self.volumes
                    .delete(volume, DeleteOptions::default())
                    .await?;
            }
            "Recycle" => steps::part(&self.volumes, volume).await?,
            _ => {}
        }
        Ok(Next::Done)
    }

    /// Returns the claims that wait for a volume of a class.
    fn waiting_for(&self, class: &str) -> Vec<VolumeObject> {
        let waiting = self.waiting();
        let waiting = waiting.iter().filter(|(_, of)| *of == class);
        let claims = waiting.map(|((namespace, name), _)| claim(namespace, name));
        claims.collect()
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<NamespacedName, String>> {
        // A map is whole after every step.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Controller for VolumeBinding<'_> {
    type Source = BindingSource;
    type Key = VolumeObject;

    fn reset(&self) {
        self.waiting().clear();
    }

    fn keys(&self, source: BindingSource, change: &InformerChange) -> Vec<VolumeObject> {
        let object = object_of(change);
        let is_there = matches!(change, InformerChange::Upserted(_));
        match source {
            BindingSource::Claims => {
                let content = self.claims.content(object);
                let name = (object.namespace().to_owned(), object.name().to_owned());
                if is_there && !steps::was_bound(&content) {
                    let class = matching::class(&content).to_owned();
                    self.waiting().insert(name, class);
                } else {
                    self.waiting().remove(&name);
                }
                let volume = path::text(&content, "spec.volumeName");
                let volume = (!volume.is_empty()).then(|| VolumeObject::Volume(volume.to_owned()));
                let mut keys = vec![claim(object.namespace(), object.name())];
                keys.extend(volume);
                keys
            }
            BindingSource::Volumes => {
                let content = self.volumes.content(object);
                let reference = &content["spec"]["claimRef"];
                let mut keys = vec![VolumeObject::Volume(object.name().to_owned())];
                if reference.is_object() {
                    let text = |member| path::text(reference, member);
                    keys.push(claim(text("namespace"), text("name")));
                } else if is_there {
                    keys.extend(self.waiting_for(matching::class(&content)));
                }
                keys
            }
            BindingSource::Pods => {
                let pod = self.pods.content(object);
                let claims = claims_of(&pod).into_iter();
                let claims = claims.map(|name| (object.namespace().to_owned(), name));
                let waiting = self.waiting();
                let waiting = claims.filter(|it| waiting.contains_key(it));
                let keys = waiting.map(|(namespace, name)| claim(&namespace, &name));
                keys.collect()
            }
            BindingSource::Classes => self.waiting_for(object.name()),
        }
    }

    async fn reconcile(&self, key: &VolumeObject) -> Result<Next, Error> {
        match key {
            VolumeObject::Claim(namespace, name) => match self.claims.get(namespace, name).await? {
                Some(claim) if steps::was_bound(&claim) => self.check_claim(&claim).await,
                Some(claim) => self.bind_claim(&claim).await,
                None => Ok(Next::Done),
            },
            VolumeObject::Volume(name) => match self.volumes.get("", name).await? {
                Some(volume) => self.check_volume(&volume).await,
                None => Ok(Next::Done),
            },
        }
    }
}

fn claim(namespace: &str, name: &str) -> VolumeObject {
    VolumeObject::Claim(namespace.to_owned(), name.to_owned())
}

fn policy(volume: &Value) -> &str {
    path::text(volume, "spec.persistentVolumeReclaimPolicy")
}
