//! The APIService controller: checks whether the APIs of other servers are available, and discovers their resources.
//!
//! ```text
//!   APIServices, services, slices --watch--> TrackedApis --due--> availability --> inquiry
//!                                                ^                                  |
//!        condition Available <--tell-------------+----------- the server's answer <-+
//!                                                |
//!                                                +--> Api::serve_aggregated
//! ```
//!
//! Services and slices are followed only while there is such an API.

mod availability;
mod availability_metrics;
mod inquiry;
mod tracked_apis;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use ringwatch::clock::Clock;
use ringwatch::codec;
use ringwatch::meta::Object;
use ringwatch_apimachinery::{Error, User};
use ringwatch_endpoints::health::Done;
use ringwatch_endpoints::{AggregatedApi, ServiceAddresses};
use ringwatch_endpoints::{AggregatedServer, AggregatedServers, Api};
use ringwatch_registry::informer::{InformerChange, InformerList};
use ringwatch_registry::{Informer, ListWatch, Store, Stores};
use ringwatch_resources::{Availability, tell_availability};
use ringwatch_tls::client_identity::ClientIdentity;
use ringwatch_tls::tls_client::{self, BundleTls, Trust};
use rustls::ClientConfig;
use serde_json::Value;

pub use self::availability_metrics::AvailabilityMetrics;
use self::inquiry::DiscoveredApi;
use self::tracked_apis::TrackedApis;
use super::work_queue::{WorkQueue, WorkQueueMetrics};

/// Maximum number of APIs that are checked at the same time.
const LOOKS_MAX: usize = 8;

/// The name of the queue in metrics: that of the controller in kube-apiserver.
const QUEUE: &str = "RemoteAvailabilityController";

/// Maximum time to write a condition.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// The label of a slice that names its service.
const SERVICE_LABEL: &str = "/metadata/labels/kubernetes.io~1service-name";

/// The TLS client of connections to other API servers.
#[derive(Debug)]
pub struct ProxyTls {
    /// For servers whose certificate is verified.
    trusted: BundleTls,
    /// For servers whose certificate is not verified (`insecureSkipTLSVerify`).
    anyone: Arc<ClientConfig>,
}

impl ProxyTls {
    /// Returns a client that shows this identity, if there is one.
    ///
    /// # Errors
    /// The identity cannot be used.
    pub fn new(identity: Option<ClientIdentity>) -> Result<Self, rustls::Error> {
        Ok(Self {
            anyone: tls_client::config(Trust::Anyone, identity.as_ref())?,
            trusted: BundleTls {
                identity,
                ..BundleTls::default()
            },
        })
    }

    /// Returns the configuration of TLS with the server of an API.
    ///
    /// # Errors
    /// A line that says why its authorities cannot be used.
    fn config(&self, api: &AggregatedApi) -> Result<Arc<ClientConfig>, String> {
        if api.insecure {
            return Ok(Arc::clone(&self.anyone));
        }
        self.trusted.config(api.ca_bundle.as_deref())
    }
}

/// Returns the user as whom this server asks other API servers.
fn aggregator() -> User {
    User {
        name: "system:kube-aggregator".to_owned(),
        groups: vec!["system:masters".to_owned()],
        ..User::default()
    }
}

/// The controller of APIServices that name a service.
#[derive(Debug)]
pub struct Aggregation {
    /// The store of APIServices.
    store: Arc<Store>,
    /// The store of Services.
    services: Arc<Store>,
    /// The store of EndpointSlices.
    slices: Arc<Store>,
    /// The TLS client of connections to their servers.
    tls: ProxyTls,
    /// The API that proxies requests.
    api: Arc<Api>,
    /// Set when all APIServices are proxied.
    synced: Done,
    /// True if redirections of the other servers are passed on.
    passes_redirects: bool,
    /// Shows which APIs are unavailable.
    metrics: AvailabilityMetrics,
    /// Measures the queue of APIs that are checked.
    queues: WorkQueueMetrics,
    /// The time.
    clock: Clock,
}

/// The result of a check or of a write.
enum TaskResult {
    Looked(Arc<AggregatedServer>, Availability, Option<DiscoveredApi>),
    Wrote,
}

type AggregationTask<'a> = FuturesUnordered<BoxFuture<'a, TaskResult>>;

