//! Has each Deployment roll out: makes a ReplicaSet for its template, moves the pods from the others to it, and tells
//! in the status how that comes on.
//!
//! Source of the semantics: `pkg/controller/deployment` of kube-controller-manager 1.36. Everything that is written was
//! decided by what was read: if somebody else has written meanwhile, the write fails and the Deployment is looked at
//! again. What has been written is seen in the next look, since ReplicaSets are listed from the store as they are then.
//!
//! A change of a pod is told by the status of its ReplicaSet, so that pods are not followed here. The rollback by an
//! annotation, which `extensions/v1beta1` had, is not there.

mod counts;
mod limits;
mod new_set;
mod revisions;
mod rolling;
mod rollout;
mod scaling;
mod status;
mod templates;

use std::time::Duration;

use async_trait::async_trait;
use ringwatch::clock::Clock;
use ringwatch_apimachinery::Error;
use ringwatch_apimachinery::accessor::{self, is_terminating};
use ringwatch_registry::DeleteOptions;
use ringwatch_registry::informer::InformerChange;
use serde_json::Value;

use self::limits::RolloutLimits;
use self::revisions::{DESIRED, MAX, REVISION};
use self::rolling::RollingStep;
use self::rollout::Rollout;
use crate::ServedStores;
use crate::controller::{self, Controller, Next, object_of};
use crate::objects::ControllerObjects;
use crate::owned::{NamespacedName, Owners};

/// The service account of the controller.
const ACCOUNT: &str = "deployment-controller";

/// The time after a deadline at which it is certainly over, since times in objects are whole seconds.
const SURELY_OVER: Duration = Duration::from_secs(1);

/// The controller of Deployments.
#[derive(Debug)]
pub(super) struct Deployments<'a> {
    deployments: ControllerObjects<'a>,
    sets: ControllerObjects<'a>,
    pods: ControllerObjects<'a>,
    owners: Owners,
    clock: &'a Clock,
}

/// The store that an object is of.
#[derive(Clone, Copy, Debug)]
pub(super) enum DeploymentSource {
    Deployments,
    Sets,
}

