//! Backends with a writer and a webhook that a test controls.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch_apimachinery::User;
use ringwatch_authorization::Attributes;
use ringwatch_webhook::{CallError, ClientConfig, WebhookClient, WebhookTarget};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{AuditBody, Auditor, Encoding, Metrics, Policy, Recording, RequestHead, Response};

const POLICY: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse}]";

/// An auditor over one queue, and the means to look at it.
struct Fixture {
    auditor: Arc<Auditor>,
    registry: Registry,
    clock: Clock,
}

impl Fixture {
    fn new(ledger: Ledger, make: impl FnOnce(Metrics) -> EventQueue) -> Self {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        let clock = Clock::real();
        let policy = Policy::parse(POLICY).expect("a policy");
        let queues = vec![make(metrics.clone())];
        let auditor = Auditor::new(policy, queues, metrics, ledger, clock.clone());
        Self {
            auditor: Arc::new(auditor),
            registry,
            clock,
        }
    }

    /// Returns a fixture over a log, and the log's writer, which runs when the test says so.
    fn of_log(log: &Log, ledger: Ledger, options: LogOptions) -> (Self, LogWriter<Lines>) {
        let mut writer = None;
        let fixture = Self::new(ledger, |metrics| {
            let (lines, end, clock) = (log.lines.clone(), log.end.clone(), Clock::real());
            let (queue, made) = LogWriter::new(lines, options, metrics, end, clock);
            writer = Some(made);
            queue
        });
        (fixture, writer.expect("a writer"))
    }

    /// Returns a fixture over a webhook, and the task that sends to it until the end.
    fn of_webhook(
        hook: &Arc<Hook>,
        ledger: Ledger,
        truncation: Option<Truncation>,
        end: &CancellationToken,
    ) -> (Self, JoinSet<()>) {
        let mut tasks = JoinSet::new();
        let fixture = Self::new(ledger, |metrics| {
            let (queue, sender) = webhook(hook, truncation, end, metrics);
            tasks.spawn(sender.run());
            queue
        });
        (fixture, tasks)
    }

    /// Returns the number of errors of a plugin.
    fn errors(&self, plugin: &str) -> u64 {
        let labels = format!("{{plugin=\"{plugin}\"}}");
        self.metric(&format!("apiserver_audit_error_total{labels}"))
    }

    fn recording(&self, id: &str) -> Arc<Recording> {
        let user = User {
            name: "ann".to_owned(),
            ..User::default()
        };
        let attributes = Attributes::of_resource(&user, "create", "", "pods");
        let head = RequestHead {
            audit_id: id,
            uri: "/api/v1/pods",
            user_agent: "test",
            source_ips: Vec::new(),
            began: (self.clock.now(), self.clock.wall()),
        };
        self.auditor.begin(&attributes, head).expect("recorded")
    }

    /// Returns the metric of this name and labels.
    fn metric(&self, name: &str) -> u64 {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).expect("metrics");
        let line = text.lines().find_map(|it| it.strip_prefix(name));
        line.map_or(0, |it| it.trim().parse().expect("a number"))
    }
}

fn ok() -> Response {
    Response {
        code: 200,
        ..Response::default()
    }
}

fn queue_options(mode: BackendMode) -> QueueOptions {
    QueueOptions {
        mode,
        events_max: 2,
    }
}

fn batches(events_max: usize) -> BatchOptions {
    BatchOptions {
        events_max,
        wait_max: Duration::ZERO,
        throttle: None,
    }
}

fn log_options(mode: BackendMode) -> LogOptions {
    LogOptions {
        format: LogFormat::Json,
        queue: queue_options(mode),
        batches: batches(1),
        truncation: None,
    }
}

