//! The state of a request on its way through the filters.

use std::sync::Arc;

use http::header::{CACHE_CONTROL, CONNECTION, STRICT_TRANSPORT_SECURITY};
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use jiff::Timestamp;
use ringwatch::clock::{Clock, Instant};
use ringwatch_apimachinery::User;
use ringwatch_audit::Recording;
use ringwatch_authentication::Peer;
use ringwatch_authorization::Authorizer;
use ringwatch_endpoints::audit_id::AUDIT_ID;
use ringwatch_endpoints::{Credentials, RequestInfo};
use ringwatch_flowcontrol::fairness::{CountedWatch, Turn};
use ringwatch_http::RequestBody;
use ringwatch_observe::ClientSummary;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::allowed_origin;
use super::drain::OpenWatch;
use super::in_flight::Permit;

pub(super) const CLOSE: HeaderValue = HeaderValue::from_static("close");

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

/// The client's side of the connection of a request.
#[derive(Clone, Copy, Debug)]
pub struct ClientSide<'a> {
    /// The address of the client, or of the last proxy before this server; `None` for one without a socket.
    pub address: Option<std::net::SocketAddr>,
    /// True if it has shown a certificate, valid or not.
    pub shows_certificate: bool,
    /// The identity that its certificate proves.
    pub peer: &'a Peer,
}

/// A request on its way through the filters, and what they have found out about it.
pub(super) struct RequestState<'a> {
    /// The request; empty once its handler has taken it.
    pub(super) request: Request<RequestBody>,
    /// The method and the URI of the request, which are left when its handler has taken it.
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) client: ClientSide<'a>,
    /// The time at which the request came, by both clocks.
    pub(super) began: (Instant, Timestamp),
    /// The headers of the response, whoever gives it.
    pub(super) response_headers: ResponseHeaders,
    /// The path and the verb, once `WithRequestInfo` has read them.
    pub(super) info: Arc<RequestInfo>,
    /// The count of a watch among those that end one by one.
    pub(super) open_watch: Option<OpenWatch>,
    /// The count of a request among those that the end of the server waits for.
    pub(super) in_progress: Option<TaskTrackerToken>,
    /// The time by which the request must be answered; `None` for watches and streams.
    pub(super) deadline: Option<Instant>,
    /// The user: nobody before authentication, then the authenticated one or the one that this one acts as.
    pub(super) user: User,
    /// The credentials by which the user was found, for handlers that show them to another server.
    pub(super) credentials: Option<Credentials>,
    /// The audit record of the request; `None` if it is not recorded.
    pub(super) recording: Option<Arc<Recording>>,
    /// The seats by priority and fairness.
    pub(super) turn: Option<Turn>,
    /// The place among the requests in flight.
    pub(super) permit: Option<Permit>,
    /// The place among the watches of the user.
    pub(super) counted_watch: Option<CountedWatch>,
    /// Decides whether the user may make the request; `None` if another server does.
    pub(super) authorizer: Option<Arc<Authorizer>>,
    on_authentication: Option<OnAuthentication<'a>>,
}

impl<'a> RequestState<'a> {
    pub(super) fn new(
        request: Request<RequestBody>,
        client: ClientSide<'a>,
        on_authentication: OnAuthentication<'a>,
        clock: &Clock,
    ) -> Self {
        Self {
            method: request.method().clone(),
            uri: request.uri().clone(),
            request,
            client,
            began: (clock.now(), clock.wall()),
            response_headers: ResponseHeaders::default(),
            info: Arc::default(),
            open_watch: None,
            in_progress: None,
            deadline: None,
            user: User::default(),
            credentials: None,
            recording: None,
            turn: None,
            permit: None,
            counted_watch: None,
            authorizer: None,
            on_authentication: Some(on_authentication),
        }
    }

    /// Tells the connection the outcome of the authentication, unless it has been told before.
    pub(super) fn judge(&mut self, outcome: Authentication<'_>) {
        if let Some(tell) = self.on_authentication.take() {
            tell(outcome);
        }
    }

    pub(super) fn query(&self) -> &str {
        self.uri.query().unwrap_or_default()
    }

    /// Returns the summary of the client for the status page.
    pub(super) fn client_summary(&self) -> ClientSummary {
        ClientSummary::new(&self.user.name, self.request.headers(), self.client.address)
    }
}

/// The headers that filters set on every response that is given behind them.
#[derive(Debug, Default)]
pub(super) struct ResponseHeaders {
    pub(super) audit_id: Option<HeaderValue>,
    pub(super) transport_security: Option<HeaderValue>,
    /// True if nobody may keep the answer, unless it says otherwise itself.
    pub(super) forbids_caching: bool,
    /// True if the connection is to end. `Connection: close` on HTTP/2 has the connection send GOAWAY.
    pub(super) closes: bool,
    /// The origin whose pages may read the answer.
    pub(super) origin: Option<HeaderValue>,
}

impl ResponseHeaders {
    pub(super) fn apply(self, headers: &mut HeaderMap) {
        if let Some(origin) = self.origin {
            allowed_origin::allow(origin, headers);
        }
        if let Some(transport_security) = self.transport_security {
            headers.insert(STRICT_TRANSPORT_SECURITY, transport_security);
        }
        if self.closes {
            headers.insert(CONNECTION, CLOSE);
        }
        if self.forbids_caching {
            let forbidden = HeaderValue::from_static("no-cache, private");
            headers.entry(CACHE_CONTROL).or_insert(forbidden);
        }
        if let Some(audit_id) = self.audit_id {
            headers.insert(AUDIT_ID, audit_id);
        }
    }
}
