//! What the integration tests stand on: real servers in temporary folders, found programs.

pub(crate) mod browser;
pub(crate) mod etcd;
pub(crate) mod server;
pub(crate) mod tools;

use std::path::{Path, PathBuf};

/// Where objects lie that Kubernetes wrote: where the environment says, or beside the checkout.
pub(crate) fn testdata() -> Option<PathBuf> {
    let named = std::env::var_os("RINGWATCH_TESTDATA").map(PathBuf::from);
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/testdata/v1.35");
    let folder = named.unwrap_or_else(beside);
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("SKIPPED: there is no {}", folder.display());
    None
}
