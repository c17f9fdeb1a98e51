//! Creates the objects of every cluster, and tells when they are there.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ringwatch::clock::Clock;
use ringwatch_apimachinery::{Error, GroupVersion};
use ringwatch_apiserver::filters::Start;
use ringwatch_apiserver::health::{Done, Health, Scope};
use ringwatch_apiserver::transport::current_credentials::CurrentCredentials;
use ringwatch_authorization::Authorizer;
use ringwatch_controllers::publish_extension_authentication;
use ringwatch_registry::Store;
use ringwatch_resources::{
    ensure_default_roles, ensure_flow_control, ensure_kubernetes_service, ensure_service_range,
    ensure_system_namespaces, ensure_system_priorities, ensure_token_tracking,
    publish_built_in_apis,
};
use ringwatch_tls::error::StartError;

use super::assembly::Assembled;
use super::storages::Storages;

/// How often the address of the API is asked for while somebody else has it, and for how many times what a request may
/// take: it is given back before that if nobody does.
const ADDRESS_RETRY_PERIOD: Duration = Duration::from_millis(100);
const ADDRESS_WAIT_TIMEOUTS: u32 = 5;

/// The check of kube-apiserver's hook that creates the first namespaces.
const NAMESPACES_CHECK: &str = "poststarthook/start-system-namespaces-controller";

/// The check of kube-apiserver's hook that waits for the definitions of custom resources.
const DEFINITIONS_CHECK: &str = "poststarthook/crd-informer-synced";

/// The check of kube-apiserver's hook that creates the default roles. It is there where roles count.
const ROLES_CHECK: &str = "poststarthook/rbac/bootstrap-roles";

/// The check of kube-apiserver's hook that creates the default flow schemas and priority levels.
const FLOWS_CHECK: &str = "poststarthook/priority-and-fairness-config-producer";

/// The hooks that run after the start, as kube-apiserver names them: the server is ready once all are done.
#[derive(Debug, Default)]
pub struct PostStartHooks {
    /// The first namespaces are there.
    pub bootstrapped: Done,
    /// The default roles are there.
    pub roles_ensured: Done,
    /// The default flow schemas and priority levels are there.
    pub flows_ensured: Done,
    /// Custom resources are served.
    pub definitions_synced: Done,
    /// APIs of other servers are known.
    pub aggregation_synced: Done,
    /// The authorizer knows the stored roles and bindings.
    pub roles_synced: Done,
    /// The authorizer knows what kubelets may read.
    pub nodes_synced: Done,
}

impl PostStartHooks {
    /// Returns the steps that must be done before the API is served.
    #[must_use]
    pub fn before_the_api(&self, authorizer: &Authorizer) -> Start {
        let mut steps = vec![
            self.definitions_synced.clone(),
            self.aggregation_synced.clone(),
        ];
        if authorizer.uses_roles() {
            steps.push(self.roles_synced.clone());
        }
        if authorizer.node_graph().is_some() {
            steps.push(self.nodes_synced.clone());
        }
        Start(steps)
    }

    /// Has health tell what is not done yet; roles and flows if they count.
    pub fn add_checks(&self, health: &mut Health, (roles, flows): (bool, bool)) {
        let mut begins = |name, done: &Done| health.add(name, Scope::Everywhere, done.check());
        begins(NAMESPACES_CHECK, &self.bootstrapped);
        begins(DEFINITIONS_CHECK, &self.definitions_synced);
        if roles {
            begins(ROLES_CHECK, &self.roles_ensured);
        }
        if flows {
            begins(FLOWS_CHECK, &self.flows_ensured);
        }
    }
}

/// The stores of the objects that every cluster has.
#[derive(Debug)]
pub struct FirstStores {
    /// The store of namespaces.
    pub namespaces: Option<Arc<Store>>,
    /// The store of PriorityClasses.
    pub priority_classes: Option<Arc<Store>>,
    /// The store of services.
    pub services: Option<Arc<Store>>,
    /// The store of ServiceCIDRs.
    pub service_ranges: Option<Arc<Store>>,
    /// The store of ConfigMaps, and the credentials that extension-apiserver-authentication publishes.
    pub extension: Option<(Arc<Store>, CurrentCredentials)>,
    /// The store of APIServices.
    pub api_services: Option<Arc<Store>>,
    /// The versions of groups that are served.
    pub served: BTreeSet<GroupVersion>,
}

