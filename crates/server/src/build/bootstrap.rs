//! Creates the objects that every cluster has: namespaces, default roles, flow schemas, the Service `kubernetes`.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ringwatch::clock::Clock;
use ringwatch_apimachinery::{Error, GroupVersion};
use ringwatch_controllers::flow_control::FlowStores;
use ringwatch_controllers::publish_extension_authentication;
use ringwatch_controllers::roles::RoleStores;
use ringwatch_endpoints::current_credentials::CurrentCredentials;
use ringwatch_registry::{Store, Stores};
use ringwatch_resources::allocation::Repair;
use ringwatch_resources::service_ranges::ServiceRanges;
use ringwatch_resources::{
    ensure_default_roles, ensure_flow_control, ensure_kubernetes_service, ensure_service_range,
    ensure_system_namespaces, ensure_system_priorities, ensure_token_tracking,
    publish_built_in_apis,
};
use ringwatch_tls::error::StartError;

use super::post_start_hooks::PostStartHooks;

/// Pause between attempts to allocate the address of the Service `kubernetes` while another server holds it, and the
/// total wait as a multiple of the request timeout: an allocation that no Service uses is released within that time.
const ADDRESS_RETRY_PERIOD: Duration = Duration::from_millis(100);
const ADDRESS_WAIT_TIMEOUTS: u32 = 5;
/// Time of that wait after which a line tells of it. Servers that start together need less.
const ADDRESS_NOTICE_DELAY: Duration = Duration::from_secs(1);

/// The first objects of a cluster, and the stores that they go to.
#[derive(Debug)]
pub(crate) struct Bootstrap {
    /// The stores of the built-in resources.
    pub(crate) stores: Stores,
    /// The versions of groups that are served.
    pub(crate) served: BTreeSet<GroupVersion>,
    /// The credentials that extension-apiserver-authentication publishes.
    pub(crate) credentials: CurrentCredentials,
    /// The ranges of the cluster IPs of Services.
    pub(crate) ranges: ServiceRanges,
    /// Releases addresses and ports that are allocated to no Service; `None` if allocations are not recorded.
    pub(crate) repair: Option<Arc<Repair>>,
    /// The stores of roles and bindings; `None` without RBAC.
    pub(crate) roles: Option<RoleStores>,
    /// The stores of FlowSchemas and PriorityLevelConfigurations; `None` without priority and fairness.
    pub(crate) flows: Option<FlowStores>,
    /// The post-start hooks that this marks as done.
    pub(crate) hooks: PostStartHooks,
    /// The time.
    pub(crate) clock: Clock,
}

