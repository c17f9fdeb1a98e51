//! Builds a server around one backend: its objects, the parts that requests pass, the API, and the paths of its own.
//!
//! Each part is built of the parts before it. Nothing runs: what a part needs to have running is among its tasks.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::registry::Registry;
use ringwatch::storage::cacher::{Cacher, Feed};
use ringwatch_audit::Metrics;
use ringwatch_authentication::service_accounts::{KeyDiscovery, TokenIssuer};
use ringwatch_controllers::api_endpoints::ApiEndpoints;
use ringwatch_controllers::component_statuses::ComponentStatuses;
use ringwatch_controllers::extension_authentication;
use ringwatch_endpoints::current_credentials::CurrentCredentials;
use ringwatch_endpoints::health::Health;
use ringwatch_endpoints::zpages::{FLAGZ, STATUSZ, Zpages};
use ringwatch_endpoints::{Api, ApiConfig, Kubelets};
use ringwatch_filters::Filters;
use ringwatch_http::Connections;
use ringwatch_test_cluster::{Extra, ServedStores, TestCluster};

use super::api_endpoints::api_endpoints;
use super::audit::{AuditBackends, auditor};
use super::backend::store_check;
use super::bootstrap::Bootstrap;
use super::certificate_metrics::CertificateMetrics;
use super::connections::ConnectionCounts;
use super::custom_apis::{aggregated_apis, custom_resources};
use super::enabled_parts::EnabledParts;
use super::enabled_resources::EnabledResources;
use super::health::health_checks;
use super::inputs::ServerInputs;
use super::limits::outer_filters;
use super::memory_metrics::{MemoryMetrics, shrink_caches};
use super::objects::{ObjectMetrics, Objects};
use super::post_start_hooks::PostStartHooks;
use super::process_metrics::Process;
use super::requests::Requests;
use super::resources::Resources;
use super::responses::Responses;
use super::server_paths::{ServerPaths, slis};
use super::store_size::StoreSize;
use super::tasks::Tasks;
use crate::config::audit_files::AuditFiles;
use crate::config::flags::TestClusterFlag;
use crate::config::security::Security;
use crate::config::service_account_keys::key_discovery;
use crate::debug::{CachesSource, DebugPaths, DebugState, Sources, StatusInputs};

/// A server that is built but does not run, with the parts that its start and end need.
pub(crate) struct BuiltServer {
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
    /// The backends of audit.
    pub(crate) audit: Option<AuditBackends>,
}

/// Builds a server, with the files that its flags name.
pub(crate) fn build(
    inputs: &ServerInputs<'_>,
    security: Security,
    audit: Option<AuditFiles>,
) -> (BuiltServer, Tasks) {
    let (flags, clock) = (inputs.flags, &inputs.clock);
    let mut registry = Registry::default();
    let responses = Responses::new(inputs.encodings_bytes_max, &inputs.ledger);
    responses.register(&mut registry);
    let connections = ConnectionCounts::register(&mut registry, clock);

    let components = component_statuses(inputs, &security.kubelets);
    let metrics = ObjectMetrics::register(&mut registry, flags, clock);
    security.objects.encryption.register(&mut registry);
    let (objects, mut tasks) = Objects::new(inputs, security.objects, &components, metrics);
    let (resources, enabled) = (&objects.resources, &objects.enabled);
    enabled.register(&mut registry);
    tasks.append(shrinking_caches(inputs, resources, &responses));

    let (files, webhooks) = (security.requests, &resources.webhooks);
    let issuer = TokenIssuer::new(&files.service_accounts);
    let address = flags.external_address(inputs.address);
    let keys = key_discovery(&files.service_accounts, &address);
    let audit = audit.map(|it| auditor(it, inputs, webhooks, Metrics::register(&mut registry)));
    let (auditor, audit) = audit.unzip();
    let metrics = &responses.metrics;
    let (requests, more) = Requests::new(inputs, files, auditor, &objects, metrics, &mut registry);
    tasks.append(more);

    let credentials = &security.credentials;
    let sources = sources(inputs, resources, &requests, &responses, credentials);
    let (state, sampler) = DebugState::new(sources);
    tasks.background("status document", sampler);
    let hooks = &enabled.hooks;
    let health = health_checks(inputs, resources, hooks);
    let paths = own_paths(inputs, health, keys, credentials, state, registry);

    let served = EnabledResources::new(&flags.runtime_config, resources);
    let first_objects = bootstrap(inputs, resources, enabled, &served, credentials);
    let parts = ApiParts {
        served,
        responses,
        root_paths: paths.paths(),
        kubelets: security.kubelets,
        issuer,
    };
    let api = api(inputs, parts, &requests);
    let (joined, proxy) = (objects.joined_types, security.proxy);
    let (custom, more) = custom_resources(inputs, resources, joined, &api, hooks);
    tasks.append(more);
    if let TestClusterFlag::On(extras) = &flags.cluster.test_cluster {
        let stores = ServedStores::new(resources.stores.clone(), custom);
        tasks.append(test_cluster(inputs, extras, stores, credentials, hooks));
    }
    tasks.background("files of trust", security.files.follow(clock.clone()));
    tasks.append(aggregated_apis(inputs, resources, proxy, &api, hooks));
    tasks.append(published_credentials(inputs, resources, credentials));

    let api_endpoints = api_endpoints(inputs, resources);
    let filters = filters(inputs, requests, hooks, paths, api);
    let (ledger, steps) = (inputs.ledger.clone(), inputs.steps);
    let serving = &flags.serving;
    let connections = connections.connections(&filters, credentials, ledger, serving, steps);
    let storages = objects.resources.storages;
    let server = BuiltServer {
        filters,
        connections,
        bootstrap: first_objects,
        api_endpoints,
        cachers: storages.cachers,
        feed: storages.feed,
        audit,
    };
    (server, tasks)
}

