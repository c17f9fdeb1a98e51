//! The task that makes the documents: when somebody asks, and each second while somebody reads the stream.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ringwatch_observe::status::STREAM_EVENT;
use serde::Serialize;
use tokio::sync::{Notify, mpsc, oneshot, watch};

use super::gather::Sources;

/// The interval between two documents of the stream.
const PERIOD: Duration = Duration::from_secs(1);

/// A request for a document.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) wanted: DocumentRequest,
    /// Takes the document; `None` if there is none.
    pub(super) answer: oneshot::Sender<Option<Bytes>>,
}

/// The document that is wanted.
#[derive(Debug)]
pub(super) enum DocumentRequest {
    /// The state of the server.
    State,
    /// The watchers of a type, or of all, and how many at most.
    Watchers {
        of_type: Option<String>,
        limit: usize,
    },
    /// The watcher of a number.
    Watcher(u64),
}

/// Makes the documents. It is run as a task on the background threads.
#[derive(Debug)]
pub(super) struct Sampler {
    sources: Sources,
    asked: mpsc::Receiver<Ask>,
    /// Takes the events of the stream; its receivers are the streams.
    newest: Arc<watch::Sender<Bytes>>,
    /// Notified when a stream begins.
    reader_came: Arc<Notify>,
}

impl Sampler {
    pub(super) fn new(
        sources: Sources,
        asked: mpsc::Receiver<Ask>,
        newest: Arc<watch::Sender<Bytes>>,
        reader_came: Arc<Notify>,
    ) -> Self {
        Self {
            sources,
            asked,
            newest,
            reader_came,
        }
    }

    /// Makes documents until nobody can ask any more.
    pub(super) async fn run(mut self) {
        let clock = self.sources.clock.clone();
        let mut next = clock.now();
        loop {
            let is_read = self.newest.receiver_count() > 0;
            tokio::select! {
                asked = self.asked.recv() => match asked {
                    Some(ask) => self.answer(ask).await,
                    None => return,
                },
                () = clock.sleep_until(next), if is_read => {
                    next = clock.now() + PERIOD;
                    self.publish().await;
                }
                // The loop looks again whether somebody reads.
                () = self.reader_came.notified() => {}
            }
        }
    }

    async fn answer(&mut self, ask: Ask) {
        let json = match ask.wanted {
            DocumentRequest::State => json(&self.sources.state().await),
            DocumentRequest::Watchers { of_type, limit } => {
                json(&self.sources.watchers(of_type.as_deref(), limit))
            }
            DocumentRequest::Watcher(id) => self.sources.watcher(id).and_then(|it| json(&it)),
        };
        // The client may have gone.
        let _ = ask.answer.send(json.map(Bytes::from));
    }

    async fn publish(&mut self) {
        let Some(json) = json(&self.sources.state().await) else {
            return;
        };
        let head = format!("event: {STREAM_EVENT}\ndata: ");
        let event = [head.as_bytes(), &json, b"\n\n"].concat();
        self.newest.send_replace(event.into());
    }
}

/// Returns a document as JSON in one line; `None`, with a line in the log, if it cannot be written.
fn json(document: &impl Serialize) -> Option<Vec<u8>> {
    let written = serde_json::to_vec(document);
    written
        .inspect_err(|error| tracing::error!(%error, "cannot write what the server does"))
        .ok()
}
