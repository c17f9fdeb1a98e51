//! What is there from the start.

use serde_json::json;

use super::{CreateOptions, Error, RequestContext, Store, User};
use crate::clock::Clock;

/// The namespaces of every cluster.
const SYSTEM_NAMESPACES: &[&str] = &["default", "kube-system", "kube-public", "kube-node-lease"];

/// Creates those of the system's namespaces that do not exist.
///
/// # Errors
/// When one can neither be created nor is there; those before it exist.
pub async fn ensure_system_namespaces(namespaces: &Store, clock: &Clock) -> Result<(), Error> {
    let context = RequestContext::new(User::default(), "kube-apiserver".to_owned(), clock.clone());
    for name in SYSTEM_NAMESPACES {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let created = namespaces
            .create(&context, "", namespace, &CreateOptions::default())
            .await;
        match created {
            Ok(_) | Err(Error::AlreadyExists { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
