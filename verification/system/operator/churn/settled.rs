//! The conditions that hold once nothing is written any more.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::ledger::version;
use super::{LOOK_EVERY, NAMESPACE, SETTLED_WITHIN, Stage};
use crate::Failure;
use crate::children;
use crate::site::Site;

/// Waits until everything is as it should be. Gives how many sites there are.
pub(super) async fn settle(stage: &Stage) -> Result<usize, Failure> {
    let mut unsettled = String::new();
    let settled = async {
        loop {
            match look(stage).await {
                Ok(Ok(sites)) => return sites,
                Ok(Err(why)) => unsettled = why,
                Err(error) => unsettled = error.to_string(),
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    match tokio::time::timeout(SETTLED_WITHIN, settled).await {
        Ok(sites) => Ok(sites),
        Err(_) => Err(Failure::Unsettled(unsettled)),
    }
}

/// Deletes all sites.
pub(super) async fn delete_all(stage: &Stage) -> Result<(), Failure> {
    let (params, all) = (DeleteParams::default(), ListParams::default());
    stage.sites().delete_collection(&params, &all).await?;
    Ok(())
}

/// Returns the number of sites, or else tells what is not as it should be.
async fn look(stage: &Stage) -> Result<Result<usize, String>, kube::Error> {
    let sites = list::<Site>(stage).await?;
    let config_maps = list::<ConfigMap>(stage).await?;
    let deployments = list::<Deployment>(stage).await?;
    Ok(check(stage, &sites, &config_maps, &deployments).map(|()| sites.len()))
}

async fn list<K>(stage: &Stage) -> Result<Vec<K>, kube::Error>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    K: Clone + Debug + DeserializeOwned,
{
    let all: Api<K> = Api::namespaced(stage.client.clone(), NAMESPACE);
    Ok(all.list(&ListParams::default()).await?.items)
}

fn check(
    stage: &Stage,
    sites: &[Site],
    config_maps: &[ConfigMap],
    deployments: &[Deployment],
) -> Result<(), String> {
    let mut wanted = BTreeMap::new();
    for site in sites {
        let (name, generation) = (
            site.name_any(),
            site.metadata.generation.unwrap_or_default(),
        );
        let status = site.status.clone().unwrap_or_default();
        if status.observed_generation != generation {
            let observed = status.observed_generation;
            return Err(format!(
                "{name} is of generation {generation}, and observed is {observed}"
            ));
        }
        let registration = children::registration(site, 0);
        for object in children::pages(site, 0).into_iter().chain([registration]) {
            wanted.insert(object.name_any(), (owner(&object), object.data.clone()));
        }
    }
    let found = config_maps.iter();
    let found = found.map(|it| (it.name_any(), (owner(it), it.data.clone())));
    same("config maps", &wanted, &found.collect())?;

    let wanted = sites.iter().map(|site| {
        let deployment = children::deployment(site, 0);
        (
            deployment.name_any(),
            (owner(&deployment), Some(site.spec.replicas)),
        )
    });
    let found = deployments.iter().map(|it| {
        let replicas = it.spec.as_ref().and_then(|spec| spec.replicas);
        (it.name_any(), (owner(it), replicas))
    });
    same("deployments", &wanted.collect(), &found.collect())?;

    let mut listed: HashMap<_, _> = sites.iter().map(version).collect();
    listed.extend(config_maps.iter().map(version));
    listed.extend(deployments.iter().map(version));
    let ledger = stage.ledger();
    let watched = ledger.live();
    // The lease alone is not listed.
    let is_same = watched.len() <= listed.len() + 1
        && listed
            .iter()
            .all(|(uid, revision)| watched.get(uid) == Some(revision));
    if !is_same || ledger.is_behind() {
        return Err("lists and watches tell something else".to_owned());
    }
    Ok(())
}

/// The uid of what owns an object.
fn owner<K: Resource>(object: &K) -> Vec<String> {
    let owners = object.owner_references().iter();
    owners.map(|it| it.uid.clone()).collect()
}

fn same<T: PartialEq + Debug>(
    what: &str,
    wanted: &BTreeMap<String, T>,
    found: &BTreeMap<String, T>,
) -> Result<(), String> {
    let all = wanted.keys().chain(found.keys());
    match all
        .into_iter()
        .find(|name| wanted.get(*name) != found.get(*name))
    {
        Some(name) => {
            let (wanted, found) = (wanted.get(name), found.get(name));
            Err(format!(
                "{what}: {name} should be {wanted:?} and is {found:?}"
            ))
        }
        None => Ok(()),
    }
}
