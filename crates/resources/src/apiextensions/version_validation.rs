//! Validation of the versions of a CustomResourceDefinition, schemas aside: subresources, printer columns, selectable
//! fields and deprecation warnings.

use std::collections::BTreeSet;

use ringwatch_apimachinery::bounds::LEVELS_MAX;
use ringwatch_apimachinery::go_text::{self, is_printed, quoted};
use ringwatch_apimachinery::path::{get, list, text};
use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use serde_json::{Value, json};

/// Types and formats of printer columns.
const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] = [
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
];

/// Maximum number of selectable fields of a version.
const SELECTABLE_FIELDS_MAX: usize = 8;

/// Maximum length of a deprecation warning in bytes.
const WARNING_BYTES_MAX: usize = 256;

/// Returns the errors of the parts that definitions of earlier releases could have wrong: deprecation warnings,
/// subresources, columns and selectable fields.
pub(super) fn part_errors(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (place, version) in list(object, "spec.versions").iter().enumerate() {
        let path = format!("spec.versions[{place}]");
        errors.extend(warning_errors(version, &path));
        errors.extend(version_errors(version, &path));
    }
    errors.extend(shared_errors(object));
    errors
}

/// Returns the errors of the subresources, columns and selectable fields of a version. Its selectable fields need a
/// schema of its own: they are refused beside one that all versions have in common.
pub(super) fn version_errors(version: &Value, path: &str) -> Vec<FieldError> {
    let schema = get(version, "schema.openAPIV3Schema");
    let why = "may only be set when `version.schema.openAPIV3Schema` is not included";
    holder_errors(version, schema, why, path)
}

/// Returns the errors of the subresources, columns and selectable fields that all versions share.
pub(super) fn shared_errors(object: &Value) -> Vec<FieldError> {
    let common = get(object, "spec.validation.openAPIV3Schema");
    let why = "may only be set when validations.schema is included";
    let spec = get(object, "spec").into_iter();
    spec.flat_map(|spec| holder_errors(spec, common, why, "spec"))
        .collect()
}

/// Returns the errors of the scale subresource, columns and selectable fields, either of one version or of the part
/// that all share. Without a schema, `why` tells that fields need one.
fn holder_errors(holder: &Value, schema: Option<&Value>, why: &str, path: &str) -> Vec<FieldError> {
    let mut errors = scale_errors(holder, path);
    let columns = list(holder, "additionalPrinterColumns").iter().enumerate();
    for (place, column) in columns {
        let path = format!("{path}.additionalPrinterColumns[{place}]");
        errors.extend(column_errors(column, &path));
    }
    errors.extend(selectable_errors(holder, schema, why, path));
    errors
}

/// Returns the errors of a version's deprecation warning. Follows `validateDeprecationWarning`.
pub(super) fn warning_errors(version: &Value, path: &str) -> Vec<FieldError> {
    let said = get(version, "deprecationWarning").filter(|it| it.is_string());
    let Some(warning) = said.and_then(Value::as_str) else {
        return Vec::new();
    };
    let mut wrong = Vec::new();
    if version.get("deprecated") != Some(&Value::Bool(true)) {
        wrong.push("can only be set for deprecated versions".to_owned());
    } else {
        if warning.len() > WARNING_BYTES_MAX {
            wrong.push(format!("must be <= {WARNING_BYTES_MAX} characters long"));
        }
        if warning.is_empty() {
            wrong.push("must not be an empty string".to_owned());
        }
        let mut letters = warning.char_indices();
        if let Some((at, _)) = letters.find(|(_, letter)| !is_printed(*letter)) {
            wrong.push(format!(
                "must only contain printable UTF-8 characters; non-printable character found at index {at}"
            ));
        }
    }
    let path = format!("{path}.deprecationWarning");
    let wrong = wrong.into_iter();
    wrong
        .map(|why| invalid_pointer(&path, warning, &why))
        .collect()
}

