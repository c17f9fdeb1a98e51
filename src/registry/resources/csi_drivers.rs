//! Drivers of volumes: their generation.

use serde_json::Value;

use super::path::remove;
use super::peculiar::Peculiar;
use crate::registry::RequestContext;

/// Kubernetes counts the generations of a CSIDriver from its first change on: a new one has none.
#[derive(Debug)]
pub(super) struct CsiDrivers;

impl Peculiar for CsiDrivers {
    fn prepare_for_create(&self, _context: &RequestContext, object: &mut Value) {
        drop(remove(object, "metadata.generation"));
    }
}
