//! `/store/snapshot`: a snapshot of the embedded store as it is at the request, while the server goes on.
//!
//! A thread that does nothing else makes the stream piece by piece, so that it takes the processor from nobody on a
//! worker, and no more memory than a few pieces and some bytes for each key. One is made at a time.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response};
use ringwatch::clock::{Clock, Instant};
use ringwatch::storage::backend::embedded::Embedded;
use ringwatch::storage::backend::embedded::maintenance::Snapshot;
use ringwatch_endpoints::TextError;
use ringwatch_http::{BoxError, ResponseBody, streamed};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, Sender};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The path of snapshots.
pub(crate) const SNAPSHOT: &str = "/store/snapshot";

/// The most snapshots that are made at a time.
const AT_A_TIME_MAX: usize = 1;
/// The most pieces that wait for the client.
const PIECES_AHEAD_MAX: usize = 2;
/// Maximum time that the client may take for a piece; then the stream ends without its digest.
const PIECE_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum time of a whole snapshot, which keeps the versions in memory that were current when it was taken.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(3_600);

/// The maker of snapshots.
#[derive(Debug)]
pub(crate) struct StoreSnapshots {
    store: Arc<Embedded>,
    turns: Arc<Semaphore>,
    clock: Clock,
}

impl StoreSnapshots {
    /// Makes snapshots of a store.
    pub(crate) fn new(store: Arc<Embedded>, clock: Clock) -> Self {
        Self {
            store,
            turns: Arc::new(Semaphore::new(AT_A_TIME_MAX)),
            clock,
        }
    }

    /// Answers with a snapshot, or with 429 while another one is made. A blocking thread of the current runtime makes
    /// it.
    pub(crate) fn answer(&self) -> Response<ResponseBody> {
        let Ok(turn) = Arc::clone(&self.turns).try_acquire_owned() else {
            return TextError::TooManyRequests.response();
        };
        let (sender, mut pieces) = mpsc::channel(PIECES_AHEAD_MAX);
        let stream = Stream {
            end: self.clock.now() + SNAPSHOT_TIMEOUT,
            clock: self.clock.clone(),
            sender,
            _turn: turn,
        };
        let (snapshot, runtime) = (self.store.snapshot(), Handle::current());
        // Whether all was sent shows in the digest at the end.
        drop(tokio::task::spawn_blocking(move || {
            stream.send(snapshot, &runtime);
        }));
        let pieces = futures::stream::poll_fn(move |context| pieces.poll_recv(context));
        let mut response = Response::new(streamed(pieces));
        let media_type = HeaderValue::from_static("application/octet-stream");
        response.headers_mut().insert(CONTENT_TYPE, media_type);
        response
    }
}

/// The way to the client of one snapshot.
struct Stream {
    sender: Sender<Result<Bytes, BoxError>>,
    /// The time by which all must be sent.
    end: Instant,
    clock: Clock,
    _turn: OwnedSemaphorePermit,
}

impl Stream {
    /// Sends a snapshot, unless the client is gone or too slow. Blocks.
    fn send(self, snapshot: Snapshot, runtime: &Handle) {
        let revision = snapshot.revision();
        tracing::info!(revision, "a snapshot of the store is read");
        for piece in snapshot.chunks() {
            let left = self.end - self.clock.now().min(self.end);
            let sending = self.sender.send(Ok(piece));
            let sent = self.clock.timeout(PIECE_TIMEOUT.min(left), sending);
            if !matches!(runtime.block_on(sent), Ok(Ok(()))) {
                tracing::warn!(revision, "the reader of a snapshot is gone or too slow");
                let error: BoxError = "the snapshot took too long".into();
                // The reader must not take it for a whole one; if there is no room, it is not at its end.
                let _ = self.sender.try_send(Err(error));
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use ringwatch::storage::backend::embedded::maintenance::Seal;
    use ringwatch::storage::backend::{Backend, Compare, Op, Txn};

    use super::*;

    /// The value of the one key, longer than what waits for the client.
    const VALUE_BYTES: usize = 1 << 20;

    async fn snapshots(values: usize) -> StoreSnapshots {
        let store = Arc::new(Embedded::in_memory(Clock::real()));
        for number in 0..values {
            let key = format!("/{number}");
            let txn = Txn {
                compare: Compare::ModRevision(key.clone(), 0),
                then: Op::Put {
                    key,
                    value: vec![b'x'; VALUE_BYTES].into(),
                    lease: None,
                },
                otherwise: None,
            };
            store.txn(txn).await.expect("a write");
        }
        StoreSnapshots::new(store, Clock::real())
    }

    async fn next(body: &mut ResponseBody) -> Option<Result<Bytes, BoxError>> {
        let frame = body.frame().await?;
        Some(frame.map(|it| it.into_data().expect("data")))
    }

    #[tokio::test]
    async fn one_is_made_at_a_time_and_ends_with_its_seal() {
        let snapshots = snapshots(6).await;
        let first = snapshots.answer();
        assert_eq!(first.status(), 200);
        assert_eq!(snapshots.answer().status(), 429);
        let mut body = first.into_body();
        let (mut seal, mut bytes) = (Seal::default(), 0);
        while let Some(piece) = next(&mut body).await {
            let piece = piece.expect("a piece");
            bytes += piece.len();
            seal.update(&piece);
        }
        assert!(bytes > 6 * VALUE_BYTES, "{bytes}");
        seal.verify().expect("a whole snapshot");
        // The thread has sent everything, and gives back its turn.
        let turn = snapshots.turns.acquire().await.expect("a turn");
        drop(turn);
        assert_eq!(snapshots.answer().status(), 200);
    }

    #[tokio::test]
    async fn a_reader_that_goes_gives_back_the_turn() {
        let snapshots = snapshots(6).await;
        drop(snapshots.answer());
        drop(snapshots.turns.acquire().await.expect("a turn"));
        assert_eq!(snapshots.answer().status(), 200);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_stalls_gets_no_whole_snapshot() {
        let snapshots = snapshots(6).await;
        let mut body = snapshots.answer().into_body();
        // Time does not pass by itself while a blocking thread works.
        while snapshots.turns.available_permits() == 0 {
            tokio::time::advance(PIECE_TIMEOUT).await;
        }
        let mut seal = Seal::default();
        while let Some(Ok(piece)) = next(&mut body).await {
            seal.update(&piece);
        }
        seal.verify().expect_err("a part of a snapshot");
    }
}
