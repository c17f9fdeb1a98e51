//! The outcomes of calls.

use ringwatch::meta::Status;
use ringwatch_apimachinery::Error;
use serde_json::Value;

/// The outcome of a call that does not refuse the request.
#[derive(Debug)]
pub(super) enum CallOutcome {
    /// It allows the request, and may want a JSON patch of the object as it was sent.
    Allowed(Option<(Vec<u8>, Value)>),
    /// The call failed with this HTTP status, and the webhook's `failurePolicy` is `Ignore`.
    Ignored(u16),
}

/// The reason why a call refuses the request.
#[derive(Debug)]
pub(super) enum CallError {
    /// It is a dry run, which the webhook does not support.
    Unsupported(Error),
    /// The webhook refuses it, with this status.
    Refused(Box<Status>),
    /// The call failed, and the webhook's `failurePolicy` is `Fail`.
    Failed(FailedCall),
}

/// A call without a valid answer.
#[derive(Debug)]
pub(super) struct FailedCall {
    pub(super) why: String,
    /// The HTTP status of the webhook's answer; [`UNANSWERED`] if there was none, or no review in it.
    pub(super) code: u16,
}

/// The code of a call without an answer, or with one that is no valid review, as in kube-apiserver.
pub(super) const UNANSWERED: u16 = 503;
/// The code of a call that was not made since the webhook's configuration is wrong.
pub(super) const WRONG_CONFIGURATION: u16 = 500;

impl CallError {
    pub(super) fn into_error(self) -> Error {
        match self {
            Self::Unsupported(error) => error,
            Self::Refused(status) => Error::Denied(status),
            Self::Failed(failed) => Error::Internal(failed.why),
        }
    }
}
