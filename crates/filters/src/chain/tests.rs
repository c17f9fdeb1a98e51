//! Requests through the chain of filters.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, ORIGIN, RETRY_AFTER,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Method};
use http_body_util::BodyExt;
use prometheus_client::registry::Registry;
use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch_audit::backend::{
    BackendMode, BatchOptions, LogFile, LogFormat, LogOptions, LogWriter, QueueOptions,
};
use ringwatch_audit::{Auditor, Metrics, Policy};
use ringwatch_authentication::{Authenticator, Peer, TokenFile, TokenWebhook, TokenWebhookConfig};
use ringwatch_authorization::Authorizer;
use ringwatch_endpoints::audit_id::AUDIT_ID;
use ringwatch_endpoints::{
    self as endpoints, Caller, Handler, Impersonation, OwnPaths, RequestInfo,
};
use ringwatch_flowcontrol::UserWatches;
use ringwatch_http::{CancellationFlag, ResponseBody, full};
use ringwatch_observe::running_requests::RunningRequests;
use ringwatch_registry::object_counts::ObjectCounts;
use ringwatch_webhook::{CallError, ClientConfig, ReviewVersion, WebhookClient, WebhookTarget};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{AllowedOrigin, Drain, InFlight, LargeWork, Limits, Outer, Start};

const NOBODY: ClientSide<'_> = ClientSide {
    address: None,
    shows_certificate: false,
    peer: &Peer {
        is_refused: false,
        user: None,
        front_proxy_until_seconds: None,
    },
};

struct Stub {
    entered: Arc<Notify>,
}

#[async_trait]
impl Handler for Stub {
    async fn handle(
        &self,
        request: Request<RequestBody>,
        _info: Arc<RequestInfo>,
        caller: Caller,
    ) -> Response<ResponseBody> {
        match request.uri().path() {
            "/api/v1/block" => {
                self.entered.notify_one();
                std::future::pending().await
            }
            "/api/v1/panic" => panic!("as asked"),
            _ => Response::new(full(caller.user.name)),
        }
    }
}

struct Nothing;

#[async_trait]
impl OwnPaths for Nothing {
    async fn answer(
        &self,
        _method: &Method,
        _path: &str,
        _query: &str,
        _headers: &HeaderMap,
    ) -> Option<Response<ResponseBody>> {
        None
    }
}

fn filters(reads_max: u32) -> (Arc<Filters>, Arc<Notify>) {
    let tokens = "admin,admin,1,system:masters\nview,viewer,2,viewers";
    let entered = Arc::new(Notify::new());
    let filters = Filters {
        outer: Outer::default(),
        authenticator: Authenticator::new(TokenFile::parse(tokens).expect("tokens")).into(),
        start: Start::default(),
        tracer: None,
        auditor: None,
        impersonation: Impersonation::new(
            Authorizer::always_allow(),
            Clock::real(),
            &mut Registry::default(),
        )
        .into(),
        authorizer: Authorizer::always_allow(),
        limits: Limits {
            running: RunningRequests::default(),
            in_flight: InFlight::new(reads_max, 1, Duration::from_secs(60)),
            fairness: None,
            sizes: ObjectCounts::default(),
            watches: UserWatches::new(1),
            large_work: LargeWork::on_current_runtime(),
            request_timeout: Duration::from_secs(60),
            metrics: endpoints::Metrics::new(),
        },
        end_of_watches: CancellationFlag::default(),
        own: Arc::new(Nothing),
        api: Arc::new(Stub {
            entered: Arc::clone(&entered),
        }),
        clock: Clock::real(),
    };
    (Arc::new(filters), entered)
}

fn get(path: &str, token: &str) -> Request<RequestBody> {
    let mut request = Request::new(full(""));
    *request.uri_mut() = path.parse().expect("a path");
    let value = format!("Bearer {token}").parse().expect("a header");
    request.headers_mut().insert(AUTHORIZATION, value);
    request
}

/// Returns the metrics of requests.
fn metrics(filters: &Filters) -> String {
    let (mut registry, mut text) = (Registry::default(), String::new());
    filters.limits.metrics.register(&mut registry);
    prometheus_client::encoding::text::encode(&mut text, &registry).expect("text");
    text
}

async fn text(response: Response<Body>) -> String {
    let body = response.into_body().collect().await.expect("a body");
    String::from_utf8(body.to_bytes().to_vec()).expect("text")
}

