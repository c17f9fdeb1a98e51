//! The objects that each namespace has from the start: the ServiceAccount `default`, and the ConfigMap
//! `kube-root-ca.crt` with the authority of the API. Both come again when they are deleted, and the ConfigMap is put
//! right when it is changed.

use async_trait::async_trait;
use ringwatch::clock::Clock;
use ringwatch::storage::GetOptions;
use ringwatch_apimachinery::Error;
use ringwatch_apimachinery::accessor::is_terminating;
use ringwatch_registry::informer::InformerChange;
use ringwatch_registry::{CreateOptions, FunctionUpdate, ListWatch, Store, UpdateOptions};
use serde_json::{Value, json};

use crate::account::context;
use crate::controller::{self, Controller, Next, found, object_of};
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
    namespaces: &'a Store,
    service_accounts: &'a Store,
    config_maps: &'a Store,
    authority: &'a Authority,
    clock: &'a Clock,
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
        let store = |plural| stores.built_in("", plural);
        let (Some(namespaces), Some(service_accounts), Some(config_maps)) = (
            store("namespaces"),
            store("serviceaccounts"),
            store("configmaps"),
        ) else {
            return;
        };
        let controller = NamespaceDefaults {
            namespaces,
            service_accounts,
            config_maps,
            authority,
            clock,
        };
        let sources = [
            (DefaultsSource::Namespaces, namespaces),
            (DefaultsSource::ServiceAccounts, service_accounts),
            (DefaultsSource::ConfigMaps, config_maps),
        ];
        let sources = sources.map(|(source, store)| (source, store.as_ref() as &dyn ListWatch));
        controller::run(&controller, "defaults of namespaces", sources.into(), clock).await;
    }

    async fn create(&self, store: &Store, account: &str, object: Value) -> Result<(), Error> {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        let (context, options) = (context(account, self.clock), CreateOptions::default());
        let created = store.create(&context, namespace, object.clone(), &options);
        match created.await {
            Ok(_) | Err(Error::AlreadyExists { .. }) => Ok(()),
            // The namespace is gone, or goes.
            Err(Error::NotFound { .. }) => Ok(()),
            Err(Error::Forbidden {
                cause: Some(("NamespaceTerminating", _)),
                ..
            }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn ensure_service_account(&self, namespace: &str) -> Result<(), Error> {
        let store = self.service_accounts;
        let found = found(
            store
                .get(namespace, SERVICE_ACCOUNT, GetOptions::default())
                .await,
        )?;
        if found.is_some() {
            return Ok(());
        }
        let account = json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": SERVICE_ACCOUNT, "namespace": namespace},
        });
        self.create(store, ACCOUNTS_ACCOUNT, account).await
    }

    async fn ensure_authority(&self, namespace: &str) -> Result<(), Error> {
        let store = self.config_maps;
        let data = json!({KEY: (self.authority)()});
        let found = found(
            store
                .get(namespace, CONFIG_MAP, GetOptions::default())
                .await,
        )?;
        let Some(found) = found else {
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
            return self.create(store, AUTHORITY_ACCOUNT, config_map).await;
        };
        let found = store.served_value(&found)?;
        let described = found["metadata"]["annotations"][DESCRIPTION.0].as_str();
        if found["data"] == data && described.is_some_and(|it| !it.is_empty()) {
            return Ok(());
        }
        let mut change = FunctionUpdate::new(|config_map: &mut Value| {
            config_map["data"] = data.clone();
            let annotations = &mut config_map["metadata"]["annotations"];
            let (annotation, text) = DESCRIPTION;
            annotations[annotation] = text.into();
            Ok(())
        });
        let context = context(AUTHORITY_ACCOUNT, self.clock);
        let options = UpdateOptions::default();
        let updated = store.update(&context, namespace, CONFIG_MAP, &mut change, &options);
        controller::found(updated.await.map(|(object, _)| object)).map(drop)
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
        let namespace = found(self.namespaces.get("", name, GetOptions::default()).await)?;
        let namespace = namespace.map(|it| self.namespaces.served_value(&it));
        match namespace.transpose()? {
            Some(namespace) if !is_terminating(&namespace) => {}
            _ => return Ok(Next::Done),
        }
        // One does not wait for the other.
        let account = self.ensure_service_account(name).await;
        self.ensure_authority(name).await?;
        account.map(|()| Next::Done)
    }
}
