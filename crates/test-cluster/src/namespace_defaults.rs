//! The objects that each namespace has from the start: the ServiceAccount `default`, and the ConfigMap
//! `kube-root-ca.crt` with the authority of the API. Both come again when they are deleted, and the ConfigMap is put
//! right when it is changed.

use async_trait::async_trait;
use ringwatch::clock::Clock;
use ringwatch_apimachinery::Error;
use ringwatch_apimachinery::accessor::is_terminating;
use ringwatch_registry::informer::InformerChange;
use serde_json::{Value, json};

use crate::controller::{self, Controller, Next, object_of};
use crate::objects::ControllerObjects;
use crate::{Authority, ServedStores};

/// The service account of the controller of ServiceAccounts.
const ACCOUNTS_ACCOUNT: &str = "service-account-controller";

/// The service account of the controller that publishes the authority.
const AUTHORITY_ACCOUNT: &str = "root-ca-cert-publisher";

/// The ServiceAccount of pods that name none.
const SERVICE_ACCOUNT: &str = "default";

/// The ConfigMap of the authority, and its key there.
const CONFIG_MAP: &str = "kube-root-ca.crt";
const KEY: &str = "ca.crt";

/// The annotation that says what the ConfigMap is for.
const DESCRIPTION: (&str, &str) = (
    "kubernetes.io/description",
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the \
     internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes \
     clusters.",
);

/// The controllers of what each namespace has.
pub(crate) struct NamespaceDefaults<'a> {
    namespaces: ControllerObjects<'a>,
    service_accounts: ControllerObjects<'a>,
    config_maps: ControllerObjects<'a>,
    authority: &'a Authority,
}

/// The kind of objects in a store.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DefaultsSource {
    Namespaces,
    ServiceAccounts,
    ConfigMaps,
}

impl NamespaceDefaults<'_> {
    /// Runs the controllers until they are dropped.
    pub(crate) async fn run(stores: &ServedStores, authority: &Authority, clock: &Clock) {
        let objects =
            |plural, account| ControllerObjects::new(stores, ("", plural), account, clock);
        let (Some(namespaces), Some(service_accounts), Some(config_maps)) = (
            objects("namespaces", ACCOUNTS_ACCOUNT),
            objects("serviceaccounts", ACCOUNTS_ACCOUNT),
            objects("configmaps", AUTHORITY_ACCOUNT),
        ) else {
            return;
        };
        let sources = vec![
            (DefaultsSource::Namespaces, namespaces.source()),
            (DefaultsSource::ServiceAccounts, service_accounts.source()),
            (DefaultsSource::ConfigMaps, config_maps.source()),
        ];
        let controller = NamespaceDefaults {
            namespaces,
            service_accounts,
            config_maps,
            authority,
        };
        controller::run(&controller, "defaults of namespaces", sources, clock).await;
    }

    async fn ensure_service_account(&self, namespace: &str) -> Result<(), Error> {
        let accounts = &self.service_accounts;
        if accounts.get(namespace, SERVICE_ACCOUNT).await?.is_some() {
            return Ok(());
        }
        let account = json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": SERVICE_ACCOUNT, "namespace": namespace},
        });
        created(accounts.create(account).await)
    }

    async fn ensure_authority(&self, namespace: &str) -> Result<(), Error> {
        let data = json!({KEY: (self.authority)()});
        let Some(found) = self.config_maps.get(namespace, CONFIG_MAP).await? else {
            let (annotation, text) = DESCRIPTION;
            let config_map = json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {
                    "name": CONFIG_MAP,
                    "namespace": namespace,
                    "annotations": {annotation: text},
                },
                "data": data,
            });
            return created(self.config_maps.create(config_map).await);
        };
        let described = found["metadata"]["annotations"][DESCRIPTION.0].as_str();
        if found["data"] == data && described.is_some_and(|it| !it.is_empty()) {
            return Ok(());
        }
        let updated = self.config_maps.update(&found, "", |config_map| {
            config_map["data"] = data.clone();
            let (annotation, text) = DESCRIPTION;
            config_map["metadata"]["annotations"][annotation] = text.into();
        });
        updated.await.map(drop)
    }
}

/// Returns the result of a creation, which may find that another writer was faster.
fn created(result: Result<Option<Value>, Error>) -> Result<(), Error> {
    match result {
        Ok(_) | Err(Error::AlreadyExists { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

#[async_trait]
impl Controller for NamespaceDefaults<'_> {
    type Source = DefaultsSource;
    type Key = String;

    fn keys(&self, source: DefaultsSource, change: &InformerChange) -> Vec<String> {
        let object = object_of(change);
        match source {
            DefaultsSource::Namespaces => vec![object.name().to_owned()],
            DefaultsSource::ServiceAccounts if object.name() == SERVICE_ACCOUNT => {
                vec![object.namespace().to_owned()]
            }
            DefaultsSource::ConfigMaps if object.name() == CONFIG_MAP => {
                vec![object.namespace().to_owned()]
            }
            DefaultsSource::ServiceAccounts | DefaultsSource::ConfigMaps => Vec::new(),
        }
    }

    async fn reconcile(&self, name: &String) -> Result<Next, Error> {
        match self.namespaces.get("", name).await? {
            Some(namespace) if !is_terminating(&namespace) => {}
            _ => return Ok(Next::Done),
        }
        // One does not wait for the other.
        let account = self.ensure_service_account(name).await;
        self.ensure_authority(name).await?;
        account.map(|()| Next::Done)
    }
}
