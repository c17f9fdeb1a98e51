//! The subcommands of `ringwatch store` and their flags.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Look at, copy, restore, check and compact embedded stores.
#[derive(Args, Clone, Debug)]
pub struct StoreFlags {
    #[command(subcommand)]
    pub(crate) action: Action,
}

/// A subcommand.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Action {
    /// Print the revision, keys, size and digest of a store that nothing serves, or of a snapshot.
    Status(ReadFlags),
    /// Write a snapshot of a store to a file, while a server serves it (--kubeconfig) or while nothing does (--data-dir).
    Snapshot(SnapshotFlags),
    /// Make the store of a data directory out of a snapshot. The directory must not have a store.
    Restore(RestoreFlags),
    /// Read all of a store that nothing serves, or of a snapshot, and say what is wrong with it.
    Check(ReadFlags),
    /// Drop the history of a store that nothing serves, and make its file smaller.
    Compact(CompactFlags),
}

/// The flag that names a store.
#[derive(Args, Clone, Debug)]
pub(crate) struct DataDir {
    /// The data directory of the server, in which the store is.
    #[arg(long, value_name = "DIR", default_value = "ringwatch-data")]
    pub(crate) data_dir: PathBuf,
}

/// A form of what a command prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    Table,
    Json,
}

/// The flags of `status` and `check`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReadFlags {
    /// A snapshot; without one, the store in the data directory.
    #[arg(value_name = "SNAPSHOT", conflicts_with = "data_dir")]
    pub(crate) snapshot: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: DataDir,
    /// The form of the output.
    #[arg(long, short, value_name = "FORM", default_value = "table")]
    pub(crate) output: Form,
}

/// The flags of `snapshot`.
#[derive(Args, Clone, Debug)]
pub(crate) struct SnapshotFlags {
    /// The file to write. An old one is replaced once the new one is whole.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) store: DataDir,
    /// The kubeconfig of the server that serves the store; its user needs the right to get /store/snapshot.
    #[arg(long, value_name = "FILE", conflicts_with = "data_dir")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig. The default is its current one.
    #[arg(long, value_name = "NAME", requires = "kubeconfig")]
    pub(crate) context: Option<String>,
}

/// The flags of `restore`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RestoreFlags {
    /// The snapshot.
    #[arg(value_name = "SNAPSHOT")]
    pub(crate) snapshot: PathBuf,
    /// The data directory of the server to be. It is created if it does not exist, and what else is in it stays.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: PathBuf,
}

/// The flags of `compact`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CompactFlags {
    #[command(flatten)]
    pub(crate) store: DataDir,
    /// The revision: versions that were overwritten or deleted up to it are dropped. It stays readable itself.
    #[arg(long, value_name = "REVISION")]
    pub(crate) revision: u64,
}
