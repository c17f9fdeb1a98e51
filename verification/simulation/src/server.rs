//! The software of a server's host: the server as it is, on the store and the network of the simulation.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::Rng;
use ringwatch::clock::Clock;
use ringwatch::storage::backend::Backend;
use ringwatch::storage::backend::embedded::{CommitLoop, Embedded, OpenError};
use ringwatch_http::Protocol;
use ringwatch_server::InProcessServer;
use ringwatch_testing::disk::Disk;
use tokio::task::JoinSet;
use turmoil::net::TcpListener;

use crate::etcd::Etcd;
use crate::network::{PORT, Unsteady};
use crate::store;

/// The bearer token of the clients.
pub(crate) const TOKEN: &str = "simulated";
/// The server's authority, and the key of its service account tokens, which protect nothing. Made anew, an authority
/// would have another length now and then, and so would the stored object that names it; and the search for a key takes
/// random numbers of the system, more or less of them.
const KEYS: [(&str, &str); 3] = [
    ("ca.crt", include_str!("keys/ca.crt")),
    ("ca.key", include_str!("keys/ca.key")),
    (TOKEN_KEY, include_str!("keys/service-accounts.key")),
];
/// The name of the key of service account tokens.
const TOKEN_KEY: &str = "service-accounts.key";
/// The longest time that a commit takes on a disk in good health.
const COMMIT_MAX: Duration = Duration::from_millis(8);

/// The pause before a process that has failed is started again.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// The part of the simulated world that outlives a server's process.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) clock: Clock,
    pub(crate) protocol: Protocol,
    /// The folder of the server, with its certificates.
    pub(crate) folder: PathBuf,
    pub(crate) storage: Storage,
}

/// The storage of the simulated world.
#[derive(Clone, Debug)]
pub(crate) enum Storage {
    Disk(SlowingDisk),
    Etcd(Arc<Etcd>),
}

/// A disk, and how long commits take on it.
#[derive(Clone, Debug)]
pub(crate) struct SlowingDisk {
    pub(crate) disk: Disk,
    /// The time that each commit takes beyond the usual.
    pub(crate) slowed: Arc<Mutex<Duration>>,
}

impl SlowingDisk {
    fn pause(&self) -> Duration {
        let slowed = *self.slowed.lock().unwrap_or_else(PoisonError::into_inner);
        slowed + rand::rng().random_range(Duration::ZERO..COMMIT_MAX)
    }
}

/// Opens the store. A process that cannot, since its disk fails, is started again and again.
async fn open(disk: &Disk, clock: &Clock) -> Result<(Embedded, CommitLoop), OpenError> {
    loop {
        let failures = disk.failures();
        match store::open(disk, clock.clone()) {
            Err(_) if disk.failures() > failures => clock.sleep(RESTART_PAUSE).await,
            opened => return opened,
        }
    }
}

/// Starts the server. A process that cannot, since its store accepts no writes, is started again and again.
async fn start(machine: &Machine, backend: &Arc<dyn Backend>) -> std::io::Result<InProcessServer> {
    let tokens = machine.folder.join("tokens.csv");
    std::fs::create_dir_all(&machine.folder)?;
    std::fs::write(&tokens, format!("{TOKEN},{TOKEN},1,\"system:masters\"\n"))?;
    let certificates = machine.folder.join("pki");
    std::fs::create_dir_all(&certificates)?;
    for (name, text) in KEYS {
        std::fs::write(certificates.join(name), text)?;
    }
    let flag = |name: &str, path: &Path| {
        let mut flag = OsString::from(name);
        flag.push(path);
        flag
    };
    loop {
        let starting = InProcessServer::builder()
            .on_current_runtime()
            .clock(machine.clock.clone())
            .backend(Arc::clone(backend))
            .flag(flag("--data-dir=", &machine.folder))
            .flag(flag("--token-auth-file=", &tokens))
            .flag(flag(
                "--service-account-signing-key-file=",
                &certificates.join(TOKEN_KEY),
            ))
            .start();
        match starting.await {
            Ok(server) => return Ok(server),
            Err(error) => tracing::info!(%error, "a server does not start"),
        }
        machine.clock.sleep(RESTART_PAUSE).await;
    }
}

/// Starts a server and serves until the host crashes.
///
/// # Errors
/// The store cannot be opened though its disk is in good health, or the folder cannot be written.
pub(crate) async fn serve(machine: Machine) -> turmoil::Result {
    let mut tasks = JoinSet::new();
    let clock = machine.clock.clone();
    let backend: Arc<dyn Backend> = match &machine.storage {
        Storage::Disk(slowing) => {
            let (store, commits) = open(&slowing.disk, &clock).await?;
            let (slowing, store) = (slowing.clone(), Arc::new(store));
            tasks.spawn(store::commit(
                commits,
                move || slowing.pause(),
                clock.clone(),
            ));
            tasks.spawn(store::keep(Arc::clone(&store)));
            store
        }
        Storage::Etcd(etcd) => Arc::clone(etcd) as Arc<dyn Backend>,
    };
    let server = start(&machine, &backend).await?;
    let listener = TcpListener::bind(("0.0.0.0", PORT)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        tasks.spawn(server.serve_http(Unsteady::accepted(stream), machine.protocol));
        while tasks.try_join_next().is_some() {}
    }
}