/// Lines in memory, or an error while `fails`.
#[derive(Clone, Default)]
struct Lines {
    written: Arc<Mutex<Vec<Value>>>,
    fails: Arc<Mutex<bool>>,
}

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if *self.fails.lock().expect("no panic") {
            return Err(io::Error::other("the disk is full"));
        }
        let line: Value = serde_json::from_slice(line).expect("JSON");
        self.written.lock().expect("no panic").push(line);
        Ok(usize::MAX)
    }

    fn write_all(&mut self, line: &[u8]) -> io::Result<()> {
        self.write(line).map(|_| ())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A log and the end of its writer.
#[derive(Default)]
struct Log {
    lines: Lines,
    end: CancellationToken,
}

impl Lines {
    fn stages(&self) -> Vec<String> {
        let written = self.written.lock().expect("no panic");
        let stage = |it: &Value| it["stage"].as_str().unwrap_or_default().to_owned();
        written.iter().map(stage).collect()
    }
}

#[tokio::test]
async fn a_blocked_request_goes_on_when_its_event_is_written() {
    let log = Log::default();
    let (fixture, writer) = Fixture::of_log(
        &log,
        Ledger::unlimited(),
        log_options(BackendMode::Blocking),
    );
    let recording = fixture.recording("a");
    let received = recording.received();
    tokio::pin!(received);
    assert!(futures::poll!(received.as_mut()).is_pending());
    let mut tasks = JoinSet::new();
    tasks.spawn(writer.run());
    received.await.expect("written");
    assert_eq!(log.lines.stages(), ["RequestReceived"]);
    recording.complete(ok()).await;
    assert_eq!(log.lines.stages(), ["RequestReceived", "ResponseComplete"]);
    // What is left is written at the end, and nothing after it.
    fixture.recording("b").complete_now(Some(ok()));
    log.end.cancel();
    tasks.join_all().await;
    assert_eq!(log.lines.stages().len(), 3);
    fixture.recording("c").complete(ok()).await;
    assert_eq!(log.lines.stages().len(), 3);
    assert_eq!(fixture.metric("apiserver_audit_event_total"), 4);
    assert_eq!(fixture.errors("buffered"), 1);
    assert_eq!(
        fixture.metric("apiserver_audit_level_total{level=\"RequestResponse\"}"),
        3
    );
}

#[tokio::test]
async fn only_the_strict_mode_refuses_what_cannot_be_written() {
    for (mode, is_refused) in [
        (BackendMode::Blocking, false),
        (BackendMode::BlockingStrict, true),
    ] {
        let log = Log::default();
        *log.lines.fails.lock().expect("no panic") = true;
        let (fixture, writer) = Fixture::of_log(&log, Ledger::unlimited(), log_options(mode));
        let mut tasks = JoinSet::new();
        tasks.spawn(writer.run());
        let recording = fixture.recording("a");
        assert_eq!(recording.received().await.is_err(), is_refused);
        assert_eq!(fixture.errors("log"), 1);
        let rejected = fixture.metric("apiserver_audit_requests_rejected_total");
        assert_eq!(rejected, u64::from(is_refused));
        // A request that is refused has no further events, and no other event refuses a request.
        *log.lines.fails.lock().expect("no panic") = false;
        recording.complete(ok()).await;
        assert_eq!(log.lines.stages().len(), usize::from(!is_refused));
    }
}

#[tokio::test]
async fn batches_never_block_and_lose_what_has_no_room() {
    let log = Log::default();
    let (fixture, writer) =
        Fixture::of_log(&log, Ledger::unlimited(), log_options(BackendMode::Batch));
    for id in ["a", "b", "c", "d", "e"] {
        fixture.recording(id).received().await.expect("not blocked");
    }
    assert_eq!(fixture.errors("buffered"), 3);
    log.end.cancel();
    writer.run().await;
    assert_eq!(log.lines.stages().len(), 2);
}

#[tokio::test]
async fn events_give_way_when_memory_is_short() {
    let ledger = Ledger::new(64 << 10);
    let log = Log::default();
    let options = LogOptions {
        queue: QueueOptions {
            mode: BackendMode::Batch,
            events_max: 1000,
        },
        ..log_options(BackendMode::Batch)
    };
    let (fixture, writer) = Fixture::of_log(&log, ledger.clone(), options);
    let large = || {
        let content = format!("{{\"a\":\"{}\"}}", "x".repeat(40 << 10));
        AuditBody::whole(Encoding::Json, Bytes::from(content))
    };
    for _ in 0..100 {
        let body = Some(large());
        let recording = fixture.recording("a");
        recording.complete_now(Some(Response { body, ..ok() }));
    }
    assert!(ledger.total() <= 64 << 10, "{}", ledger.total());
    let lost = fixture.errors("buffered");
    assert!(lost > 0);
    log.end.cancel();
    writer.run().await;
    let written = log.lines.written.lock().expect("no panic");
    assert_eq!(written.len() as u64 + lost, 100);
    assert!(written[0].get("responseObject").is_some());
    let last = written.last().expect("events");
    assert_eq!(last["annotations"]["audit.k8s.io/truncated"], "true");
    assert_eq!(ledger.total(), 0);
}

#[tokio::test]
async fn large_events_lose_their_bodies_first() {
    let log = Log::default();
    let options = LogOptions {
        truncation: Some(Truncation {
            event_bytes_max: 1000,
            batch_bytes_max: 1000,
        }),
        queue: QueueOptions {
            mode: BackendMode::Batch,
            events_max: 10,
        },
        ..log_options(BackendMode::Batch)
    };
    let (fixture, writer) = Fixture::of_log(&log, Ledger::unlimited(), options);
    let object = json!({"metadata": {"name": "a"}, "data": "x".repeat(2000)});
    let recording = fixture.recording("a");
    recording.request_object(&object);
    recording.complete_now(Some(ok()));
    let recording = fixture.recording("b");
    recording.annotate("large", "x".repeat(2000));
    recording.complete_now(Some(ok()));
    log.end.cancel();
    writer.run().await;
    let written = log.lines.written.lock().expect("no panic");
    assert_eq!(written.len(), 1);
    assert_eq!(written[0]["objectRef"]["name"], "a");
    assert_eq!(
        written[0]["annotations"],
        json!({"audit.k8s.io/truncated": "true"})
    );
    assert_eq!(fixture.errors("truncate"), 1);
}

/// A webhook that fails as often as it is told to, or hangs.
#[derive(Debug, Default)]
struct Hook {
    posted: Mutex<Vec<Value>>,
    attempts: AtomicUsize,
    failures: usize,
    hangs: bool,
}

#[async_trait]
impl WebhookClient for Hook {
    async fn post(
        &self,
        _to: &ClientConfig,
        events: Bytes,
        timeout: Duration,
    ) -> Result<Bytes, CallError> {
        let attempt = self.attempts.fetch_add(1, Ordering::Relaxed);
        if self.hangs {
            Clock::real().sleep(timeout).await;
        }
        if self.hangs || attempt < self.failures {
            let why = "no".to_owned();
            return Err(CallError {
                why,
                is_passing: false,
                status: None,
            });
        }
        let events = serde_json::from_slice(&events).expect("JSON");
        self.posted.lock().expect("no panic").push(events);
        Ok(Bytes::new())
    }
}

fn webhook(
    hook: &Arc<Hook>,
    truncation: Option<Truncation>,
    end: &CancellationToken,
    metrics: Metrics,
) -> (EventQueue, WebhookSender) {
    let options = WebhookOptions {
        to: ClientConfig {
            name: "webhook".to_owned(),
            target: WebhookTarget::Url("https://localhost".to_owned()),
            ca_bundle: None,
            token: None,
            pair: None,
        },
        initial_backoff: Duration::from_secs(10),
        queue: QueueOptions {
            mode: BackendMode::Batch,
            events_max: 100,
        },
        batches: BatchOptions {
            wait_max: Duration::from_secs(30),
            ..batches(3)
        },
        truncation,
    };
    let client = Arc::clone(hook) as Arc<dyn WebhookClient>;
    WebhookSender::new(client, options, metrics, end.clone(), Clock::real())
}

#[tokio::test(start_paused = true)]
async fn events_are_posted_in_batches_and_again_after_failures() {
    let hook = Arc::new(Hook {
        failures: 2,
        ..Hook::default()
    });
    let end = CancellationToken::new();
    let (fixture, tasks) = Fixture::of_webhook(&hook, Ledger::unlimited(), None, &end);
    for id in ["a", "b", "c", "d"] {
        fixture.recording(id).complete_now(Some(ok()));
    }
    // A full batch after pauses of at least 10 and 15 s; the other event waits 30 s for more.
    fixture.clock.sleep(Duration::from_secs(60)).await;
    let posted = hook.posted.lock().expect("no panic").clone();
    let ids = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().expect("items");
        items
            .iter()
            .map(|it| it["auditID"].as_str().expect("an id").to_owned())
            .collect()
    };
    assert_eq!(posted.iter().map(ids).map(|it| it.len()).sum::<usize>(), 4);
    assert_eq!(
        (&posted[0]["kind"], &posted[0]["apiVersion"]),
        (&json!("EventList"), &json!("audit.k8s.io/v1"))
    );
    assert!(posted.iter().any(|it| ids(it) == ["a", "b", "c"]));
    assert!(posted[0]["items"][0].get("kind").is_none());
    end.cancel();
    tasks.join_all().await;
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_hangs_loses_its_events_alone() {
    let hook = Arc::new(Hook {
        hangs: true,
        ..Hook::default()
    });
    let end = CancellationToken::new();
    let ledger = Ledger::new(1 << 30);
    let (fixture, tasks) = Fixture::of_webhook(&hook, ledger.clone(), None, &end);
    for _ in 0..3 {
        fixture.recording("a").complete_now(Some(ok()));
    }
    // Five attempts of 30 s, and the pauses between them.
    fixture.clock.sleep(Duration::from_secs(600)).await;
    assert_eq!(hook.attempts.load(Ordering::Relaxed), 5);
    assert_eq!(fixture.errors("webhook"), 3);
    assert_eq!(ledger.total(), 0);
    // At the end there are as many attempts, with shorter pauses.
    fixture.recording("b").complete_now(Some(ok()));
    end.cancel();
    tasks.join_all().await;
    assert_eq!(hook.attempts.load(Ordering::Relaxed), 10);
}

#[tokio::test(start_paused = true)]
async fn batches_are_bounded_as_they_are_rendered() {
    let hook = Arc::new(Hook::default());
    let end = CancellationToken::new();
    let truncation = Truncation {
        event_bytes_max: 10_000,
        batch_bytes_max: 5_000,
    };
    let (fixture, tasks) = Fixture::of_webhook(&hook, Ledger::unlimited(), Some(truncation), &end);
    for id in ["a", "b", "c"] {
        let recording = fixture.recording(id);
        // Each of these characters has six in JSON.
        recording.annotate("escaped", "\u{1}".repeat(300));
        recording.complete_now(Some(ok()));
    }
    end.cancel();
    tasks.join_all().await;
    let posted = hook.posted.lock().expect("no panic").clone();
    let counts = posted.iter().map(|it| it["items"].as_array().map(Vec::len));
    assert_eq!(counts.collect::<Vec<_>>(), [Some(2), Some(1)]);
    for list in &posted {
        let size: usize = list["items"]
            .as_array()
            .expect("items")
            .iter()
            .map(|it| it.to_string().len())
            .sum();
        assert!(size <= 5_000, "{size}");
    }
}

#[tokio::test(start_paused = true)]
async fn rendered_batches_count_as_memory() {
    let hook = Arc::new(Hook {
        hangs: true,
        ..Hook::default()
    });
    let end = CancellationToken::new();
    let ledger = Ledger::new(64 << 20);
    let (fixture, tasks) = Fixture::of_webhook(&hook, ledger.clone(), None, &end);
    for _ in 0..3 {
        let recording = fixture.recording("a");
        recording.annotate("large", "x".repeat(100_000));
        recording.complete_now(Some(ok()));
    }
    fixture.clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(hook.attempts.load(Ordering::Relaxed), 1);
    let spent = ledger.total();
    assert!(
        spent >= 2 * 3 * 100_000,
        "{spent} bytes of events and their JSON"
    );
    end.cancel();
    tasks.join_all().await;
    assert_eq!(ledger.total(), 0);
}

#[tokio::test(start_paused = true)]
async fn batches_are_sent_one_at_a_time_when_memory_is_short() {
    let hook = Arc::new(Hook {
        hangs: true,
        ..Hook::default()
    });
    let end = CancellationToken::new();
    let ledger = Ledger::new(1 << 20);
    let (fixture, tasks) = Fixture::of_webhook(&hook, ledger.clone(), None, &end);
    for _ in 0..6 {
        let recording = fixture.recording("a");
        recording.annotate("large", "x".repeat(100_000));
        recording.complete_now(Some(ok()));
    }
    fixture.clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(
        hook.attempts.load(Ordering::Relaxed),
        1,
        "the other batch waits"
    );
    end.cancel();
    tasks.join_all().await;
    assert_eq!(
        hook.attempts.load(Ordering::Relaxed),
        10,
        "none is lost before it is tried"
    );
    assert_eq!(ledger.total(), 0);
}

#[tokio::test(start_paused = true)]
async fn batches_are_throttled() {
    let options = ThrottleOptions {
        rate: 2.0,
        burst: 3,
    };
    let clock = Clock::real();
    let mut throttle = throttle::Throttle::new(options, clock.now());
    let began = clock.now();
    for _ in 0..7 {
        throttle.take(&clock).await;
    }
    let took = clock.now() - began;
    assert!(
        took >= Duration::from_secs(2) && took < Duration::from_secs(3),
        "{took:?}"
    );
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let name = |entry: io::Result<fs::DirEntry>| {
        entry
            .expect("an entry")
            .file_name()
            .to_string_lossy()
            .into_owned()
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

#[tokio::test]
async fn full_files_are_rotated_and_old_ones_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("deep/audit.log");
    let rotation = Rotation {
        bytes_max: 100,
        age_max: Duration::from_secs(10 * 24 * 3600),
        files_max: 2,
        compress: true,
    };
    let start = Timestamp::from_second(1_800_000_000).expect("a time");
    let clock = Clock::manual(start);
    let (mut file, housekeeping) =
        LogFile::open(&path, Some(rotation), clock.clone()).expect("a file");
    let deep = folder.path().join("deep");
    // Too old, and something else.
    for name in [
        "audit-2020-01-01T00-00-00.000.log",
        "audit-x.log",
        "other.log",
    ] {
        fs::write(deep.join(name), "old").expect("written");
    }
    for round in 0..4 {
        clock.advance(Duration::from_secs(1));
        file.write_all(format!("{round}{}\n", "x".repeat(60)).as_bytes())
            .expect("written");
    }
    let error = file
        .write_all(&[b'x'; 101])
        .expect_err("longer than a file");
    assert!(
        error
            .to_string()
            .contains("write length 101 exceeds maximum file size 100")
    );
    drop(file);
    housekeeping.expect("a rotation").run().await;
    assert_eq!(
        names(&deep),
        [
            "audit-2027-01-15T08-00-03.000.log.gz",
            "audit-2027-01-15T08-00-04.000.log.gz",
            "audit-x.log",
            "audit.log",
            "other.log"
        ]
    );
    let newest = fs::read_to_string(&path).expect("the log");
    assert!(newest.starts_with('3') && newest.len() == 62, "{newest}");
    let mut unpacked = String::new();
    let packed = fs::File::open(deep.join("audit-2027-01-15T08-00-04.000.log.gz")).expect("there");
    io::Read::read_to_string(&mut flate2::read::GzDecoder::new(packed), &mut unpacked)
        .expect("gzip");
    assert!(unpacked.starts_with('2'), "{unpacked}");
}
