//! Applies patches of webhooks and policies to an object, within bounds.

use ringwatch::codec;
use ringwatch_apimachinery::bounds::{Growth, LEVELS_MAX};
use ringwatch_apimachinery::json_patch::{Operation, OperationError};
use serde_json::Value;

/// Maximum number of operations of a patch.
const OPERATIONS_MAX: usize = 1_000;

/// Maximum size that an object may get by patches, in bytes of JSON.
const OBJECT_BYTES_MAX: usize = 8 << 20;

/// The reason why a patch was not applied.
#[derive(Debug, thiserror::Error)]
pub(super) enum PatchFailure {
    /// The patch has more operations than one may have.
    #[error("has more than {OPERATIONS_MAX} operations")]
    TooLong,
    /// The object would become too deep or too long.
    #[error("makes the object too large")]
    TooLarge,
    /// A test in it does not hold.
    #[error("{0}")]
    Untrue(String),
    /// Something that the patch names is not there, or cannot be changed so.
    #[error("{0}")]
    Impossible(String),
}

/// Returns the object after all operations.
///
/// # Errors
/// The [`PatchFailure`] of the first operation that cannot be applied.
pub(super) fn patched(mut object: Value, operations: &[Operation]) -> Result<Value, PatchFailure> {
    if operations.len() > OPERATIONS_MAX {
        return Err(PatchFailure::TooLong);
    }
    let mut bytes = object.to_string().len();
    for operation in operations {
        let growth = Growth::new(operation, &object);
        bytes = bytes.saturating_add(growth.added_bytes);
        if bytes > OBJECT_BYTES_MAX || growth.levels > LEVELS_MAX {
            return Err(PatchFailure::TooLarge);
        }
        operation.apply(&mut object).map_err(|error| match error {
            OperationError::TestFailed(_) => PatchFailure::Untrue(error.to_string()),
            _ => PatchFailure::Impossible(error.to_string()),
        })?;
    }
    Ok(object)
}

/// Returns the apiVersion and kind that an object says it is of.
pub(super) fn type_of(object: &Value) -> [Option<String>; 2] {
    ["apiVersion", "kind"].map(|name| {
        let text = object.get(name).and_then(Value::as_str);
        text.map(str::to_owned)
    })
}

/// Checks that the fields have the types of the object's kind, and drops fields that the kind does not have. In an
/// object that `is_merged` and not decoded, whole numbers may have a decimal point.
///
/// # Errors
/// A message that names a field of another type.
pub(super) fn check_types(object: &mut Value, is_merged: bool) -> Result<(), String> {
    let check = if is_merged {
        codec::check_merged_types
    } else {
        codec::check_types
    };
    let [version, kind] = type_of(object);
    let known = codec::kind(&version.unwrap_or_default(), &kind.unwrap_or_default());
    match (known, object.as_object_mut()) {
        (_, None) => Err("the patched object is no object".to_owned()),
        (None, _) => Ok(()),
        (Some(kind), Some(members)) => check(kind, members)
            .map(|_| ())
            .map_err(|error| error.to_string()),
    }
}
