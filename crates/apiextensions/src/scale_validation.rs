//! Validation of the fields of custom resources from which their Scale is read.
//!
//! Follows `ValidateScaleSpec` and `ValidateScaleStatus` of apiextensions-apiserver. A schema need not say anything of
//! these fields.

use ringwatch_apimachinery::error::ERROR_BYTES_MAX;
use ringwatch_apimachinery::{FieldError, go_values};
use ringwatch_registry::ScalePaths;
use serde_json::Value;

/// Returns the errors of the desired number of replicas.
pub(super) fn spec_errors(object: &Value, paths: &ScalePaths) -> Option<FieldError> {
    replicas_error(object, &paths.spec_replicas)
}

/// Returns the errors of the observed number of replicas and of the selector.
pub(super) fn status_errors(object: &Value, paths: &ScalePaths) -> Vec<FieldError> {
    let replicas = replicas_error(object, &paths.status_replicas);
    let selector = paths.selector.as_deref();
    let selector = selector.and_then(|path| match at(object, path) {
        Ok(None | Some(Value::String(_))) => None,
        Ok(Some(other)) => Some(wrong(path, "", wrong_type(path, other, "string"))),
        Err(why) => Some(wrong(path, "", why)),
    });
    replicas.into_iter().chain(selector).collect()
}

fn replicas_error(object: &Value, path: &str) -> Option<FieldError> {
    match at(object, path) {
        Ok(None) => None,
        Ok(Some(value)) => match value.as_i64() {
            None => Some(wrong(path, 0, wrong_type(path, value, "int64"))),
            Some(replicas) if replicas < 0 => {
                let why = "should be a non-negative integer";
                Some(wrong(path, replicas, why.to_owned()))
            }
            Some(replicas) if replicas > i64::from(i32::MAX) => {
                let why = format!("should be less than or equal to {}", i32::MAX);
                Some(wrong(path, replicas, why))
            }
            Some(_) => None,
        },
        Err(why) => Some(wrong(path, 0, why)),
    }
}

fn wrong(path: &str, value: impl Into<Value>, why: String) -> FieldError {
    FieldError::invalid(format!(".{path}"), &value.into(), why)
}

/// Returns the value at a dotted path, or what is wrong with a value on the way to it. Follows `NestedFieldNoCopy`.
fn at<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, String> {
    let mut value = object;
    let mut end = 0;
    for member in path.split('.') {
        end += member.len();
        match value {
            Value::Null => return Ok(None),
            Value::Object(members) => match members.get(member) {
                Some(found) => value = found,
                None => return Ok(None),
            },
            other => return Err(wrong_type(&path[..end], other, "map[string]interface{}")),
        }
        end += 1;
    }
    Ok(Some(value))
}

fn wrong_type(path: &str, value: &Value, expected: &str) -> String {
    let (shown, kind) = (
        go_values::plain(value, ERROR_BYTES_MAX),
        go_values::go_type(value),
    );
    format!(".{path} accessor error: {shown} is of the type {kind}, expected {expected}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ringwatch_registry::SelectorForm;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_fields_of_a_scale_have_its_types() {
        let paths = ScalePaths {
            spec_replicas: "spec.replicas".to_owned(),
            versions: BTreeMap::new(),
            status_replicas: "status.replicas".to_owned(),
            selector: Some("status.selector".to_owned()),
            selector_form: SelectorForm::Text,
        };
        for (object, messages) in [
            (
                json!({"spec": {"replicas": 3}, "status": {"replicas": 0, "selector": "a=b"}}),
                vec![],
            ),
            (json!({"spec": {}, "status": null}), vec![]),
            (
                json!({"spec": {"replicas": -1}, "status": {"replicas": 2_147_483_648_i64}}),
                vec![
                    ".spec.replicas: Invalid value: -1: should be a non-negative integer",
                    ".status.replicas: Invalid value: 2147483648: should be less than or equal to 2147483647",
                ],
            ),
            (
                json!({"spec": {"replicas": "a"}, "status": {"replicas": 0.5, "selector": {}}}),
                vec![
                    ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: a is of the type string, expected int64",
                    ".status.replicas: Invalid value: 0: .status.replicas accessor error: 0.5 is of the type float64, expected int64",
                    ".status.selector: Invalid value: \"\": .status.selector accessor error: map[] is of the type map[string]interface {}, expected string",
                ],
            ),
            (
                json!({"spec": ["a", 1], "status": {"replicas": null}}),
                vec![
                    ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: [a 1] is of the type []interface {}, expected map[string]interface{}",
                    ".status.replicas: Invalid value: 0: .status.replicas accessor error: <nil> is of the type <nil>, expected int64",
                ],
            ),
        ] {
            let errors = spec_errors(&object, &paths).into_iter();
            let errors = errors.chain(status_errors(&object, &paths));
            let shown = |it: FieldError| format!("{}: {}", it.field, it.message());
            let found: Vec<String> = errors.map(shown).collect();
            assert_eq!(found, messages, "{object}");
        }
    }
}
