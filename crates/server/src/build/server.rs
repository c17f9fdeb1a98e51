//! Builds a server around one backend: storages, API, filters and health.
//!
//! ```text
//!   storages -> webhook client -> authorizer -> admission -> stores -> authenticator, limits -> API -> filters
//! ```
//!
//! Each part is built from the parts before it. A controller starts once its inputs exist.

mod filters;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::registry::Registry;
use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch::storage::cacher::{CacheMetrics, Cacher, Feed, Reflector};
use ringwatch::storage::etcd3;
use ringwatch_apiserver::current_credentials::CurrentCredentials;
use ringwatch_apiserver::endpoints::zpages::{FLAGZ, STATUSZ, Zpages};
use ringwatch_apiserver::endpoints::{Api, ApiConfig, Kubelets, Metrics};
use ringwatch_apiserver::filters::{Filters, LargeWork, Limits};
use ringwatch_apiserver::shutdown::Steps;
use ringwatch_audit::Auditor;
use ringwatch_authentication::service_accounts::{ServiceAccountConfig, TokenIssuer};
use ringwatch_controllers::aggregation::{Aggregation, ProxyTls};
use ringwatch_controllers::api_endpoints::ApiEndpoints;
use ringwatch_controllers::api_services::ApiServices;
use ringwatch_controllers::custom_resources::CustomResources;
use ringwatch_controllers::custom_resources::joined_types::{JoinedTypes, join_stored};
use ringwatch_controllers::extension_authentication;
use ringwatch_controllers::{SERVER_LEASES, ServerLeases};
use ringwatch_http::Connections;
use ringwatch_registry::object_counts::ObjectCounts;
use ringwatch_registry::storage_factory::StorageFactory;
use ringwatch_spans::Tracer;
use tokio::sync::{oneshot, watch};

use super::audit::AuditBackends;
use super::backend::{OpenBackend, OpenOverride, compactor, other_backend, store_check};
use super::bootstrap::Bootstrap;
use super::certificate_metrics::CertificateMetrics;
use super::connections::ConnectionCounts;
use super::enabled::Enabled;
use super::enabled_resources::ServedApis;
use super::health::health_checks;
use super::limits::request_limits;
use super::memory_metrics::{self, MemoryMetrics};
use super::post_start_hooks::PostStartHooks;
use super::process_metrics::Process;
use super::resources::Resources;
use super::responses::Responses;
use super::server_paths::{ServerPaths, slis};
use super::storages::Storages;
use super::store_size::StoreSize;
use crate::background::Background;
use crate::config::audit_files::AuditFiles;
use crate::config::flags::{ReconcilerType, ServeFlags, StorageBackend};
use crate::config::security::Security;
use crate::config::service_account_keys::key_discovery;
use crate::config::tracing_file::SpansConfig;
use crate::debug::ProcessControls;
use crate::debug::{CachesSource, DebugPaths, DebugState, Sources};
use ringwatch_controllers::component_statuses::ComponentStatuses;

/// The group and plural of the resource that defines custom resources.
const DEFINITIONS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");

/// The inputs of a server besides [`Security`].
pub(crate) struct Assembly<'server> {
    /// The operator's flags.
    pub(crate) flags: &'server ServeFlags,
    /// The store of the objects.
    pub(crate) backend: &'server OpenBackend,
    /// The stores of some resources alone.
    pub(crate) overrides: &'server [OpenOverride],
    /// The memory budget.
    pub(crate) ledger: Ledger,
    /// The address at which the server listens.
    pub(crate) address: SocketAddr,
    /// Maximum number of bytes of the cache of encoded objects.
    pub(crate) encodings_bytes_max: usize,
    /// The steps of a shutdown.
    pub(crate) steps: &'server Steps,
    /// The profiles and the log level of the process.
    pub(crate) controls: Option<&'server Arc<dyn ProcessControls>>,
    /// The time.
    pub(crate) clock: Clock,
}

