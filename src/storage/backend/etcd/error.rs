//! Conversion of etcd's errors.
//!
//! etcd's errors are distinguished by their text, as its Go client does, because the codes are too coarse. An error
//! that has a source was raised on this side: the connection failed.

use std::error::Error as StdError;

use etcd_client::Error;
use tonic::{Code, Status};

use crate::storage::backend::BackendError;

/// Converts an error.
pub(super) fn explain(error: Error) -> BackendError {
    match error {
        Error::GRpcStatus(status) => explain_status(&status),
        Error::TransportError(error) => BackendError::Unavailable(innermost(&error)),
        Error::IoError(error) => BackendError::Unavailable(error.to_string()),
        Error::WatchError(message) => BackendError::Unavailable(message),
        other => BackendError::Other(other.to_string()),
    }
}

/// Returns true if the request was never sent, because there was no connection.
pub(super) fn was_never_sent(error: &Error) -> bool {
    let Error::GRpcStatus(status) = error else {
        return false;
    };
    let mut cause = status.source();
    while let Some(error) = cause {
        if error.is::<tonic::ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Converts the reason why etcd cancelled a watch.
pub(super) fn explain_cancellation(reason: &str, compact_revision: i64) -> BackendError {
    if compact_revision > 0 {
        let compact_revision = u64::try_from(compact_revision).unwrap_or_default();
        return BackendError::Compacted { compact_revision };
    }
    by_text(reason).unwrap_or_else(|| {
        BackendError::Unavailable(format!("etcd has cancelled the watch: {reason}"))
    })
}

fn explain_status(status: &Status) -> BackendError {
    if status.source().is_some() {
        return BackendError::Unavailable(innermost(status));
    }
    let message = status.message().to_owned();
    if let Some(known) = by_text(&message) {
        return known;
    }
    match status.code() {
        Code::Unavailable | Code::Cancelled => BackendError::Unavailable(message),
        Code::DeadlineExceeded => BackendError::Timeout(message),
        Code::ResourceExhausted if message.contains("larger than max") => {
            BackendError::TooLarge(message)
        }
        Code::ResourceExhausted => BackendError::Unavailable(message),
        _ => BackendError::Other(message),
    }
}

fn by_text(message: &str) -> Option<BackendError> {
    let is = |text: &str| message.contains(text);
    if is("required revision has been compacted") {
        Some(BackendError::Compacted {
            compact_revision: 0,
        })
    } else if is("required revision is a future revision") {
        Some(BackendError::FutureRevision { current: 0 })
    } else if is("requested lease not found") {
        Some(BackendError::LeaseNotFound)
    } else if is("request is too large") {
        Some(BackendError::TooLarge(message.to_owned()))
    } else if is("database space exceeded") {
        Some(BackendError::NoSpace)
    } else if is("corrupt cluster") {
        Some(BackendError::Corrupt(message.to_owned()))
    } else if is("request timed out") {
        Some(BackendError::Timeout(message.to_owned()))
    } else {
        None
    }
}

/// Returns the text of the innermost cause, which is the most specific.
fn innermost(error: &(dyn StdError + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(code: Code, message: &str) -> BackendError {
        explain(Error::GRpcStatus(Status::new(code, message)))
    }

    #[test]
    fn etcds_texts_have_meanings() {
        assert_eq!(
            explained(
                Code::OutOfRange,
                "etcdserver: mvcc: required revision has been compacted"
            ),
            BackendError::Compacted {
                compact_revision: 0
            }
        );
        assert_eq!(
            explained(
                Code::OutOfRange,
                "etcdserver: mvcc: required revision is a future revision"
            ),
            BackendError::FutureRevision { current: 0 }
        );
        assert_eq!(
            explained(Code::NotFound, "etcdserver: requested lease not found"),
            BackendError::LeaseNotFound
        );
        let full = "etcdserver: mvcc: database space exceeded";
        assert_eq!(
            explained(Code::ResourceExhausted, full),
            BackendError::NoSpace
        );
        let large = "etcdserver: request is too large";
        assert_eq!(
            explained(Code::InvalidArgument, large),
            BackendError::TooLarge(large.to_owned())
        );
        let slow = "etcdserver: request timed out";
        assert_eq!(
            explained(Code::Unavailable, slow),
            BackendError::Timeout(slow.to_owned())
        );
        let busy = "etcdserver: too many requests";
        assert_eq!(
            explained(Code::ResourceExhausted, busy),
            BackendError::Unavailable(busy.to_owned())
        );
    }

    #[test]
    fn a_cancelled_watch_says_why() {
        assert_eq!(
            explain_cancellation("", 7),
            BackendError::Compacted {
                compact_revision: 7
            }
        );
        assert!(matches!(
            explain_cancellation("etcdserver: no leader", 0),
            BackendError::Unavailable(text) if text.ends_with("no leader")
        ));
    }
}
