//! The front of a relay: answers reads from caches, and passes everything else on to the upstream.
//!
//! ```text
//!   request --may be cached?--yes--> authorizer (SubjectAccessReview upstream) --> Api, over the cache of the resource
//!              |                                                                     (answers too old say how old)
//!              +--no--> the upstream, with the client's own credentials or as the client (impersonation)
//! ```
//!
//! The filters before have found who asks. What is passed on is authorized by the upstream alone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use http::header::{AGE, VIA};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri};
use ringwatch::clock::Instant;
use ringwatch::storage::{Interface, StorageError};
use ringwatch_apimachinery::{GroupVersion, User};
use ringwatch_authentication::is_anonymous;
use ringwatch_endpoints::{
    Api, Caller, Credentials, Handler, RequestInfo, TextError, set_impersonation,
};
use ringwatch_http::{RequestBody, ResponseBody};
use ringwatch_registry::{Store, Verb};

use super::caches::Caches;
use super::discovery::{Discovery, Resources};
use super::kinds::{CachedKind, Kinds};
use super::resource::ResourceType;
use super::upstream::{ForwardedCredentials, Upstream};

/// The time after which the kind of a resource is asked for again, so that changes of its definition are noticed.
const KIND_CURRENT_FOR: Duration = Duration::from_secs(30);
/// Maximum time that a request waits until its cache is filled. After it the client is told when to ask again.
const FILL_TIMEOUT: Duration = Duration::from_secs(10);

/// The parts of a [`Front`].
#[derive(Debug)]
pub struct FrontConfig {
    /// The server of everything.
    pub upstream: Arc<Upstream>,
    /// The caches of its resources.
    pub caches: Arc<Caches>,
    /// Answers reads of the resources that are cached. It has none of its own.
    pub api: Api,
    /// True if Secrets are cached.
    pub caches_secrets: bool,
    /// The paths of this server's own whose readers are authorized, with what is below them, such as `/metrics`.
    pub own_paths: Vec<String>,
}

/// Answers the requests to a relay.
#[derive(Debug)]
pub struct Front {
    config: FrontConfig,
    discovery: Discovery,
    kinds: Kinds,
    /// The resources about which the upstream has been asked.
    known: Mutex<HashMap<ResourceName, ResourceEntry>>,
    /// The name of this relay in `Via`, by which a loop is noticed.
    via: String,
}

/// A resource about which the upstream has been asked.
#[derive(Debug)]
struct ResourceEntry {
    /// The answer of discovery by which it is known.
    described: Resources,
    /// The time at which its kind was asked for.
    asked: Instant,
    /// `None` if it is not cached.
    cached: Option<CachedResource>,
}

/// A resource that is served from a cache.
#[derive(Debug)]
struct CachedResource {
    resource: ResourceType,
    kind: CachedKind,
    store: Arc<Store>,
}

/// The version of an API and a plural.
type ResourceName = (GroupVersion, String);

impl Front {
    /// Creates the front of these parts. No resource is cached yet.
    #[must_use]
    pub fn new(config: FrontConfig) -> Self {
        let id: u64 = rand::random();
        Self {
            discovery: Discovery::new(Arc::clone(&config.upstream)),
            kinds: Kinds::new(Arc::clone(&config.upstream)),
            known: Mutex::default(),
            via: format!("1.1 ringwatch-relay-{id:016x}"),
            config,
        }
    }

    /// Begins the cache of a resource, if it can be cached and has none yet. Returns the resource as it is cached, and
    /// `None` if it is not.
    ///
    /// # Errors
    /// The upstream cannot be asked about the resource; there are too many.
    pub async fn cache(
        &self,
        version: &GroupVersion,
        plural: &str,
    ) -> Result<Option<ResourceType>, StorageError> {
        let resources = self.discovery.resources(version).await?;
        let name = (version.clone(), plural.to_owned());
        let described = resources.get(plural).filter(|it| it.can_be_followed());
        let Some(described) = described else {
            self.forget(&name);
            return Ok(None);
        };
        if let Some(cached) = self.current(&name, &resources) {
            return Ok(cached);
        }
        match self.kinds.find(version, plural, described).await {
            Ok(kind) => self.know(name, kind, resources),
            // What was known still counts.
            Err(error) => self.known_to_be_cached(&name).map(Some).ok_or(error),
        }
    }

    /// Begins the cache of a resource and waits until it is filled; returns false if it is not cached.
    ///
    /// # Errors
    /// As [`Self::cache`]; the cache cannot be filled.
    pub async fn fill(&self, version: &GroupVersion, plural: &str) -> Result<bool, StorageError> {
        let Some(resource) = self.cache(version, plural).await? else {
            return Ok(false);
        };
        self.config.caches.filled(&resource).await?;
        Ok(true)
    }