/// Builds the store of ComponentStatuses, which asks the components of a cluster for their health.
fn component_statuses(inputs: &ServerInputs<'_>, kubelets: &Kubelets) -> Arc<ComponentStatuses> {
    let (etcd, clock) = (&inputs.flags.etcd, &inputs.clock);
    let backend = &inputs.backend.backend;
    let check = store_check(backend, etcd, etcd.etcd_healthcheck_timeout, clock);
    let tls = Arc::clone(&kubelets.tls.proxied);
    Arc::new(ComponentStatuses::new(check, tls, clock.clone()))
}

/// Returns the task that frees memory when it is short. It runs on the serving threads, so that controllers do not
/// delay it.
fn shrinking_caches(
    inputs: &ServerInputs<'_>,
    resources: &Resources,
    responses: &Responses,
) -> Tasks {
    let feed = resources.storages.feed.clone();
    let (ledger, encodings) = (inputs.ledger.clone(), responses.encodings.clone());
    let shrinking = shrink_caches(ledger, encodings, move || feed.shrink_windows());
    let mut tasks = Tasks::default();
    tasks.serving("shrinking of caches", shrinking);
    tasks
}

/// Collects the parts whose figures the status document shows.
fn sources(
    inputs: &ServerInputs<'_>,
    resources: &Resources,
    requests: &Requests,
    responses: &Responses,
    credentials: &CurrentCredentials,
) -> Sources {
    let parts = StatusInputs {
        caches: CachesSource::feed(&resources.storages.feed),
        limits: &requests.limits,
        ledger: &inputs.ledger,
        watches: &responses.watches,
        webhooks: &resources.webhook_calls,
        credentials,
    };
    Sources::new(inputs.flags, parts, &inputs.clock)
}

/// Builds the paths that the server itself answers.
fn own_paths(
    inputs: &ServerInputs<'_>,
    health: Health,
    keys: Option<KeyDiscovery>,
    credentials: &CurrentCredentials,
    state: DebugState,
    mut registry: Registry,
) -> ServerPaths {
    let (flags, clock, backend) = (inputs.flags, &inputs.clock, inputs.backend);
    let mut paths = health.paths();
    paths.extend(["/metrics", "/version", STATUSZ, FLAGZ].map(String::from));
    let version = flags.version.version();
    ServerPaths {
        zpages: Zpages {
            version: version.clone(),
            started: clock.wall(),
            paths,
            flags: flags.values.0.clone(),
        },
        debug: DebugPaths::new(state, flags.serving.profiling, inputs.controls, clock),
        clock: clock.clone(),
        slis: slis(&health, clock.wall()),
        health,
        keys,
        certificate: CertificateMetrics::register(&mut registry, credentials, clock),
        memory: MemoryMetrics::register(&mut registry, inputs.ledger.clone()),
        process: Process::register(&mut registry, version, clock.wall()),
        snapshots: backend.snapshots(clock),
        size: StoreSize::register(&mut registry, backend, flags.quota_bytes(), clock.clone()),
        registry,
    }
}

