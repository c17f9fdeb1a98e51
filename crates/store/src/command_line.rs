//! The subcommands of `ringwatch store` and their flags.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand, ValueEnum};

/// Look at, back up, restore, check and compact embedded stores, and copy stores of either kind.
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
    /// Write a snapshot of a store to a file, while a server serves it (--kubeconfig) or while nothing does
    /// (--data-dir).
    Snapshot(SnapshotFlags),
    /// Make the store of a data directory out of a snapshot. The directory must not have a store.
    Restore(RestoreFlags),
    /// Read all of a store that nothing serves, or of a snapshot, and say what is wrong with it.
    Check(ReadFlags),
    /// Drop the history of a store that nothing serves, and make its file smaller.
    Compact(CompactFlags),
    /// Copy all keys from an embedded store or etcd into an empty one of either kind, or go on with a copy that was
    /// interrupted.
    Copy(CopyFlags),
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
pub(crate) enum OutputForm {
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
    pub(crate) output: OutputForm,
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

/// The flags of `copy`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CopyFlags {
    /// The store that is copied: embedded:DIR (a data directory) or etcd:URL[,URL...]. No server may write to it, but
    /// with --prepare.
    #[arg(long, value_name = "STORE")]
    pub(crate) from: Location,
    /// The store that is made, in the same form. A data directory must have no store, an etcd no keys.
    #[arg(long, value_name = "STORE")]
    pub(crate) to: Location,
    /// Copy while servers go on writing, and leave the copy unfinished. The same command without this flag finishes it:
    /// it copies only what has changed since.
    #[arg(long)]
    pub(crate) prepare: bool,
    /// The kubeconfig of the server that serves an embedded source; its user needs the right to get /store/snapshot.
    #[arg(long, value_name = "FILE", requires = "prepare")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig. The default is its current one.
    #[arg(long, value_name = "NAME", requires = "kubeconfig")]
    pub(crate) context: Option<String>,
    /// Certificate authorities that etcd's certificate is verified against.
    #[arg(long, value_name = "FILE")]
    pub(crate) etcd_cafile: Option<PathBuf>,
    /// Client certificate for etcd.
    #[arg(long, value_name = "FILE", requires = "etcd_keyfile")]
    pub(crate) etcd_certfile: Option<PathBuf>,
    /// Private key of that certificate.
    #[arg(long, value_name = "FILE", requires = "etcd_certfile")]
    pub(crate) etcd_keyfile: Option<PathBuf>,
    /// The form of the output.
    #[arg(long, short, value_name = "FORM", default_value = "table")]
    pub(crate) output: OutputForm,
}

/// The place of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    /// The data directory of a server.
    Embedded(PathBuf),
    /// The URLs of the members of an etcd cluster.
    Etcd(Vec<String>),
}

impl FromStr for Location {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("embedded", dir)) if !dir.is_empty() => Ok(Self::Embedded(PathBuf::from(dir))),
            Some(("etcd", urls)) if !urls.is_empty() => {
                Ok(Self::Etcd(urls.split(',').map(str::to_owned).collect()))
            }
            _ => Err("a store is embedded:DIR or etcd:URL[,URL...]".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_have_a_kind_and_a_place() {
        let embedded = |dir: &str| Ok(Location::Embedded(PathBuf::from(dir)));
        assert_eq!("embedded:/a:b".parse(), embedded("/a:b"));
        let urls = ["http://a:1", "b:2"].map(str::to_owned).to_vec();
        assert_eq!("etcd:http://a:1,b:2".parse(), Ok(Location::Etcd(urls)));
        for wrong in ["", "/a", "embedded:", "etcd:", "http://a:1"] {
            wrong.parse::<Location>().expect_err(wrong);
        }
    }
}
