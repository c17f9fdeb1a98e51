//! Lets go of volumes and claims that are being deleted once nobody uses them.
//!
//! Admission gives each a finalizer when it is created. A claim keeps its own while a pod with a node uses it, a volume
//! while it is bound (`pkg/controller/volume/pvcprotection` and `pvprotection` of kube-controller-manager 1.36).

use async_trait::async_trait;
use ringwatch::clock::Clock;
use ringwatch_apimachinery::accessor::{self, finalizers, is_terminating};
use ringwatch_apimachinery::{Error, path};
use ringwatch_registry::informer::InformerChange;
use serde_json::Value;

use crate::ServedStores;
use crate::controller::{self, Controller, Next, object_of};
use crate::objects::ControllerObjects;
use crate::volumes::{VolumeObject, claims_of, has_node};

/// The service accounts of the controllers of claims and of volumes.
const CLAIMS_ACCOUNT: &str = "pvc-protection-controller";
const VOLUMES_ACCOUNT: &str = "pv-protection-controller";

/// The finalizers of claims and of volumes.
const CLAIM: &str = "kubernetes.io/pvc-protection";
const VOLUME: &str = "kubernetes.io/pv-protection";

/// The controllers of volumes and claims in use.
#[derive(Debug)]
pub(crate) struct VolumeProtection<'a> {
    claims: ControllerObjects<'a>,
    volumes: ControllerObjects<'a>,
    pods: ControllerObjects<'a>,
}

/// The kind of objects in a store.
#[derive(Clone, Copy, Debug)]
pub(crate) enum VolumeSource {
    Claims,
    Volumes,
    Pods,
}

impl VolumeProtection<'_> {
    /// Runs the controllers until they are dropped.
    pub(crate) async fn run(stores: &ServedStores, clock: &Clock) {
        let objects =
            |plural, account| ControllerObjects::new(stores, ("", plural), account, clock);
        let (Some(claims), Some(volumes), Some(pods)) = (
            objects("persistentvolumeclaims", CLAIMS_ACCOUNT),
            objects("persistentvolumes", VOLUMES_ACCOUNT),
            objects("pods", CLAIMS_ACCOUNT),
        ) else {
            return;
        };
        let sources = vec![
            (VolumeSource::Claims, claims.source()),
            (VolumeSource::Volumes, volumes.source()),
            (VolumeSource::Pods, pods.source()),
        ];
        let controller = VolumeProtection {
            claims,
            volumes,
            pods,
        };
        controller::run(&controller, "volumes in use", sources, clock).await;
    }

    /// Returns true if a pod that has a node uses a claim.
    async fn is_used(&self, namespace: &str, claim: &Value) -> Result<bool, Error> {
        let pods = self.pods.list(namespace).await?;
        Ok(pods.iter().any(|pod| has_node(pod) && uses(pod, claim)))
    }
}

#[async_trait]
impl Controller for VolumeProtection<'_> {
    type Source = VolumeSource;
    type Key = VolumeObject;

    fn keys(&self, source: VolumeSource, change: &InformerChange) -> Vec<VolumeObject> {
        let object = object_of(change);
        match source {
            VolumeSource::Claims => {
                let (namespace, name) = (object.namespace(), object.name());
                vec![VolumeObject::Claim(namespace.to_owned(), name.to_owned())]
            }
            VolumeSource::Volumes => vec![VolumeObject::Volume(object.name().to_owned())],
            VolumeSource::Pods => {
                let claims = claims_of(&self.pods.content(object)).into_iter();
                let namespace = object.namespace();
                let claims = claims.map(|name| VolumeObject::Claim(namespace.to_owned(), name));
                claims.collect()
            }
        }
    }

    async fn reconcile(&self, key: &VolumeObject) -> Result<Next, Error> {
        let (objects, namespace, name, finalizer) = match key {
            VolumeObject::Claim(namespace, name) => (&self.claims, &**namespace, name, CLAIM),
            VolumeObject::Volume(name) => (&self.volumes, "", name, VOLUME),
        };
        let object = objects.get(namespace, name).await?;
        let held =
            |object: &Value| is_terminating(object) && finalizers(object).contains(&finalizer);
        let Some(object) = object.filter(held) else {
            return Ok(Next::Done);
        };
        let is_used = match key {
            VolumeObject::Claim(..) => self.is_used(namespace, &object).await?,
            VolumeObject::Volume(_) => path::text(&object, "status.phase") == "Bound",
        };
        if !is_used {
            let let_go = |object: &mut Value| {
                let left = finalizers(object).into_iter();
                let left = left.filter(|it| *it != finalizer).map(str::to_owned);
                let left = left.collect();
                accessor::set_finalizers(object, left);
            };
            objects.update(&object, "", let_go).await?;
        }
        Ok(Next::Done)
    }
}

/// Returns true if a pod with a node uses a claim. One that was made for an ephemeral volume is used by its own pod
/// alone, and not once that has ended for good and only waits for finalizers, which may wait for the claim.
fn uses(pod: &Value, claim: &Value) -> bool {
    let name = accessor::text(claim, "name");
    let named = |volume: &Value| path::text(volume, "persistentVolumeClaim.claimName") == name;
    if path::list(pod, "spec.volumes").iter().any(named) {
        return true;
    }
    let is_shut_down = is_terminating(pod) && pod["metadata"]["deletionGracePeriodSeconds"] == 0;
    let uid = accessor::text(pod, "uid");
    let mut owners = path::list(claim, "metadata.ownerReferences").iter();
    let is_own = owners.any(|it| it["controller"] == true && it["uid"] == uid);
    !is_shut_down && is_own && claims_of(pod).iter().any(|it| it == name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_claim_of_an_ephemeral_volume_is_used_by_its_own_pod_until_that_has_ended() {
        let mut pod = json!({
            "metadata": {"name": "p", "uid": "u"},
            "spec": {"volumes": [
                {"name": "a", "persistentVolumeClaim": {"claimName": "named"}},
                {"name": "b", "ephemeral": {"volumeClaimTemplate": {}}},
            ]},
        });
        let claim = |name: &str, owner: &str| {
            let owners = json!([{"kind": "Pod", "uid": owner, "controller": true}]);
            json!({"metadata": {"name": name, "ownerReferences": owners}})
        };
        assert!(uses(&pod, &claim("named", "other")));
        assert!(uses(&pod, &claim("p-b", "u")));
        assert!(!uses(&pod, &claim("p-b", "other")));
        assert!(!uses(&pod, &claim("p-c", "u")));
        pod["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z".into();
        pod["metadata"]["deletionGracePeriodSeconds"] = 30.into();
        assert!(uses(&pod, &claim("p-b", "u")));
        pod["metadata"]["deletionGracePeriodSeconds"] = 0.into();
        assert!(!uses(&pod, &claim("p-b", "u")));
        assert!(uses(&pod, &claim("named", "other")));
    }
}
