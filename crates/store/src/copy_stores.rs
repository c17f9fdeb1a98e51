//! Copies of stores: opening both sides, and naming what is whole.
//!
//! The copy into a data directory is made under a name of its own, under which no server finds it and with which the
//! next run of the command goes on. It gets the store's name when it is whole and verified. The copy into etcd has a
//! marker instead.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringwatch::clock::Clock;
use ringwatch::storage::backend::copy::{
    self, BackendSource, BackendTarget, CopySource, CopyTarget,
};
use ringwatch::storage::backend::embedded::maintenance::{
    CopyFile, MaintenanceError, SnapshotSource,
};
use ringwatch::storage::backend::embedded::{FILE_NAME, OpenError, UNFINISHED_COPY_NAME};
use ringwatch::storage::backend::etcd::{Config, Etcd, TlsFiles};
use ringwatch_tls::target::Target as Server;
use tokio::runtime::Builder;

use super::command_line::{CopyFlags, Location};
use super::download::download;
use super::error::StoreError;
use super::new_file;
use super::output;
use super::progress::{CopyBar, CopyLine};

/// Copies a store, or goes on with a copy. Returns its outcome as text.
///
/// # Errors
/// One line that says what is wrong and what to do.
pub(crate) fn copy(flags: &CopyFlags) -> Result<String, StoreError> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(StoreError::io(Path::new(".")))?;
    runtime.block_on(async {
        match &flags.to {
            Location::Embedded(dir) => into_directory(dir, flags).await,
            Location::Etcd(urls) => {
                let etcd = connect(urls, flags).await?;
                let source = source(flags).await?;
                step(&*source, &mut BackendTarget::new(etcd), flags).await
            }
        }
    })
}

/// Returns the path of the store in a data directory.
pub(crate) fn store_in(data_dir: &Path) -> PathBuf {
    data_dir.join(FILE_NAME)
}

async fn into_directory(dir: &Path, flags: &CopyFlags) -> Result<String, StoreError> {
    let store = store_in(dir);
    if store.try_exists().map_err(StoreError::io(&store))? {
        return Err(StoreError::ExistsForCopy { path: store });
    }
    let source = source(flags).await?;
    new_file::create_folder(dir)?;
    let unfinished = dir.join(UNFINISHED_COPY_NAME);
    let mut target = CopyFile::open(&unfinished).map_err(|error| match error {
        MaintenanceError::Open(OpenError::InUse { path }) => StoreError::Copying { path },
        other => StoreError::Store(other),
    })?;
    let outcome = step(&*source, &mut target, flags).await?;
    drop(target);
    if !flags.prepare {
        new_file::name(&unfinished, &store)?;
    }
    Ok(outcome)
}

/// Makes a pass or the whole copy. Returns the outcome as text.
async fn step(
    source: &dyn CopySource,
    target: &mut dyn CopyTarget,
    flags: &CopyFlags,
) -> Result<String, StoreError> {
    let bar = CopyBar::new();
    Ok(match flags.prepare {
        true => {
            let prepared = copy::prepare(source, target, &bar).await?;
            output::prepared(&prepared, flags.output)
        }
        false => {
            let copied = copy::complete(source, target, &bar).await?;
            output::copied(&copied, flags.output)
        }
    })
}

/// Opens the source.
async fn source(flags: &CopyFlags) -> Result<Box<dyn CopySource>, StoreError> {
    match &flags.from {
        Location::Embedded(dir) => Ok(Box::new(embedded_source(dir, flags).await?)),
        Location::Etcd(urls) => {
            let etcd = connect(urls, flags).await?;
            let id = etcd.cluster_id().await.map_err(StoreError::Etcd)?;
            Ok(Box::new(BackendSource::new(
                format!("etcd cluster {id:x}"),
                etcd,
            )))
        }
    }
}

/// Reads an embedded store: its file, or a snapshot of it from the server that serves it.
async fn embedded_source(dir: &Path, flags: &CopyFlags) -> Result<SnapshotSource, StoreError> {
    let known = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let name = format!("embedded:{}", known.display());
    let Some(kubeconfig) = &flags.kubeconfig else {
        return SnapshotSource::of_store(name, &store_in(dir)).map_err(|error| {
            StoreError::of_store(
                error,
                ", or copy while it is served, for now, with --prepare --kubeconfig FILE",
            )
        });
    };
    let server = Server::read(kubeconfig, flags.context.as_deref())
        .map_err(|error| StoreError::target(kubeconfig, error))?;
    let folder = tempfile::tempdir().map_err(StoreError::io(&std::env::temp_dir()))?;
    let snapshot = folder.path().join("snapshot");
    download(&server, &snapshot, &CopyLine::start("snapshot")).await?;
    Ok(SnapshotSource::of_file(name, &snapshot)?)
}

/// Connects to etcd.
async fn connect(urls: &[String], flags: &CopyFlags) -> Result<Arc<Etcd>, StoreError> {
    let tls = TlsFiles {
        ca: flags.etcd_cafile.clone(),
        cert: flags.etcd_certfile.clone(),
        key: flags.etcd_keyfile.clone(),
    };
    let connected = Etcd::connect(Config::new(urls.to_vec(), tls), Clock::real());
    connected.await.map(Arc::new).map_err(StoreError::Etcd)
}
