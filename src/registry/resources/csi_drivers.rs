//! CSIDrivers: their generation.

use serde_json::Value;

use super::path::remove;
use super::peculiar::Peculiar;
use crate::registry::RequestContext;

/// The behaviour of CSIDrivers: a new one has no generation, since Kubernetes counts from the first change on.
#[derive(Debug)]
pub(super) struct CsiDrivers;

impl Peculiar for CsiDrivers {
    fn prepare_for_create(&self, _context: &RequestContext, object: &mut Value) {
        drop(remove(object, "metadata.generation"));
    }
}
