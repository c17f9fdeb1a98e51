//! The API as a function from requests to responses.
//!
//! [`Api::handle`] takes the same steps for every request: it finds the handler, calls it, adds the parts common to all
//! answers (audit id, warnings, compression), and counts the request.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use http::{Method, Request, Response};
use hyper::body::Body;
use ringwatch_apimachinery::User;
use ringwatch_http::{RequestBody, ResponseBody};
use ringwatch_openapi::{Documents, OpenApi};
use ringwatch_registry::{Resource, Store, Verb};

use super::aggregation::{self, AggregatedServers};
use super::api_config::ApiConfig;
use super::call::{Call, WatchTerms};
use super::discovery::Discovery;
use super::errors::Failure;
use super::handler::{Caller, Handler};
use super::handlers;
use super::memory_gate::MemoryGate;
use super::metrics::{RequestKind, RequestOutcome};
use super::negotiation;
use super::openapi::{OpenApiEndpoint, describe, is_compressed};
use super::params::Query;
use super::request_head::RequestHead;
use super::request_info::RequestInfo;
use super::response;
use super::routes::{NoRoute, Route, Routes};
use super::spans::HandlingSpan;
use crate::audit_id::{AUDIT_ID, audit_id};

/// The resource to which a Binding is posted that names its pod in the body.
const BINDINGS: &str = "bindings";

/// The time that admission webhooks took of a request; beside its response until that is counted.
#[derive(Clone, Copy, Debug)]
struct WebhookTime(Duration);

/// A response, with the labels under which its request is counted.
struct CountedResponse {
    response: Response<ResponseBody>,
    kind: RequestKind,
}

/// The API: everything below `/api` and `/apis`, and the documents that describe it.
#[derive(Debug)]
pub struct Api {
    config: ApiConfig,
    /// The resources and documents that are served now.
    served: ArcSwap<ServedApi>,
    /// The resources among them that are added and removed while the server runs.
    dynamic: Mutex<DynamicResources>,
    memory: MemoryGate,
    /// The cached OpenAPI documents.
    documents: Documents,
}

/// The resources that are added and removed while the server runs: custom ones, and those of other servers.
#[derive(Debug, Default)]
struct DynamicResources {
    custom: Vec<Arc<Store>>,
    servers: AggregatedServers,
}

/// The resources and documents that are served at one time. A request uses those that were served when it arrived.
#[derive(Debug)]
struct ServedApi {
    routes: Routes,
    discovery: Discovery,
    openapi: OpenApi,
    servers: AggregatedServers,
}

impl ServedApi {
    fn new(config: &ApiConfig, dynamic: &DynamicResources) -> Self {
        let stores = [config.stores.as_slice(), &dynamic.custom].concat();
        Self {
            routes: Routes::new(&stores, &config.storeless),
            discovery: Discovery::new(config, &stores, &dynamic.servers),
            openapi: describe(config, &stores, dynamic.servers.openapi()),
            servers: dynamic.servers.clone(),
        }
    }
}

/// Returns true for a HEAD of a resource, which kube-apiserver answers for custom resources and proxies alone.
fn is_refused_head(head: &RequestHead<'_>, resource: &Resource) -> bool {
    *head.method == Method::HEAD && !resource.is_custom() && head.info.subresource != "proxy"
}

#[async_trait]
impl Handler for Api {
    async fn handle(
        &self,
        request: Request<RequestBody>,
        info: Arc<RequestInfo>,
        caller: Caller,
    ) -> Response<ResponseBody> {
        Self::handle(self, request, info, caller).await
    }
}

fn expect_watches(config: &ApiConfig, stores: &[Arc<Store>]) {
    let resources = stores.iter().map(|store| store.resource());
    for resource in resources.filter(|it| it.verbs.contains(&Verb::Watch)) {
        config.metrics.expect_watches(resource);
    }
}

impl Api {
    /// Creates the API of these resources.
    #[must_use]
    pub fn new(config: ApiConfig) -> Self {
        expect_watches(&config, &config.stores);
        Self {
            served: ArcSwap::from_pointee(ServedApi::new(&config, &DynamicResources::default())),
            dynamic: Mutex::default(),
            memory: MemoryGate::new(config.ledger.clone(), config.metrics.clone()),
            documents: Documents::new(&config.ledger),
            config,
        }
    }

    /// Replaces the custom resources that are served. Built-in resources stay.
    pub fn serve_custom(&self, custom: &[Arc<Store>]) {
        expect_watches(&self.config, custom);
        self.serve(|dynamic| dynamic.custom = custom.to_vec());
    }

    /// Replaces the APIs that other servers serve.
    pub fn serve_aggregated(&self, servers: AggregatedServers) {
        self.serve(|dynamic| dynamic.servers = servers);
    }

