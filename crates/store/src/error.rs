//! The reasons why a command fails, each as one line that says what to do.

use std::io;
use std::path::{Path, PathBuf};

use ringwatch::storage::backend::BackendError;
use ringwatch::storage::backend::copy::CopyError;
use ringwatch::storage::backend::embedded::OpenError;
use ringwatch::storage::backend::embedded::maintenance::{MaintenanceError, SealError};
use ringwatch_tls::kubeconfig::KubeconfigError;
use ringwatch_tls::target::TargetError;

/// The failure of a command.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A process has the store open.
    #[error("{}: the store is served by a process; stop it{advice}", path.display())]
    Served {
        /// The path of the store's file.
        path: PathBuf,
        /// The advice what to do instead; empty for none.
        advice: &'static str,
    },
    /// The store or the snapshot cannot be read or written.
    #[error(transparent)]
    Store(MaintenanceError),
    /// The data directory has a store already.
    #[error(
        "{}: there is a store already; restore into another data directory, or move this file away",
        path.display()
    )]
    Exists {
        /// The path of the store's file.
        path: PathBuf,
    },
    /// The data directory into which is copied has a store already.
    #[error(
        "{}: there is a store already; if a copy was just interrupted it may be whole: compare both with `ringwatch store status`; otherwise copy into another data directory, or move this file away",
        path.display()
    )]
    ExistsForCopy {
        /// The path of the store's file.
        path: PathBuf,
    },
    /// The file to which a snapshot was to be written is something else, such as a store.
    #[error("{}: there is another file, which is not a snapshot; name a new file", path.display())]
    OtherFile {
        /// The path of the file.
        path: PathBuf,
    },
    /// A file or folder cannot be written.
    #[error("{}: {source}; check the path and its permissions", path.display())]
    Io {
        /// The path of the file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The kubeconfig cannot be used.
    #[error("{}: {source}; name another kubeconfig with --kubeconfig", path.display())]
    Kubeconfig {
        /// The path of the kubeconfig.
        path: PathBuf,
        /// The reason.
        source: KubeconfigError,
    },
    /// The kubeconfig has something that this client does not support.
    #[error("{}: {what}; use a token or a client certificate, and an https or http server", path.display())]
    Unsupported {
        /// The path of the kubeconfig.
        path: PathBuf,
        /// The part of it that is not supported.
        what: String,
    },
    /// The server cannot be reached, or the connection broke.
    #[error("{server}: {why}; check that the server runs and the network leads to it")]
    Connection {
        /// Host and port of the server.
        server: String,
        /// The reason.
        why: String,
    },
    /// The server's certificate is not one that the kubeconfig trusts.
    #[error(
        "{server}: its certificate is not trusted: {why}; check certificate-authority and tls-server-name in the kubeconfig"
    )]
    Untrusted {
        /// Host and port of the server.
        server: String,
        /// The reason.
        why: String,
    },
    /// The server answered with an error.
    #[error("{server} answered {status}: {message}; {advice}")]
    Refused {
        /// Host and port of the server.
        server: String,
        /// The HTTP status.
        status: u16,
        /// The server's message.
        message: String,
        /// The advice for the user.
        advice: &'static str,
    },
    /// The server's snapshot ended early.
    #[error("{server}: the snapshot did not come whole: {source}; try again")]
    Incomplete {
        /// Host and port of the server.
        server: String,
        /// The reason.
        source: SealError,
    },
    /// An etcd cannot be used.
    #[error("{0}; check that etcd runs, its URL and the flags --etcd-*")]
    Etcd(BackendError),
    /// Another process works on the same unfinished copy.
    #[error("{}: another copy into this directory runs; wait for it or stop it", path.display())]
    Copying {
        /// The path of the unfinished copy.
        path: PathBuf,
    },
    /// A copy has stopped.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(io::Error),
}

impl StoreError {
    /// Returns a function that adds the path of a file to an error of the operating system.
    pub(crate) fn io(path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }

    /// Returns the error about the kubeconfig with this path.
    pub(crate) fn target(path: &Path, error: TargetError) -> Self {
        let path = path.to_owned();
        match error {
            TargetError::Kubeconfig(source) => Self::Kubeconfig { path, source },
            TargetError::Unsupported(what) => Self::Unsupported { path, what },
        }
    }

    /// Returns the error of a store, with this advice if a process has it open.
    pub(crate) fn of_store(error: MaintenanceError, advice: &'static str) -> Self {
        match error {
            MaintenanceError::Open(OpenError::InUse { path }) => Self::Served { path, advice },
            other => Self::Store(other),
        }
    }
}

impl From<MaintenanceError> for StoreError {
    fn from(error: MaintenanceError) -> Self {
        Self::of_store(
            error,
            ", or use a snapshot of it: ringwatch store snapshot --kubeconfig FILE",
        )
    }
}