    /// Returns what is known of a resource: that it is cached, or not; `None` if its kind is to be asked for.
    fn current(&self, name: &ResourceName, resources: &Resources) -> Option<Option<ResourceType>> {
        let now = self.config.upstream.clock().now();
        let mut known = self.lock();
        let known = known.get_mut(name)?;
        let is_current = now.saturating_duration_since(known.asked) < KIND_CURRENT_FOR;
        if !is_current {
            // One asks again, and the others take what is known meanwhile.
            known.asked = now;
            return None;
        }
        let cached = known.cached.as_ref().map(|it| it.resource.clone());
        Arc::ptr_eq(&known.described, resources).then_some(cached)
    }

    fn known_to_be_cached(&self, name: &ResourceName) -> Option<ResourceType> {
        let known = self.lock();
        let cached = known.get(name)?.cached.as_ref();
        cached.map(|it| it.resource.clone())
    }

    /// Serves a resource of this kind from its cache, which is begun again if its objects are others than before; not
    /// any more if there is no kind.
    fn know(
        &self,
        name: ResourceName,
        kind: Option<CachedKind>,
        described: Resources,
    ) -> Result<Option<ResourceType>, StorageError> {
        let asked = self.config.upstream.clock().now();
        let mut known = self.lock();
        let before = known.remove(&name).and_then(|it| it.cached);
        let (cached, changes) = match (before, kind) {
            (Some(before), Some(kind)) if before.kind.is_the_same(&kind) => (Some(before), false),
            (None, None) => (None, false),
            (before, kind) => {
                let is_read_alike = |it: &CachedResource| {
                    let kind = kind.as_ref();
                    kind.is_some_and(|kind| it.kind.is_read_like(kind))
                };
                if let Some(gone) = before.filter(|it| !is_read_alike(it)) {
                    self.config.caches.forget(&gone.resource);
                }
                (kind.map(|it| self.begin(it)).transpose()?, true)
            }
        };
        let resource = cached.as_ref().map(|it| it.resource.clone());
        let now_known = ResourceEntry {
            described,
            asked,
            cached,
        };
        known.insert(name, now_known);
        if changes {
            self.publish(&known);
        }
        Ok(resource)
    }

    /// Joins a resource with its cache, which is begun if it is not there.
    fn begin(&self, kind: CachedKind) -> Result<CachedResource, StorageError> {
        let resource = resource_type(&kind);
        let schema = &kind.resource.schema;
        let storage = self.config.caches.cached(&resource, schema)? as Arc<dyn Interface>;
        Ok(CachedResource {
            store: Arc::new(Store::new(Arc::clone(&kind.resource), storage)),
            resource,
            kind,
        })
    }

    /// Serves a resource from its cache no longer, since the upstream has it no more.
    fn forget(&self, name: &ResourceName) {
        let mut known = self.lock();
        if let Some(gone) = known.remove(name).and_then(|it| it.cached) {
            self.config.caches.forget(&gone.resource);
            self.publish(&known);
        }
    }

