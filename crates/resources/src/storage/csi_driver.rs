//! The behaviour of CSIDrivers: their generation begins with the first change.

use ringwatch_apimachinery::path::{get, remove};
use ringwatch_registry::RequestContext;
use serde_json::Value;

use crate::strategy::kind_hooks::KindHooks;

/// The behaviour of CSIDrivers: a new one has no generation, since Kubernetes counts from the first change on.
#[derive(Debug)]
pub(super) struct CsiDrivers;

impl KindHooks for CsiDrivers {
    fn prepare_for_create(&self, _context: &RequestContext, object: &mut Value) {
        drop(remove(object, "metadata.generation"));
    }

    /// Warns of tokens in the attributes of volumes, on an update if the requests for tokens change.
    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        const WHY: &str = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes";
        let requests = |driver| get(driver, "spec.tokenRequests").and_then(Value::as_array);
        let now = requests(object).filter(|it| !it.is_empty());
        let is_changed = old.is_none_or(|old| requests(old) != now);
        let in_secrets = get(object, "spec.serviceAccountTokenInSecrets");
        let is_told = now.is_some() && is_changed && in_secrets.is_none_or(Value::is_null);
        is_told.then(|| WHY.to_owned()).into_iter().collect()
    }
}
