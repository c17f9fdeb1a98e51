//! Checks the fields of an object of a built-in kind: their types, and that none is unknown.
//!
//! Custom resources are not checked here, but by their schemas.

use ringwatch::codec;
use ringwatch_apimachinery::{Error, FieldError, accessor};
use ringwatch_registry::RequestContext;
use serde_json::{Map, Value};

use super::{
    ExpectedKind, WrongType, check_type, check_type_texts, go_json, metadata, missing_kind, type_of,
};
use crate::params::FieldValidation;
use crate::patches::Patch;

/// Checks the types of the fields, removes unknown fields, and adds metadata if it is missing. Returns the paths of the
/// removed fields.
///
/// # Errors
/// The error of Go's decoder about a value of the wrong type.
pub(super) fn check(
    object: &mut Map<String, Value>,
    expected: ExpectedKind<'_>,
) -> Result<Vec<String>, String> {
    let version = expected.group_version.to_string();
    let kind = codec::kind(&version, expected.kind).filter(|_| !expected.custom);
    let unknown = match kind {
        Some(kind) => codec::check_types(kind, object).map_err(|error| error.to_string())?,
        None if expected.custom => check_custom_metadata(object)?,
        None => Vec::new(),
    };
    metadata::check(object)?;
    Ok(unknown)
}

/// Puts what a strategic merge patch has made of an object of a built-in kind into its type: without a decoder, which
/// has other words. Adds metadata if it is missing, and returns the paths of removed fields.
///
/// # Errors
/// The words of Go's converter about a value of the wrong type.
fn convert(
    object: &mut Map<String, Value>,
    expected: ExpectedKind<'_>,
) -> Result<Vec<String>, String> {
    let version = expected.group_version.to_string();
    let unknown = match codec::kind(&version, expected.kind) {
        Some(kind) => codec::convert(kind, object).map_err(|error| error.to_string())?,
        None => Vec::new(),
    };
    metadata::check(object)?;
    Ok(unknown)
}

/// Returns true if an object is of the expected kind, but of no version. kube-apiserver then decodes it into the type
/// that it has inside, whose fields have other names in JSON.
fn lacks_version(object: &Map<String, Value>, expected: ExpectedKind<'_>) -> bool {
    let is_left_out = |member: &Value| member.is_null() || member == "";
    let kind = object.get("kind");
    object.get("apiVersion").is_none_or(is_left_out)
        && kind.is_none_or(|kind| is_left_out(kind) || kind == expected.kind)
}

/// Removes all fields but kind and version, so that the object has no name, and returns their paths.
fn forget_fields(object: &mut Map<String, Value>) -> Vec<String> {
    let mut forgotten = Vec::new();
    object.retain(|name, _| {
        let is_type = matches!(name.as_str(), "apiVersion" | "kind");
        if !is_type {
            forgotten.push(name.to_owned());
        }
        is_type
    });
    forgotten
}

/// Checks the metadata of a custom resource, whose other fields have no types but a schema.
fn check_custom_metadata(object: &mut Map<String, Value>) -> Result<Vec<String>, String> {
    let metadata = match object.get_mut("metadata") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(metadata)) => metadata,
        Some(other) => return Err(go_json::not_of_type(other, "v1.ObjectMeta")),
    };
    let unknown = accessor::decode_members(metadata).map_err(|error| error.to_string())?;
    let paths = unknown.iter().map(|path| format!("metadata.{path}"));
    Ok(paths.collect())
}

/// Refuses the apiVersion of a patched custom resource if it is none; another one than expected is refused as the
/// object is stored, unless that restores it.
fn check_version_text(version: &str) -> Result<(), WrongType> {
    if version.matches('/').count() < 2 {
        return Ok(());
    }
    Err(WrongType::OtherKind(no_group_version(version)))
}

/// Returns the words about an apiVersion with more than one slash.
pub(super) fn no_group_version(version: &str) -> String {
    format!("unexpected GroupVersion string: {version}")
}

/// Returns the message about a field that its kind does not have.
pub(super) fn unknown_field(path: &str) -> String {
    format!("unknown field {path:?}")
}

/// Checks the result of a patch as [`check`] does, and treats its unknown and duplicate fields as `validation` says.
/// A strategic merge patch leaves kind and version as they are. Without its version an object of a built-in kind has no
/// field that is known, and another kind or version is refused.
///
/// # Errors
/// [`Error::Invalid`], since it is the patch that is wrong; [`Error::BadRequest`] for another version.
pub(crate) fn check_patched(
    object: &mut Value,
    patch: &Patch,
    existing: &Value,
    expected: ExpectedKind<'_>,
    validation: FieldValidation,
    context: &RequestContext,
) -> Result<(), Error> {
    let invalid = |why: &str| Error::Invalid {
        kind: String::new(),
        name: String::new(),
        errors: vec![FieldError::invalid(
            "patch",
            &Value::String(patch.shown(existing)),
            why,
        )],
    };
    let Some(members) = object.as_object_mut() else {
        return Err(Error::Unprocessable);
    };
    let unknown = match patch.is_strategic() {
        true => convert(members, expected).map_err(|why| invalid(&why))?,
        false if !expected.custom && lacks_version(members, expected) => forget_fields(members),
        false => {
            check_type_texts(members).map_err(|why| invalid(&why))?;
            let checked = type_of(members, expected).and_then(|(kind, version)| {
                match expected.custom {
                    true => check_version_text(&version)?,
                    false => check_type(&kind, &version, expected)?,
                }
                Ok(kind)
            });
            let kind = checked.map_err(|wrong| match wrong {
                // kube-apiserver reads the object without its version, and fails to write it.
                WrongType::OtherVersion(_) if expected.custom => Error::Internal(
                    "Object 'apiVersion' is missing in 'object has no apiVersion field'".to_owned(),
                ),
                WrongType::OtherVersion(text) => Error::BadRequest(text),
                WrongType::OtherKind(text) => invalid(&text),
                WrongType::NoKind => invalid(&missing_kind(&patch.shown(existing))),
            })?;
            let mut unknown = check(members, expected).map_err(|error| invalid(&error))?;
            if let Some(strategy) = expected.strategy.filter(|_| kind == expected.kind) {
                let by_schema = strategy.unknown_fields(object);
                unknown.extend(by_schema.map_err(|error| invalid(&error))?);
            }
            unknown
        }
    };
    let unknown = unknown.iter().map(|path| unknown_field(path));
    let complaints: Vec<_> = patch.complaints.iter().cloned().chain(unknown).collect();
    match validation {
        FieldValidation::Strict if !complaints.is_empty() => Err(invalid(&format!(
            "strict decoding error: {}",
            complaints.join(", ")
        ))),
        FieldValidation::Warn => {
            complaints.into_iter().for_each(|text| context.warn(text));
            Ok(())
        }
        FieldValidation::Strict | FieldValidation::Ignore => Ok(()),
    }
}
