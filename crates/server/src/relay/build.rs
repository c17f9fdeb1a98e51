//! Builds a relay: caches, reviews, the front, filters and health.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::registry::Registry;
use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch::storage::cacher::CacheMetrics;
use ringwatch_authentication::oidc::Anonymous;
use ringwatch_authentication::{Authenticator, TokenFile};
use ringwatch_authorization::Authorizer;
use ringwatch_endpoints::current_credentials::CurrentCredentials;
use ringwatch_endpoints::health::Health;
use ringwatch_endpoints::{
    Api, ApiConfig, ApiFeatures, ENCODINGS_BYTES_MAX_DEFAULT, Impersonation, Metrics,
};
use ringwatch_filters::threads::RuntimeHandles;
use ringwatch_filters::{Filters, LargeWork, Limits, Start};
use ringwatch_http::Connections;
use ringwatch_observe::webhook_calls::WebhookCalls;
use ringwatch_registry::object_counts::ObjectCounts;
use ringwatch_relay::{
    Caches, Front, FrontConfig, ReviewTtls, Upstream, access_reviews, token_reviews,
};
use ringwatch_spans::SpanMetrics;
use ringwatch_tls::error::StartError;

use super::paths::{RelayPaths, UpstreamAge, paths};
use crate::build::certificate_metrics::CertificateMetrics;
use crate::build::connections::ConnectionCounts;
use crate::build::limits::{outer_filters, request_limits};
use crate::build::memory_metrics::{MemoryMetrics, shrink_caches};
use crate::build::process_metrics::Process;
use crate::build::responses::Responses;
use crate::build::server_paths::slis;
use crate::build::tasks::Tasks;
use crate::build::tracer::tracer;
use crate::config::flags::ServeFlags;
use crate::config::kubelets;
use crate::config::tracing_file::SpansConfig;
use crate::debug::ProcessControls;
use crate::debug::{CachesSource, DebugPaths, DebugState, Sources, StatusInputs};
use crate::shutdown::Steps;

/// The inputs of a relay besides its credentials.
pub(super) struct RelayInputs<'relay> {
    /// The flags with which `serve` would listen and limit requests as the relay does.
    pub(super) flags: &'relay ServeFlags,
    pub(super) ttls: ReviewTtls,
    pub(super) caches_secrets: bool,
    pub(super) upstream: Arc<Upstream>,
    /// The memory budget.
    pub(super) ledger: Ledger,
    /// The address at which the relay listens.
    pub(super) address: SocketAddr,
    /// The steps of a shutdown.
    pub(super) steps: &'relay Steps,
    /// The export of spans; `None` if there is none.
    pub(super) spans: Option<SpansConfig>,
    pub(super) controls: Option<Arc<dyn ProcessControls>>,
    /// The runtimes of the threads beside those that serve.
    pub(super) runtimes: &'relay RuntimeHandles,
    pub(super) clock: Clock,
}

/// A relay that is built but does not run.
pub(super) struct BuiltRelay {
    /// Serves the connections.
    pub(super) connections: Connections,
    pub(super) front: Arc<Front>,
    pub(super) caches: Arc<Caches>,
}

