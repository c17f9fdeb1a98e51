//! Group commit: requests that come while a batch is written form the next batch.

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;

use super::request::WriterRequest;
use super::writer::Writer;
use crate::budget::Ledger;

/// Maximum number of requests that wait for the writer; then callers wait to send theirs.
pub(super) const QUEUE_REQUESTS_MAX: usize = 1_024;
/// Maximum number of requests in one commit.
const BATCH_REQUESTS_MAX: usize = 512;

/// Executes the writes of an [`super::Embedded`] store. Its caller runs it on a thread of its own.
#[derive(Debug)]
pub struct CommitLoop {
    writer: Writer,
    requests: mpsc::Receiver<WriterRequest>,
}

impl CommitLoop {
    pub(super) fn new(writer: Writer, requests: mpsc::Receiver<WriterRequest>) -> Self {
        Self { writer, requests }
    }

    /// Returns this loop with limits: writes that would make the records larger than `quota_bytes` are refused, none if
    /// `None`; and the history is counted in `memory`, and compacted where it takes more than its part of that.
    #[must_use]
    pub fn with_limits(mut self, quota_bytes: Option<u64>, memory: &Ledger) -> Self {
        self.writer.set_limits(quota_bytes, memory);
        self
    }

    /// Writes until the store is closed or dropped and everything accepted is written; then the file is released.
    /// Blocks, so it must not be called on a thread that runs tasks.
    pub fn run(mut self) {
        while futures::executor::block_on(self.write_batch()) {}
    }

    /// Waits for requests and writes all that are there as one batch. Returns false when none can come any more.
    /// Blocks the thread while it writes; [`run`](Self::run) is for threads that do nothing else, and this for a
    /// simulation, which has one thread.
    pub async fn write_batch(&mut self) -> bool {
        let mut batch = Vec::new();
        let goes_on = self.collect(&mut batch).await;
        if goes_on {
            self.writer.commit(batch);
        }
        goes_on
    }

    /// Waits for requests and takes all that are there. Returns false when none can come any more. Does not wait while
    /// the log has records to be removed.
    async fn collect(&mut self, batch: &mut Vec<WriterRequest>) -> bool {
        if !self.writer.has_removals() {
            return self.requests.recv_many(batch, BATCH_REQUESTS_MAX).await > 0;
        }
        while batch.len() < BATCH_REQUESTS_MAX {
            match self.requests.try_recv() {
                Ok(request) => batch.push(request),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return !batch.is_empty(),
            }
        }
        true
    }
}

impl Drop for CommitLoop {
    fn drop(&mut self) {
        self.writer.close();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::sync::oneshot;

    use super::*;
    use crate::storage::backend::embedded::lease_book::LeaseBook;
    use crate::storage::backend::embedded::log::RecordingLog;
    use crate::storage::backend::embedded::mvcc::State;
    use crate::storage::backend::{Compare, Op, Txn};

    #[test]
    fn what_waits_together_is_one_commit() {
        let log = RecordingLog::default();
        let (sender, requests) = mpsc::channel(10);
        let mut outcomes = Vec::new();
        for n in 0..5 {
            let (reply, outcome) = oneshot::channel();
            let txn = Txn {
                compare: Compare::ModRevision("/a".to_owned(), n % 2),
                then: Op::Put {
                    key: format!("/{n}"),
                    value: bytes::Bytes::new(),
                    lease: None,
                },
                otherwise: None,
            };
            sender.try_send(WriterRequest::Txn(txn, reply)).unwrap();
            outcomes.push(outcome);
        }
        drop(sender);
        let state = State::new();
        let book = LeaseBook::default();
        let writer = Writer::new(state, book, Box::new(log.clone()), Vec::new());
        let published = writer.published();
        CommitLoop::new(writer, requests).run();
        assert_eq!(log.0.lock().unwrap().batches, [[2, 3, 4]]);
        assert!(published.borrow().closed);
        let revisions = outcomes.into_iter().map(|mut outcome| {
            let response = outcome.try_recv().unwrap().unwrap();
            (response.succeeded, response.revision)
        });
        let expected = [(true, 2), (false, 2), (true, 3), (false, 3), (true, 4)];
        assert!(revisions.eq(expected));
    }

    /// Returns a loop whose log has records to be removed, and the log and the queue.
    fn removing() -> (CommitLoop, RecordingLog, mpsc::Sender<WriterRequest>) {
        let log = RecordingLog::default();
        let (state, book) = (State::new(), LeaseBook::default());
        let writer = Writer::new(state, book, Box::new(log.clone()), vec![2, 3]);
        let (sender, requests) = mpsc::channel(2 * BATCH_REQUESTS_MAX);
        (CommitLoop::new(writer, requests), log, sender)
    }

    fn put() -> WriterRequest {
        let txn = Txn {
            compare: Compare::ModRevision("/never".to_owned(), 0),
            then: Op::Put {
                key: "/a".to_owned(),
                value: bytes::Bytes::new(),
                lease: None,
            },
            otherwise: None,
        };
        WriterRequest::Txn(txn, oneshot::channel().0)
    }

    fn batch_lengths(log: &RecordingLog) -> Vec<usize> {
        let recording = log.0.lock().unwrap();
        recording.batches.iter().map(Vec::len).collect()
    }

    #[test]
    fn a_lone_write_waits_for_no_other() {
        let log = RecordingLog::default();
        let (state, book) = (State::new(), LeaseBook::default());
        let writer = Writer::new(state, book, Box::new(log.clone()), Vec::new());
        let (sender, requests) = mpsc::channel(10);
        let mut commits = CommitLoop::new(writer, requests);
        for committed in 1..=3 {
            sender.try_send(put()).unwrap();
            assert_eq!(commits.write_batch().now_or_never(), Some(true));
            assert_eq!(batch_lengths(&log), vec![1; committed]);
        }
        assert_eq!(commits.write_batch().now_or_never(), None);
    }

    #[test]
    fn removals_wait_for_no_request() {
        let (mut commits, log, _sender) = removing();
        assert_eq!(commits.write_batch().now_or_never(), Some(true));
        assert_eq!(batch_lengths(&log), [0]);
        assert_eq!(commits.write_batch().now_or_never(), None);
    }

    #[test]
    fn removals_go_with_at_most_a_batch_of_requests() {
        let (mut commits, log, sender) = removing();
        for _ in 0..BATCH_REQUESTS_MAX + 5 {
            sender.try_send(put()).unwrap();
        }
        drop(sender);
        let ended = [(); 3].map(|()| commits.write_batch().now_or_never());
        assert_eq!(ended, [Some(true), Some(true), Some(false)]);
        assert_eq!(batch_lengths(&log), [BATCH_REQUESTS_MAX, 5]);
    }

    #[test]
    fn removals_are_left_to_the_next_start_when_nobody_can_write() {
        let (mut commits, log, sender) = removing();
        drop(sender);
        assert_eq!(commits.write_batch().now_or_never(), Some(false));
        assert!(batch_lengths(&log).is_empty());
        let (mut commits, log, sender) = removing();
        sender.try_send(put()).unwrap();
        drop(sender);
        assert_eq!(commits.write_batch().now_or_never(), Some(true));
        assert_eq!(batch_lengths(&log), [1]);
    }
}
