//! Looks after the APIs that other servers serve: whether each is available, and what it consists of.
//!
//! ```text
//!   APIServices, services, slices --watch--> KnownApis --due--> availability --> inquiry
//!                                               ^                                   |
//!        condition Available <--tell------------+----------- what the server says <-+
//!                                               |
//!                                               +--> Api::serve_remote
//! ```
//!
//! Services and slices are followed only while there is such an API.

mod availability;
mod inquiry;
mod known;

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
use ringwatch_apiserver::endpoints::{Api, Remote, Remotes};
use ringwatch_apiserver::health::Done;
use ringwatch_apiserver::{RemoteApi, ServiceAddresses};
use ringwatch_registry::informer::{Change, Listed};
use ringwatch_registry::{Informer, ListWatch, Store, Stores};
use ringwatch_resources::{Availability, tell_availability};
use ringwatch_tls::client_identity::ClientIdentity;
use ringwatch_tls::tls_client::{self, BundleTls, Trust};
use rustls::ClientConfig;

use self::inquiry::Told;
use self::known::KnownApis;

/// How many APIs are looked at at the same time.
const LOOKS_MAX: usize = 8;

/// How long a condition may take to be written.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// The label of a slice that names its service.
const SERVICE_LABEL: &str = "/metadata/labels/kubernetes.io~1service-name";

/// How TLS is spoken with other API servers.
#[derive(Debug)]
pub struct ProxyTls {
    /// With those for whom an authority vouches.
    trusted: BundleTls,
    /// With whoever is there.
    anyone: Arc<ClientConfig>,
}

impl ProxyTls {
    /// Showing this identity.
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

    /// With the server of an API; else a line that says why not.
    fn of(&self, api: &RemoteApi) -> Result<Arc<ClientConfig>, String> {
        if api.insecure {
            return Ok(Arc::clone(&self.anyone));
        }
        self.trusted.config(api.ca_bundle.as_deref())
    }
}

/// As whom this server asks other API servers.
fn aggregator() -> User {
    User {
        name: "system:kube-aggregator".to_owned(),
        groups: vec!["system:masters".to_owned()],
        ..User::default()
    }
}

/// Follows the APIServices that name a service.
#[derive(Debug)]
pub struct Aggregation {
    /// Where APIServices are.
    store: Arc<Store>,
    /// Where services are.
    services: Arc<Store>,
    /// Where endpoint slices are.
    slices: Arc<Store>,
    /// How TLS is spoken.
    tls: ProxyTls,
    /// The API that proxies requests.
    api: Arc<Api>,
    /// It knows them all.
    synced: Done,
    /// The time.
    clock: Clock,
}

/// The result of a check or a write.
enum Outcome {
    Looked(Arc<Remote>, Availability, Option<Told>),
    Wrote,
}

type Work<'a> = FuturesUnordered<BoxFuture<'a, Outcome>>;

/// The stores that are followed.
#[derive(Clone, Copy, Debug)]
enum Source {
    ApiServices,
    /// Services and slices.
    Places,
}

