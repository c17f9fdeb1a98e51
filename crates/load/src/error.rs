//! The errors of the load generator, each one line for the user.

use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use super::client::ClientError;
use super::compare::SavedError;
use super::target::TargetError;

/// The reason why a load ended without an outcome, as one line for the user.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The command line asks for what cannot be.
    #[error("{0}")]
    WrongFlags(String),
    /// A command that was to be run.
    #[error("{0}")]
    Command(String),
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error("{0}")]
    Client(#[from] ClientError),
    #[error(transparent)]
    Saved(#[from] SavedError),
    /// A request of the set-up or of the scenario failed.
    #[error("cannot {what}: {error}")]
    Request { what: String, error: ClientError },
    /// The server answered what no Kubernetes API server answers.
    #[error("cannot {what}: {why}")]
    UnexpectedAnswer { what: String, why: String },
    #[error("interrupted")]
    Interrupted,
    #[error("interrupted while cleaning up; kubectl delete namespace {0} does the rest")]
    NotCleanedUp(String),
    /// A failure, and another while cleaning up.
    #[error("{0}; then: {1}")]
    Both(String, String),
    #[error("not done within {0:?}; raise --time-limit, or ask for less")]
    TimeLimit(Duration),
    #[error("cannot write {}: {error}", path.display())]
    Write {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("cannot {what}: {error}")]
    System {
        what: &'static str,
        error: std::io::Error,
    },
}

impl LoadError {
    /// Returns the conversion of a failed request, for `map_err`. `what` completes "cannot".
    pub(crate) fn request(what: impl Into<String>) -> impl FnOnce(ClientError) -> Self {
        let what = what.into();
        move |error| Self::Request { what, error }
    }
}