/// The stores that are followed.
#[derive(Clone, Copy, Debug)]
enum FollowedStores {
    ApiServices,
    /// Services and EndpointSlices.
    Places,
}

impl Aggregation {
    /// Returns the controller over the stores of a server; `None` if it lacks one of those that are followed.
    #[must_use]
    pub fn new(
        all: &Stores,
        tls: ProxyTls,
        api: &Arc<Api>,
        synced: Done,
        clock: Clock,
    ) -> Option<Self> {
        let store = |group, plural| all.get(group, plural).cloned();
        Some(Self {
            store: store("apiregistration.k8s.io", "apiservices")?,
            services: store("", "services")?,
            slices: store("discovery.k8s.io", "endpointslices")?,
            tls,
            api: Arc::clone(api),
            synced,
            passes_redirects: false,
            metrics: AvailabilityMetrics::default(),
            queues: WorkQueueMetrics::default(),
            clock,
        })
    }

    /// Returns the controller with the setting if redirections of the other servers are passed on, which they are not
    /// by default.
    #[must_use]
    pub fn passing_redirects(self, passes_redirects: bool) -> Self {
        Self {
            passes_redirects,
            ..self
        }
    }

    /// Returns the controller, which shows in these metrics which APIs are unavailable, and how long they wait for a
    /// check.
    #[must_use]
    pub fn measured(self, metrics: AvailabilityMetrics, queues: WorkQueueMetrics) -> Self {
        Self {
            metrics,
            queues,
            ..self
        }
    }

    /// Runs the controller until it is dropped.
    pub async fn run(self) {
        let mut apis = TrackedApis::default();
        let via = format!("ringwatch-{}", uuid::Uuid::new_v4());
        let api_services = self.store.as_ref() as &dyn ListWatch;
        let sources = [(FollowedStores::ApiServices, api_services)];
        let informer = Informer::new("APIs of other servers", sources, self.clock.clone());
        loop {
            let ended = self.follow(&informer, &mut apis, &via).await;
            informer.pause_after(ended).await;
        }
    }

