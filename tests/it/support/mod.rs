//! What the integration tests stand on: real servers in temporary folders, found programs.

pub(crate) mod browser;
pub(crate) mod etcd;
pub(crate) mod server;
pub(crate) mod tools;
pub(crate) mod webhook;

use std::path::{Path, PathBuf};

use serde_json::Value;

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

/// Those objects were written by their types alone. kube-apiserver also tells what the claims in a stateful set are.
pub(crate) fn tell_kinds_of_claims(object: &mut Value) {
    let claims = object.pointer_mut("/spec/volumeClaimTemplates");
    for claim in claims.and_then(Value::as_array_mut).into_iter().flatten() {
        claim["kind"] = "PersistentVolumeClaim".into();
        claim["apiVersion"] = "v1".into();
    }
}