/// A server that is built but not started, with the parts that its start and end need.
pub(crate) struct Assembled {
    /// Answers the requests of the connections.
    pub(crate) filters: Arc<Filters>,
    /// Serves the connections.
    pub(crate) connections: Connections,
    /// Creates the first objects.
    pub(crate) bootstrap: Bootstrap,
    /// Publishes the address of the API; `None` if there is none to advertise.
    pub(crate) api_endpoints: Option<ApiEndpoints>,
    /// The watch caches.
    pub(crate) cachers: Vec<Arc<Cacher>>,
    /// Ends the watches of the caches.
    pub(crate) feed: Feed,
    /// The backends of audit, which do not run yet.
    pub(crate) audit: Option<AuditBackends>,
}

/// The parts that record requests.
struct Observers {
    auditor: Option<Arc<Auditor>>,
    /// The backends of the auditor, which do not run yet.
    audit: Option<AuditBackends>,
    tracer: Option<Tracer>,
}

impl Assembly<'_> {
    /// Builds the server, and starts its controllers.
    pub(crate) fn build(
        &self,
        security: Security,
        audit: Option<AuditFiles>,
        background: &mut Background,
    ) -> Assembled {
        let (flags, clock, mut registry) = (self.flags, &self.clock, Registry::default());
        let ledger = self.ledger.clone();
        let responses = Responses::new(self.encodings_bytes_max, &ledger, &mut registry);
        let connections = ConnectionCounts::register(&mut registry, clock);
        let factory = self.storage_factory(&security, &ledger, &mut registry, background);
        let components = self.component_statuses(&security.kubelets);
        let (storages, reflector) = Storages::new(factory, &flags.cluster_options(), &components);
        let joined_types = self.feed_caches(&storages, reflector, background);
        let deciding = (security.authorizers, security.admission);
        let resources = Resources::new(flags, storages, deciding, clock, &mut registry, background);
        self.shrink_caches(&ledger, &responses, &resources, background);
        let mut enabled = Enabled::new(flags, &resources, clock, &mut registry, background);
        let file = security.encryption;
        enabled.follow_encryption(file, &resources, clock, &mut registry, background);
        let kept = (&ledger, &responses.metrics);
        let limits = self.limits(&resources, &enabled, kept, &mut registry, background);
        let caches = CachesSource::feed(&resources.storages.feed);
        let shown = (&security.credentials, &resources.webhook_calls);
        let sources = Sources::new(flags, caches, &limits, &ledger, shown, clock);
        let open_watches = sources.watches.clone();
        let state = DebugState::start(sources, background);
        let (accounts, credentials) = (&security.service_accounts, &security.credentials);
        let authenticator =
            (security.authentication).build(accounts, flags, &resources, clock, &mut registry);
        background.run((security.issuers).follow(Arc::clone(&authenticator), self.clock.clone()));
        let files = (audit, security.spans);
        let observers = self.observers(files, &resources, &ledger, &mut registry, background);
        let shown = (accounts, credentials);
        let paths = self.server_paths(&resources, &enabled, shown, &ledger, state, registry);
        let served = ServedApis::new(&self.flags.runtime_config, &resources);
        let api = Arc::new(Api::new(ApiConfig {
            authorizer: Arc::clone(&resources.authorizer),
            stores: served.stores,
            storeless: served.storeless,
            clock: self.clock.clone(),
            version: self.flags.version.version(),
            server_address: self.flags.external_address(self.address),
            extra_root_paths: paths.paths(),
            metrics: responses.metrics,
            open_watches,
            ledger: ledger.clone(),
            encodings: responses.encodings,
            min_request_timeout: Duration::from_secs(self.flags.limits.min_request_timeout.into()),
            features: self.flags.api_features(),
            kubelets: security.kubelets,
            authenticator: Arc::clone(&authenticator),
            token_issuer: Some(TokenIssuer::new(accounts)),
        }));
        self.serve_custom(&resources, joined_types, &api, &enabled.hooks, background);
        background.run(security.files.follow(self.clock.clone()));
        self.aggregate(&resources, security.proxy, &api, &enabled.hooks, background);
        self.publish_credentials(&resources, credentials, background);
        let decided = (authenticator, limits);
        let filters = self.filters((paths, api), &observers, &resources, &enabled, decided);
        let (serving, steps) = (&self.flags.serving, self.steps);
        let connections = connections.connections(&filters, credentials, ledger, serving, steps);
        let audit = observers.audit;
        self.assembled(filters, connections, credentials, resources, enabled, audit)
    }

    /// Builds the factory of storages, and runs the compactor, from which storages learn the compacted revision.
    fn storage_factory(
        &self,
        security: &Security,
        ledger: &Ledger,
        registry: &mut Registry,
        background: &mut Background,
    ) -> Arc<StorageFactory> {
        let backend = &self.backend.backend;
        let compactions = etcd3::CompactionMetrics::register(registry);
        let compactor = compactor(backend, &self.flags.etcd, &compactions, &self.clock);
        let others = self.overrides.iter();
        let compacted = (&self.flags.etcd, &compactions);
        let others = others.map(|it| other_backend(it, compacted, &self.clock, background));
        let factory = StorageFactory {
            backend: Arc::clone(backend),
            others: others.collect(),
            prefix: self.flags.etcd.etcd_prefix.clone(),
            media_type: self.flags.storage_media_type,
            encryption: security.encryption.encryption.clone(),
            caches: self.flags.watch_cache_sizes(),
            has_spans: self.flags.has_spans(),
            shard_indexes: self.flags.api_features().sharded_lists,
            list_metrics: etcd3::ListMetrics::register(registry),
            request_metrics: etcd3::RequestMetrics::register(registry, self.clock.clone()),
            metrics: self.cache_metrics(registry),
            counts: ObjectCounts::register(registry),
            lease_reuse: self.flags.etcd.lease_reuse(),
            compact_revision: compactor.compact_revision(),
            ledger: ledger.clone(),
            clock: self.clock.clone(),
        };
        let end = background.end().cancelled_owned();
        background.run_to_its_end(compactor.run(end));
        background.run(factory.counts.clone().run(self.clock.clone()));
        background.run_serving(factory.encryption.clone().poll_kms());
        Arc::new(factory)
    }

    /// Registers the metrics of the caches, those about shards if there can be any.
    fn cache_metrics(&self, registry: &mut Registry) -> CacheMetrics {
        let metrics = CacheMetrics::register(registry);
        if self.flags.api_features().sharded_lists {
            metrics.register_shards(registry);
        }
        metrics
    }

    fn component_statuses(&self, kubelets: &Kubelets) -> Arc<ComponentStatuses> {
        let (etcd, backend) = (&self.flags.etcd, &self.backend.backend);
        let check = store_check(backend, etcd, etcd.etcd_healthcheck_timeout, &self.clock);
        let tls = Arc::clone(&kubelets.tls.proxied);
        Arc::new(ComponentStatuses::new(check, tls, self.clock.clone()))
    }

    /// Runs the reflector once the types of stored CustomResourceDefinitions have joined the feed. Those types are sent
    /// to the receiver.
    fn feed_caches(
        &self,
        storages: &Storages,
        reflector: Reflector,
        background: &mut Background,
    ) -> oneshot::Receiver<JoinedTypes> {
        let (sender, joined_types) = oneshot::channel();
        let (group, plural) = DEFINITIONS;
        let definitions = storages.bare_store(&format!("{plural}.{group}"));
        let (factory, feed) = (Arc::clone(&storages.factory), storages.feed.clone());
        let end = background.end();
        background.run_serving_to_its_end(async move {
            if let Some(definitions) = definitions {
                let joining = join_stored(&factory, &feed, &definitions);
                if let Some(joined) = end.run_until_cancelled(joining).await {
                    // The controller that waits for them may have ended.
                    let _ = sender.send(joined);
                }
            }
            reflector.run(end.cancelled_owned()).await;
        });
        joined_types
    }

    /// Runs the task that frees memory when it is short. It runs on the serving threads, so that controllers do not
    /// delay it.
    fn shrink_caches(
        &self,
        ledger: &Ledger,
        responses: &Responses,
        resources: &Resources,
        background: &mut Background,
    ) {
        let (encodings, feed) = (responses.encodings.clone(), resources.storages.feed.clone());
        let shrink_windows = move || feed.shrink_windows();
        background.run_serving(memory_metrics::shrink_caches(
            ledger.clone(),
            encodings,
            shrink_windows,
        ));
    }

    /// Builds the parts that record requests.
    fn observers(
        &self,
        (audit, spans): (Option<AuditFiles>, Option<SpansConfig>),
        resources: &Resources,
        ledger: &Ledger,
        registry: &mut Registry,
        background: &mut Background,
    ) -> Observers {
        let (flags, webhooks) = (&self.flags.audit, &resources.webhooks);
        let audit = audit.map(|it| it.build(flags, webhooks, registry, ledger, &self.clock));
        let (auditor, audit) = audit.unzip();
        Observers {
            auditor,
            audit,
            tracer: spans.map(|it| it.start(registry, &self.clock, background)),
        }
    }

    fn limits(
        &self,
        resources: &Resources,
        enabled: &Enabled,
        (ledger, metrics): (&Ledger, &Metrics),
        registry: &mut Registry,
        background: &Background,
    ) -> Limits {
        request_limits(
            &self.flags.limits,
            enabled.flow_control.as_ref().map(|it| &it.fairness),
            &resources.storages.factory.counts,
            LargeWork::new(
                background.runtimes(),
                ledger.clone(),
                self.clock.clone(),
                registry,
            ),
            metrics,
            registry,
        )
    }

    /// Builds the paths that the server itself answers.
    fn server_paths(
        &self,
        resources: &Resources,
        enabled: &Enabled,
        (accounts, credentials): (&ServiceAccountConfig, &CurrentCredentials),
        ledger: &Ledger,
        state: DebugState,
        mut registry: Registry,
    ) -> ServerPaths {
        let health = health_checks(
            (self.backend, self.overrides),
            self.flags,
            &resources.storages.factory.encryption,
            &resources.storages.cachers,
            &enabled.hooks,
            self.steps.shutting_down.clone(),
            &self.clock,
        );
        let address = self.flags.external_address(self.address);
        let quota = self.flags.quota_bytes();
        let mut paths = health.paths();
        paths.extend(["/metrics", "/version", STATUSZ, FLAGZ].map(String::from));
        ServerPaths {
            zpages: Zpages {
                version: self.flags.version.version(),
                started: self.clock.wall(),
                paths,
                flags: self.flags.values.0.clone(),
            },
            debug: DebugPaths::new(
                state,
                self.flags.serving.profiling,
                self.controls,
                &self.clock,
            ),
            clock: self.clock.clone(),
            slis: slis(&health, self.clock.wall()),
            health,
            keys: key_discovery(accounts, &address),
            certificate: CertificateMetrics::register(&mut registry, credentials, &self.clock),
            memory: MemoryMetrics::register(&mut registry, ledger.clone()),
            process: Process::register(
                &mut registry,
                self.flags.version.version(),
                self.clock.wall(),
            ),
            snapshots: self.backend.snapshots(&self.clock),
            size: StoreSize::register(&mut registry, self.backend, quota, self.clock.clone()),
            registry,
        }
    }

    /// Runs the controllers that serve custom resources and publish their APIServices.
    fn serve_custom(
        &self,
        resources: &Resources,
        joined_types: oneshot::Receiver<JoinedTypes>,
        api: &Arc<Api>,
        hooks: &PostStartHooks,
        background: &mut Background,
    ) {
        let (group, plural) = DEFINITIONS;
        let Some(definitions) = resources.stores.get(group, plural) else {
            return;
        };
        let (custom_apis, served_apis) = watch::channel(None);
        let custom = CustomResources {
            definitions: Arc::clone(definitions),
            factory: Arc::clone(&resources.storages.factory),
            joined_types,
            feed: resources.storages.feed.clone(),
            admission: Arc::clone(&resources.admission.chain) as _,
            deletion: self.flags.etcd.deletion_settings(),
            webhooks: Arc::clone(&resources.webhooks),
            types: Arc::clone(&resources.types),
            api: Arc::clone(api),
            custom_apis,
            synced: hooks.definitions_synced.clone(),
            queues: resources.queues.clone(),
            clock: self.clock.clone(),
        };
        background.run(custom.run());
        let (group, plural) = ("apiregistration.k8s.io", "apiservices");
        if let Some(store) = resources.stores.get(group, plural) {
            let services = ApiServices {
                store: Arc::clone(store),
                custom: served_apis,
                synced: hooks.custom_apis_published.clone(),
                clock: self.clock.clone(),
            };
            background.run(services.run());
        }
    }

    /// Runs the controller that proxies the APIs of other servers.
    fn aggregate(
        &self,
        resources: &Resources,
        tls: ProxyTls,
        api: &Arc<Api>,
        hooks: &PostStartHooks,
        background: &mut Background,
    ) {
        let synced = hooks.aggregation_synced.clone();
        let clock = self.clock.clone();
        let aggregation = Aggregation::new(&resources.stores, tls, api, synced, clock);
        if let Some(aggregation) = aggregation {
            let rejects = self.flags.aggregation.aggregator_reject_forwarding_redirect;
            let (metrics, queues) = (resources.availability.clone(), resources.queues.clone());
            let aggregation = aggregation.passing_redirects(!rejects);
            let aggregation = aggregation.measured(metrics, queues);
            background.run(aggregation.run());
        }
    }

    /// Runs the controller that publishes the client certificate authorities for servers of aggregated APIs.
    fn publish_credentials(
        &self,
        resources: &Resources,
        credentials: &CurrentCredentials,
        background: &mut Background,
    ) {
        if let Some(config_maps) = resources.stores.get("", "configmaps") {
            background.run(extension_authentication::run(
                Arc::clone(config_maps),
                credentials.clone(),
                self.clock.clone(),
            ));
        }
    }

    /// Builds the controller of the Endpoints of the API; `None` if they are to be left alone, or, with a warning, if there is
    /// no address to advertise. Only an etcd may have other servers beside this one.
    fn api_endpoints(&self, resources: &Resources) -> Option<ApiEndpoints> {
        if self.flags.cluster.endpoint_reconciler_type == ReconcilerType::None {
            return None;
        }
        let address = self.flags.serving.advertised_address();
        if address.is_none() {
            tracing::warn!("there is no address to advertise for the API; set --advertise-address");
        }
        let shared = self.flags.backend() == StorageBackend::Etcd3;
        let (stores, factory) = (&resources.stores, &resources.storages.factory);
        Some(ApiEndpoints {
            own: (address?, self.address.port()),
            cluster_ip: self.flags.services.service_cluster_ip_range.api_address(),
            services: stores.get("", "services").cloned()?,
            endpoints: stores.get("", "endpoints").cloned()?,
            slices: stores.get("discovery.k8s.io", "endpointslices").cloned()?,
            leases: shared.then(|| ServerLeases::new(factory.plain(SERVER_LEASES))),
            clock: self.clock.clone(),
        })
    }

    fn assembled(
        &self,
        filters: Arc<Filters>,
        connections: Connections,
        credentials: &CurrentCredentials,
        resources: Resources,
        enabled: Enabled,
        audit: Option<AuditBackends>,
    ) -> Assembled {
        let api_endpoints = self.api_endpoints(&resources);
        Assembled {
            api_endpoints,
            bootstrap: Bootstrap {
                served: ServedApis::new(&self.flags.runtime_config, &resources).group_versions(),
                stores: resources.stores,
                credentials: credentials.clone(),
                ranges: self.flags.services.service_cluster_ip_range.clone(),
                repair: resources.repair,
                roles: enabled.roles,
                flows: enabled.flow_control.map(|it| it.stores),
                hooks: enabled.hooks,
                clock: self.clock.clone(),
            },
            filters,
            connections,
            cachers: resources.storages.cachers,
            feed: resources.storages.feed,
            audit,
        }
    }
}
