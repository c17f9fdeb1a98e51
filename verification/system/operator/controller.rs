//! Makes what there is as sites say.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use kube::core::NamespaceResourceScope;
use kube::runtime::controller::{self, Action, Controller};
use kube::runtime::{finalizer, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::children;
use super::site::{Site, SiteStatus};

/// The field manager of children and status.
const MANAGER: &str = "site-operator";
/// The finalizer that keeps a site until its registration has been given back.
pub(crate) const FINALIZER: &str = "example.com/registration";
/// The time after which what failed is tried again.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// The reason why a site could not be reconciled.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Server(#[from] kube::Error),
    #[error(transparent)]
    Finalizer(#[from] Box<finalizer::Error<kube::Error>>),
}

/// The state of a leader.
struct Leader {
    client: Client,
    namespace: String,
    term: i32,
}

/// Works until it is dropped.
pub(crate) async fn run(client: Client, namespace: String, term: i32) {
    let leader = Arc::new(Leader {
        client,
        namespace,
        term,
    });
    let children = watcher::Config::default().labels(children::SITE);
    Controller::new(leader.all::<Site>(), watcher::Config::default())
        .owns(leader.all::<ConfigMap>(), children.clone())
        .owns(leader.all::<Deployment>(), children)
        .run(reconcile, |_, _, _| Action::requeue(RETRY_AFTER), leader)
        .for_each(|reconciled| async {
            match reconciled {
                // What is gone needs nothing more.
                Ok(_) | Err(controller::Error::ObjectNotFound(_)) => {}
                Err(error) => eprintln!("reconciling: {error}"),
            }
        })
        .await;
}

async fn reconcile(site: Arc<Site>, leader: Arc<Leader>) -> Result<Action, Error> {
    let sites = leader.all::<Site>();
    let done = finalizer(&sites, FINALIZER, site, |event| async {
        match event {
            finalizer::Event::Apply(site) => leader.apply(&site).await,
            finalizer::Event::Cleanup(site) => leader.clean_up(&site).await,
        }
    });
    Ok(done.await.map_err(Box::new)?)
}

impl Leader {
    fn all<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    async fn apply(&self, site: &Site) -> Result<Action, kube::Error> {
        self.write(&children::registration(site, self.term)).await?;
        let pages = children::pages(site, self.term);
        for page in &pages {
            self.write(page).await?;
        }
        self.write(&children::deployment(site, self.term)).await?;
        self.prune(site, &pages).await?;
        self.tell(site).await?;
        Ok(Action::await_change())
    }

    async fn write<K>(&self, object: &K) -> Result<(), kube::Error>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
        K: Clone + Debug + DeserializeOwned + Serialize,
    {
        let params = PatchParams::apply(MANAGER).force();
        let api = self.all::<K>();
        api.patch(&object.name_any(), &params, &Patch::Apply(object))
            .await
            .map(drop)
    }

    /// Deletes the config maps of pages that the site has no more.
    async fn prune(&self, site: &Site, pages: &[ConfigMap]) -> Result<(), kube::Error> {
        let wanted: BTreeSet<_> = pages.iter().map(ResourceExt::name_any).collect();
        let of_site =
            ListParams::default().labels(&format!("{}={}", children::SITE, site.name_any()));
        let config_maps = self.all::<ConfigMap>();
        for found in config_maps.list(&of_site).await? {
            if wanted.contains(&found.name_any()) {
                continue;
            }
            let params = DeleteParams::default().preconditions(Preconditions {
                uid: found.uid(),
                resource_version: None,
            });
            unless_gone(config_maps.delete(&found.name_any(), &params).await)?;
        }
        Ok(())
    }

    /// Says in the status what is done. The uid keeps it off a younger site of the same name.
    async fn tell(&self, site: &Site) -> Result<(), kube::Error> {
        let status = SiteStatus {
            observed_generation: site.metadata.generation.unwrap_or_default(),
            term: self.term,
            pages: i32::try_from(site.spec.pages.len()).unwrap_or(i32::MAX),
            replicas: site.spec.replicas,
        };
        let change = json!({
            "apiVersion": Site::api_version(&()), "kind": Site::kind(&()),
            "metadata": {"uid": site.uid()},
            "status": status,
        });
        let params = PatchParams::apply(MANAGER).force();
        let sites = self.all::<Site>();
        unless_gone(
            sites
                .patch_status(&site.name_any(), &params, &Patch::Apply(change))
                .await,
        )
    }

    async fn clean_up(&self, site: &Site) -> Result<Action, kube::Error> {
        let name = children::registration_name(site);
        let config_maps = self.all::<ConfigMap>();
        unless_gone(config_maps.delete(&name, &DeleteParams::default()).await)?;
        Ok(Action::await_change())
    }
}

/// Takes an object that is gone, or has been replaced, for done.
fn unless_gone<T>(done: Result<T, kube::Error>) -> Result<(), kube::Error> {
    match done {
        Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => Ok(()),
        other => other.map(drop),
    }
}