#[tokio::test]
async fn without_good_credentials_the_answer_is_401() {
    let (filters, _) = filters(1);
    let response = filters
        .answer(get("/api/v1/namespaces", "bad"), NOBODY, &|_| {})
        .await;
    assert_eq!(response.status(), 401);
    let headers = response.headers();
    assert_eq!(headers[CONTENT_TYPE], "application/json");
    assert_eq!(headers[CACHE_CONTROL], "no-cache, private");
    assert!(headers.contains_key(AUDIT_ID));
    assert!(!headers.contains_key(X_CONTENT_TYPE_OPTIONS));
    assert_eq!(
        text(response).await.trim_end(),
        r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}"#
    );
}

#[tokio::test]
async fn a_full_server_turns_all_but_administrators_away() {
    let (filters, entered) = filters(1);
    let mut blocked = Box::pin(filters.answer(get("/api/v1/block", "view"), NOBODY, &|_| {}));
    assert!(futures::poll!(&mut blocked).is_pending());
    entered.notified().await;
    let response = filters
        .answer(get("/api/v1/pods", "view"), NOBODY, &|_| {})
        .await;
    assert_eq!(response.status(), 429);
    assert_eq!(response.headers()[RETRY_AFTER], "1");
    assert_eq!(response.headers()[X_CONTENT_TYPE_OPTIONS], "nosniff");
    assert_eq!(
        response.headers()[CONTENT_TYPE],
        "text/plain; charset=utf-8"
    );
    let words = "Too many requests, please try again later.\n";
    assert_eq!(text(response).await, words);
    let labels = "group=\"\",version=\"v1\",resource=\"pods\"";
    for family in [
        "apiserver_request_terminations_total",
        "apiserver_request_total",
    ] {
        let counted = metrics(&filters);
        let mut samples = counted.lines().filter(|line| line.starts_with(family));
        let counted =
            samples.any(|line| line.contains(labels) && line.ends_with("code=\"429\"} 1"));
        assert!(counted, "{family}");
    }
    let watch = filters
        .answer(get("/api/v1/pods?watch=1", "view"), NOBODY, &|_| {})
        .await;
    assert_eq!(watch.status(), 200);
    let admin = filters
        .answer(get("/api/v1/pods", "admin"), NOBODY, &|_| {})
        .await;
    assert_eq!(admin.status(), 200);
    drop(blocked);
    let response = filters
        .answer(get("/api/v1/pods", "view"), NOBODY, &|_| {})
        .await;
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn a_place_is_taken_until_the_body_is_sent() {
    let (filters, _) = filters(1);
    let first = filters
        .answer(get("/api/v1/pods", "view"), NOBODY, &|_| {})
        .await;
    let second = filters
        .answer(get("/api/v1/pods", "view"), NOBODY, &|_| {})
        .await;
    assert_eq!(second.status(), 429);
    assert_eq!(text(first).await, "viewer");
    let third = filters
        .answer(get("/api/v1/pods", "view"), NOBODY, &|_| {})
        .await;
    assert_eq!(third.status(), 200);
}

fn draining(send_retry_after: bool, watches_grace: Duration) -> Arc<Filters> {
    let (filters, _) = filters(0);
    let Ok(mut filters) = Arc::try_unwrap(filters) else {
        panic!("nobody else has them");
    };
    filters.outer.drain = Drain::new(send_retry_after, watches_grace);
    Arc::new(filters)
}

#[tokio::test]
async fn a_draining_server_begins_no_watch_and_ends_those_that_there_are() {
    let filters = draining(false, Duration::from_secs(1));
    let drain = &filters.outer.drain;
    let watch = get("/api/v1/block?watch=1", "view");
    let mut open = Box::pin(filters.answer(watch, NOBODY, &|_| {}));
    assert!(futures::poll!(&mut open).is_pending());
    drain.begin();
    let response = filters
        .answer(get("/api/v1/pods?watch=1", "admin"), NOBODY, &|_| {})
        .await;
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()[RETRY_AFTER], "1");
    assert_eq!(response.headers()[X_CONTENT_TYPE_OPTIONS], "nosniff");
    let body = text(response).await;
    assert!(
        body.contains(r#""message":"apiserver is shutting down""#),
        "{body}"
    );
    assert!(body.contains(r#""reason":"ServiceUnavailable""#), "{body}");
    let list = get("/api/v1/pods", "view");
    assert_eq!(filters.answer(list, NOBODY, &|_| {}).await.status(), 200);
}

#[tokio::test]
async fn a_draining_server_turns_all_requests_away_if_that_is_wanted() {
    let filters = draining(true, Duration::ZERO);
    filters.outer.drain.begin();
    for path in ["/api/v1/pods", "/api/v1/pods?watch=1", "/nothing"] {
        let response = filters.answer(get(path, "admin"), NOBODY, &|_| {}).await;
        assert_eq!(response.status(), 429, "{path}");
        assert_eq!(response.headers()[RETRY_AFTER], "5");
        assert_eq!(response.headers()[CONNECTION], "close");
        assert!(response.headers().contains_key(AUDIT_ID));
        let words = "The apiserver is shutting down, please try again later.\n";
        assert_eq!(text(response).await, words);
    }
    let health = get("/readyz", "admin");
    assert_eq!(filters.answer(health, NOBODY, &|_| {}).await.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_takes_too_long_ends_with_504() {
    let (filters, _) = filters(1);
    let request = get("/api/v1/block?timeout=5s", "view");
    let response = filters.answer(request, NOBODY, &|_| {}).await;
    assert_eq!(response.status(), 504);
    let body = text(response).await;
    assert!(
        body.contains(r#""reason":"Timeout","details":{},"code":504"#),
        "{body}"
    );
    let ended = "apiserver_request_terminations_total{verb=\"LIST\",group=\"\",version=\"v1\",resource=\"block\"";
    let counted = metrics(&filters);
    assert!(counted.contains(ended));
    let mut requests = counted
        .lines()
        .filter(|it| it.starts_with("apiserver_request_total{"));
    assert!(
        requests.any(|it| it.contains("resource=\"block\"") && it.ends_with("code=\"504\"} 1"))
    );
}

/// A webhook for tokens that never answers.
#[derive(Debug)]
struct Silent;

#[async_trait]
impl WebhookClient for Silent {
    async fn post(&self, _: &ClientConfig, _: Bytes, _: Duration) -> Result<Bytes, CallError> {
        std::future::pending().await
    }
}

/// A webhook for tokens that takes a second to know each of them.
#[derive(Debug)]
struct Slow(Clock);

#[async_trait]
impl WebhookClient for Slow {
    async fn post(&self, _: &ClientConfig, _: Bytes, _: Duration) -> Result<Bytes, CallError> {
        self.0.sleep(Duration::from_secs(1)).await;
        Ok(Bytes::from_static(
            br#"{"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1",
                "status": {"authenticated": true, "user": {"username": "slow"}}}"#,
        ))
    }
}

/// Returns an authenticator that asks a webhook about all tokens.
fn asking(client: Arc<dyn WebhookClient>) -> Arc<Authenticator> {
    let config = TokenWebhookConfig {
        to: ClientConfig {
            name: "webhook".to_owned(),
            target: WebhookTarget::Url("https://webhook".to_owned()),
            ca_bundle: None,
            token: None,
            pair: None,
        },
        version: ReviewVersion::V1,
        ttl: Duration::ZERO,
    };
    let webhook = TokenWebhook::new(config, client, Clock::real());
    Authenticator::new(TokenFile::default())
        .with_webhook(Some(webhook))
        .into()
}

#[tokio::test(start_paused = true)]
async fn authentication_is_within_the_time_limit() {
    let (filters, _) = filters(1);
    let mut filters = Arc::into_inner(filters).expect("the only owner");
    filters.authenticator = asking(Arc::new(Silent));
    filters.limits.request_timeout = Duration::from_secs(10);
    for (path, seconds) in [
        ("/api/v1/pods?timeout=5s", 5),
        ("/api/v1/pods", 10),
        ("/api/v1/pods?watch=1", 10),
    ] {
        let began = filters.clock.now();
        let outcomes = Mutex::new(Vec::new());
        let note = |outcome: Authentication<'_>| {
            // A webhook that is slow is not held against the client.
            let is_skipped = matches!(outcome, Authentication::Skipped);
            outcomes.lock().expect("sound").push(is_skipped);
        };
        let response = filters.answer(get(path, "slow"), NOBODY, &note).await;
        assert_eq!(response.status(), 504, "{path}");
        let taken = filters.clock.now() - began;
        assert_eq!(taken, Duration::from_secs(seconds), "{path}");
        assert_eq!(*outcomes.lock().expect("sound"), [true], "{path}");
    }
}

#[tokio::test]
async fn a_bad_time_limit_is_refused_before_authentication() {
    let (filters, _) = filters(1);
    for token in ["view", "bad"] {
        let request = get("/api/v1/pods?timeout=soon", token);
        let response = filters.answer(request, NOBODY, &|outcome| {
            assert!(matches!(outcome, Authentication::Skipped), "{outcome:?}");
        });
        let response = response.await;
        assert_eq!(response.status(), 400);
        let body = text(response).await;
        assert!(
            body.contains("invalid timeout specified in the request URL"),
            "{body}"
        );
    }
}

#[tokio::test]
async fn a_connection_learns_of_every_request() {
    let (filters, _) = filters(1);
    let mut filters = Arc::into_inner(filters).expect("the only owner");
    let origin = AllowedOrigin::parse("^https://a\\.example$").expect("an origin");
    filters.outer.origins = vec![origin];
    filters.outer.drain = Drain::new(true, Duration::ZERO);
    let mut preflight = get("/api/v1/pods", "view");
    *preflight.method_mut() = Method::OPTIONS;
    let origin = HeaderValue::from_static("https://a.example");
    preflight.headers_mut().insert(ORIGIN, origin);
    let outcomes = Mutex::new(Vec::new());
    let note = |outcome: Authentication<'_>| {
        let text = match outcome {
            Authentication::User(user) => user.name.clone(),
            other => format!("{other:?}"),
        };
        outcomes.lock().expect("sound").push(text);
    };
    for request in [get("/api", "view"), get("/api", "bad"), preflight] {
        filters.answer(request, NOBODY, &note).await;
    }
    filters.outer.drain.begin();
    let turned_away = filters.answer(get("/api", "view"), NOBODY, &note);
    assert_eq!(turned_away.await.status(), 429);
    let outcomes = outcomes.into_inner().expect("sound");
    assert_eq!(outcomes, ["viewer", "Refused", "Skipped", "Skipped"]);
}

#[tokio::test]
async fn a_panic_ends_the_request_alone() {
    let (filters, _) = filters(1);
    let response = filters
        .answer(get("/api/v1/panic", "view"), NOBODY, &|_| {})
        .await;
    assert_eq!(response.status(), 500);
    let body = text(response).await;
    assert!(
        body.starts_with("This request caused apiserver to panic."),
        "{body}"
    );
    let response = filters
        .answer(get("/api/v1/pods", "view"), NOBODY, &|_| {})
        .await;
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn the_clients_audit_id_is_kept_as_it_is() {
    let (filters, _) = filters(1);
    let mut request = get("/api/v1/pods", "view");
    let long = "x".repeat(100).parse().expect("a header");
    request.headers_mut().insert(AUDIT_ID, long);
    let response = filters.answer(request, NOBODY, &|_| {}).await;
    assert_eq!(response.headers()[AUDIT_ID], "x".repeat(100));
}

/// Has all requests recorded in a log, and returns what writes it until `end` is cancelled.
fn audit(
    filters: &mut Filters,
    log: &Path,
    format: LogFormat,
    end: &CancellationToken,
) -> LogWriter {
    let clock = Clock::real();
    let (file, _) = LogFile::open(log, None, clock.clone()).expect("a log");
    let options = LogOptions {
        format,
        queue: QueueOptions {
            mode: BackendMode::Batch,
            events_max: 100,
        },
        batches: BatchOptions {
            events_max: 1,
            wait_max: Duration::ZERO,
            throttle: None,
        },
        truncation: None,
    };
    let metrics = Metrics::default();
    let (queue, writer) =
        LogWriter::new(file, options, metrics.clone(), end.clone(), clock.clone());
    let rules = "rules: [{level: Metadata, omitStages: [RequestReceived]}]";
    let policy = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\n{rules}");
    let policy = Policy::parse(&policy).expect("a policy");
    let auditor = Auditor::new(policy, vec![queue], metrics, Ledger::unlimited(), clock);
    filters.auditor = Some(Arc::new(auditor));
    writer
}

#[tokio::test(start_paused = true)]
async fn slow_requests_tell_how_long_a_denied_impersonation_took() {
    let (filters, _) = filters(1);
    let mut filters = Arc::into_inner(filters).expect("the only owner");
    filters.authenticator = asking(Arc::new(Slow(Clock::real())));
    let nothing_is_allowed = Arc::new(Authorizer::new(Vec::new()));
    filters.impersonation =
        Impersonation::new(nothing_is_allowed, Clock::real(), &mut Registry::default()).into();
    let log = tempfile::NamedTempFile::new().expect("a file");
    let end = CancellationToken::new();
    let writer = audit(&mut filters, log.path(), LogFormat::Json, &end);
    for (path, impersonates, code) in [
        ("/api/v1/pods?limit=1", true, 403),
        ("/api/v1/pods?limit=2", false, 200),
    ] {
        let mut request = get(path, "slow");
        if impersonates {
            let other = HeaderValue::from_static("joe");
            request.headers_mut().insert("impersonate-user", other);
        }
        let response = filters.answer(request, NOBODY, &|_| {}).await;
        assert_eq!(response.status(), code, "{path}");
        text(response).await;
    }
    end.cancel();
    writer.run().await;
    let lines = std::fs::read_to_string(log.path()).expect("lines");
    let told: Vec<bool> = lines
        .lines()
        .map(|it| it.contains(r#""apiserver.latency.k8s.io/impersonation":"#))
        .collect();
    assert_eq!(told, [true, false], "{lines}");
}

#[tokio::test]
async fn panics_and_clients_that_go_are_recorded() {
    let (filters, entered) = filters(1);
    let mut filters = Arc::into_inner(filters).expect("the only owner");
    let log = tempfile::NamedTempFile::new().expect("a file");
    let end = CancellationToken::new();
    let writer = audit(&mut filters, log.path(), LogFormat::Legacy, &end);

    let panicked = filters.answer(get("/api/v1/panic", "view"), NOBODY, &|_| {});
    assert_eq!(panicked.await.status(), 500);
    {
        let blocked = filters.answer(get("/api/v1/block", "view"), NOBODY, &|_| {});
        tokio::pin!(blocked);
        assert!(futures::poll!(blocked.as_mut()).is_pending());
        entered.notified().await;
    }
    let unknown = filters.answer(get("/api/v1/pods", "nobody"), NOBODY, &|_| {});
    assert_eq!(unknown.await.status(), 401);
    let answered = filters
        .answer(get("/api/v1/pods", "view"), NOBODY, &|_| {})
        .await;
    assert_eq!(
        answered
            .into_body()
            .collect()
            .await
            .expect("a body")
            .to_bytes(),
        "viewer"
    );
    end.cancel();
    writer.run().await;
    let lines = std::fs::read_to_string(log.path()).expect("lines");
    let lines: Vec<&str> = lines.lines().collect();
    for (line, stage, user, code) in [
        (0, "Panic", "viewer", 500),
        (1, "ResponseComplete", "viewer", 200),
        (2, "ResponseStarted", "<none>", 401),
        (3, "ResponseComplete", "viewer", 200),
    ] {
        let line = lines[line];
        assert!(line.contains(&format!("stage=\"{stage}\"")), "{line}");
        assert!(line.contains(&format!("user=\"{user}\"")), "{line}");
        assert!(line.ends_with(&format!("response=\"{code}\"")), "{line}");
    }
    assert_eq!(lines.len(), 4, "{lines:?}");
}

/// The functions of `DefaultBuildHandlerChain` of Kubernetes 1.36, outermost first.
const OF_KUBERNETES: [&str; 31] = [
    "WithAuditInit",
    "WithPanicRecovery",
    "WithMuxAndDiscoveryComplete",
    "WithRequestReceivedTimestamp",
    "WithRequestInfo",
    "WithRoutine",
    "WithLatencyTrackers",
    "WithHTTPLogging",
    "WithShutdownResponseHeader",
    "WithOptInRetryAfter",
    "WithRetryAfter",
    "WithHSTS",
    "WithCacheControl",
    "WithProbabilisticGoaway",
    "WithWatchTerminationDuringShutdown",
    "WithLateConnectionFilter",
    "WithNonReadyRequestLogging",
    "WithWaitGroup",
    "WithRequestDeadline",
    "WithTimeoutForNonLongRunningRequests",
    "WithWarningRecorder",
    "WithCORS",
    "WithAuthentication",
    "WithTracing",
    "WithStartupEarlyAnnotation",
    "WithAudit",
    "WithConstrainedImpersonation",
    "WithNotReady",
    "WithPriorityAndFairness",
    "WithMaxInFlightLimit",
    "WithAuthorization",
];

#[test]
fn the_filters_are_in_the_order_of_kubernetes() {
    let names = CHAIN.iter().map(|it| it.name);
    let (theirs, ours): (Vec<&str>, Vec<&str>) = names.partition(|it| it.starts_with("With"));
    let place = |name: &&str| OF_KUBERNETES.iter().position(|it| it == name);
    let places: Option<Vec<usize>> = theirs.iter().map(place).collect();
    let places = places.expect("names of Kubernetes");
    assert!(places.is_sorted_by(|one, other| one < other), "{theirs:?}");
    assert_eq!(ours, ["start", "time limit", "running requests"]);
}