impl FirstStores {
    /// Those of a server.
    #[must_use]
    pub fn new(storages: &Storages, credentials: CurrentCredentials) -> Self {
        let store = |group, plural| storages.stores.get(group, plural).cloned();
        Self {
            namespaces: store("", "namespaces"),
            priority_classes: store("scheduling.k8s.io", "priorityclasses"),
            services: store("", "services"),
            service_ranges: store("networking.k8s.io", "servicecidrs"),
            extension: store("", "configmaps").map(|store| (store, credentials)),
            api_services: store("apiregistration.k8s.io", "apiservices"),
            served: storages.group_versions(),
        }
    }
}

/// Creates what every cluster has from the start, and learns which addresses are given.
///
/// # Errors
/// The store cannot be read or written.
pub async fn bootstrap(assembled: &Assembled, port: u16, clock: &Clock) -> Result<(), StartError> {
    let (first, hooks) = (&assembled.first, &assembled.hooks);
    if let Some(namespaces) = &first.namespaces {
        let ensured = ensure_system_namespaces(namespaces, clock).await;
        ensured.map_err(|error| unwritten("create the first namespaces", error))?;
    }
    if let Some(classes) = &first.priority_classes {
        let ensured = ensure_system_priorities(classes, clock).await;
        ensured.map_err(|error| unwritten("create the first classes of priorities", error))?;
    }
    if let Some(services) = &first.services {
        if let Some(ranges) = &first.service_ranges {
            let ensured = ensure_service_range(ranges, clock).await;
            ensured.map_err(|error| unwritten("create the range of addresses", error))?;
        }
        if let Some(repair) = &assembled.repair {
            repair.begin().await.map_err(|error| {
                let advice = "check that the store can be read and written, then start again";
                StartError::new("record service allocations", error, advice)
            })?;
        }
        let ensured = ensure_api_service(assembled, services, port, clock).await;
        ensured.map_err(|error| unwritten("create the service of the API", error))?;
    }
    if let Some((config_maps, credentials)) = &first.extension {
        let credentials = Arc::clone(&credentials.borrow());
        let published =
            publish_extension_authentication(&credentials.extension, config_maps, clock).await;
        let what = "tell servers of aggregated APIs whom to believe";
        published.map_err(|error| unwritten(what, error))?;
        let ensured = ensure_token_tracking(config_maps, clock).await;
        ensured.map_err(|error| unwritten("note since when tokens are known", error))?;
    }
    if let Some(services) = &first.api_services {
        let published = publish_built_in_apis(services, &first.served, clock).await;
        published.map_err(|error| unwritten("tell which APIs there are", error))?;
    }
    if let Some(stores) = &assembled.roles {
        let ensured = ensure_default_roles(stores.all(), clock).await;
        ensured.map_err(|error| unwritten("create the default roles", error))?;
        hooks.roles_ensured.set();
    }
    if let Some(stores) = &assembled.flows {
        let ensured = ensure_flow_control(&stores.levels, &stores.schemas, clock).await;
        ensured.map_err(|error| unwritten("create the default flow schemas", error))?;
        let told = stores.tell_references(clock).await;
        told.map_err(|error| unwritten("tell of the default flow schemas", error))?;
        hooks.flows_ensured.set();
    }
    hooks.bootstrapped.set();
    Ok(())
}

/// Creates the service of the API. Its address may be noted though it is not there: another server is just creating it, or one was
/// killed when it was. So that is waited for, and repaired meanwhile.
async fn ensure_api_service(
    assembled: &Assembled,
    services: &Store,
    port: u16,
    clock: &Clock,
) -> Result<(), Error> {
    let first = ensure_kubernetes_service(services, port, clock).await;
    let (Err(Error::Invalid { .. }), Some(repair)) = (&first, &assembled.repair) else {
        return first;
    };
    let end = clock.now() + repair.request_timeout * ADDRESS_WAIT_TIMEOUTS;
    let again = async {
        loop {
            clock.sleep(ADDRESS_RETRY_PERIOD).await;
            let ensured = ensure_kubernetes_service(services, port, clock).await;
            if !matches!(ensured, Err(Error::Invalid { .. })) || clock.now() > end {
                return ensured;
            }
        }
    };
    tokio::select! {
        ensured = again => ensured,
        () = repair.run() => first,
    }
}

fn unwritten(what: &str, error: Error) -> StartError {
    let advice = "check that the store can be written, then start again";
    StartError::new(what, error, advice)
}
