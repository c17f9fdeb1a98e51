//! The ReplicaSet with the template of a Deployment: it is created, numbered, and follows the rest of the Deployment.
//!
//! Source of the semantics: `getNewReplicaSet` of `pkg/controller/deployment/sync.go` of kube-controller-manager 1.36.

use ringwatch_apimachinery::{Error, accessor};
use serde_json::Value;

use super::rollout::{self, Rollout};
use super::{Deployments, counts, revisions, rolling, status, templates, unless_changed};
use crate::owned::controller_of;

impl Deployments<'_> {
    /// Has the new set, if it is there, follow what may change without a new template.
    pub(super) async fn follow_template(&self, rollout: &mut Rollout) -> Result<(), Error> {
        let Some(mut set) = rollout.new.clone() else {
            return Ok(());
        };
        let follow = |set: &mut Value| revisions::follow(&rollout.deployment, set, &rollout.old);
        let mut next = set.clone();
        follow(&mut next);
        if next != set {
            let Some(written) = self
                .sets
                .update(&set, "", unless_changed(&set, follow))
                .await?
            else {
                return Ok(());
            };
            set = written;
        }
        if !status::tells_of_progress(rollout) {
            let message = format!("Found new replica set {:?}", accessor::text(&set, "name"));
            let why = ("FoundNewReplicaSet", &*message);
            status::tell_of_new(rollout, why, "True", self.clock.wall());
        }
        rollout.set_new(set);
        Ok(())
    }

    /// Creates the new set if it is not there. Returns false if there is none yet, since its name was taken or its
    /// namespace goes.
    pub(super) async fn ensure_new(&self, rollout: &mut Rollout) -> Result<bool, Error> {
        if rollout.new.is_some() {
            return Ok(true);
        }
        let deployment = &rollout.deployment;
        let template = &deployment["spec"]["template"];
        let collisions = counts::count_of(&rollout.status, "collisionCount");
        let hash = templates::hash(template, collisions);
        let others = rollout.old.iter().map(rollout::wanted).sum();
        let size = rolling::new_size(&rollout.limits(), 0, others);
        let reference = self.owners.reference(deployment);
        let set = revisions::new_set(deployment, &hash, reference, size, &rollout.old);
        let name = accessor::text(&set, "name").to_owned();
        let now = self.clock.wall();
        match self.sets.create(set).await {
            Ok(Some(set)) => {
                let message = format!("Created new replica set {name:?}");
                status::tell_of_new(rollout, ("NewReplicaSetCreated", &message), "True", now);
                rollout.set_new(set);
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(Error::AlreadyExists { .. }) => {
                self.resolve_collision(rollout, &name, collisions).await
            }
            Err(error) => {
                let message = format!("Failed to create new replica set {name:?}: {error}");
                status::tell_of_new(rollout, ("ReplicaSetCreateError", &message), "False", now);
                Err(error)
            }
        }
    }

    /// Takes the set that has the name of the new one, if it is that. Else another hash is tried in the next look.
    async fn resolve_collision(
        &self,
        rollout: &mut Rollout,
        name: &str,
        collisions: i64,
    ) -> Result<bool, Error> {
        let deployment = &rollout.deployment;
        let set = self
            .sets
            .get(accessor::text(deployment, "namespace"), name)
            .await?;
        let is_new = |set: &Value| {
            let template = &deployment["spec"]["template"];
            let uid = &deployment["metadata"]["uid"];
            controller_of(set).is_some_and(|it| it["uid"] == *uid)
                && templates::are_same(&set["spec"]["template"], template)
        };
        match set {
            Some(set) if is_new(&set) => {
                rollout.set_new(set);
                Ok(true)
            }
            Some(_) => {
                let count = collisions.saturating_add(1);
                rollout
                    .status
                    .insert("collisionCount".to_owned(), count.into());
                Ok(false)
            }
            None => Ok(false),
        }
    }
}
