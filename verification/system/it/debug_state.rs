//! `/debug/ui/state`, its like and `ringwatch top` tell what the server knows.

use std::fs;

use bytes::Bytes;
use futures::FutureExt;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use ringwatch_http::Body;
use ringwatch_observe::status::{
    ClientState, STATE_PATH, STREAM_PATH, ServerState, TypeState, WATCHERS_PATH, Watcher,
    WatcherList,
};
use ringwatch_server::InProcessServer;
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::support::requests;

/// Nobody but the test writes objects of this type.
const LIMIT_RANGES: &str = "/api/v1/namespaces/default/limitranges";

/// More events than a watcher's channel holds.
const EVENTS: u64 = 50;

/// The number of lists of everything that a client makes: so many within a minute stand out.
const LISTS: u64 = 12;

/// The streams that a server has at a time, at most.
const STREAMS_MAX: usize = 16;

/// A server in this process, asked as the admin.
struct Fixture(InProcessServer);

impl Fixture {
    async fn start() -> Self {
        Self(InProcessServer::start().await.expect("a server"))
    }

    /// Sends a request without reading the body of its answer.
    async fn send(&self, request: http::request::Builder, body: &str) -> Response<Body> {
        let body = Bytes::copy_from_slice(body.as_bytes());
        self.0.answer(request.body(body).expect("a request")).await
    }

    async fn get(&self, path: &str) -> Response<Body> {
        let request = Request::get(path).header("user-agent", "it/1.0");
        self.send(request, "").await
    }

    async fn document<T: DeserializeOwned>(&self, path: &str) -> T {
        let answer = requests::whole(self.get(path).await).await;
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        serde_json::from_slice(answer.body()).expect("a document")
    }

    async fn state(&self) -> ServerState {
        self.document(STATE_PATH).await
    }

    /// Asks for the state until it is as wanted.
    async fn until(&self, wanted: impl Fn(&ServerState) -> bool) -> ServerState {
        let found = eventually(DEADLINE, "the wanted state", async || {
            let state = Box::new(self.state().await);
            if wanted(&state) {
                Ok(state)
            } else {
                Err(state)
            }
        });
        *found.await
    }

    async fn create(&self, name: &str) {
        let object = json!({"apiVersion": "v1", "kind": "LimitRange",
            "metadata": {"name": name}, "spec": {"limits": []}});
        let request = Request::post(LIMIT_RANGES).header("content-type", "application/json");
        let answer = self.send(request, &object.to_string()).await;
        assert_eq!(answer.status(), StatusCode::CREATED);
    }
}

fn limit_ranges(state: &ServerState) -> &TypeState {
    let mut types = state.types.iter();
    types.find(|it| it.name == "limitranges").expect("the type")
}

/// Returns the text of the finding that begins so.
fn finding<'a>(state: &'a ServerState, start: &str) -> Option<&'a str> {
    let mut texts = state.findings.iter().map(|it| &*it.text);
    texts.find(|it| it.starts_with(start))
}

/// Reads so many events of a watch, which has no more then.
async fn read(watch: &mut Body, events: u64) {
    let mut read = 0;
    while read < events {
        let frame = watch.frame().await.expect("an event").expect("no error");
        let chunk = frame.into_data().expect("data");
        read += chunk.iter().filter(|byte| **byte == b'\n').count() as u64;
    }
    assert_eq!(read, events);
    // A task that has done much must not be taken for one that waits.
    tokio::task::yield_now().await;
    assert!(watch.frame().now_or_never().is_none());
}

/// Returns the next document of a stream.
async fn next_document(stream: &mut Body) -> ServerState {
    let frame = stream.frame().await.expect("an event").expect("no error");
    let event = frame.into_data().expect("data");
    let json = event
        .strip_prefix(b"event: state\ndata: ")
        .expect("an event");
    serde_json::from_slice(json).expect("a document")
}

