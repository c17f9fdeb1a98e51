//! The behaviour of CSIDrivers: their generation begins with the first change.

use ringwatch_apimachinery::path::remove;
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
}