impl Deployments<'_> {
    /// Runs the controller until it is dropped.
    pub(super) async fn run(stores: &ServedStores, clock: &Clock) {
        let objects =
            |group, plural| ControllerObjects::new(stores, (group, plural), ACCOUNT, clock);
        let (Some(deployments), Some(sets), Some(pods)) = (
            objects("apps", "deployments"),
            objects("apps", "replicasets"),
            objects("", "pods"),
        ) else {
            return;
        };
        let sources = vec![
            (DeploymentSource::Deployments, deployments.source()),
            (DeploymentSource::Sets, sets.source()),
        ];
        let controller = Deployments {
            deployments,
            sets,
            pods,
            owners: Owners::new("apps/v1", "Deployment"),
            clock,
        };
        controller::run(&controller, "Deployment", sources, clock).await;
    }

    /// Does the next step of a rollout, and decides on the status.
    async fn advance(&self, rollout: &mut Rollout) -> Result<Next, Error> {
        self.follow_template(rollout).await?;
        if is_terminating(&rollout.deployment) {
            status::count(rollout, self.clock.wall());
            return Ok(Next::Done);
        }
        status::pause_or_resume(rollout, self.clock.wall());
        let is_paused = rollout.deployment["spec"]["paused"] == true;
        if is_paused || rollout.is_to_be_scaled() {
            self.scale(rollout).await?;
            if is_paused {
                self.clean_up(rollout).await?;
            }
            status::count(rollout, self.clock.wall());
            return Ok(Next::Done);
        }
        let has_new = if limits::rolls(&rollout.deployment) {
            self.roll(rollout).await?
        } else {
            self.recreate(rollout).await?
        };
        if !has_new {
            return Ok(Next::Again);
        }
        let now = self.clock.wall();
        let left = status::progress(rollout, now).map(|due| due.duration_since(now));
        let left = left.map(|it| Duration::try_from(it).unwrap_or_default() + SURELY_OVER);
        Ok(left.map_or(Next::Done, |left| Next::At(self.clock.now() + left)))
    }

    /// Does the next step of a rolling update. Returns false if there is no new set yet.
    async fn roll(&self, rollout: &mut Rollout) -> Result<bool, Error> {
        if !self.ensure_new(rollout).await? {
            return Ok(false);
        }
        let limits = rollout.limits();
        let Some(new) = &mut rollout.new else {
            return Ok(false);
        };
        let old = rollout.old.iter_mut();
        let mut old: Vec<&mut Value> = old.filter(|set| rollout::wanted(set) > 0).collect();
        let sizes: Vec<_> = old.iter().map(|set| rollout::size(set)).collect();
        match rolling::step(&limits, rollout::size(new), &sizes) {
            RollingStep::New(size) => self.resize(&limits, new, size).await?,
            RollingStep::Old(sizes) => {
                for (set, size) in old.iter_mut().zip(sizes) {
                    self.resize(&limits, set, size).await?;
                }
            }
            RollingStep::Rest if rollout.was_complete() => self.clean_up(rollout).await?,
            RollingStep::Rest => {}
        }
        Ok(true)
    }

    /// Ends all old pods, and makes new ones once no old one runs. Returns false if there is no new set though there
    /// should be.
    async fn recreate(&self, rollout: &mut Rollout) -> Result<bool, Error> {
        let limits = rollout.limits();
        let mut is_waiting = false;
        for set in rollout
            .old
            .iter_mut()
            .filter(|set| rollout::wanted(set) > 0)
        {
            self.resize(&limits, set, 0).await?;
            is_waiting = true;
        }
        if is_waiting {
            return Ok(true);
        }
        let namespace = accessor::text(&rollout.deployment, "namespace");
        if !rollout.old.is_empty() && rollout.runs_old(&self.pods.list(namespace).await?) {
            return Ok(true);
        }
        if !self.ensure_new(rollout).await? {
            return Ok(false);
        }
        if let Some(new) = &mut rollout.new {
            self.resize(&limits, new, limits.replicas).await?;
        }
        if rollout.was_complete() {
            self.clean_up(rollout).await?;
        }
        Ok(true)
    }

    /// Has the sets of a Deployment that is not rolling out have as many pods as it: the only one that has any all of
    /// them, several each its share.
    async fn scale(&self, rollout: &mut Rollout) -> Result<(), Error> {
        let limits = rollout.limits();
        let pods = counts::count_of(&rollout.status, "replicas");
        let (is_saturated, rolls) = (rollout.is_saturated(), limits::rolls(&rollout.deployment));
        let mut active = rollout.active();
        match &mut active[..] {
            [] => {
                let latest = rollout.new.as_mut().or_else(|| rollout.old.last_mut());
                if let Some(set) = latest {
                    self.resize(&limits, set, limits.replicas).await?;
                }
            }
            // One that has been resized by somebody else gets the note, without which nothing would ever roll.
            [only] => {
                self.resize_noting(&limits, only, limits.replicas).await?;
            }
            _ if is_saturated => {
                for set in rollout
                    .old
                    .iter_mut()
                    .filter(|set| rollout::wanted(set) > 0)
                {
                    self.resize(&limits, set, 0).await?;
                }
            }
            several if rolls => {
                let sets: Vec<_> = several.iter().map(|set| rollout::scaled(set)).collect();
                for (set, size) in several.iter_mut().zip(scaling::sizes(&limits, &sets, pods)) {
                    self.resize_noting(&limits, set, size).await?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Has a set have so many pods, if it is to have another number.
    async fn resize(
        &self,
        limits: &RolloutLimits,
        set: &mut Value,
        size: i64,
    ) -> Result<(), Error> {
        if rollout::wanted(set) == size {
            return Ok(());
        }
        self.resize_noting(limits, set, size).await
    }

    /// Has a set have so many pods, and notes on it how many the Deployment is to have.
    async fn resize_noting(
        &self,
        limits: &RolloutLimits,
        set: &mut Value,
        size: i64,
    ) -> Result<(), Error> {
        let is_noted = revisions::noted(set, DESIRED) == Some(limits.replicas)
            && revisions::noted(set, MAX) == Some(limits.max_total());
        if is_noted && rollout::wanted(set) == size {
            return Ok(());
        }
        let resize = |set: &mut Value| {
            set["spec"]["replicas"] = size.into();
            revisions::note_size(set, limits);
        };
        let resized = self
            .sets
            .update(set, "", unless_changed(set, resize))
            .await?;
        // The next look does without one that is gone.
        if let Some(resized) = resized {
            *set = resized;
        }
        Ok(())
    }

    /// Deletes the sets of revisions that a Deployment does not keep.
    async fn clean_up(&self, rollout: &Rollout) -> Result<(), Error> {
        for set in revisions::superfluous(&rollout.deployment, &rollout.old) {
            self.sets.delete(set, DeleteOptions::default()).await?;
        }
        Ok(())
    }

    /// Writes the status and the revision that a look has decided on.
    async fn write(&self, rollout: &Rollout) -> Result<(), Error> {
        if !rollout.is_changed() {
            return Ok(());
        }
        let write = |deployment: &mut Value| {
            deployment["status"] = rollout.status.clone().into();
            if let Some(revision) = &rollout.revision {
                revisions::annotate(deployment, REVISION, revision);
            }
        };
        let read = &rollout.deployment;
        let written = self
            .deployments
            .update(read, "status", unless_changed(read, write));
        written.await.map(drop)
    }
}

/// Returns a change that is refused, as a conflict, if the object is not as it was read any more.
fn unless_changed(read: &Value, change: impl Fn(&mut Value)) -> impl FnMut(&mut Value) {
    move |object| {
        change(object);
        accessor::copy(object, read, "resourceVersion");
    }
}

#[async_trait]
impl Controller for Deployments<'_> {
    type Source = DeploymentSource;
    type Key = NamespacedName;

    fn reset(&self) {
        self.owners.reset();
    }

    fn keys(&self, source: DeploymentSource, change: &InformerChange) -> Vec<NamespacedName> {
        match source {
            DeploymentSource::Deployments => {
                let deployment = self.deployments.content(object_of(change));
                vec![self.owners.note(change, &deployment)]
            }
            DeploymentSource::Sets => self.owners.of(&self.sets.content(object_of(change))),
        }
    }

    async fn reconcile(&self, (namespace, name): &NamespacedName) -> Result<Next, Error> {
        let Some(deployment) = self.deployments.get(namespace, name).await? else {
            return Ok(Next::Done);
        };
        let sets = self.owners.claim(&deployment, &self.sets).await?;
        let mut rollout = Rollout::new(deployment, sets);
        let next = self.advance(&mut rollout).await;
        // The status tells of an error too. If that cannot be written either, the first error says why.
        let written = self.write(&rollout).await;
        let next = next?;
        written.map(|()| next)
    }
}
