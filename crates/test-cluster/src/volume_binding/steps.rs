//! The writes that bind a volume and a claim, and those that part them.

use ringwatch_apimachinery::{Error, accessor, path};
use serde_json::{Value, json};

use super::matching::is_of;
use crate::objects::ControllerObjects;

/// The annotation of a claim that has been bound.
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";

/// The annotation of what was bound here, rather than by a user.
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";

/// The annotations of a claim that name who is to make a volume for it.
const PROVISIONER: [&str; 2] = [
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/storage-provisioner",
];

/// Returns true if a claim has been bound before.
pub(super) fn was_bound(claim: &Value) -> bool {
    !claim["metadata"]["annotations"][BIND_COMPLETED].is_null()
}

/// Has a volume refer to a claim, and returns it; `None` if it refers to another one by now, or is gone.
pub(super) async fn take(
    volumes: &ControllerObjects<'_>,
    volume: &Value,
    claim: &Value,
) -> Result<Option<Value>, Error> {
    let uid = &claim["metadata"]["uid"];
    if volume["spec"]["claimRef"]["uid"] == *uid {
        return Ok(Some(volume.clone()));
    }
    let take = |volume: &mut Value| {
        let is_kept = is_of(volume, claim);
        if !is_kept && !volume["spec"]["claimRef"].is_null() {
            return;
        }
        volume["spec"]["claimRef"] = json!({
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": claim["metadata"]["namespace"],
            "name": claim["metadata"]["name"],
            "uid": uid,
            "resourceVersion": claim["metadata"]["resourceVersion"],
        });
        if !is_kept {
            annotate(volume, BOUND_BY_CONTROLLER, "yes");
        }
    };
    let taken = volumes.update(volume, "", take).await?;
    Ok(taken.filter(|it| it["spec"]["claimRef"]["uid"] == *uid))
}

/// Has a claim name its volume, and returns it; `None` if it is gone.
pub(super) async fn complete(
    claims: &ControllerObjects<'_>,
    claim: &Value,
    volume: &Value,
) -> Result<Option<Value>, Error> {
    let name = &volume["metadata"]["name"];
    if claim["spec"]["volumeName"] == *name && was_bound(claim) {
        return Ok(Some(claim.clone()));
    }
    let complete = |claim: &mut Value| {
        if claim["spec"]["volumeName"] != *name {
            claim["spec"]["volumeName"] = name.clone();
            annotate(claim, BOUND_BY_CONTROLLER, "yes");
        }
        annotate(claim, BIND_COMPLETED, "yes");
    };
    claims.update(claim, "", complete).await
}

/// Frees a volume of a claim that has another one, or is gone: one that a user kept for the claim stays kept.
pub(super) async fn part(volumes: &ControllerObjects<'_>, volume: &Value) -> Result<(), Error> {
    let uid = &volume["spec"]["claimRef"]["uid"];
    let part = |volume: &mut Value| {
        if volume["spec"]["claimRef"]["uid"] != *uid {
            return;
        }
        let annotations = volume["metadata"]["annotations"].as_object_mut();
        let was_bound_here = annotations.and_then(|it| it.remove(BOUND_BY_CONTROLLER));
        let parted = match was_bound_here {
            Some(_) => "spec.claimRef",
            None => "spec.claimRef.uid",
        };
        drop(path::remove(volume, parted));
    };
    if let Some(volume) = volumes.update(volume, "", part).await? {
        set_phase(volumes, &volume, "Available").await?;
    }
    Ok(())
}

/// Sets the phase of a volume.
pub(super) async fn set_phase(
    volumes: &ControllerObjects<'_>,
    volume: &Value,
    phase: &str,
) -> Result<(), Error> {
    if path::text(volume, "status.phase") == phase {
        return Ok(());
    }
    let set = |volume: &mut Value| {
        volume["status"]["phase"] = phase.into();
        drop(path::remove(volume, "status.message"));
    };
    volumes.update(volume, "status", set).await.map(drop)
}

/// Sets the phase of a claim, with the access and the capacity of its volume, or none without one.
pub(super) async fn set_claim_phase(
    claims: &ControllerObjects<'_>,
    claim: &Value,
    phase: &str,
    volume: Option<&Value>,
) -> Result<(), Error> {
    let set = |claim: &mut Value| {
        let Some(volume) = volume else {
            for member in [
                "accessModes",
                "capacity",
                "currentVolumeAttributesClassName",
            ] {
                drop(path::remove(claim, &format!("status.{member}")));
            }
            claim["status"]["phase"] = phase.into();
            return;
        };
        claim["status"]["accessModes"] = volume["spec"]["accessModes"].clone();
        // Once it is bound, whoever resizes it says what it has.
        if path::text(claim, "status.phase") != phase {
            claim["status"]["capacity"] = volume["spec"]["capacity"].clone();
            let class = path::get(volume, "spec.volumeAttributesClassName");
            if let Some(class) = class {
                claim["status"]["currentVolumeAttributesClassName"] = class.clone();
            }
        }
        claim["status"]["phase"] = phase.into();
    };
    let mut wanted = claim.clone();
    set(&mut wanted);
    if wanted == *claim {
        return Ok(());
    }
    claims.update(claim, "status", set).await.map(drop)
}

/// Notes in a claim who is to make a volume for it.
pub(super) async fn ask(
    claims: &ControllerObjects<'_>,
    claim: &Value,
    provisioner: &str,
) -> Result<(), Error> {
    let annotations = &claim["metadata"]["annotations"];
    if PROVISIONER.iter().all(|it| annotations[*it] == provisioner) {
        return Ok(());
    }
    let ask = |claim: &mut Value| {
        for annotation in PROVISIONER {
            annotate(claim, annotation, provisioner);
        }
    };
    claims.update(claim, "", ask).await.map(drop)
}

fn annotate(object: &mut Value, annotation: &str, value: &str) {
    let annotations = &object["metadata"]["annotations"];
    let mut annotations = annotations.as_object().cloned().unwrap_or_default();
    annotations.insert(annotation.to_owned(), value.into());
    accessor::set(object, "annotations", annotations);
}
