//! One watch: a stream of its own on the endpoint's watch connection.
//!
//! It works only while it is polled. Fragments of a response are kept until the last one, so that no response splits a
//! revision. Events before the next expected revision are dropped: etcd sends them after some partitions to watches
//! that began in the future.

use etcd_client::{Error, WatchClient, WatchOptions, WatchStream};
use futures::stream::{self, StreamExt};
use tokio::sync::watch::Receiver;

use super::convert::{event, revision, signed};
use super::error::{explain, explain_cancellation};
use crate::storage::backend::{
    BackendError, Event, KeyRange, WatchRequest, WatchResponse, WatchResponses,
};

/// A watch that etcd has accepted, and its first response if that was not the acceptance.
pub(super) struct OpenedWatch {
    stream: WatchStream,
    first: Option<etcd_client::WatchResponse>,
}

/// A watch in progress.
struct Watching {
    stream: WatchStream,
    /// A response that came while opening.
    first: Option<etcd_client::WatchResponse>,
    /// True if progress responses are wanted.
    progress: bool,
    /// Changes when progress is requested.
    progress_requests: Receiver<u64>,
    /// The events of a response whose last fragment is still to come.
    partial: Vec<Event>,
    /// The revision before which everything has been returned or is not wanted.
    next_revision: u64,
    ended: bool,
}

/// Opens a watch and waits until etcd has accepted it, so that it sees every later write.
pub(super) async fn open(
    mut client: WatchClient,
    request: WatchRequest,
) -> Result<OpenedWatch, Error> {
    let mut options = WatchOptions::new()
        .with_start_revision(signed(request.start_revision))
        .with_fragment();
    if request.previous {
        options = options.with_prev_key();
    }
    if request.progress {
        options = options.with_progress_notify();
    }
    let key = match request.range {
        KeyRange::Key(key) => key,
        KeyRange::Span(start, end) => {
            options = options.with_range(end);
            start
        }
    };
    let mut stream = client.watch(key, Some(options)).await?;
    let Some(first) = stream.message().await? else {
        return Err(Error::WatchError("etcd ended the watch at once".to_owned()));
    };
    let accepted = first.created() && !first.canceled();
    Ok(OpenedWatch {
        stream,
        first: (!accepted).then_some(first),
    })
}

/// Returns the responses of a watch.
pub(super) fn responses(
    opened: OpenedWatch,
    request: &WatchRequest,
    progress_requests: Receiver<u64>,
) -> WatchResponses {
    let watching = Watching {
        stream: opened.stream,
        first: opened.first,
        progress: request.progress,
        progress_requests,
        partial: Vec::new(),
        next_revision: request.start_revision,
        ended: false,
    };
    stream::unfold(watching, Watching::next).boxed()
}

impl Watching {
    async fn next(mut self) -> Option<(Result<WatchResponse, BackendError>, Self)> {
        if self.ended {
            return None;
        }
        let outcome = self.response().await;
        self.ended = outcome.is_err();
        Some((outcome, self))
    }

    /// Waits for the next response that has events or progress.
    async fn response(&mut self) -> Result<WatchResponse, BackendError> {
        loop {
            let message = match self.first.take() {
                Some(first) => first,
                None => self.message().await?,
            };
            if message.canceled() {
                let (reason, compacted) = (message.cancel_reason(), message.compact_revision());
                return Err(explain_cancellation(reason, compacted));
            }
            if let Some(response) = self.take(message) {
                return Ok(response);
            }
        }
    }

    /// Waits for a message, and requests progress meanwhile.
    async fn message(&mut self) -> Result<etcd_client::WatchResponse, BackendError> {
        loop {
            tokio::select! {
                message = self.stream.message() => {
                    return message.map_err(explain)?.ok_or_else(|| {
                        BackendError::Unavailable("etcd ended the watch".to_owned())
                    });
                }
                Ok(()) = self.progress_requests.changed(), if self.progress => {
                    self.stream.request_progress().await.map_err(explain)?;
                }
            }
        }
    }

    /// Converts a message into a response; `None` if it is not the last fragment or is empty.
    fn take(&mut self, message: etcd_client::WatchResponse) -> Option<WatchResponse> {
        let message = message.0;
        if message.created {
            return None;
        }
        let revision = revision(message.header.as_ref());
        let (is_progress, is_last) = (message.events.is_empty(), !message.fragment);
        let wanted = |event: &Event| event.kv.mod_revision >= self.next_revision;
        let events = message.events.into_iter().filter_map(event).filter(wanted);
        self.partial.extend(events);
        let between_fragments = is_progress && !self.partial.is_empty();
        if !is_last || between_fragments {
            return None;
        }
        let events = std::mem::take(&mut self.partial);
        match events.last() {
            Some(last) => self.next_revision = last.kv.mod_revision + 1,
            // Progress before the first revision of a watch in the future is no progress.
            None if !self.progress || !is_progress || revision + 1 < self.next_revision => {
                return None;
            }
            None => self.next_revision = revision + 1,
        }
        Some(WatchResponse { revision, events })
    }
}
