//! Puts storages, API, filters and health together around one backend.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::registry::Registry;
use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch::storage::backend::Backend;
use ringwatch::storage::backend::embedded::Embedded;
use ringwatch::storage::cacher::{CacheMetrics, Cacher, Feed};
use ringwatch::storage::encryption::EncryptionConfig;
use ringwatch::storage::etcd3;
use ringwatch_apiserver::endpoints::{
    Api, ApiConfig, ENCODINGS_BYTES_MAX_DEFAULT, EncodingCache, Metrics, VersionInfo,
};
use ringwatch_apiserver::filters::Filters;
use ringwatch_apiserver::health::{Health, Scope, check};
use ringwatch_apiserver::shutdown::Steps;
use ringwatch_apiserver::threads::{RuntimeHandles, until};
use ringwatch_apiserver::transport::connection::Connections;
use ringwatch_authentication::service_accounts::{ServiceAccountConfig, TokenIssuer};
use ringwatch_authentication::{Authenticator, TokenFile};
use ringwatch_authorization::Authorizer;
use ringwatch_controllers::aggregation::{Aggregation, ProxyTls};
use ringwatch_controllers::api_endpoints::ApiEndpoints;
use ringwatch_controllers::api_services::ApiServices;
use ringwatch_controllers::custom_resources::CustomResources;
use ringwatch_controllers::custom_resources::known::{KnownTypes, join_known};
use ringwatch_controllers::extension_authentication;
use ringwatch_controllers::flow_control::FlowStores;
use ringwatch_controllers::nodes::Nodes;
use ringwatch_controllers::roles::{RoleStores, Roles};
use ringwatch_controllers::{SERVER_LEASES, ServerLeases};
use ringwatch_registry::Stores;
use ringwatch_registry::object_counts::ObjectCounts;
use ringwatch_registry::storage_factory::StorageFactory;
use ringwatch_resources::allocation::Repair;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::authentication_file::TokenIssuers;
use super::authorization_config::{AuthorizationFile, Authorizers};
use super::backend_factory::{add_store_checks, store_check};
use super::bootstrap::{FirstStores, PostStartHooks};
use super::component_statuses::ComponentStatuses;
use super::flags::{ServeFlags, StorageBackend};
use super::identity::{authenticator, key_discovery};
use super::memory::{self, MemoryMetrics};
use super::own_paths::{HealthAndMetrics, StoreSize};
use super::process::Process;
use super::security::Security;
use super::storages::{Storages, StoreOptions};

/// The resource that defines others.
const DEFINITIONS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");

/// How many types that are not ready are named.
const UNREADY_NAMED_MAX: usize = 5;

/// The inputs of a server.
pub struct Assembly<'server> {
    /// The operator's flags.
    pub flags: &'server ServeFlags,
    /// Where objects are kept.
    pub backend: Arc<dyn Backend>,
    /// The same if it is the embedded store.
    pub embedded: Option<Arc<Embedded>>,
    /// The steps before the server is ready.
    pub hooks: PostStartHooks,
    /// How the server ends.
    pub steps: &'server Steps,
    /// Ends what runs in the background.
    pub end: &'server CancellationToken,
    /// Where what would keep a worker from others runs.
    pub runtimes: RuntimeHandles,
    /// The time.
    pub clock: Clock,
}

/// A server put together, and what its start and its end need of it.
#[derive(Debug)]
pub struct Assembled {
    /// The connections' server.
    pub connections: Connections,
    /// Where something is from the start.
    pub first: FirstStores,
    /// Where the server is reached, if it can be told.
    pub api_endpoints: Option<ApiEndpoints>,
    /// Releases addresses that no service has.
    pub repair: Option<Repair>,
    /// The stores of roles and bindings, if they count.
    pub roles: Option<RoleStores>,
    /// The stores of what requests wait by, if they wait for each other.
    pub flows: Option<FlowStores>,
    /// The steps before the server is ready.
    pub hooks: PostStartHooks,
    /// The watch caches.
    pub cachers: Vec<Arc<Cacher>>,
    /// Where the caches end their watches.
    pub feed: Feed,
}

impl std::fmt::Debug for Assembly<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Assembly").finish_non_exhaustive()
    }
}

