//! The support of integration tests: real servers in temporary folders, found programs.

pub(crate) mod browser;
pub(crate) mod devtools;
pub(crate) mod in_process;
pub(crate) mod requests;
pub(crate) mod server;
pub(crate) mod tls_server;
pub(crate) mod webhook;

use kube::api::ObjectMeta;
pub(crate) use ringwatch_testing::{etcd, recorded, tools};
use serde_json::Value;

/// Returns the metadata of an object that has only a name.
pub(crate) fn named(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    }
}

/// Adds the kind and API version of the claims in a stateful set to a recorded object. Recorded objects were written by
/// their types alone; kube-apiserver also tells what these claims are.
pub(crate) fn tell_kinds_of_claims(object: &mut Value) {
    let claims = object.pointer_mut("/spec/volumeClaimTemplates");
    for claim in claims.and_then(Value::as_array_mut).into_iter().flatten() {
        claim["kind"] = "PersistentVolumeClaim".into();
        claim["apiVersion"] = "v1".into();
    }
}
