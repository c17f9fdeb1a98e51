//! The chain of filters, each a method that calls the next one.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use http::header::{AUTHORIZATION, CACHE_CONTROL};
use http::{HeaderValue, Request, Response};
use jiff::Timestamp;
use ringwatch::clock::{Clock, Instant};
use ringwatch_apimachinery::User;
use ringwatch_audit::{Auditor, Recording};
use ringwatch_authentication::{Authenticator, Peer, is_anonymous};
use ringwatch_authorization::Authorizer;
use ringwatch_flowcontrol::fairness::{TooMany, Turn, width};
use ringwatch_flowcontrol::{Fairness, Requester, Watches};
use ringwatch_http::{Body, CancellationFlag, RequestBody, ResponseBody};
use ringwatch_observe::running_requests::RunningRequests;
use ringwatch_registry::Verb;
use ringwatch_registry::object_counts::ObjectCounts;
use ringwatch_spans::Tracer;

use super::body_guards::{guard_request, guard_watch};
use super::drain::Draining;
use super::handler::{Credentials, Handler, OwnPaths, answer_own};
use super::{InFlight, LargeWork, Outer, Start, answer, deadline, impersonation};
use crate::audit_id::{AUDIT_ID, audit_id};
use crate::client_side::{ClientSide, client_summary};
use crate::endpoints::{
    self, Impersonation, Metrics, ProxiedResponse, Refusal, RequestInfo, RequestVerb, TextError,
};

/// The outcome of a request's authentication, as far as its connection goes.
#[derive(Clone, Copy, Debug)]
pub enum Authentication<'a> {
    /// The request is of this user, who may be the anonymous one.
    User(&'a User),
    /// The request has no valid credentials.
    Refused,
    /// The request was answered before its credentials were judged.
    Skipped,
}

