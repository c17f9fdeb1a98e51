//! The built-in resources: a row each, and a strategy where there is something peculiar.

use std::sync::Arc;

use super::Resource;

/// All built-in resources, in the order of discovery.
#[must_use]
pub fn built_in() -> Vec<Arc<Resource>> {
    Vec::new()
}