/// Makes an error about a text to which Go has a pointer, and which it therefore shows as JSON.
fn invalid_pointer(path: &str, value: &str, why: &str) -> FieldError {
    let detail = format!("{}: {why}", go_text::json(&json!(value)));
    FieldError::new(FieldErrorKind::Invalid, path, detail)
}

fn scale_errors(holder: &Value, path: &str) -> Vec<FieldError> {
    let Some(scale) = get(holder, "subresources.scale").filter(|it| it.is_object()) else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    let mut check = |member: &str, required: bool, below: &[&str], words: &str| {
        let path = format!("{path}.subresources.scale.{member}");
        let json_path = text(scale, member);
        let is_below = below.iter().any(|it| json_path.starts_with(it));
        if json_path.is_empty() {
            errors.extend(required.then(|| FieldError::required(path)));
        } else if let Some(error) = json_path_error(json_path, &path) {
            errors.push(error);
        } else if !is_below {
            let why = format!("should be a json path under {words}");
            errors.push(match required {
                true => FieldError::invalid(path, &json!(json_path), why),
                false => invalid_pointer(&path, json_path, &why),
            });
        } else if json_path.split('.').count() > LEVELS_MAX {
            // A scale is written there, whatever the schema has.
            let why = format!("must not have more than {LEVELS_MAX} steps");
            errors.push(FieldError::invalid(path, &json!(json_path), why));
        }
    };
    check("specReplicasPath", true, &[".spec."], ".spec");
    check("statusReplicasPath", true, &[".status."], ".status");
    let either = "either .spec or .status";
    check("labelSelectorPath", false, &[".spec.", ".status."], either);
    errors
}

fn column_errors(column: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if text(column, "name").is_empty() {
        errors.push(FieldError::required(format!("{path}.name")));
    }
    let kind = text(column, "type");
    let why = format!("must be one of {}", COLUMN_TYPES.join(","));
    let at = format!("{path}.type");
    if kind.is_empty() {
        errors.push(FieldError::new(FieldErrorKind::Required, at, why));
    } else if !COLUMN_TYPES.contains(&kind) {
        errors.push(FieldError::invalid(at, &json!(kind), why));
    }
    let format = text(column, "format");
    if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
        let why = format!("must be one of {}", COLUMN_FORMATS.join(","));
        errors.push(FieldError::invalid(
            format!("{path}.format"),
            &json!(format),
            why,
        ));
    }
    let at = format!("{path}.JSONPath");
    // The storage version, v1beta1, spells it `JSONPath`.
    let json_path = [text(column, "jsonPath"), text(column, "JSONPath")].concat();
    if json_path.is_empty() {
        errors.push(FieldError::required(at));
    } else {
        errors.extend(json_path_error(&json_path, &at));
    }
    errors
}

fn json_path_error(json_path: &str, path: &str) -> Option<FieldError> {
    let why = "must be a simple json path starting with .";
    (!json_path.starts_with('.')).then(|| FieldError::invalid(path, &json!(json_path), why))
}

fn selectable_errors(
    holder: &Value,
    schema: Option<&Value>,
    why: &str,
    path: &str,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut known = BTreeSet::new();
    let fields = list(holder, "selectableFields");
    let path = format!("{path}.selectableFields");
    let Some(schema) = schema.filter(|_| !fields.is_empty()) else {
        let is_wrong = !fields.is_empty();
        return Vec::from_iter(is_wrong.then(|| FieldError::invalid(path, &json!(""), why)));
    };
    for (place, field) in fields.iter().enumerate() {
        let at = format!("{path}[{place}].jsonPath");
        let json_path = text(field, "jsonPath");
        if json_path.is_empty() {
            errors.push(FieldError::required(at));
            continue;
        }
        let found = match property(schema, json_path) {
            Ok(found) => found,
            Err(why) => {
                let why = format!("is an invalid path: {why}");
                errors.push(FieldError::invalid(at, &json!(json_path), why));
                continue;
            }
        };
        if json_path.split('.').nth(1) == Some("metadata") {
            let why = "must not point to fields in metadata";
            errors.push(FieldError::invalid(at.clone(), &json!(json_path), why));
        }
        if !["string", "boolean", "integer"].contains(&text(found, "type")) {
            let why = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            errors.push(FieldError::invalid(at.clone(), &json!(json_path), why));
        }
        if !known.insert(json_path) {
            let detail = quoted(json_path);
            errors.push(FieldError::new(FieldErrorKind::Duplicate, at, detail));
        }
    }
    if known.len() > SELECTABLE_FIELDS_MAX {
        let detail = format!(
            "{}: must have at most {SELECTABLE_FIELDS_MAX} items",
            known.len()
        );
        errors.push(FieldError::new(FieldErrorKind::TooMany, path, detail));
    }
    errors
}

