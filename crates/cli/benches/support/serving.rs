//! A server in this process, over a store in memory whose changes can be held back so that they come together.
//!
//! It runs on the runtime of the bench, so that what is measured crosses to no other threads than those of the bench.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use ringwatch::clock::Clock;
use ringwatch::storage::backend::embedded::Embedded;
use ringwatch::storage::backend::{
    Backend, BackendError, Compare, LeaseId, Op, RangeRequest, RangeResponse, Txn, TxnResponse,
    WatchRequest, WatchResponses,
};
use ringwatch_http::Body;
use ringwatch_server::InProcessServer;
use serde_json::json;
use tracing::Level;

/// The token of the only user of connections.
pub const TOKEN: &str = "bench";

/// A server and its store.
pub struct Serving {
    /// The server.
    pub server: InProcessServer,
    store: Store,
    _folder: tempfile::TempDir,
}

impl Serving {
    /// Starts a server over a store with these objects, given as keys and JSON.
    pub async fn start(objects: impl IntoIterator<Item = (String, Bytes)>) -> Self {
        Self::start_by(Clock::real(), &[], objects).await
    }

    /// Starts a server that works by a clock and has these flags, over a store with these objects.
    pub async fn start_by(
        clock: Clock,
        flags: &[&str],
        objects: impl IntoIterator<Item = (String, Bytes)>,
    ) -> Self {
        // As the server does: without a listener, disabled spans are not cheap.
        let _ = tracing_subscriber::fmt()
            .with_max_level(Level::WARN)
            .try_init();
        let folder = tempfile::tempdir().unwrap();
        let tokens = folder.path().join("tokens");
        std::fs::write(&tokens, format!("{TOKEN},admin,1,system:masters\n")).unwrap();
        let store = Store::new(clock.clone());
        for (key, value) in objects {
            store.put(&key, value).await;
        }
        let builder = InProcessServer::builder();
        let builder = flags.iter().fold(builder, |it, flag| it.flag(*flag));
        let server = builder
            .backend(Arc::clone(&store.backend) as Arc<dyn Backend>)
            .flag(format!("--token-auth-file={}", tokens.display()))
            .clock(clock)
            .on_current_runtime()
            .start();
        Self {
            server: server.await.unwrap(),
            store,
            _folder: folder,
        }
    }

    /// Writes objects. The caches learn of all of them at once.
    pub async fn put(&self, objects: &[(String, Bytes)]) {
        // Relaxed: the writes below come later in any case.
        self.store
            .backend
            .together
            .store(objects.len(), Ordering::Relaxed);
        let writes = objects
            .iter()
            .map(|(key, value)| self.store.put(key, value.clone()));
        futures::future::join_all(writes).await;
    }

    /// Answers a read.
    pub async fn get(&self, uri: &str, accept: &str) -> http::Response<Body> {
        let request = http::Request::get(uri).header(http::header::ACCEPT, accept);
        let response = self.answer(request, Bytes::new()).await;
        assert_eq!(response.status(), 200, "{uri}");
        response
    }

    /// Answers a request of the admin as a connection would have it answered.
    pub async fn answer(
        &self,
        request: http::request::Builder,
        body: Bytes,
    ) -> http::Response<Body> {
        self.server.answer(request.body(body).unwrap()).await
    }
}

/// A pod of about this many bytes, as its key and JSON. Its only tilde marks it.
pub fn pod(number: usize, bytes: usize) -> (String, Bytes) {
    let name = format!("p{number:06}");
    let mut pod = json!({
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "default", "uid": "~", "annotations": {"x": ""}},
        "spec": {"nodeName": "n"},
    });
    let padding = bytes.saturating_sub(pod.to_string().len());
    pod["metadata"]["annotations"]["x"] = "x".repeat(padding).into();
    let key = format!("/registry/pods/default/{name}");
    (key, ringwatch::meta::encode(&pod).into())
}

/// Processor time that this process has had, user and system.
pub fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// A line of `/proc/self/status` that tells a size, in bytes.
pub fn memory(line: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let found = status.lines().find_map(|it| it.strip_prefix(line));
    let kilobytes = found
        .unwrap()
        .trim_start_matches(':')
        .trim_end_matches("kB");
    kilobytes.trim().parse::<usize>().unwrap() * 1024
}

/// The median of some measurements.
pub fn median(measured: &[f64]) -> f64 {
    let mut sorted = measured.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The store of the bench: the backend in which objects are kept.
struct Store {
    backend: Arc<Gate>,
    /// The revisions at which keys were written last.
    written: Mutex<HashMap<String, u64>>,
}

impl Store {
    fn new(clock: Clock) -> Self {
        Self {
            backend: Arc::new(Gate {
                inner: Embedded::in_memory(clock),
                together: Arc::default(),
            }),
            written: Mutex::default(),
        }
    }

    async fn put(&self, key: &str, value: Bytes) {
        let last = self.written.lock().unwrap().get(key).copied();
        let txn = Txn {
            compare: Compare::ModRevision(key.to_owned(), last.unwrap_or_default()),
            then: Op::Put {
                key: key.to_owned(),
                value,
                lease: None,
            },
            otherwise: None,
        };
        let response = self.backend.txn(txn).await.unwrap();
        assert!(response.succeeded, "nobody else writes {key}");
        let mut written = self.written.lock().unwrap();
        written.insert(key.to_owned(), response.revision);
    }
}

/// A backend that holds changes back until there are so many.
#[derive(Debug)]
struct Gate {
    inner: Embedded,
    together: Arc<AtomicUsize>,
}

#[async_trait]
impl Backend for Gate {
    async fn range(&self, request: RangeRequest) -> Result<RangeResponse, BackendError> {
        self.inner.range(request).await
    }

    async fn txn(&self, txn: Txn) -> Result<TxnResponse, BackendError> {
        self.inner.txn(txn).await
    }

    async fn watch(&self, request: WatchRequest) -> Result<WatchResponses, BackendError> {
        let responses = self.inner.watch(request).await?;
        let together = Arc::clone(&self.together);
        let gathered = futures::stream::unfold(responses, move |mut responses| {
            let together = Arc::clone(&together);
            async move {
                let mut whole = match responses.next().await? {
                    Ok(response) => response,
                    Err(error) => return Some((Err(error), responses)),
                };
                while !whole.events.is_empty()
                    && whole.events.len() < together.load(Ordering::Relaxed)
                {
                    let next = responses.next().await?.ok()?;
                    whole.revision = next.revision;
                    whole.events.extend(next.events);
                }
                Some((Ok(whole), responses))
            }
        });
        Ok(gathered.boxed())
    }

    async fn request_progress(&self) -> Result<(), BackendError> {
        self.inner.request_progress().await
    }

    fn progress_is_trusted(&self) -> bool {
        self.inner.progress_is_trusted()
    }

    async fn grant_lease(&self, ttl_seconds: i64) -> Result<LeaseId, BackendError> {
        self.inner.grant_lease(ttl_seconds).await
    }

    async fn compact(&self, revision: u64) -> Result<(), BackendError> {
        self.inner.compact(revision).await
    }

    async fn oldest_revision(&self) -> Result<u64, BackendError> {
        self.inner.oldest_revision().await
    }

    async fn size_bytes(&self) -> Result<u64, BackendError> {
        self.inner.size_bytes().await
    }
}