    /// Lists the APIServices and follows everything that matters until a watch ends.
    async fn follow(
        &self,
        informer: &Informer<'_, FollowedStores>,
        apis: &mut TrackedApis,
        via: &str,
    ) -> Result<(), Error> {
        let InformerList {
            objects,
            mut changes,
            ..
        } = informer.list().await?;
        let names: BTreeSet<&str> = objects.iter().map(|(_, it)| it.name()).collect();
        apis.retain(|name| names.contains(name));
        self.metrics.retain(|name| names.contains(name));
        for (_, object) in &objects {
            self.define(apis, object);
        }
        let mut follows_places = false;
        let services = self.addresses();
        let mut work = AggregationTask::new();
        let mut queue = self.queues.queue(QUEUE);
        loop {
            if !follows_places && !apis.is_empty() {
                changes.add(FollowedStores::Places, &self.services).await?;
                changes.add(FollowedStores::Places, &self.slices).await?;
                follows_places = true;
            }
            let now = self.clock.now();
            queue.set_waiting(apis.due(now));
            while work.len() < LOOKS_MAX
                && let Some(server) = apis.begin(now)
            {
                queue.begin(&server.api.name, now);
                work.push(self.look(server, &services).boxed());
            }
            // A check that needs no other server is over at once, and what it found is written while the API is built
            // anew, as soon after the APIService as kube-apiserver writes it.
            let mut done = work.next().now_or_never().flatten();
            if done.is_none() {
                self.serve(apis, &services, via);
                self.synced.set();
                let next = apis.next_due().filter(|_| work.len() < LOOKS_MAX);
                let at_next = async {
                    match next {
                        Some(next) => self.clock.sleep_until(next).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    next = changes.next() => {
                        let Some(next) = next? else { return Ok(()) };
                        for (source, change) in next {
                            self.note(apis, source, &change);
                        }
                    }
                    Some(ended) = work.next(), if !work.is_empty() => done = Some(ended),
                    () = at_next => {}
                }
            }
            let found = done.and_then(|done| self.note_check(apis, &mut queue, done));
            if let Some((server, said)) = found {
                if said.status == "True" {
                    // Whoever sees that an API is available finds its resources.
                    self.serve(apis, &services, via);
                }
                work.push(self.write_condition(server, said).boxed());
            }
        }
    }

    /// Proxies the APIs as they are known now, if that has changed.
    fn serve(&self, apis: &mut TrackedApis, services: &ServiceAddresses, via: &str) {
        if let Some(servers) = apis.changed() {
            let servers = AggregatedServers::new(servers, services.clone(), via);
            let servers = servers.passing_redirects(self.passes_redirects);
            self.api.serve_aggregated(servers);
        }
    }

    /// Notes the end of a check; returns what is to be written of it.
    fn note_check(
        &self,
        apis: &mut TrackedApis,
        queue: &mut WorkQueue,
        done: TaskResult,
    ) -> Option<(Arc<AggregatedServer>, Availability)> {
        let TaskResult::Looked(server, said, discovered) = done else {
            return None;
        };
        let now = self.clock.now();
        queue.end(&server.api.name, now);
        let counts = apis.finish(&server, &said, discovered, now);
        counts.then(|| {
            self.metrics.found(&server.api.name, &said);
            (server, said)
        })
    }

    fn addresses(&self) -> ServiceAddresses {
        ServiceAddresses {
            services: Arc::clone(self.services.storage()),
            slices: Arc::clone(self.slices.storage()),
        }
    }

    /// Checks whether a server is available, and if so asks it for discovery and OpenAPI.
    async fn look(&self, server: Arc<AggregatedServer>, services: &ServiceAddresses) -> TaskResult {
        let said = availability::check(&server, services, &self.tls.anyone, &self.clock);
        let said = said.await;
        if said.status != "True" {
            return TaskResult::Looked(server, said, None);
        }
        let discovered = inquiry::ask(&server, services, &self.clock).await;
        let discovered = discovered.map_err(|error| {
            let api = &server.api.name;
            tracing::warn!(%error, api, "discovery of an aggregated API failed");
        });
        TaskResult::Looked(server, said, discovered.ok())
    }

    /// Writes the condition Available of an APIService. If that fails it is written after the next check.
    async fn write_condition(
        &self,
        server: Arc<AggregatedServer>,
        said: Availability,
    ) -> TaskResult {
        let name = &server.api.name;
        let write = tell_availability(&self.store, name, &said, &self.clock);
        tokio::select! {
            biased;
            written = write => if let Err(error) = written {
                tracing::warn!(%error, api = name, "cannot write the status of an APIService");
            },
            () = self.clock.sleep(WRITE_TIMEOUT) => tracing::warn!(
                api = name,
                "writing the status of an APIService takes too long"
            ),
        }
        TaskResult::Wrote
    }

    fn note(&self, apis: &mut TrackedApis, source: FollowedStores, change: &InformerChange) {
        match (source, change) {
            (FollowedStores::ApiServices, InformerChange::Upserted(object)) => {
                self.define(apis, object)
            }
            (FollowedStores::ApiServices, InformerChange::Deleted(object)) => {
                self.metrics.retain(|name| name != object.name());
                apis.remove(object.name());
            }
            (
                FollowedStores::Places,
                InformerChange::Upserted(object) | InformerChange::Deleted(object),
            ) => {
                self.note_place(apis, object);
            }
        }
    }

    /// Applies the current state of an APIService. One that cannot be read is ignored.
    fn define(&self, apis: &mut TrackedApis, object: &Object) {
        let value = match self.store.served_value(object) {
            Ok(value) => value,
            Err(error) => {
                let name = object.name();
                tracing::warn!(%error, name, "an APIService cannot be read and is ignored");
                Value::Null
            }
        };
        match AggregatedApi::read(&value) {
            Some(api) => {
                let now = self.clock.now();
                apis.define(api, now, |api| self.tls.config(api));
                apis.check_told(object.name(), &value, now);
            }
            None => {
                self.metrics.is_local(object.name());
                apis.remove(object.name());
            }
        }
    }

    /// Schedules checks after a change of a service or a slice.
    fn note_place(&self, apis: &mut TrackedApis, object: &Object) {
        let (namespace, now) = (object.namespace(), self.clock.now());
        if !apis.is_in(namespace) {
            return;
        }
        // The service's own name, or that in the slice's label.
        apis.service_changed(namespace, object.name(), now);
        let tree = codec::tree(object).unwrap_or_default();
        if let Some(name) = tree.pointer(SERVICE_LABEL).and_then(|it| it.as_str()) {
            apis.service_changed(namespace, name, now);
        }
    }
}
