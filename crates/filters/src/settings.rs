//! The parts of a server that its filters use.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use ringwatch::clock::Clock;
use ringwatch_audit::Auditor;
use ringwatch_authentication::Authenticator;
use ringwatch_authorization::Authorizer;
use ringwatch_endpoints::{Handler, Impersonation, Metrics, OwnPaths};
use ringwatch_flowcontrol::{Fairness, UserWatches};
use ringwatch_http::CancellationFlag;
use ringwatch_observe::running_requests::RunningRequests;
use ringwatch_registry::object_counts::ObjectCounts;
use ringwatch_spans::Tracer;

use super::allowed_origin::AllowedOrigin;
use super::drain::Drain;
use super::goaway_chance::GoawayChance;
use super::in_flight::InFlight;
use super::large_work::LargeWork;
use super::start_steps::Start;

/// The parts of a server that its filters use, and the API behind them.
pub struct Filters {
    /// The settings of the outermost filters.
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

/// The settings of the outermost filters, which look at nothing but the head of a request.
#[derive(Clone, Debug, Default)]
pub struct Outer {
    /// The origins whose pages may read answers.
    pub origins: Vec<AllowedOrigin>,
    /// The header Strict-Transport-Security of all responses.
    pub transport_security: Option<HeaderValue>,
    /// The chance that a request ends its HTTP/2 connection.
    pub goaway: GoawayChance,
    /// The end of serving.
    pub drain: Drain,
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
    pub watches: UserWatches,
    /// The requests that run.
    pub running: RunningRequests,
    /// The threads for requests with work that would keep a worker from others.
    pub large_work: LargeWork,
    /// Maximum time that a request may take, watches and streams aside.
    pub request_timeout: Duration,
    /// Counts the requests that are refused for their number, or ended at their time limit.
    pub metrics: Metrics,
}

impl std::fmt::Debug for Filters {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Filters").finish_non_exhaustive()
    }
}