impl Bootstrap {
    /// Creates these objects, and loads the allocated addresses. The Service `kubernetes` gets this port.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub(crate) async fn run(&self, port: u16) -> Result<(), StartError> {
        let clock = &self.clock;
        if let Some(namespaces) = self.store("", "namespaces") {
            let ensured = ensure_system_namespaces(namespaces, clock).await;
            ensured.map_err(|error| unwritten("create the first namespaces", error))?;
        }
        if let Some(classes) = self.store("scheduling.k8s.io", "priorityclasses") {
            let ensured = ensure_system_priorities(classes, clock).await;
            ensured.map_err(|error| unwritten("create the first PriorityClasses", error))?;
        }
        if let Some(services) = self.store("", "services") {
            self.ensure_services(services, port).await?;
        }
        if let Some(config_maps) = self.store("", "configmaps") {
            self.ensure_config_maps(config_maps).await?;
        }
        if let Some(services) = self.store("apiregistration.k8s.io", "apiservices") {
            let published = publish_built_in_apis(services, &self.served, clock).await;
            published.map_err(|error| unwritten("create the first APIServices", error))?;
        }
        if let Some(stores) = &self.roles {
            let ensured = ensure_default_roles(stores.all(), clock).await;
            ensured.map_err(|error| unwritten("create the default roles", error))?;
            self.hooks.roles.iter().for_each(|it| it.ensured.set());
        }
        if let Some(stores) = &self.flows {
            let ensured = ensure_flow_control(&stores.levels, &stores.schemas, clock).await;
            ensured.map_err(|error| unwritten("create the default flow schemas", error))?;
            let written = stores.write_references(clock).await;
            let what = "write the status of the default flow schemas";
            written.map_err(|error| unwritten(what, error))?;
            self.hooks.flows_ensured.iter().for_each(|it| it.set());
        }
        self.hooks.bootstrapped.set();
        Ok(())
    }

    fn store(&self, group: &str, plural: &str) -> Option<&Arc<Store>> {
        self.stores.get(group, plural)
    }

    /// Creates the range of service addresses and the Service `kubernetes`, once the allocations are loaded.
    async fn ensure_services(&self, services: &Store, port: u16) -> Result<(), StartError> {
        if let Some(ranges) = self.store("networking.k8s.io", "servicecidrs") {
            let ensured = ensure_service_range(ranges, &self.ranges, &self.clock).await;
            ensured.map_err(|error| unwritten("create the range of addresses", error))?;
        }
        if let Some(repair) = &self.repair {
            repair.begin().await.map_err(|error| {
                let advice = "check that the store can be read and written, then start again";
                StartError::new("record service allocations", error, advice)
            })?;
        }
        let ensured = self.ensure_api_service(services, port).await;
        ensured.map_err(|error| unwritten("create the service of the API", error))
    }

    /// Creates the Service `kubernetes`. Its address may be allocated while the Service does not exist: another server
    /// is creating it, or was killed while it did. So this waits, and releases stale allocations meanwhile.
    async fn ensure_api_service(&self, services: &Store, port: u16) -> Result<(), Error> {
        let clock = &self.clock;
        let address = self.ranges.api_address();
        let first = ensure_kubernetes_service(services, address, port, clock).await;
        let (Err(Error::Invalid { .. }), Some(repair)) = (&first, &self.repair) else {
            return first;
        };
        let begin = clock.now();
        let mut is_told = false;
        let again = async {
            loop {
                clock.sleep(ADDRESS_RETRY_PERIOD).await;
                let ensured = ensure_kubernetes_service(services, address, port, clock).await;
                let waited = clock.now() - begin;
                match ensured {
                    Err(Error::Invalid { .. })
                        if waited <= repair.request_timeout * ADDRESS_WAIT_TIMEOUTS => {}
                    ensured => return ensured,
                }
                if waited >= ADDRESS_NOTICE_DELAY && !is_told {
                    tell_of_address(address, repair.released_after());
                    is_told = true;
                }
            }
        };
        tokio::select! {
            ensured = again => ensured,
            () = repair.run() => first,
        }
    }

    /// Creates two ConfigMaps in kube-system: the authorities by which aggregated servers authenticate this one, and
    /// the start of the tracking of legacy tokens.
    async fn ensure_config_maps(&self, config_maps: &Store) -> Result<(), StartError> {
        let credentials = Arc::clone(&self.credentials.borrow());
        let extension = &credentials.extension;
        let published = publish_extension_authentication(extension, config_maps, &self.clock).await;
        let what = "publish extension-apiserver-authentication";
        published.map_err(|error| unwritten(what, error))?;
        let ensured = ensure_token_tracking(config_maps, &self.clock).await;
        let what = "record since when legacy tokens are tracked";
        ensured.map_err(|error| unwritten(what, error))
    }
}

fn tell_of_address(address: IpAddr, released_after: Duration) {
    let seconds = released_after.as_secs();
    tracing::warn!(
        "waiting for the address {address} of the Service kubernetes, which is allocated and not used: a server that \
         ended before it created the Service has left it, and it is released after {seconds} s"
    );
}

fn unwritten(what: &str, error: Error) -> StartError {
    let advice = "check that the store can be written, then start again";
    StartError::new(what, error, advice)
}
