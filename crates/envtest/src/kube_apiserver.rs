//! kube-apiserver by its name: `ringwatch serve` that finds out if its etcd is a stand-in.

use ringwatch::clock::Clock;
use ringwatch_server::flags::{ServeFlags, StorageBackend};

use super::error::EnvtestError;
use super::etcd_servers::stand_in;

/// The name of the server's folder in that of the stand-in, where etcd has `member`.
const FOLDER: &str = "ringwatch";

/// Has the server keep its store in the folder of its etcd, if that is a stand-in. Without one, and without a data
/// directory of the flags, the certificates that it makes go to that of `--cert-dir`, which suites remove.
///
/// # Errors
/// No etcd answers, or a stand-in is one server of several.
pub fn keep_store_at_etcd(flags: &mut ServeFlags, has_data_dir: bool) -> Result<(), EnvtestError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|source| EnvtestError::System {
        what: "start",
        source,
    })?;
    let servers = &flags.etcd.etcd_servers;
    let Some((url, place)) = runtime.block_on(stand_in(servers, &Clock::real()))? else {
        if let Some(folder) = flags.tls.cert_dir.clone().filter(|_| !has_data_dir) {
            flags.data_dir = folder;
        }
        return Ok(());
    };
    if servers.len() > 1 {
        return Err(EnvtestError::OneOfSeveral { url });
    }
    if has_data_dir {
        return Err(EnvtestError::SecondFolder { url });
    }
    flags.etcd.etcd_servers.clear();
    flags.etcd.unsafe_no_fsync = place.unsafe_no_fsync;
    flags.storage_backend = Some(StorageBackend::Embedded);
    flags.data_dir = place.folder.join(FOLDER);
    Ok(())
}