    fn publish(&self, known: &HashMap<ResourceName, ResourceEntry>) {
        let cached = known.values().filter_map(|it| it.cached.as_ref());
        let stores: Vec<_> = cached.map(|it| Arc::clone(&it.store)).collect();
        self.config.api.serve_custom(&stores);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ResourceName, ResourceEntry>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if a request can be answered from a cache, if there is one. Whether requests without credentials
    /// are served at all, the upstream alone knows.
    fn may_be_cached(&self, info: &RequestInfo, user: &User) -> bool {
        let verb = info.verb.on_resource();
        let is_secret = info.group.is_empty() && info.resource == "secrets";
        info.is_resource
            && info.subresource.is_empty()
            && matches!(verb, Some(Verb::Get | Verb::List | Verb::Watch))
            && (self.config.caches_secrets || !is_secret)
            && !is_anonymous(user)
    }

    /// Answers a read of a cached resource. The first wait until its cache is filled, as they would for the upstream's
    /// list.
    async fn answer(
        &self,
        request: Request<RequestBody>,
        info: Arc<RequestInfo>,
        caller: Caller,
        resource: &ResourceType,
    ) -> Response<ResponseBody> {
        let caches = &self.config.caches;
        let clock = self.config.upstream.clock();
        // The API says why a cache is not filled.
        let _ = clock.timeout(FILL_TIMEOUT, caches.filled(resource)).await;
        let version = GroupVersion::new(&resource.group, &resource.version);
        let away = caches.away(resource);
        // A watch stays open while a relay that the upstream is has lost its own, or nothing comes through.
        let away = away.max(self.discovery.unanswered(&version)).as_secs();
        let may_be_old = may_be_old(&info, request.uri().query().unwrap_or_default());
        let mut response = self.config.api.handle(request, info, caller).await;
        if away > 0 && may_be_old && response.status().is_success() {
            response.headers_mut().insert(AGE, away.into());
        }
        response
    }

    /// Passes a request on to the upstream.
    async fn pass_on(
        &self,
        mut request: Request<RequestBody>,
        caller: Caller,
    ) -> Response<ResponseBody> {
        if request
            .headers()
            .get_all(VIA)
            .iter()
            .any(|it| *it == self.via)
        {
            return unavailable("the request came from this relay: its upstream leads back to it");
        }
        let Some(path) = request.uri().path_and_query().cloned() else {
            // CONNECT names another server, not a path of this one.
            return unavailable("a relay is no proxy of other servers");
        };
        *request.uri_mut() = Uri::from(path);
        let shown = match caller.credentials {
            Some(Credentials(own)) => ForwardedCredentials::Own(own),
            None => {
                if let Err(error) = set_impersonation(request.headers_mut(), &caller.user) {
                    return TextError::Internal(&error.to_string()).response();
                }
                strip_proxied_user(request.headers_mut());
                ForwardedCredentials::Relay
            }
        };
        if let Ok(via) = HeaderValue::try_from(&self.via) {
            request.headers_mut().append(VIA, via);
        }
        match self.config.upstream.pass_on(request, shown).await {
            Ok(response) => response,
            Err(error) => unavailable(&format!("error trying to reach the upstream: {error}")),
        }
    }
}

#[async_trait]
impl Handler for Front {
    async fn handle(
        &self,
        request: Request<RequestBody>,
        info: Arc<RequestInfo>,
        caller: Caller,
    ) -> Response<ResponseBody> {
        let is_stranger = matches!(caller.credentials, Some(Credentials(None)));
        if request.method() != Method::GET
            || is_stranger
            || !self.may_be_cached(&info, &caller.user)
        {
            return self.pass_on(request, caller).await;
        }
        let version = GroupVersion::new(&info.group, &info.version);
        let resource = match self.cache(&version, &info.resource).await {
            Ok(Some(resource)) => resource,
            Ok(None) => return self.pass_on(request, caller).await,
            Err(error) => {
                tracing::debug!(%error, resource = info.resource, "a resource cannot be cached");
                return self.pass_on(request, caller).await;
            }
        };
        self.answer(request, info, caller, &resource).await
    }

    /// Returns true for what is answered here, health aside, which everybody may ask for.
    fn needs_authorization(&self, info: &RequestInfo, user: &User) -> bool {
        let is_below = |own: &String| {
            let below = info.path.strip_prefix(own);
            below.is_some_and(|it| it.is_empty() || it.starts_with('/'))
        };
        self.config.own_paths.iter().any(is_below) || self.may_be_cached(info, user)
    }

    fn takes_credentials(&self) -> bool {
        true
    }
}

fn resource_type(kind: &CachedKind) -> ResourceType {
    let resource = &kind.resource;
    ResourceType {
        group: resource.group_version.group.clone(),
        version: resource.group_version.version.clone(),
        resource: resource.plural.clone(),
        kind: resource.kind.clone(),
        is_namespaced: resource.namespaced,
        prefix: format!("/{}/", resource.storage_prefix),
    }
}

/// Removes the headers by which a front proxy names a user. An upstream may take the relay's own certificate for one's.
fn strip_proxied_user(headers: &mut HeaderMap) {
    let is_proxied = |name: &&HeaderName| name.as_str().starts_with("x-remote-");
    let proxied: Vec<_> = headers.keys().filter(is_proxied).cloned().collect();
    for name in proxied {
        headers.remove(name);
    }
}

/// Returns true if a request can be answered with what a cache had before it lost its upstream: a read that names a
/// version, or a watch that does not begin with the newest state.
fn may_be_old(info: &RequestInfo, query: &str) -> bool {
    let has = |wanted: &str| {
        let mut parameters = form_urlencoded::parse(query.as_bytes());
        parameters.any(|(name, value)| name == wanted && !value.is_empty())
    };
    let is_watch = info.verb.on_resource() == Some(Verb::Watch);
    has("resourceVersion") || is_watch && !has("sendInitialEvents")
}

fn unavailable(why: &str) -> Response<ResponseBody> {
    TextError::Unavailable(why).response()
}