/// A callback that is told the outcome of the authentication of each request, before the request is answered.
pub type OnAuthentication<'a> = &'a (dyn Fn(Authentication<'_>) + Sync);

/// The time at which a request came.
pub(super) type Began = (Instant, Timestamp);

/// The facts of a request that are known before its user is.
pub(super) struct Terms {
    pub(super) info: Arc<RequestInfo>,
    pub(super) began: Began,
    /// The time by which it must be answered; `None` for watches and streams.
    pub(super) deadline: Option<Instant>,
}

/// The limits of requests in progress, and of their time.
#[derive(Debug)]
pub struct Limits {
    /// Limits the requests in flight.
    pub in_flight: InFlight,
    /// API Priority and Fairness; `None` if only the requests in flight are limited.
    pub fairness: Option<Arc<Fairness>>,
    /// The numbers of objects of each resource, by which lists take more or fewer seats.
    pub sizes: ObjectCounts,
    /// Limits the watches of each user.
    pub watches: Watches,
    /// The requests that run.
    pub running: RunningRequests,
    /// The threads for requests with work that would keep a worker from others.
    pub large_work: LargeWork,
    /// Maximum time that a request may take, watches and streams aside.
    pub request_timeout: Duration,
    /// Counts the requests that are refused for their number, or ended at their time limit.
    pub metrics: Metrics,
}

/// The chain of filters, and the API behind it.
pub struct Filters {
    /// The outermost filters.
    pub outer: Outer,
    /// Authenticates the user of a request.
    pub authenticator: Arc<Authenticator>,
    /// The steps that must be done before the API is served.
    pub start: Start,
    /// Starts the spans of requests; `None` if none are exported.
    pub tracer: Option<Tracer>,
    /// Records requests; `None` if no policy says that any are.
    pub auditor: Option<Arc<Auditor>>,
    /// Decides whether the user may make the request as somebody else.
    pub impersonation: Arc<Impersonation>,
    /// Decides whether the user may make the request.
    pub authorizer: Arc<Authorizer>,
    /// The limits of requests in progress, and of their time.
    pub limits: Limits,
    /// Cancelled when the server ends, which ends all watches.
    pub end_of_watches: CancellationFlag,
    /// The server's own paths.
    pub own: Arc<dyn OwnPaths>,
    /// The handler of every request that is not for one of the server's own paths.
    pub api: Arc<dyn Handler>,
    /// The clock of deadlines and of the access log.
    pub clock: Clock,
}

impl std::fmt::Debug for Filters {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Filters").finish_non_exhaustive()
    }
}

impl Filters {
    /// Answers a request of a peer. Errors become responses. `on_authentication` is called once.
    pub async fn answer(
        &self,
        mut request: Request<RequestBody>,
        peer: &Peer,
        on_authentication: OnAuthentication<'_>,
    ) -> Response<Body> {
        let began = (self.clock.now(), self.clock.wall());
        let audit_id = audit_id(request.headers());
        if let Some(mut turned_away) = self.outer.turned_away(&request) {
            on_authentication(Authentication::Skipped);
            turned_away.headers_mut().insert(AUDIT_ID, audit_id);
            return turned_away.map(Body::from);
        }
        let effects = self.outer.effects(&request);
        // Whoever the request is passed on to calls it the same.
        request.headers_mut().insert(AUDIT_ID, audit_id.clone());
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let answered = async {
            match effects.preflight() {
                Some(response) => {
                    on_authentication(Authentication::Skipped);
                    response.map(Body::from)
                }
                None => self.timed(request, peer, began, on_authentication).await,
            }
        };
        let mut response = match AssertUnwindSafe(answered).catch_unwind().await {
            Ok(response) => response,
            Err(panic) => {
                tracing::error!(%method, path = uri.path(), panic = panic_text(&*panic), "a request panicked");
                TextError::Panicked.response().map(Body::from)
            }
        };
        let headers = response.headers_mut();
        effects.apply(headers);
        headers
            .entry(CACHE_CONTROL)
            .or_insert(HeaderValue::from_static("no-cache, private"));
        headers.insert(AUDIT_ID, audit_id);
        tracing::debug!(
            %method, path = uri.path(), code = response.status().as_u16(),
            microseconds = self.clock.now().duration_since(began.0).as_micros(), "request"
        );
        response
    }

    /// Sets the time limit of a request, which counts from when it came and holds for its authentication too.
    ///
    /// Follows the order of `DefaultBuildHandlerChain` of Kubernetes 1.36 (`apiserver/pkg/server/config.go`).
    async fn timed(
        &self,
        request: Request<RequestBody>,
        peer: &Peer,
        began: Began,
        on_authentication: OnAuthentication<'_>,
    ) -> Response<Body> {
        let (method, uri) = (request.method(), request.uri());
        let query = uri.query().unwrap_or_default();
        let mut terms = Terms {
            info: Arc::new(RequestInfo::new(method, uri.path(), query)),
            began,
            deadline: None,
        };
        let mut _in_progress = None;
        if !terms.info.is_long_running() {
            _in_progress = self.outer.drain.request(uri, request.headers());
            match deadline::time_limit(query, self.limits.request_timeout) {
                Ok(limit) => terms.deadline = Some(began.0 + limit),
                Err(message) => {
                    on_authentication(Authentication::Skipped);
                    let refusal = Refusal::InvalidTimeout(message);
                    return self.unidentified(request, &terms, &refusal).await;
                }
            }
        }
        self.identified(request, peer, terms, on_authentication)
            .await
    }

    /// Authenticates a request within its time limit, and answers it. Watches and streams, which have none, are
    /// authenticated within the limit of other requests.
    async fn identified(
        &self,
        mut request: Request<RequestBody>,
        peer: &Peer,
        terms: Terms,
        on_authentication: OnAuthentication<'_>,
    ) -> Response<Body> {
        let (since, now) = terms.began;
        let end = terms
            .deadline
            .unwrap_or(since + self.limits.request_timeout);
        let path = &terms.info.path;
        let side = request.extensions().get::<ClientSide>();
        let from = side.and_then(|it| Some(it.address?.ip()));
        let shown = request.headers().get(AUTHORIZATION);
        // Certificates come first, and a token beside one has not been looked at.
        let is_proof = peer.user.is_none() && !peer.is_front_proxy_at(now);
        let shown = shown.filter(|_| is_proof).cloned();
        let headers = request.headers_mut();
        let authenticator = &self.authenticator;
        let authenticated = authenticator.authenticate(peer, from, headers, path, now);
        let authenticated = self.clock.timeout(self.left(end), authenticated).await;
        let (user, refusal) = match authenticated {
            Ok(user) => (user, Refusal::Unauthenticated),
            Err(_) => (None, Refusal::DeadlineExceeded),
        };
        let Some(user) = user else {
            on_authentication(match refusal {
                Refusal::DeadlineExceeded => Authentication::Skipped,
                _ => Authentication::Refused,
            });
            return self.unidentified(request, &terms, &refusal).await;
        };
        if self.api.takes_credentials() && (shown.is_some() || is_anonymous(&user)) {
            request.extensions_mut().insert(Credentials(shown));
        }
        on_authentication(Authentication::User(&user));
        self.traced(request, user, &terms).await
    }

    /// Answers a request of an authenticated user once the server has started.
    pub(super) async fn started(
        &self,
        request: Request<RequestBody>,
        user: User,
        terms: &Terms,
    ) -> Response<Body> {
        if let Some(not_yet) = self.start.wait(&terms.info.path, &self.clock).await {
            return not_yet.map(Body::from);
        }
        match &self.auditor {
            Some(auditor) => Box::pin(self.audited(auditor, request, user, terms)).await,
            None => self.within_limit(request, user, terms).await,
        }
    }

    /// Returns the time that is left until `end`.
    fn left(&self, end: Instant) -> Duration {
        end - self.clock.now().min(end)
    }

    /// Answers a request of an authenticated user within its time limit.
    pub(super) async fn within_limit(
        &self,
        request: Request<RequestBody>,
        user: User,
        terms: &Terms,
    ) -> Response<Body> {
        let acting = self.acting(request, user, &terms.info);
        let Some(end) = terms.deadline else {
            return acting.await;
        };
        let Ok(answer) = self.clock.timeout(self.left(end), acting).await else {
            let refusal = answer::refused(&Refusal::DeadlineExceeded);
            let code = refusal.status().as_u16();
            self.limits.metrics.terminate(&terms.info, code);
            return refusal.map(Body::from);
        };
        if answer.extensions().get::<ProxiedResponse>().is_none() {
            return answer;
        }
        answer.map(|body| body.within(self.left(end), &self.clock))
    }

    /// Answers a request of an authenticated user, who may act as another one.
    async fn acting(
        &self,
        request: Request<RequestBody>,
        user: User,
        info: &Arc<RequestInfo>,
    ) -> Response<Body> {
        let from = self.clock.now();
        let (uri, headers) = (request.uri(), request.headers());
        let impersonated = self.impersonated(&user, info, uri, headers).await;
        let recording = recording(&request).filter(|_| endpoints::impersonates(headers));
        if let Some(recording) = recording {
            recording.took("impersonation", self.clock.now().duration_since(from));
        }
        let user = match impersonated {
            Ok(Ok(None)) => user,
            Ok(Ok(Some(other))) => {
                if let Some(recording) = recording {
                    recording.impersonated(&other.user, other.constraint);
                }
                other.user
            }
            Ok(Err(error)) => return impersonation::refused(error).map(Body::from),
            Err(TooMany) => return self.too_many(info),
        };
        let fairness = self.limits.fairness.as_ref();
        let classification =
            fairness.and_then(|fairness| fairness.classify(&info.attributes(&user)));
        let mut response = match info.is_long_running() {
            true => {
                let query = request.uri().query().unwrap_or_default();
                let everything = info.is_of_everything(query);
                let client = client_summary(&request, &user);
                let response = self.long_running(request, user, info).await;
                let (running, code) = (&self.limits.running, response.status());
                running.begun(&**info, everything, &client, code, self.clock.now());
                response
            }
            false => self.counted(request, user, info).await,
        };
        if let Some(classification) = classification {
            classification.add_headers(response.headers_mut());
        }
        response
    }

    async fn long_running(
        &self,
        request: Request<RequestBody>,
        user: User,
        info: &Arc<RequestInfo>,
    ) -> Response<Body> {
        let (mut place, mut open) = (None, None);
        if info.verb == RequestVerb::Resource(Verb::Watch) {
            open = match self.outer.drain.watch() {
                Ok(open) => open,
                Err(Draining) => return answer::refused(&Refusal::Ending).map(Body::from),
            };
            place = match self.limits.watches.enter(&user) {
                Ok(place) => place,
                Err(TooMany) => return self.too_many(info),
            };
        }
        let response = self.authorized(request, user, info).await;
        response.map(|body| guard_watch(body, open, place, &self.end_of_watches))
    }

    /// Refuses a request because there are too many, and counts it.
    fn too_many(&self, info: &RequestInfo) -> Response<Body> {
        let response = TextError::TooManyRequests.response();
        self.limits
            .metrics
            .terminate(info, response.status().as_u16());
        response.map(Body::from)
    }

    /// Waits until the request has its seats by priority and fairness; returns at once if that is off.
    async fn turn(
        &self,
        query: &str,
        user: &User,
        info: &RequestInfo,
    ) -> Result<Option<Turn>, TooMany> {
        let Some(fairness) = &self.limits.fairness else {
            return Ok(None);
        };
        let width = if info.verb == RequestVerb::Resource(Verb::List) {
            let now = self.clock.now();
            let size = self.limits.sizes.size(&info.group, &info.resource, now);
            width(size, objects_max(info, query))
        } else {
            1
        };
        fairness
            .turn(&info.attributes(user), width, &self.clock)
            .await
    }

    async fn counted(
        &self,
        request: Request<RequestBody>,
        user: User,
        info: &Arc<RequestInfo>,
    ) -> Response<Body> {
        let query = request.uri().query().unwrap_or_default();
        let recording = recording(&request).map(|it| (it, self.clock.now()));
        let client = client_summary(&request, &user);
        let (facts, everything) = (Arc::clone(info), info.is_of_everything(query));
        let all = &self.limits.running;
        let running = all.begin(facts, everything, client, &self.clock);
        let refused = || {
            let response = self.too_many(info);
            running.responded(response.status());
            response
        };
        let Ok(turn) = self.turn(query, &user, info).await else {
            return refused();
        };
        let now = self.clock.now();
        if let Some((recording, from)) = recording {
            recording.took("apf-queue-wait", now.duration_since(from));
        }
        let Some(permit) = self.limits.in_flight.enter(info.is_mutating(), &user, now) else {
            return refused();
        };
        let response = self.authorized(request, user, info).await;
        running.responded(response.status());
        response.map(|body| guard_request(body, permit, turn, running))
    }

    /// Authorizes a request and passes it on. Both may move to the threads for large work.
    async fn authorized(
        &self,
        request: Request<RequestBody>,
        user: User,
        info: &Arc<RequestInfo>,
    ) -> Response<ResponseBody> {
        let requester = Requester::from(&user);
        let (authorizer, info) = (Arc::clone(&self.authorizer), Arc::clone(info));
        let (own, api) = (Arc::clone(&self.own), Arc::clone(&self.api));
        let recording = recording(&request).map(|it| (Arc::clone(it), self.clock.clone()));
        let request = async move {
            let query = request.uri().query().unwrap_or_default();
            let recording = recording.as_ref().map(|(it, clock)| (&**it, clock));
            let headers = request.headers();
            if api.needs_authorization(&info, &user) {
                let refused =
                    endpoints::refusal(&authorizer, &user, &info, query, headers, recording);
                if let Some(refusal) = refused.await {
                    return refusal;
                }
            }
            match answer_own(&*own, request, &info.path).await {
                Ok(response) => response,
                Err(request) => api.handle(request, user).await,
            }
        };
        let large_work = &self.limits.large_work;
        large_work.answer(Box::pin(request), &requester).await
    }
}

/// Returns the record of a request, if there is one.
fn recording<B>(request: &Request<B>) -> Option<&Arc<Recording>> {
    request.extensions().get()
}

/// Returns the message of a panic.
pub(super) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}

/// Returns how many objects a list can show at most.
fn objects_max(info: &RequestInfo, query: &str) -> u64 {
    if endpoints::selected_name(info, query).is_some() {
        return 1;
    }
    let mut parameters = form_urlencoded::parse(query.as_bytes());
    let limit = parameters.find(|(name, _)| name == "limit");
    let limit = limit.and_then(|(_, limit)| limit.parse().ok());
    limit.filter(|limit| *limit > 0).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