#[tokio::test]
async fn types_and_watchers_are_those_of_the_server() {
    let fixture = Fixture::start().await;
    fixture.create("a").await;
    fixture.create("b").await;
    let before = fixture
        .until(|it| limit_ranges(it).objects == Some(2))
        .await;
    let all = "/api/v1/limitranges?watch=1";
    let of_namespace = format!("{LIMIT_RANGES}?watch=1");
    let of_one = format!("{LIMIT_RANGES}?watch=1&fieldSelector=metadata.name%3Da");
    let of_labels = format!("{LIMIT_RANGES}?watch=1&labelSelector=a%3Db");
    let mut watches = Vec::new();
    for path in [all, all, &of_namespace, &of_one, &of_labels] {
        watches.push(fixture.get(path).await);
    }
    let state = fixture.state().await;
    let (old, new) = (
        &limit_ranges(&before).watchers,
        &limit_ranges(&state).watchers,
    );
    assert_eq!((old.total, new.total, new.internal), (0, 5, old.internal));
    assert_eq!((new.everything, new.namespace, new.name), (2, 1, 1));
    assert_eq!((new.labels, new.fields, new.shards), (1, 0, 0));
    assert!(limit_ranges(&state).ready);
    assert_eq!(limit_ranges(&state).changes, Some(2));
    assert_eq!(
        limit_ranges(&state).window.as_ref().map(|it| it.events),
        Some(2)
    );
    // The types are read after the feed, which may have gone on meanwhile.
    assert!(state.feed.revision >= limit_ranges(&before).revision);
    let objects = state.memory.accounts.iter().find(|it| it.name == "objects");
    assert!(objects.expect("the account").bytes >= limit_ranges(&state).bytes.expect("bytes"));

    let list: WatcherList = fixture
        .document(&format!("{WATCHERS_PATH}?type=limitranges&limit=3"))
        .await;
    assert_eq!((list.total, list.items.len()), (5, 3));
    let other: WatcherList = fixture.document(&format!("{WATCHERS_PATH}?type=x")).await;
    assert_eq!(other.total, 0);
    let list: WatcherList = fixture.document(WATCHERS_PATH).await;
    let of_labels = list.items.iter().find(|it| it.kind == "labels");
    let path = format!("{WATCHERS_PATH}/{}", of_labels.expect("the watcher").id);
    let one: Watcher = fixture.document(&path).await;
    assert_eq!((&*one.selector, &*one.user_agent), ("a=b", "it/1.0"));
    assert_eq!(one.namespace.as_deref(), Some("default"));
    drop(watches);
    assert_eq!(fixture.get(&path).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(limit_ranges(&fixture.state().await).watchers.total, 0);
}

#[tokio::test]
async fn a_watcher_that_does_not_read_is_shown_parked_until_it_reads() {
    let fixture = Fixture::start().await;
    fixture.create("first").await;
    let path = format!("{LIMIT_RANGES}?watch=1");
    let mut watch = fixture.get(&path).await.into_body();
    // It has got the one object, and waits for events.
    read(&mut watch, 1).await;
    let state = fixture.state().await;
    let shown = state
        .slowest
        .iter()
        .find(|it| it.type_name == "limitranges");
    let shown = shown.expect("the watcher");
    assert_eq!(
        (shown.sent, shown.behind, shown.parked),
        (1, Some(0), false)
    );
    for number in 0..EVENTS {
        fixture.create(&format!("n{number}")).await;
    }
    let state = fixture
        .until(|it| limit_ranges(it).watchers.behind_max == EVENTS)
        .await;
    let watchers = &limit_ranges(&state).watchers;
    assert_eq!((watchers.parked, watchers.behind_max), (1, EVENTS));
    let slowest = state.slowest.first().expect("the watcher");
    assert_eq!((&*slowest.type_name, slowest.sent), ("limitranges", 1));
    assert_eq!((slowest.behind, slowest.parked), (Some(EVENTS), true));

    read(&mut watch, EVENTS).await;
    let state = fixture.state().await;
    let shown = state.slowest.iter().find(|it| it.id == slowest.id);
    let shown = shown.expect("the watcher");
    assert_eq!((shown.behind, shown.parked), (Some(0), false));
    assert_eq!(
        (shown.sent, shown.revision),
        (EVENTS + 1, limit_ranges(&state).revision)
    );
}

#[tokio::test]
async fn reads_that_wait_and_requests_that_run_are_shown() {
    let fixture = Fixture::start().await;
    let far = fixture.state().await.feed.revision.expect("a revision") + 1_000;
    let path = format!("{LIMIT_RANGES}?resourceVersion={far}&resourceVersionMatch=NotOlderThan");
    let mut waiting = Box::pin(fixture.get(&path));
    let waits = |it: &ServerState| limit_ranges(it).reads.waiting == 1;
    let state = tokio::select! {
        answer = &mut waiting => panic!("it does not wait: {answer:?}"),
        state = fixture.until(waits) => state,
    };
    let running = state.requests.iter().find(|it| it.path == LIMIT_RANGES);
    let running = running.expect("the request");
    assert_eq!(
        (&*running.verb, running.running, running.code),
        ("list", true, None)
    );
    assert!(running.seconds >= limit_ranges(&state).reads.longest_seconds);
    drop(waiting);
    fixture.until(|it| !waits(it)).await;

    // A request runs, and has its seat, until its answer has been read.
    let unread = fixture.get(LIMIT_RANGES).await;
    let state = fixture.state().await;
    let exempt = state.fairness.iter().find(|it| it.level == "exempt");
    let exempt = exempt.expect("the level");
    // The other one is the request for the state.
    assert_eq!((exempt.seats, exempt.executing), (None, 2));
    let unanswered = |it: &ServerState| {
        it.requests
            .iter()
            .any(|it| it.running && it.code == Some(200))
    };
    assert!(unanswered(&state));
    drop(unread);
    assert!(!unanswered(&fixture.state().await));
}

#[tokio::test]
async fn a_client_that_lists_everything_again_and_again_stands_out() {
    let fixture = Fixture::start().await;
    fixture.create("a").await;
    // A busy machine may answer late for once.
    let calm = fixture
        .until(|it| {
            let store_answers =
                it.feed.silent_seconds == Some(0.0) && it.feed.store_seconds.is_some();
            it.findings.is_empty() && store_answers && limit_ranges(it).objects == Some(1)
        })
        .await;
    let serving = &calm.certificates[0];
    assert_eq!(serving.name, "serving certificate");
    assert!(serving.seconds_left > 0.0);

    let path = "/api/v1/limitranges?resourceVersion=0";
    for _ in 0..LISTS {
        let request = Request::get(path).header("user-agent", "nosy/1.2 (test)");
        let answer = fixture.send(request, "").await.into_body();
        answer.collect().await.expect("a list");
    }
    let state = fixture.state().await;
    let nosy = state.clients.iter();
    let nosy = nosy.clone().find(|it| it.user_agent == "nosy/1.2 (test)");
    let nosy = nosy.expect("the client");
    assert_eq!((&*nosy.verb, &*nosy.resource), ("list", "limitranges"));
    let counts = (nosy.everything, nosy.requests, nosy.failed);
    assert_eq!(counts, (true, LISTS, 0));
    assert!(nosy.bytes > LISTS * 100, "{nosy:?}");
    let found = finding(&state, "nosy/1.2 (user").expect("a finding");
    assert!(found.contains("listed all limitranges 12 times"), "{found}");
}

#[tokio::test]
async fn a_webhook_that_hangs_stands_out() {
    let fixture = Fixture::start().await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let silent = silent.expect("a port");
    let url = format!("https://{}/", silent.local_addr().expect("an address"));
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["limitranges"],
        "operations": ["CREATE"]});
    let configuration = json!({"apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "silent"},
        "webhooks": [{"name": "silent.example.com", "clientConfig": {"url": url}, "rules": [rule],
            "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 30}]});
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let request = Request::post(path).header("content-type", "application/json");
    let answer = fixture.send(request, &configuration.to_string()).await;
    assert_eq!(answer.status(), StatusCode::CREATED);
    let creates = async {
        // The first may be before the configuration is followed.
        for number in 0.. {
            fixture.create(&format!("n{number}")).await;
        }
    };
    let expected = "Webhook silent.example.com has not answered for";
    let state = tokio::select! {
        () = creates => unreachable!("it has no end"),
        state = fixture.until(|it| finding(it, expected).is_some()) => state,
    };
    let webhook = &state.webhooks[0];
    assert_eq!((&*webhook.name, webhook.running), ("silent.example.com", 1));
    assert_eq!(webhook.target, url);
    // The client has gone, and with it the call.
    let failed = |it: &ServerState| it.webhooks[0].running == 0 && it.webhooks[0].failed == 1;
    fixture.until(failed).await;
}

#[tokio::test]
async fn streams_repeat_the_state_and_are_bounded() {
    let fixture = Fixture::start().await;
    let mut stream = fixture.get(STREAM_PATH).await.into_body();
    let first = next_document(&mut stream).await;
    fixture.create("a").await;
    // The next ones may have been made before the cache heard of it.
    let next = eventually(DEADLINE, "a document with the object", async || {
        let next = next_document(&mut stream).await;
        (limit_ranges(&next).objects == Some(1)).then_some(next)
    });
    assert!(next.await.uptime_seconds > first.uptime_seconds);

    let mut streams = vec![stream];
    while streams.len() < STREAMS_MAX {
        let another = fixture.get(STREAM_PATH).await;
        assert_eq!(another.status(), StatusCode::OK);
        streams.push(another.into_body());
    }
    let refused = fixture.get(STREAM_PATH).await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    streams.pop();
    assert_eq!(fixture.get(STREAM_PATH).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn who_may_not_get_the_paths_is_refused() {
    let fixture = Fixture::start().await;
    for path in [
        STATE_PATH,
        STREAM_PATH,
        WATCHERS_PATH,
        "/debug/ui/watchers/0",
    ] {
        let jane = Request::get(path).header("impersonate-user", "jane");
        let refused = fixture.send(jane, "").await;
        assert_eq!(refused.status(), StatusCode::FORBIDDEN, "{path}");
    }
}

/// Runs `ringwatch top --once` and returns what it prints.
async fn top(server: &InProcessServer, flags: &[&str]) -> (bool, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let kubeconfig = folder.path().join("kubeconfig");
    fs::write(&kubeconfig, server.kubeconfig()).expect("a kubeconfig");
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_ringwatch"));
    command
        .args(["top", "--once", "--kubeconfig"])
        .arg(kubeconfig);
    let output = command.args(flags).output().await.expect("it runs");
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8(text).expect("text"),
    )
}

#[tokio::test]
async fn top_prints_the_same() {
    let fixture = Fixture::start().await;
    fixture.create("a").await;
    let _watch = fixture.get(&format!("{LIMIT_RANGES}?watch=1")).await;
    // Else the creation might count among the changes of a second.
    fixture
        .until(|it| limit_ranges(it).objects == Some(1))
        .await;
    let (succeeded, text) = top(&fixture.0, &[]).await;
    assert!(succeeded, "{text}");
    let row = |start: &str| {
        let row = text.lines().find(|line| line.starts_with(start));
        let row = row.unwrap_or_else(|| panic!("no {start} in {text}"));
        row.split_whitespace().collect::<Vec<_>>()
    };
    let limit_ranges = row("limitranges");
    // Objects; its size, a unit, the rate, an event of so many, its age, a watcher.
    assert_eq!(limit_ranges[1], "1", "{text}");
    assert_eq!(limit_ranges[4..7], ["0.0", "1", "102400"], "{text}");
    assert_eq!(limit_ranges[8], "1", "{text}");
    assert!(
        text.contains("namespace default") && text.contains("it/1.0"),
        "{text}"
    );
    assert_eq!(row("exempt")[1], "-");
    assert!(text.contains("serving certificate: until"), "{text}");
    // A busy machine may answer late.
    let stands_out = text.lines().any(|line| line.starts_with('!'));
    assert_ne!(text.contains("nothing stands out"), stands_out, "{text}");
    let created = row("busiest clients of the last minute:");
    assert!(!created.is_empty() && text.contains("create"), "{text}");
    let is_top = |it: &ClientState| {
        it.user_agent.starts_with("ringwatch/") && it.resource.starts_with("/debug/ui")
    };
    fixture.until(|it| it.clients.iter().any(is_top)).await;
    let (succeeded, text) = top(&fixture.0, &["--context", "other"]).await;
    assert!(!succeeded && text.contains("\"other\""), "{text}");
}

#[tokio::test]
async fn top_shows_the_metrics_to_whoever_may_read_them_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let tokens = folder.path().join("tokens");
    let users = "may-monitor,prometheus,1,system:monitoring\nmay-nothing,jane,2\n";
    fs::write(&tokens, users).expect("tokens");
    let flag = format!("--token-auth-file={}", tokens.display());
    let server = InProcessServer::builder().flag(flag).start().await;
    let server = server.expect("a server");
    let (succeeded, text) = top(&server, &["--token", "may-monitor"]).await;
    assert!(succeeded && text.contains("(by its metrics)"), "{text}");
    let (succeeded, text) = top(&server, &["--token", "may-nothing"]).await;
    assert!(!succeeded && text.contains(STREAM_PATH), "{text}");
    assert!(text.contains("403"), "{text}");
}
