//! kube-apiserver by its name: `ringwatch serve` that finds out if its etcd is a stand-in.

use ringwatch::clock::Clock;
use ringwatch_server::flags::{ServeFlags, StorageBackend};

use super::answers::StorePlace;
use super::error::EnvtestError;
use super::etcd_servers::stand_in;

/// The name of the server's folder in that of the stand-in, where etcd has `member`.
const FOLDER: &str = "ringwatch";

/// Has the server keep its store in the folder of its etcd, if that is a stand-in. Without one, and without a data
/// directory of the flags, the certificates that it makes go to that of `--cert-dir`, which suites remove.
///
/// # Errors
/// No etcd is named or answers, or a stand-in is named together with what it has no use for.
pub fn keep_store_at_etcd(flags: &mut ServeFlags, has_data_dir: bool) -> Result<(), EnvtestError> {
    let servers = &flags.etcd.etcd_servers;
    if servers.is_empty() {
        // Files that nobody asked for would come to be in the current folder.
        return match has_data_dir {
            true => Ok(()),
            false => Err(EnvtestError::NoServers),
        };
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|source| EnvtestError::System {
        what: "start",
        source,
    })?;
    let Some((url, place)) = runtime.block_on(stand_in(servers, &Clock::real()))? else {
        if let Some(folder) = flags.tls.cert_dir.clone().filter(|_| !has_data_dir) {
            flags.data_dir = folder;
        }
        return Ok(());
    };
    check(flags, has_data_dir, url, &place)?;
    flags.etcd.etcd_servers.clear();
    flags.etcd.unsafe_no_fsync = place.unsafe_no_fsync;
    flags.storage_backend = Some(StorageBackend::Embedded);
    flags.data_dir = place.folder.join(FOLDER);
    Ok(())
}

/// Refuses flags that lead to other stores than that of the stand-in, and tells of those that have no effect.
fn check(
    flags: &ServeFlags,
    has_data_dir: bool,
    url: String,
    place: &StorePlace,
) -> Result<(), EnvtestError> {
    let etcd = &flags.etcd;
    if etcd.etcd_servers.len() > 1 {
        return Err(EnvtestError::OneOfSeveral { url });
    }
    if !etcd.etcd_servers_overrides.is_empty() {
        return Err(EnvtestError::Overrides { url });
    }
    if has_data_dir {
        let folder = place.folder.clone();
        return Err(EnvtestError::SecondFolder { url, folder });
    }
    for (flag, file) in [
        ("--etcd-cafile", &etcd.etcd_cafile),
        ("--etcd-certfile", &etcd.etcd_certfile),
        ("--etcd-keyfile", &etcd.etcd_keyfile),
    ] {
        if file.is_some() {
            tracing::warn!("{flag} has no effect: {url} is a stand-in for etcd without TLS");
        }
    }
    Ok(())
}