impl RelayInputs<'_> {
    /// Builds the relay.
    ///
    /// # Errors
    /// The machine's certificate authorities cannot be read.
    pub(super) fn build(
        self,
        credentials: &CurrentCredentials,
    ) -> Result<(BuiltRelay, Tasks), StartError> {
        let (mut registry, mut tasks) = (Registry::default(), Tasks::default());
        let ledger = self.ledger.clone();
        let responses = Responses::new(ENCODINGS_BYTES_MAX_DEFAULT, &ledger);
        responses.register(&mut registry);
        let connections = ConnectionCounts::register(&mut registry, &self.clock);
        let metrics = CacheMetrics::register(&mut registry);
        let caches = Caches::new(Arc::clone(&self.upstream), metrics, ledger.clone());
        let caches = Arc::new(caches);
        let (encodings, shrunk) = (responses.encodings.clone(), Arc::clone(&caches));
        let shrinking = shrink_caches(ledger.clone(), encodings, move || shrunk.shrink_windows());
        tasks.serving("shrinking of caches", shrinking);
        let authorizer = Arc::new(access_reviews(&self.upstream, self.ttls));
        let authenticator = self.authenticator();
        let impersonation =
            Impersonation::new(Arc::clone(&authorizer), self.clock.clone(), &mut registry);
        let limits = self.limits(&responses.metrics, &mut registry);
        let sources = StatusInputs {
            caches: CachesSource::Relay(Arc::clone(&caches)),
            limits: &limits,
            ledger: &ledger,
            watches: &responses.watches,
            webhooks: &WebhookCalls::default(),
            credentials,
        };
        let (state, sampler) = DebugState::new(Sources::new(self.flags, sources, &self.clock));
        tasks.background("status document", sampler);
        let api = self.api(&authorizer, &authenticator, responses)?;
        let front = FrontConfig {
            upstream: Arc::clone(&self.upstream),
            caches: Arc::clone(&caches),
            api,
            caches_secrets: self.caches_secrets,
            own_paths: paths(),
        };
        let front = Arc::new(Front::new(front));
        authenticator.register(&mut registry);
        let spans = self.spans.as_ref();
        let traces = spans.map(|it| tracer(it, SpanMetrics::register(&mut registry), &self.clock));
        let (tracer, more) = traces.unzip();
        tasks.append(more.unwrap_or_default());
        let certificate = CertificateMetrics::register(&mut registry, credentials, &self.clock);
        let paths = self.paths(&caches, certificate, &ledger, state, registry);
        let serving = &self.flags.serving;
        let filters = Arc::new(Filters {
            outer: outer_filters(serving, &self.steps.drain),
            authenticator,
            start: Start(Vec::new()),
            tracer,
            auditor: None,
            impersonation: Arc::new(impersonation),
            authorizer,
            limits,
            end_of_watches: self.steps.end_of_watches.clone(),
            own: Arc::new(paths),
            api: Arc::clone(&front) as _,
            clock: self.clock.clone(),
        });
        let connections =
            connections.connections(&filters, credentials, ledger, serving, self.steps);
        let relay = BuiltRelay {
            connections,
            front,
            caches,
        };
        Ok((relay, tasks))
    }

    /// Builds the authenticator: certificates, front proxies, and tokens that the upstream knows. Requests without
    /// credentials are the upstream's to refuse.
    fn authenticator(&self) -> Arc<Authenticator> {
        let headers = self.flags.aggregation.request_header.request_headers();
        let authenticator = Authenticator::new(TokenFile::default())
            .with_webhook(Some(token_reviews(&self.upstream, self.ttls)))
            .with_request_headers(headers)
            .with_anonymous(Anonymous::Served);
        Arc::new(authenticator)
    }

    /// Builds the API that answers reads from caches, without any resource.
    fn api(
        &self,
        authorizer: &Arc<Authorizer>,
        authenticator: &Arc<Authenticator>,
        responses: Responses,
    ) -> Result<Api, StartError> {
        let (kubelets, _) = kubelets::load(&self.flags.kubelets)?;
        Ok(Api::new(ApiConfig {
            authorizer: Arc::clone(authorizer),
            stores: Vec::new(),
            storeless: Vec::new(),
            clock: self.clock.clone(),
            version: self.flags.version.version(),
            server_address: self.address.to_string(),
            extra_root_paths: Vec::new(),
            metrics: responses.metrics,
            open_watches: responses.watches,
            ledger: self.ledger.clone(),
            encodings: responses.encodings,
            min_request_timeout: Duration::from_secs(self.flags.limits.min_request_timeout.into()),
            features: ApiFeatures::default(),
            kubelets,
            authenticator: Arc::clone(authenticator),
            token_issuer: None,
        }))
    }

    fn limits(&self, metrics: &Metrics, registry: &mut Registry) -> Limits {
        let counts = ObjectCounts::default();
        let (ledger, clock) = (self.ledger.clone(), self.clock.clone());
        let large_work = LargeWork::new(self.runtimes, ledger, clock, registry);
        let limits = request_limits(&self.flags.limits, None, &counts, large_work, metrics);
        limits.in_flight.register(registry);
        limits
    }

    fn paths(
        &self,
        caches: &Arc<Caches>,
        certificate: CertificateMetrics,
        ledger: &Ledger,
        state: DebugState,
        mut registry: Registry,
    ) -> RelayPaths {
        let health = Health::new(self.steps.shutting_down.clone());
        let version = self.flags.version.version();
        RelayPaths {
            slis: slis(&health, self.clock.wall()),
            health,
            certificate,
            memory: MemoryMetrics::register(&mut registry, ledger.clone()),
            process: Process::register(&mut registry, version, self.clock.wall()),
            debug: DebugPaths::new(
                state,
                self.flags.serving.profiling,
                self.controls.as_ref(),
                &self.clock,
            ),
            age: UpstreamAge::register(&mut registry, caches),
            registry,
        }
    }
}