/// The parts that belong to the API alone.
struct ApiParts {
    served: EnabledResources,
    responses: Responses,
    /// The paths besides those of the API that the list at `/` has.
    root_paths: Vec<String>,
    kubelets: Kubelets,
    issuer: TokenIssuer,
}

/// Builds the API.
fn api(inputs: &ServerInputs<'_>, parts: ApiParts, requests: &Requests) -> Arc<Api> {
    let flags = inputs.flags;
    Arc::new(Api::new(ApiConfig {
        authorizer: Arc::clone(&requests.authorizer),
        stores: parts.served.stores,
        storeless: parts.served.storeless,
        clock: inputs.clock.clone(),
        version: flags.version.version(),
        server_address: flags.external_address(inputs.address),
        extra_root_paths: parts.root_paths,
        metrics: parts.responses.metrics,
        open_watches: parts.responses.watches,
        ledger: inputs.ledger.clone(),
        encodings: parts.responses.encodings,
        min_request_timeout: Duration::from_secs(flags.limits.min_request_timeout.into()),
        features: flags.api_features(),
        kubelets: parts.kubelets,
        authenticator: Arc::clone(&requests.authenticator),
        token_issuer: Some(parts.issuer),
    }))
}

/// Returns the task that publishes the client certificate authorities for servers of aggregated APIs.
fn published_credentials(
    inputs: &ServerInputs<'_>,
    resources: &Resources,
    credentials: &CurrentCredentials,
) -> Tasks {
    let mut tasks = Tasks::default();
    if let Some(config_maps) = resources.stores.get("", "configmaps") {
        let (config_maps, clock) = (Arc::clone(config_maps), inputs.clock.clone());
        let publishing = extension_authentication::run(config_maps, credentials.clone(), clock);
        tasks.background("extension-apiserver-authentication", publishing);
    }
    tasks
}

/// Returns the task of the controllers of a test cluster, which begin when the first objects are there and all custom
/// resources are served: without these a namespace would look empty that is not, and an owner without dependents.
fn test_cluster(
    inputs: &ServerInputs<'_>,
    extras: &BTreeSet<Extra>,
    stores: ServedStores,
    credentials: &CurrentCredentials,
    hooks: &PostStartHooks,
) -> Tasks {
    let credentials = credentials.clone();
    let cluster = TestCluster {
        stores,
        authority: Arc::new(move || credentials.borrow().authority.clone()),
        extras: extras.clone(),
        pods_ready_after: inputs.flags.cluster.test_cluster_pods_ready_after,
        clock: inputs.clock.clone(),
    };
    let before = [hooks.bootstrapped.clone(), hooks.definitions_synced.clone()];
    let mut tasks = Tasks::default();
    tasks.background("test cluster", async move {
        for step in &before {
            step.wait().await;
        }
        cluster.run().await;
    });
    tasks
}

/// Builds the filters before the API, with the handlers behind them.
fn filters(
    inputs: &ServerInputs<'_>,
    requests: Requests,
    hooks: &PostStartHooks,
    paths: ServerPaths,
    api: Arc<Api>,
) -> Arc<Filters> {
    Arc::new(Filters {
        outer: outer_filters(&inputs.flags.serving, &inputs.steps.drain),
        authenticator: requests.authenticator,
        start: hooks.before_the_api(),
        tracer: requests.tracer,
        auditor: requests.auditor,
        impersonation: requests.impersonation,
        authorizer: requests.authorizer,
        limits: requests.limits,
        end_of_watches: inputs.steps.end_of_watches.clone(),
        own: Arc::new(paths),
        api,
        clock: inputs.clock.clone(),
    })
}

/// Collects what creates the first objects.
fn bootstrap(
    inputs: &ServerInputs<'_>,
    resources: &Resources,
    enabled: &EnabledParts,
    served: &EnabledResources,
    credentials: &CurrentCredentials,
) -> Bootstrap {
    Bootstrap {
        served: served.group_versions(),
        stores: resources.stores.clone(),
        credentials: credentials.clone(),
        ranges: inputs.flags.services.service_cluster_ip_range.clone(),
        repair: resources.repair.clone(),
        roles: enabled.roles.clone(),
        flows: enabled.flow_control.as_ref().map(|it| it.stores.clone()),
        hooks: enabled.hooks.clone(),
        clock: inputs.clock.clone(),
    }
}
