//! The errors of connections to an upstream and of its answers.

use ringwatch::storage::StorageError;
use ringwatch_http::client::ExchangeError;

/// An answer that is not what an API server sends. The upstream, or something on the way to it, is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the upstream's answer is malformed: {0}")]
pub(crate) struct MalformedAnswer(pub(crate) String);

/// The failure to set up the client of an upstream.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// The kubeconfig cannot be used; the message says what of it is to be corrected.
    #[error(transparent)]
    Kubeconfig(#[from] ringwatch_tls::target::TargetError),
    /// The address of the server cannot be sent, because it has characters that no address has; correct it.
    #[error("the server's address in the kubeconfig cannot be sent in a header")]
    Authority,
    /// The token cannot be sent, because it has line breaks or other control characters; give another one.
    #[error("the token of the kubeconfig cannot be sent in a header")]
    Token,
    /// Credentials are replaced, and the server is another one; start the relay again for that.
    #[error("the kubeconfig has another server; restart the relay to use it")]
    OtherServer,
}

impl From<MalformedAnswer> for StorageError {
    fn from(error: MalformedAnswer) -> Self {
        Self::Internal {
            message: error.to_string(),
        }
    }
}

/// Returns the error of a request that has no answer.
pub(crate) fn unanswered(error: &ExchangeError) -> StorageError {
    let message = format!("the upstream cannot be asked: {error}");
    match error {
        ExchangeError::TimedOut(_) => StorageError::Timeout { message },
        ExchangeError::TooLong(_) => StorageError::TooLarge { message },
        _ => StorageError::Unreachable { message },
    }
}

/// Returns the error of an answer that has not come in time.
pub(crate) fn too_late() -> StorageError {
    StorageError::Timeout {
        message: "the upstream did not answer in time".to_owned(),
    }
}
