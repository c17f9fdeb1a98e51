//! The errors of this crate: one line each, that says what to do.

use std::io;
use std::path::PathBuf;

/// A failure to lay out the folder, or to run one of its programs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnvtestError {
    /// A folder cannot be made.
    #[error("cannot make the folder {}: {source}; choose another one", path.display())]
    Folder {
        /// The path.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The data folder of the stand-in is that of a real etcd.
    #[error(
        "{} has the data of a real etcd, which a stand-in cannot serve; choose another --data-dir, or start that etcd",
        path.display()
    )]
    OfEtcd {
        /// The path of the folder.
        path: PathBuf,
    },
    /// A file cannot be written.
    #[error("cannot write {}: {source}; choose another folder, or make this one writable", path.display())]
    Write {
        /// The path.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The program that is to be copied cannot be read.
    #[error("cannot copy {}: {source}; check the path and its permissions", path.display())]
    Copy {
        /// The path.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file of `--kubectl` is not executable.
    #[error("{} is no program; name an executable file in --kubectl", path.display())]
    NoProgram {
        /// The path.
        path: PathBuf,
    },
    /// The folder has programs that `envtest-assets` did not put there.
    #[error(
        "{} is there and not of ringwatch envtest-assets; choose another folder, or remove it",
        path.display()
    )]
    Foreign {
        /// The path of such a program.
        path: PathBuf,
    },
    /// The flags of etcd cannot be used.
    #[error("{0}")]
    Flag(String),
    /// An address cannot be listened at.
    #[error("cannot listen at {url}: {source}; {} in --listen-client-urls", advice(.source))]
    Listen {
        /// The URL of the flag.
        url: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The operating system refuses what every program needs: threads, signals, its own path.
    #[error("cannot {what}: {source}; look at the limits of this process")]
    System {
        /// The action.
        what: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// kube-apiserver is started without an etcd.
    #[error(
        "--etcd-servers must be specified; name the etcd of this folder or a real one, or give --data-dir for a store \
         without etcd"
    )]
    NoServers,
    /// No etcd answers.
    #[error("no etcd at {url}: {why} (tried for {seconds} s); start it, or check --etcd-servers")]
    NoEtcd {
        /// The URL of the flag.
        url: String,
        /// The last error.
        why: String,
        /// The time.
        seconds: u64,
    },
    /// A stand-in is named together with other servers, which would not get what it has.
    #[error(
        "{url} is a stand-in for etcd, which has no other members; leave the others out of --etcd-servers"
    )]
    OneOfSeveral {
        /// The URL of the flag.
        url: String,
    },
    /// A data directory is named beside that of the stand-in.
    #[error(
        "{url} is a stand-in for etcd, and the store is kept in its folder, {}; leave --data-dir out, or dataDir of the \
         file of --config",
        folder.display()
    )]
    SecondFolder {
        /// The URL of the flag.
        url: String,
        /// The folder of the stand-in.
        folder: PathBuf,
    },
    /// Other servers are named for some resources beside a stand-in.
    #[error(
        "{url} is a stand-in for etcd, which keeps all resources in one store; leave --etcd-servers-overrides out, or \
         use a real etcd"
    )]
    Overrides {
        /// The URL of the flag.
        url: String,
    },
}

/// Returns what to do where an address cannot be listened at.
fn advice(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::AddrInUse => "choose a free port",
        io::ErrorKind::PermissionDenied => "choose a port above 1023",
        _ => "choose an address of this machine",
    }
}