    fn serve(&self, change: impl FnOnce(&mut DynamicResources)) {
        let mut dynamic = self.dynamic.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut dynamic);
        let served = ServedApi::new(&self.config, &dynamic);
        self.served.store(Arc::new(served));
    }

    /// Answers a request of an authenticated user, of which `info` was read. Errors become responses.
    pub async fn handle(
        &self,
        request: Request<RequestBody>,
        info: Arc<RequestInfo>,
        caller: Caller,
    ) -> Response<ResponseBody> {
        let user = caller.user;
        let started = self.config.clock.now();
        let served = self.served.load_full();
        let (mut parts, body) = request.into_parts();
        if info.subresource == "proxy" {
            handlers::name_host(&parts.uri, &mut parts.headers);
        }
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let head = RequestHead {
            method: &parts.method,
            info: &info,
            query: &query,
            headers: &parts.headers,
            pretty: negotiation::wants_pretty(&query, &parts.headers),
            address: caller.address,
            recording: caller.recording.as_ref(),
        };
        let counted = if let Some(server) = served.servers.serving(parts.uri.path()) {
            let path = parts.uri.path_and_query();
            let head = aggregation::RequestHead {
                method: &parts.method,
                path_and_query: path.map_or(&info.path, |path| path.as_str()),
                headers: &parts.headers,
                clock: &self.config.clock,
            };
            let proxied = aggregation::proxy(&served.servers, server, head, body, &user);
            CountedResponse {
                response: proxied.await,
                kind: RequestKind::unknown(&info),
            }
        } else {
            self.answer(&served, &head, body, user).await
        };
        let CountedResponse { mut response, kind } = counted;
        response
            .headers_mut()
            .insert(AUDIT_ID, audit_id(&parts.headers));
        let webhooks = response.extensions_mut().remove::<WebhookTime>();
        let outcome = RequestOutcome {
            code: response.status().as_u16(),
            seconds: (self.config.clock.now() - started).as_secs_f64(),
            webhook_seconds: webhooks.map_or(0.0, |it| it.0.as_secs_f64()),
            response_bytes: response.body().size_hint().exact(),
            dry_run: query.has("dryRun"),
        };
        self.config.metrics.observe(&kind, outcome);
        response
    }

    /// Answers a request that this server serves itself.
    async fn answer(
        &self,
        served: &ServedApi,
        head: &RequestHead<'_>,
        body: RequestBody,
        user: User,
    ) -> CountedResponse {
        let info = head.info;
        let mut counted = if info.is_resource {
            self.resource(served, head, body, user).await
        } else {
            CountedResponse {
                response: self.document(served, head).await,
                kind: RequestKind::unknown(info),
            }
        };
        if matches!(info.verb.name(), "get" | "list") && is_compressed(&info.path) {
            counted.response = response::compress(head.headers, counted.response);
        }
        counted
    }

    /// Answers a request for a document about the API.
    async fn document(&self, served: &ServedApi, head: &RequestHead<'_>) -> Response<ResponseBody> {
        let (method, path, headers) = (head.method, &head.info.path, head.headers);
        if OpenApi::has(path) {
            let endpoint = OpenApiEndpoint {
                api: &served.openapi,
                documents: &self.documents,
                clock: &self.config.clock,
            };
            return endpoint.answer(method, path, head.query, headers).await;
        }
        served.discovery.serve(method, path, headers, head.pretty)
    }

    /// Answers a request about a resource.
    async fn resource(
        &self,
        served: &ServedApi,
        head: &RequestHead<'_>,
        body: RequestBody,
        user: User,
    ) -> CountedResponse {
        let response = match served.routes.find(head.info) {
            Ok(Route::Stored(store, _)) if is_refused_head(head, store.resource()) => {
                head.failure(&Failure::method_not_allowed())
            }
            Ok(Route::Stored(store, verb)) => {
                return self
                    .stored(&served.routes, head, store, verb, body, user)
                    .await;
            }
            Ok(Route::Review(resource)) if resource.plural == BINDINGS => {
                return self.binding(&served.routes, head, body, user).await;
            }
            Ok(Route::Review(resource)) => {
                return self.review(head, resource, body, user).await;
            }
            Err(NoRoute::Nothing) => {
                let format = negotiation::status_format(head.headers, head.pretty);
                served.discovery.not_found(&head.info.path, format)
            }
            Err(NoRoute::Refused(failure)) => head.failure(&failure),
        };
        CountedResponse {
            response,
            kind: RequestKind::unknown(head.info),
        }
    }

    /// Handles a Binding posted to the collection: binds the pod that the body names, like the subresource of pods.
    async fn binding(
        &self,
        routes: &Routes,
        head: &RequestHead<'_>,
        body: RequestBody,
        user: User,
    ) -> CountedResponse {
        let kind = RequestKind::new(head.info, true);
        let pods = match routes.needed("", "v1", "pods") {
            Ok(pods) => pods,
            Err(failure) => {
                let response = head.failure(&failure);
                return CountedResponse { response, kind };
            }
        };
        let info = RequestInfo {
            resource: "pods".to_owned(),
            subresource: "binding".to_owned(),
            ..head.info.clone()
        };
        let head = RequestHead {
            info: &info,
            ..*head
        };
        let answered = self.stored(routes, &head, pods, Verb::Create, body, user);
        CountedResponse {
            kind,
            ..answered.await
        }
    }

    /// Answers an access or token review.
    async fn review(
        &self,
        head: &RequestHead<'_>,
        resource: &Resource,
        body: RequestBody,
        user: User,
    ) -> CountedResponse {
        let context = head.context(user, &self.config);
        let review = handlers::Review {
            resource,
            query: head.query,
            headers: head.headers,
            context: &context,
            authorizer: &self.config.authorizer,
            memory: &self.memory,
            authenticator: &self.config.authenticator,
            namespace: &head.info.namespace,
            pretty: head.pretty,
        };
        let answer = handlers::review(review, body).await;
        CountedResponse {
            response: head.response(answer, &context),
            kind: RequestKind::new(head.info, resource.namespaced),
        }
    }

    /// Answers a request about a resource that has a store.
    async fn stored(
        &self,
        routes: &Routes,
        head: &RequestHead<'_>,
        store: &Arc<Store>,
        verb: Verb,
        body: RequestBody,
        user: User,
    ) -> CountedResponse {
        let call = Call {
            routes,
            verb,
            store,
            encodings: &self.config.encodings,
            memory: &self.memory,
            kubelets: &self.config.kubelets,
            token_issuer: self.config.token_issuer.as_ref(),
            method: head.method,
            info: head.info,
            query: head.query,
            headers: head.headers,
            address: head.address,
            context: head.context(user, &self.config),
            pretty: head.pretty,
            features: self.config.features,
        };
        if let Some(text) = store.resource().deprecation() {
            call.context.warn(text);
            call.context.annotate("k8s.io/deprecated", || "true");
        }
        let mut kind = RequestKind::new(head.info, store.resource().namespaced);
        if verb == Verb::Patch && handlers::is_apply(head.headers) {
            kind.verb = "APPLY";
        }
        let answer = {
            // It is large, so it is not moved.
            let dispatched = pin!(self.dispatch(&call, body, &kind));
            match HandlingSpan::begin(&call, &kind, &self.config.clock) {
                Some(handling) => {
                    let answer = handling.run(dispatched).await;
                    handling.end(&call, &kind);
                    answer
                }
                None => dispatched.await,
            }
        };
        let mut response = head.response(answer, &call.context);
        let webhooks = WebhookTime(call.context.webhook_time());
        response.extensions_mut().insert(webhooks);
        CountedResponse { response, kind }
    }

    /// Passes a request to the handler of its verb or subresource.
    async fn dispatch(
        &self,
        call: &Call<'_>,
        body: RequestBody,
        kind: &RequestKind,
    ) -> Result<Response<ResponseBody>, Failure> {
        let subresource = call.store.resource().subresource(&call.info.subresource);
        if subresource.is_some_and(|it| it.served == ringwatch_registry::ServedBy::Handler) {
            return handlers::subresource(call, body).await;
        }
        match call.verb {
            Verb::Get => handlers::get(call).await,
            Verb::List => {
                let share = self.memory.list()?;
                let response = handlers::list(call, &self.memory).await?;
                self.memory.send_list(share, response)
            }
            Verb::Watch => {
                let selectors = ["labelSelector", "fieldSelector", "shardSelector"];
                let selectors = selectors.map(|name| call.query.first(name).len());
                let terms = WatchTerms {
                    share: self.memory.watch(selectors.iter().sum())?,
                    running: self.config.metrics.long_running(kind),
                    counts: self.config.metrics.watch(kind),
                    open: self.config.open_watches.clone(),
                    default_timeout: self.config.min_request_timeout,
                };
                handlers::watch(call, terms).await
            }
            Verb::Create => handlers::create(call, body).await,
            Verb::Update => handlers::update(call, body).await,
            Verb::Patch if handlers::is_apply(call.headers) => handlers::apply(call, body).await,
            Verb::Patch => handlers::patch(call, body).await,
            Verb::Delete => handlers::delete(call, body).await,
            Verb::DeleteCollection => handlers::delete_collection(call, body).await,
        }
    }
}