impl Assembly<'_> {
    /// Puts the server together and starts what runs in the background.
    #[must_use]
    pub fn build(
        self,
        security: Security,
        address: SocketAddr,
        mut registry: Registry,
        background: &mut JoinSet<()>,
    ) -> Assembled {
        let ledger = Ledger::new(self.flags.memory_budget());
        let (metrics, encodings) = answers(&mut registry, &ledger);
        let (handshake_errors, unauthenticated) = self.connections(&mut registry);
        let (factory, storages, known, authorizer, file) = self.storages(
            &mut registry,
            ledger.clone(),
            (security.encryption, security.authorizers),
            &security.kubelets.tls.proxied,
            background,
        );
        self.shrink_caches(&ledger, &encodings, &storages, background);
        let counted = (&storages.stores, &factory.counts);
        let (limits, flows) = self.limits(&mut registry, &ledger, counted, background);
        let api_endpoints = self.api_endpoints(&factory, &storages.stores, address);
        let accounts = &security.service_accounts;
        let (tokens, issuers) = (security.tokens, security.issuers);
        let authenticator = self.authenticator(tokens, issuers, accounts, &storages, background);
        let (authorizer, roles) = self.authorization((authorizer, file), &storages, background);
        let health = self.health(&storages.cachers, (roles.is_some(), flows.is_some()));
        let own = self.own_paths(health, registry, &ledger, accounts, address);
        let api = Arc::new(Api::new(ApiConfig {
            authorizer: Arc::clone(&authorizer),
            stores: storages.stores.iter().cloned().collect(),
            storeless: storages.storeless.clone(),
            clock: self.clock.clone(),
            version: VersionInfo::kubernetes_1_36(),
            server_address: address.to_string(),
            extra_root_paths: own.paths(),
            metrics,
            ledger: ledger.clone(),
            encodings,
            min_request_timeout: Duration::from_secs(self.flags.limits.min_request_timeout.into()),
            unsafe_deletion: self.flags.unsafe_deletion(),
            kubelets: security.kubelets,
            authenticator: Arc::clone(&authenticator),
            token_issuer: TokenIssuer::new(accounts),
        }));
        self.serve_custom((factory, known), &storages, &api, background);
        self.run(security.files.follow(self.clock.clone()), background);
        let first = FirstStores::new(&storages, security.credentials.clone());
        self.aggregate(security.proxy, &storages, (&api, &first), background);
        let connections = Connections {
            filters: Arc::new(Filters {
                authenticator,
                start: self.hooks.before_the_api(&authorizer),
                authorizer,
                limits,
                end_of_watches: self.steps.end_of_watches.clone(),
                own: Arc::new(own),
                api,
                clock: self.clock.clone(),
            }),
            credentials: security.credentials,
            ledger,
            unauthenticated,
            handshake_errors,
            streams_max: self.flags.serving.http2_max_streams_per_connection,
            closing: self.steps.closing.clone(),
        };
        Assembled {
            connections,
            first,
            api_endpoints,
            repair: self.repair(&storages),
            roles,
            flows,
            hooks: self.hooks,
            cachers: storages.cachers,
            feed: storages.feed,
        }
    }

    /// Gives memory back when it is short. That does not wait for other work in the background.
    fn shrink_caches(
        &self,
        ledger: &Ledger,
        encodings: &EncodingCache,
        storages: &Storages,
        background: &mut JoinSet<()>,
    ) {
        let relief =
            memory::shrink_caches(ledger.clone(), encodings.clone(), storages.feed.clone());
        background.spawn(until(self.end.clone(), relief));
    }

    /// Builds the addresses of the API, unless the host has none that could be told. Only an etcd may have other servers beside
    /// this one.
    fn api_endpoints(
        &self,
        factory: &StorageFactory,
        stores: &Stores,
        listening: SocketAddr,
    ) -> Option<ApiEndpoints> {
        let address = self.flags.serving.advertised_address();
        if address.is_none() {
            tracing::warn!("there is no address to advertise for the API; set --advertise-address");
        }
        let shared = self.flags.backend() == StorageBackend::Etcd3;
        Some(ApiEndpoints {
            own: (address?, listening.port()),
            services: stores.of(("", "services")).cloned()?,
            endpoints: stores.of(("", "endpoints")).cloned()?,
            slices: stores.of(("discovery.k8s.io", "endpointslices")).cloned()?,
            leases: shared.then(|| ServerLeases::new(factory.plain(SERVER_LEASES))),
            clock: self.clock.clone(),
        })
    }

    /// Builds the repair, which releases addresses and ports that writes left behind.
    fn repair(&self, storages: &Storages) -> Option<Repair> {
        Some(Repair {
            allocator: storages.allocator.clone()?,
            services: storages.stores.of(("", "services")).cloned()?,
            request_timeout: self.flags.limits.request_timeout,
            clock: self.clock.clone(),
        })
    }

    /// Builds the authenticator. Issuers and their keys are followed in the background.
    fn authenticator(
        &self,
        tokens: TokenFile,
        issuers: TokenIssuers,
        accounts: &ServiceAccountConfig,
        storages: &Storages,
        background: &mut JoinSet<()>,
    ) -> Arc<Authenticator> {
        let request_headers = self.flags.aggregation.request_headers();
        let authenticator =
            authenticator(tokens, accounts, &storages.stores).with_request_headers(request_headers);
        let authenticator = Arc::new(authenticator);
        let follow = issuers.follow(Arc::clone(&authenticator), self.clock.clone());
        self.run(follow, background);
        authenticator
    }

    /// Builds the paths that the server itself answers.
    fn own_paths(
        &self,
        health: Health,
        mut registry: Registry,
        ledger: &Ledger,
        accounts: &ServiceAccountConfig,
        address: SocketAddr,
    ) -> HealthAndMetrics {
        let embedded = self.embedded.clone();
        let limited = embedded.map(|it| (it, self.flags.quota_bytes()));
        HealthAndMetrics {
            health,
            keys: key_discovery(accounts, self.flags.serving.advertised_address(), address),
            memory: MemoryMetrics::register(&mut registry, ledger.clone()),
            process: Process::register(&mut registry, self.clock.wall()),
            size: StoreSize::register(
                &mut registry,
                Arc::clone(&self.backend),
                limited,
                self.clock.clone(),
            ),
            registry,
        }
    }

    /// Tells the authorizer what it decides by. If roles and bindings count, they are followed in the background.
    fn authorization(
        &self,
        (authorizer, file): (Arc<Authorizer>, Option<AuthorizationFile>),
        storages: &Storages,
        background: &mut JoinSet<()>,
    ) -> (Arc<Authorizer>, Option<RoleStores>) {
        if let Some(client) = &storages.admission.client {
            authorizer.ask_webhooks_by(client);
        }
        if let Some(file) = file {
            let client = storages.admission.client.clone();
            self.run(file.follow(Arc::clone(&authorizer), client), background);
        }
        if let Some(graph) = authorizer.node_graph() {
            let (graph, synced) = (Arc::clone(graph), self.hooks.nodes_synced.clone());
            let nodes = Nodes::new(&storages.stores, graph, synced, self.clock.clone());
            self.run(nodes.run(), background);
        }
        let stores = RoleStores::of(&storages.stores).filter(|_| authorizer.uses_roles());
        if let Some(stores) = &stores {
            let roles = Roles {
                stores: stores.clone(),
                authorizer: Arc::clone(&authorizer),
                synced: self.hooks.roles_synced.clone(),
                clock: self.clock.clone(),
            };
            self.run(roles.run(), background);
        }
        (authorizer, stores)
    }

    /// Serves what clients define, from the background.
    fn serve_custom(
        &self,
        (factory, known): (Arc<StorageFactory>, oneshot::Receiver<KnownTypes>),
        storages: &Storages,
        api: &Arc<Api>,
        background: &mut JoinSet<()>,
    ) {
        let Some(definitions) = storages.stores.of(DEFINITIONS) else {
            return;
        };
        let (told, custom_apis) = watch::channel(None);
        let custom = CustomResources {
            definitions: Arc::clone(definitions),
            factory,
            known,
            feed: storages.feed.clone(),
            admission: Arc::clone(&storages.admission.chain) as _,
            webhooks: storages.admission.client.clone(),
            types: storages.admission.types.clone(),
            api: Arc::clone(api),
            told,
            synced: self.hooks.definitions_synced.clone(),
            clock: self.clock.clone(),
        };
        self.run(custom.run(), background);
        if let Some(store) = storages
            .stores
            .of(("apiregistration.k8s.io", "apiservices"))
        {
            let services = ApiServices {
                store: Arc::clone(store),
                custom: custom_apis,
                clock: self.clock.clone(),
            };
            self.run(services.run(), background);
        }
    }

    /// Has APIs served by other servers, and tells those whom to believe, from the background.
    fn aggregate(
        &self,
        tls: ProxyTls,
        storages: &Storages,
        (api, first): (&Arc<Api>, &FirstStores),
        background: &mut JoinSet<()>,
    ) {
        let synced = self.hooks.aggregation_synced.clone();
        if let Some(aggregation) =
            Aggregation::of(&storages.stores, tls, api, synced, self.clock.clone())
        {
            self.run(aggregation.run(), background);
        }
        if let Some((config_maps, credentials)) = first.extension.clone() {
            let told = extension_authentication::run(config_maps, credentials, self.clock.clone());
            self.run(told, background);
        }
    }

    /// Runs something in the background until the end.
    pub(super) fn run(
        &self,
        task: impl Future<Output = ()> + Send + 'static,
        background: &mut JoinSet<()>,
    ) {
        background.spawn_on(until(self.end.clone(), task), &self.runtimes.background);
    }

    fn storages(
        &self,
        registry: &mut Registry,
        ledger: Ledger,
        (encryption, authorizers): (EncryptionConfig, Authorizers),
        anyone: &Arc<rustls::ClientConfig>,
        background: &mut JoinSet<()>,
    ) -> (
        Arc<StorageFactory>,
        Storages,
        oneshot::Receiver<KnownTypes>,
        Arc<Authorizer>,
        Option<AuthorizationFile>,
    ) {
        let (steps, file) = authorizers.steps(&self.clock);
        let authorizer = Arc::new(Authorizer::new(steps));
        let mut plugins = self.flags.admission.plugins();
        if authorizer.node_graph().is_some() {
            plugins = plugins.with_node_restriction();
        }
        let interval = self.flags.etcd.etcd_compaction_interval;
        let compactor = etcd3::Compactor::new(
            Arc::clone(&self.backend),
            (!interval.is_zero()).then_some(interval),
            self.clock.clone(),
        );
        let check = store_check(&self.backend, &self.flags.etcd, &self.clock);
        let factory = Arc::new(StorageFactory {
            backend: Arc::clone(&self.backend),
            prefix: self.flags.etcd.etcd_prefix.clone(),
            media_type: self.flags.storage_media_type,
            encryption,
            caches: self.flags.watch_cache_sizes(),
            list_metrics: etcd3::ListMetrics::register(registry),
            request_metrics: etcd3::RequestMetrics::register(registry, self.clock.clone()),
            metrics: CacheMetrics::register(registry),
            counts: ObjectCounts::register(registry),
            compact_revision: compactor.compact_revision(),
            ledger,
            clock: self.clock.clone(),
        });
        let options = StoreOptions {
            plugins,
            components: Arc::new(ComponentStatuses::new(
                check,
                Arc::clone(anyone),
                self.clock.clone(),
            )),
            event_ttl: self.flags.etcd.event_ttl,
            authorizer: Arc::clone(&authorizer),
        };
        let (storages, reflector) = Storages::new(&factory, options);
        let compacting = compactor.run(self.end.clone().cancelled_owned());
        background.spawn_on(compacting, &self.runtimes.background);
        let (tell, known) = oneshot::channel();
        let (feed, definitions) = (
            storages.feed.clone(),
            storages.stores.of(DEFINITIONS).cloned(),
        );
        let (types, end) = (Arc::clone(&factory), self.end.clone());
        background.spawn(async move {
            if let Some(definitions) = definitions {
                let known = join_known(&types, &feed, &definitions);
                if let Some(known) = end.run_until_cancelled(known).await {
                    // Whoever waits for them may have ended.
                    let _ = tell.send(known);
                }
            }
            reflector.run(end.cancelled_owned()).await;
        });
        self.run(factory.counts.clone().run(self.clock.clone()), background);
        for following in storages.admission.follow(&storages.stores, &self.clock) {
            self.run(following, background);
        }
        (factory, storages, known, authorizer, file)
    }

    fn health(&self, cachers: &[Arc<Cacher>], has: (bool, bool)) -> Health {
        let mut health = Health::new(self.steps.shutting_down.clone());
        health.add(
            "etcd",
            Scope::Liveness,
            store_check(&self.backend, &self.flags.etcd, &self.clock),
        );
        health.add(
            "etcd-readiness",
            Scope::Readiness,
            store_check(&self.backend, &self.flags.etcd, &self.clock),
        );
        if let Some(embedded) = &self.embedded {
            add_store_checks(embedded, &mut health);
        }
        let cachers = cachers.to_vec();
        let filled = check(move || {
            let unready: Vec<String> = cachers.iter().filter_map(|it| it.complaint()).collect();
            if unready.is_empty() {
                return Ok(());
            }
            let named = unready[..unready.len().min(UNREADY_NAMED_MAX)].join("; ");
            Err(format!("{} not ready, among them {named}", unready.len()))
        });
        health.add("watch-caches", Scope::Readiness, filled);
        self.hooks.add_checks(&mut health, has);
        health
    }
}

/// Builds the metrics of requests and the cache of encoded objects.
fn answers(registry: &mut Registry, ledger: &Ledger) -> (Metrics, EncodingCache) {
    let metrics = Metrics::new();
    metrics.register(registry);
    let encodings = EncodingCache::new(ENCODINGS_BYTES_MAX_DEFAULT, ledger);
    encodings.register(registry);
    (metrics, encodings)
}
