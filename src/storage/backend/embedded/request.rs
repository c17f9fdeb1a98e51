//! The requests to the writer, and the replies to them.

use tokio::sync::oneshot;

use crate::clock::Instant;
use crate::storage::backend::{BackendError, LeaseId, Txn, TxnResponse};

/// The sender of a request's outcome. The caller may have gone.
pub(super) type Reply<T> = oneshot::Sender<Result<T, BackendError>>;

/// A request to the writer. The writer reads no clock, so requests carry the time.
#[derive(Debug)]
pub(super) enum WriterRequest {
    Txn(Txn, Reply<TxnResponse>),
    Grant {
        ttl_seconds: i64,
        now: Instant,
        reply: Reply<LeaseId>,
    },
    /// Ends the leases whose deadline has come.
    Expire {
        now: Instant,
        reply: Reply<()>,
    },
    Compact {
        revision: u64,
        reply: Reply<()>,
    },
    /// Compares a part of the log with what was written there.
    Verify {
        reply: Reply<()>,
    },
    /// Recovers a log that failed.
    Recover {
        now: Instant,
        reply: Reply<()>,
    },
}

/// Sends a caller the outcome of its request, or the error of the batch.
pub(super) type Responder = Box<dyn FnOnce(Option<&BackendError>)>;

impl WriterRequest {
    /// Replies that the request was refused.
    pub(super) fn refuse(self, refusal: BackendError) -> Responder {
        match self {
            Self::Txn(_, reply) => answer(reply, Err(refusal)),
            Self::Grant { reply, .. } => answer(reply, Err(refusal)),
            Self::Expire { reply, .. }
            | Self::Compact { reply, .. }
            | Self::Verify { reply }
            | Self::Recover { reply, .. } => answer(reply, Err(refusal)),
        }
    }
}

/// Returns the reply to one request, to be sent unless the batch fails.
pub(super) fn answer<T: 'static>(reply: Reply<T>, outcome: Result<T, BackendError>) -> Responder {
    Box::new(move |failure| {
        let outcome = match failure {
            Some(error) => Err(error.clone()),
            None => outcome,
        };
        // An error means that the caller has gone.
        let _ = reply.send(outcome);
    })
}
