//! Stands in for a cluster's garbage collector, which is none of the API server's business: it deletes objects whose
//! owners are all gone.

use std::collections::HashSet;
use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, Preconditions};
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::{NAMESPACE, Stage};
use crate::children::SITE;

/// Pause between two rounds.
const COLLECT_EVERY: Duration = Duration::from_millis(500);

/// Collects until it is dropped.
pub(super) async fn collect(stage: Stage) {
    loop {
        tokio::time::sleep(COLLECT_EVERY).await;
        for collected in [
            round::<ConfigMap>(&stage).await,
            round::<Deployment>(&stage).await,
        ] {
            // While the server is away nothing is collected.
            let Ok(orphans) = collected else { continue };
            for _ in 0..orphans {
                stage.ledger().count("orphans collected");
            }
        }
    }
}

/// Owners are listed after what they own, so one that is not there then is gone for good.
async fn round<K>(stage: &Stage) -> Result<usize, kube::Error>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    K: Clone + Debug + DeserializeOwned,
{
    let all: Api<K> = Api::namespaced(stage.client.clone(), NAMESPACE);
    let owned = all.list(&ListParams::default().labels(SITE)).await?;
    let sites = stage.sites().list(&ListParams::default()).await?;
    let sites: HashSet<_> = sites.iter().filter_map(ResourceExt::uid).collect();
    let mut orphans = 0;
    for object in owned {
        let owners = object.owner_references().iter();
        if owners.map(|it| &it.uid).any(|uid| sites.contains(uid)) {
            continue;
        }
        let params = DeleteParams::default().preconditions(Preconditions {
            uid: object.uid(),
            resource_version: object.resource_version(),
        });
        match all.delete(&object.name_any(), &params).await {
            Ok(_) => orphans += 1,
            Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(orphans)
}
