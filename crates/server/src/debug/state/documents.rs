//! Answers requests for the documents about what the server does now.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response};
use ringwatch_endpoints::TextError;
use ringwatch_http::{BoxError, ResponseBody, full, streamed};
use ringwatch_observe::status::{STATE_PATH, STREAM_PATH, WATCHERS_MAX, WATCHERS_PATH};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot, watch};

use super::gather::Sources;
use super::sampler::{Ask, DocumentRequest, Sampler};

/// Maximum number of requests that wait for a document.
const ASKS_MAX: usize = 16;

/// Maximum number of streams at a time.
const STREAMS_MAX: usize = 16;

/// Answers requests for what the server does now.
#[derive(Debug)]
pub(crate) struct DebugState {
    asks: mpsc::Sender<Ask>,
    newest: Arc<watch::Sender<Bytes>>,
    /// Notified when a stream begins.
    reader_came: Arc<Notify>,
    streams: Arc<Semaphore>,
}

impl DebugState {
    /// Creates the paths, and the task that makes what they answer, which belongs on the background threads.
    pub(crate) fn new(sources: Sources) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (asks, asked) = mpsc::channel(ASKS_MAX);
        let newest = Arc::new(watch::Sender::new(Bytes::new()));
        let reader_came = Arc::new(Notify::new());
        let sampler = Sampler::new(
            sources,
            asked,
            Arc::clone(&newest),
            Arc::clone(&reader_came),
        );
        let state = Self {
            asks,
            newest,
            reader_came,
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
        };
        (state, sampler.run())
    }

    /// Answers a GET of one of the paths; `None` for others.
    pub(crate) async fn answer(&self, path: &str, query: &str) -> Option<Response<ResponseBody>> {
        match path {
            STATE_PATH => Some(self.ask(DocumentRequest::State).await),
            STREAM_PATH => Some(self.stream()),
            WATCHERS_PATH => Some(self.ask(watchers_wanted(query)).await),
            _ => {
                let id = path.strip_prefix(WATCHERS_PATH)?.strip_prefix('/')?;
                let Ok(id) = id.parse() else {
                    return Some(TextError::PageNotFound.response());
                };
                Some(self.ask(DocumentRequest::Watcher(id)).await)
            }
        }
    }

    /// Answers with a document, with 404 if it is of a watcher that has ended, or with 429 if too many wait for theirs.
    async fn ask(&self, wanted: DocumentRequest) -> Response<ResponseBody> {
        let (answer, document) = oneshot::channel();
        if self.asks.try_send(Ask { wanted, answer }).is_err() {
            return TextError::TooManyRequests.response();
        }
        match document.await {
            Ok(Some(json)) => uncached("application/json", full(json)),
            Ok(None) => TextError::PageNotFound.response(),
            Err(_) => TextError::Unavailable("the server is shutting down").response(),
        }
    }

    /// Answers with a stream of documents, or with 429 if there are too many streams.
    fn stream(&self) -> Response<ResponseBody> {
        let Ok(place) = Arc::clone(&self.streams).try_acquire_owned() else {
            return TextError::TooManyRequests.response();
        };
        let newest = self.newest.subscribe();
        self.reader_came.notify_one();
        let events = futures::stream::unfold((newest, place), async |(mut newest, place)| {
            newest.changed().await.ok()?;
            let event = newest.borrow_and_update().clone();
            Some((Ok::<_, BoxError>(event), (newest, place)))
        });
        uncached("text/event-stream", streamed(events.boxed()))
    }
}

/// Reads the parameters of a request for watchers.
fn watchers_wanted(query: &str) -> DocumentRequest {
    let (mut of_type, mut limit) = (None, WATCHERS_MAX);
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "type" => of_type = Some(value.into_owned()),
            "limit" => limit = value.parse().unwrap_or(limit).min(WATCHERS_MAX),
            _ => {}
        }
    }
    DocumentRequest::Watchers { of_type, limit }
}

/// Returns an answer that nobody keeps.
fn uncached(media_type: &'static str, body: ResponseBody) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
