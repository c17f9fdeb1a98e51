//! Checks the audiences of the ServiceAccount tokens that a kubelet requests for its pods: those that the pod's volumes
//! name, and those that a role allows.

use ringwatch_admission::lookup::find_tree;
use ringwatch_apimachinery::Error;
use ringwatch_apimachinery::path::{get, list, text};
use ringwatch_authorization::Attributes;
use ringwatch_registry::Request;
use serde_json::Value;

use super::NodeStorages;

/// The verb that allows tokens for an audience, which is the resource of the check, of an account, which is its name.
const VERB: &str = "request-serviceaccounts-token-audience";

/// The in-tree kinds of volumes that have been migrated to CSI drivers, each with its driver.
const MIGRATED: [(&str, &str); 7] = [
    ("awsElasticBlockStore", "ebs.csi.aws.com"),
    ("azureDisk", "disk.csi.azure.com"),
    ("azureFile", "file.csi.azure.com"),
    ("cinder", "cinder.csi.openstack.org"),
    ("gcePersistentDisk", "pd.csi.storage.gke.io"),
    ("portworxVolume", "pxd.portworx.com"),
    ("vsphereVolume", "csi.vsphere.vmware.com"),
];

/// Returns why a kubelet may not have a token for a pod.
pub(super) async fn refuse(
    storages: &NodeStorages,
    request: &Request<'_>,
    pod: &Value,
    token: &Value,
) -> Result<Option<String>, Error> {
    let audience = match list(token, "spec.audiences") {
        [] => "",
        [one] => one.as_str().unwrap_or_default(),
        _ => return Ok(Some("node may only request 0 or 1 audiences".to_owned())),
    };
    let missing = match uses_audience(storages, pod, audience).await? {
        AudienceUse::Yes => return Ok(None),
        AudienceUse::No(missing) => missing,
    };
    if !missing.is_empty() {
        let why = match missing.as_slice() {
            [one] => one.clone(),
            all => format!("[{}]", all.join(", ")),
        };
        return Ok(Some(format!(
            "error validating audience {audience:?}: {why}"
        )));
    }
    let user = &request.context.user;
    let attributes = Attributes {
        namespace: request.namespace,
        version: "v1",
        name: request.name,
        ..Attributes::of_resource(user, VERB, "", audience)
    };
    if let Some(authorizer) = &request.context.authorizer
        && authorizer.decide(&attributes).await.allowed
    {
        return Ok(None);
    }
    Ok(Some(format!(
        "audience {audience:?} not found in pod spec volume, {} is not authorized to request tokens for this audience",
        user.name
    )))
}

/// The use of an audience by the volumes of a pod.
enum AudienceUse {
    Yes,
    /// No volume is known to use it, but these objects could not be looked up.
    No(Vec<String>),
}

async fn uses_audience(
    storages: &NodeStorages,
    pod: &Value,
    audience: &str,
) -> Result<AudienceUse, Error> {
    let mut missing = Vec::new();
    for volume in list(pod, "spec.volumes") {
        let mut sources = list(volume, "projected.sources").iter();
        let names_audience = |source: &Value| {
            let token = source
                .get("serviceAccountToken")
                .filter(|it| it.is_object());
            token.is_some_and(|it| text(it, "audience") == audience)
        };
        if sources.any(names_audience) {
            return Ok(AudienceUse::Yes);
        }
        let driver = match driver(storages, pod, volume).await? {
            Ok(Some(driver)) => driver,
            Ok(None) => continue,
            Err(absent) => {
                missing.push(absent);
                continue;
            }
        };
        let Some(stored) = find_tree(&*storages.drivers, &format!("/csidrivers/{driver}")).await?
        else {
            missing.push(format!("csidriver.storage.k8s.io {driver:?} not found"));
            continue;
        };
        let mut tokens = list(&stored, "spec.tokenRequests").iter();
        if tokens.any(|it| text(it, "audience") == audience) {
            return Ok(AudienceUse::Yes);
        }
    }
    Ok(AudienceUse::No(missing))
}

/// Returns the CSI driver of a pod's volume, or the missing object that would name it.
async fn driver(
    storages: &NodeStorages,
    pod: &Value,
    volume: &Value,
) -> Result<Result<Option<String>, String>, Error> {
    let claim = if get(volume, "ephemeral.volumeClaimTemplate").is_some_and(Value::is_object) {
        format!("{}-{}", text(pod, "metadata.name"), text(volume, "name"))
    } else {
        text(volume, "persistentVolumeClaim.claimName").to_owned()
    };
    if claim.is_empty() {
        return Ok(Ok(own_driver(volume)));
    }
    let namespace = text(pod, "metadata.namespace");
    let key = format!("/persistentvolumeclaims/{namespace}/{claim}");
    let Some(stored) = find_tree(&*storages.claims, &key).await? else {
        return Ok(Err(format!("persistentvolumeclaim {claim:?} not found")));
    };
    let name = text(&stored, "spec.volumeName");
    let bound = match name {
        "" => None,
        name => find_tree(&*storages.volumes, &format!("/persistentvolumes/{name}")).await?,
    };
    Ok(match bound {
        None => Err(format!("persistentvolume {name:?} not found")),
        Some(bound) => Ok(own_driver(&bound["spec"])),
    })
}

/// Returns the CSI driver that a volume names, or to which its kind has been migrated.
fn own_driver(volume: &Value) -> Option<String> {
    let driver = text(volume, "csi.driver");
    if !driver.is_empty() {
        return Some(driver.to_owned());
    }
    let migrated = MIGRATED.iter();
    let mut migrated = migrated.filter(|(kind, _)| volume[*kind].is_object());
    migrated.next().map(|(_, driver)| (*driver).to_owned())
}