/// Returns the schema of the property at a path such as `.spec.color`, or what is wrong with the path. Follows
/// `ValidFieldPath` without the notation of arrays.
fn property<'a>(schema: &'a Value, path: &str) -> Result<&'a Value, String> {
    let no_field = || "does not refer to a valid field".to_owned();
    let mut found = schema;
    let mut rest = path;
    while !rest.is_empty() {
        if rest.starts_with('[') {
            return Err("array notation is not allowed".to_owned());
        }
        let delimiter = |text: &str| text.find(['.', '[', ']']).unwrap_or(text.len());
        let Some(after) = rest.strip_prefix('.') else {
            let token = &rest[..delimiter(rest).max(1)];
            return Err(format!("expected [ or . but got: {token}"));
        };
        if after.is_empty() {
            return Err("unexpected end of JSON path".to_owned());
        }
        let (name, next) = after.split_at(delimiter(after));
        let properties = found.get("properties");
        let others = found.get("additionalProperties");
        let inner = match properties {
            Some(all) => all.get(name),
            None => others.filter(|it| it.is_object()),
        };
        found = inner.ok_or_else(no_field)?;
        rest = next;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(version: &Value) -> Value {
        let mut version = version.clone();
        version["name"] = json!("v1");
        version["schema"]["openAPIV3Schema"] = json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {
                "size": {"type": "integer"}, "names": {"type": "array", "items": {"type": "string"}}}},
            "metadataOf": {"type": "string"},
            "metadata": {"type": "object", "properties": {"name": {"type": "string"}}}}});
        json!({"spec": {"versions": [version]}})
    }

    fn messages_of(version: &Value) -> Vec<String> {
        let errors = part_errors(&definition(version)).into_iter();
        let place = "spec.versions[0].";
        errors
            .map(|it| format!("{}: {}", it.field.trim_start_matches(place), it.message()))
            .collect()
    }

    #[test]
    fn what_is_usual_is_right() {
        let usual = json!({
            "deprecated": true, "deprecationWarning": "Use gears.",
            "subresources": {"status": {}, "scale": {
                "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size",
                "labelSelectorPath": ".status.selector"}},
            "selectableFields": [{"jsonPath": ".spec.size"}],
            "additionalPrinterColumns": [
                {"name": "Size", "type": "integer", "format": "int32", "jsonPath": ".spec.size"},
                {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}],
        });
        assert_eq!(messages_of(&usual), [""; 0]);
    }

    #[test]
    fn columns_have_names_types_and_paths() {
        let version = json!({"additionalPrinterColumns": [
            {}, {"name": "A", "type": "blob", "format": "hex", "jsonPath": "spec.size"}]});
        let types = "must be one of boolean,date,integer,number,string";
        assert_eq!(
            messages_of(&version),
            [
                "additionalPrinterColumns[0].name: Required value".to_owned(),
                format!("additionalPrinterColumns[0].type: Required value: {types}"),
                "additionalPrinterColumns[0].JSONPath: Required value".to_owned(),
                format!("additionalPrinterColumns[1].type: Invalid value: \"blob\": {types}"),
                "additionalPrinterColumns[1].format: Invalid value: \"hex\": must be one of byte,date,date-time,double,float,int32,int64,password".to_owned(),
                "additionalPrinterColumns[1].JSONPath: Invalid value: \"spec.size\": must be a simple json path starting with .".to_owned(),
            ]
        );
    }

    #[test]
    fn a_scale_is_where_it_belongs() {
        let version = json!({"subresources": {"scale": {
            "specReplicasPath": ".status.size", "labelSelectorPath": "selector"}}});
        assert_eq!(
            messages_of(&version),
            [
                "subresources.scale.specReplicasPath: Invalid value: \".status.size\": should be a json path under .spec",
                "subresources.scale.statusReplicasPath: Required value",
                "subresources.scale.labelSelectorPath: Invalid value: \"selector\": must be a simple json path starting with .",
            ]
        );
    }

    #[test]
    fn a_scale_is_not_further_down_than_an_object_reaches() {
        let version = |steps: usize| {
            json!({"subresources": {"scale": {"statusReplicasPath": ".status.size",
                "specReplicasPath": format!(".spec{}", ".a".repeat(steps - 2))}}})
        };
        assert!(messages_of(&version(LEVELS_MAX)).is_empty());
        let [refused] = messages_of(&version(LEVELS_MAX + 1))
            .try_into()
            .expect("one error");
        assert!(
            refused.ends_with(": must not have more than 90 steps"),
            "{refused}"
        );
    }

    #[test]
    fn selectable_fields_are_single_values() {
        let fields: Vec<Value> = [
            "",
            ".spec.nope",
            ".spec.names",
            ".metadata.name",
            ".spec.size",
            ".spec.size",
            "a b/",
            ".spec[0]",
            ".spec.",
            ".metadataOf",
        ]
        .iter()
        .map(|path| json!({"jsonPath": path}))
        .collect();
        assert_eq!(
            messages_of(&json!({"selectableFields": fields})),
            [
                "selectableFields[0].jsonPath: Required value",
                "selectableFields[1].jsonPath: Invalid value: \".spec.nope\": is an invalid path: does not refer to a valid field",
                "selectableFields[2].jsonPath: Invalid value: \".spec.names\": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.",
                "selectableFields[3].jsonPath: Invalid value: \".metadata.name\": must not point to fields in metadata",
                "selectableFields[5].jsonPath: Duplicate value: \".spec.size\"",
                "selectableFields[6].jsonPath: Invalid value: \"a b/\": is an invalid path: expected [ or . but got: a b/",
                "selectableFields[7].jsonPath: Invalid value: \".spec[0]\": is an invalid path: array notation is not allowed",
                "selectableFields[8].jsonPath: Invalid value: \".spec.\": is an invalid path: unexpected end of JSON path",
            ]
        );
    }

    #[test]
    fn warnings_are_for_what_is_deprecated() {
        for (deprecated, warning, why) in [
            (
                false,
                "old".to_owned(),
                "can only be set for deprecated versions",
            ),
            (true, "x".repeat(257), "must be <= 256 characters long"),
            (true, String::new(), "must not be an empty string"),
            (
                true,
                "a\nb".to_owned(),
                "must only contain printable UTF-8 characters; non-printable character found at index 1",
            ),
        ] {
            let version = json!({"deprecated": deprecated, "deprecationWarning": warning});
            let all = messages_of(&version);
            assert!(all.len() == 1 && all[0].ends_with(why), "{all:?}");
        }
    }

    #[test]
    fn selectable_fields_need_a_schema() {
        let fields = json!([{"jsonPath": ".spec.size"}]);
        let own = json!({"spec": {"versions": [{"name": "v1", "selectableFields": fields}],
            "validation": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}});
        let shared = json!({"spec": {"versions": [{"name": "v1"}], "selectableFields": fields}});
        for (object, field, why) in [
            (
                own,
                "spec.versions[0].selectableFields",
                "may only be set when `version.schema.openAPIV3Schema` is not included",
            ),
            (
                shared,
                "spec.selectableFields",
                "may only be set when validations.schema is included",
            ),
        ] {
            let errors = part_errors(&object);
            assert_eq!(errors.len(), 1);
            assert_eq!(errors[0].field, field);
            assert_eq!(errors[0].message(), format!("Invalid value: \"\": {why}"));
        }
    }
}