impl Aggregation {
    /// That of a server which has what it needs.
    #[must_use]
    pub fn of(
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
            clock,
        })
    }

    /// Follows until it is dropped.
    pub async fn run(self) {
        let mut known = KnownApis::default();
        let via = format!("ringwatch-{}", uuid::Uuid::new_v4());
        let apis = self.store.as_ref() as &dyn ListWatch;
        let sources = [(Source::ApiServices, apis)];
        let informer = Informer::new("APIs of other servers", sources, self.clock.clone());
        loop {
            let ended = self.follow(&informer, &mut known, &via).await;
            informer.pause_after(ended).await;
        }
    }

    /// Lists the APIServices and follows everything that matters until a watch ends.
    async fn follow(
        &self,
        informer: &Informer<'_, Source>,
        known: &mut KnownApis,
        via: &str,
    ) -> Result<(), Error> {
        let Listed {
            objects,
            mut changes,
            ..
        } = informer.list().await?;
        let names: BTreeSet<&str> = objects.iter().map(|(_, it)| it.name()).collect();
        known.retain(|name| names.contains(name));
        for (_, object) in &objects {
            self.define(known, object);
        }
        let mut follows_places = false;
        let services = self.addresses();
        let mut work = Work::new();
        loop {
            if !follows_places && !known.is_empty() {
                changes.add(Source::Places, &self.services).await?;
                changes.add(Source::Places, &self.slices).await?;
                follows_places = true;
            }
            if let Some(remotes) = known.changed() {
                let remotes = Remotes::new(remotes, services.clone(), via);
                self.api.serve_remote(remotes);
            }
            self.synced.set();
            let now = self.clock.now();
            while work.len() < LOOKS_MAX
                && let Some(remote) = known.begin(now)
            {
                work.push(self.look(remote, &services).boxed());
            }
            let next = known.next_due().filter(|_| work.len() < LOOKS_MAX);
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
                        self.note(known, source, &change);
                    }
                }
                Some(done) = work.next(), if !work.is_empty() => {
                    if let Outcome::Looked(remote, said, told) = done
                        && known.finish(&remote, told, self.clock.now())
                    {
                        work.push(self.tell(remote, said).boxed());
                    }
                }
                () = at_next => {}
            }
        }
    }

    fn addresses(&self) -> ServiceAddresses {
        ServiceAddresses {
            services: Arc::clone(self.services.storage()),
            slices: Arc::clone(self.slices.storage()),
        }
    }

    /// Asks a server everything.
    async fn look(&self, remote: Arc<Remote>, services: &ServiceAddresses) -> Outcome {
        let said = availability::check(&remote, services, &self.tls.anyone, &self.clock);
        let said = said.await;
        if said.status != "True" {
            return Outcome::Looked(remote, said, None);
        }
        let told = inquiry::ask(&remote, services, &self.clock).await;
        let told = told.map_err(|error| {
            let api = &remote.api.name;
            tracing::warn!(%error, api, "discovery of an aggregated API failed");
        });
        Outcome::Looked(remote, said, told.ok())
    }

    /// Writes whether an API is available. If that fails it is written after the next look.
    async fn tell(&self, remote: Arc<Remote>, said: Availability) -> Outcome {
        let name = &remote.api.name;
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
        Outcome::Wrote
    }

    fn note(&self, known: &mut KnownApis, source: Source, change: &Change) {
        match (source, change) {
            (Source::ApiServices, Change::Upserted(object)) => self.define(known, object),
            (Source::ApiServices, Change::Deleted(object)) => known.remove(object.name()),
            (Source::Places, Change::Upserted(object) | Change::Deleted(object)) => {
                self.note_place(known, object);
            }
        }
    }

    /// Takes an APIService as it is now. One that cannot be read does not count.
    fn define(&self, known: &mut KnownApis, object: &Object) {
        let api = match self.store.served_value(object) {
            Ok(value) => RemoteApi::read(&value),
            Err(error) => {
                let name = object.name();
                tracing::warn!(%error, name, "an APIService cannot be read and is ignored");
                None
            }
        };
        match api {
            Some(api) => known.define(api, self.clock.now(), |api| self.tls.of(api)),
            None => known.remove(object.name()),
        }
    }

    /// Takes note that a service or a slice has changed.
    fn note_place(&self, known: &mut KnownApis, object: &Object) {
        let (namespace, now) = (object.namespace(), self.clock.now());
        if !known.is_in(namespace) {
            return;
        }
        // A service names itself, a slice its service.
        known.service_changed(namespace, object.name(), now);
        let tree = codec::tree(object).unwrap_or_default();
        if let Some(name) = tree.pointer(SERVICE_LABEL).and_then(|it| it.as_str()) {
            known.service_changed(namespace, name, now);
        }
    }
}
