//! JSON patches (RFC 6902), with kube-apiserver's limits.

#[cfg(test)]
mod model_tests;

use ringwatch_apimachinery::bounds::{Growth, LEVELS_MAX, too_deep};
use ringwatch_apimachinery::json_patch::Operation;
use ringwatch_apimachinery::{Error, go_json};
use ringwatch_offload::is_abandoned;
use serde_json::Value;

use crate::errors::Failure;
use crate::params::FieldValidation;

/// Maximum number of operations of a patch.
const OPERATIONS_MAX: usize = 10_000;

/// Maximum number of bytes of JSON that all operations of a patch together may copy, or move deeper.
const COPY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Maximum number of list items that all operations of a patch together may shift by insertions and removals.
const SHIFTED_ITEMS_MAX: usize = 50_000_000;

/// A JSON patch (RFC 6902), parsed.
#[derive(Clone, Debug)]
pub(crate) struct JsonPatch(Vec<Operation>);

impl JsonPatch {
    /// Parses a JSON patch of at most [`OPERATIONS_MAX`] operations. Unless fields are validated the library reads it
    /// alone, for which words may be anything until they are looked at.
    ///
    /// # Errors
    /// 400 when an operation is no object or its words are none, 413 when there are too many.
    pub(super) fn read(value: Value, validation: FieldValidation) -> Result<Self, Failure> {
        let operations = value.as_array().map(Vec::as_slice).unwrap_or_default();
        for operation in operations.iter().filter(|it| !it.is_null()) {
            match validation {
                FieldValidation::Ignore => check_is_map(operation)?,
                FieldValidation::Warn | FieldValidation::Strict => check_types(operation)?,
            }
        }
        if operations.len() > OPERATIONS_MAX {
            return Err(Failure::too_large(format!(
                "Request entity too large: The allowed maximum operations in a JSON patch is \
                 {OPERATIONS_MAX}, got {}",
                operations.len()
            )));
        }
        Ok(Self(Operation::read_all(value).unwrap_or_default()))
    }

    /// Applies all operations, and returns the object after them.
    ///
    /// # Errors
    /// [`Error::Unprocessable`] when one of them fails, [`Error::TooLarge`] when one of them would make it too deep.
    pub(super) fn apply(&self, object: &Value) -> Result<Value, Error> {
        let mut object = object.clone();
        let (mut copied, mut shifted) = (0, 0);
        for operation in &self.0 {
            if is_abandoned() {
                return Err(Error::Unprocessable);
            }
            let growth = Growth::new(operation, &object);
            copied += growth.copied_bytes;
            shifted += growth.shifted_items;
            if copied > COPY_BYTES_MAX || shifted > SHIFTED_ITEMS_MAX {
                return Err(Error::Unprocessable);
            }
            if growth.levels > LEVELS_MAX {
                return Err(too_deep());
            }
            operation
                .apply(&mut object)
                .map_err(|_| Error::Unprocessable)?;
        }
        Ok(object)
    }
}

/// Checks that an operation is an object.
fn check_is_map(operation: &Value) -> Result<(), Failure> {
    match operation.is_object() {
        true => Ok(()),
        false => Err(Failure::bad_request(go_json::not_of_type(
            operation,
            "jsonpatch.Operation",
        ))),
    }
}

/// Checks that an operation is an object, and that its words are text.
fn check_types(operation: &Value) -> Result<(), Failure> {
    let wrong = |why: String| Failure::bad_request(format!("error decoding patch: {why}"));
    let Some(members) = operation.as_object() else {
        return Err(wrong(go_json::not_of_type(
            operation,
            "handlers.jsonPatchOp",
        )));
    };
    for name in ["op", "path", "from"] {
        let said = members.get(name).filter(|it| !it.is_null());
        if let Some(said) = said.filter(|it| !it.is_string()) {
            let kind = "jsonPatchOp";
            return Err(wrong(go_json::wrong(said, kind, name, "string")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn apply(patch: &Value, object: &Value) -> Result<Value, Error> {
        let patch = JsonPatch::read(patch.clone(), FieldValidation::Warn).expect("a patch");
        patch.apply(object)
    }

    #[test]
    fn operations_follow_each_other() {
        let patch = json!([{"op": "add", "path": "/a/new", "value": "x"},
            {"op": "test", "path": "/a/new", "value": "x"}]);
        let patched = apply(&patch, &json!({"a": {}})).expect("patched");
        assert_eq!(patched, json!({"a": {"new": "x"}}));
        let patch = json!([{"op": "remove", "path": "/zzz"}]);
        assert!(matches!(
            apply(&patch, &json!({})),
            Err(Error::Unprocessable)
        ));
    }

    #[test]
    fn unknown_operations_fail_when_they_are_applied() {
        for patch in [
            json!([{"op": "x", "path": "/a"}]),
            json!([{"op": "add", "value": 1}]),
            json!([{"op": "add", "path": "a", "value": 1}]),
            json!([null]),
        ] {
            let refused = apply(&patch, &json!({"a": 1}));
            assert!(matches!(refused, Err(Error::Unprocessable)), "{patch}");
        }
        for patch in [json!([5]), json!([{"op": 5}])] {
            let read = JsonPatch::read(patch, FieldValidation::Strict);
            assert_eq!(read.expect_err("bad").code(), 400);
        }
        // The library reads what is a map.
        let lax = |patch| JsonPatch::read(patch, FieldValidation::Ignore);
        let message = "json: cannot unmarshal number into Go value of type jsonpatch.Operation";
        assert_eq!(lax(json!([5])).expect_err("bad").status().message, message);
        let patch = lax(json!([{"op": 5}])).expect("a patch");
        assert!(matches!(patch.apply(&json!({})), Err(Error::Unprocessable)));
    }

    #[test]
    fn what_is_not_there_passes_for_null() {
        let tested = |path: &str, value: Value| {
            let patch = json!([{"op": "test", "path": path, "value": value}]);
            apply(&patch, &json!({"metadata": {"name": "a"}, "list": [1]})).is_ok()
        };
        for (path, value, passes) in [
            ("/metadata/finalizers", Value::Null, true),
            ("/metadata/a~1b", Value::Null, true),
            ("/metadata/finalizers", json!([]), false),
            ("/metadata/name", Value::Null, false),
            ("/status/phase", Value::Null, false),
            ("/list/7", Value::Null, false),
        ] {
            assert_eq!(tested(path, value.clone()), passes, "{path} {value}");
        }
    }

    #[test]
    fn copies_cannot_explode() {
        let operations: Vec<Value> = (0..40)
            .map(|_| json!({"op": "copy", "from": "/a", "path": "/a/-"}))
            .collect();
        let patched = apply(&json!(operations), &json!({"a": ["xxxxxxxx"]}));
        assert!(matches!(patched, Err(Error::Unprocessable)));
    }

    /// Each copy doubles the levels: forty would make more than any stack holds.
    #[test]
    fn copies_cannot_dig() {
        let object = (0..10).fold(json!({}), |inner, _| json!({"a": inner}));
        let depths = (0..10).map(|copies| 10_usize << copies);
        let copy =
            |depth: usize| json!({"op": "copy", "from": "/a", "path": "/a".repeat(depth + 1)});
        let digging: Vec<_> = depths.map(copy).collect();
        assert!(apply(&json!(digging[..3]), &object).is_ok());
        let refused = apply(&json!(digging), &object);
        assert!(matches!(refused, Err(Error::TooLarge(_))));
    }

    #[test]
    fn items_are_not_shifted_without_end() {
        let object = json!({"a": vec![0; 100_000]});
        let removals =
            |count: usize| Value::from(vec![json!({"op": "remove", "path": "/a/0"}); count]);
        assert!(apply(&removals(100), &object).is_ok());
        let refused = apply(&removals(1_000), &object);
        assert!(matches!(refused, Err(Error::Unprocessable)));
    }

    #[test]
    fn operations_are_counted() {
        let operation = json!({"op": "remove", "path": "/a"});
        let patch = Value::Array(vec![operation; OPERATIONS_MAX + 1]);
        let failure = JsonPatch::read(patch, FieldValidation::Warn).expect_err("too many");
        assert_eq!(failure.code(), 413);
    }
}
