//! Operations of JSON patches (RFC 6902) as kube-apiserver's library carries them out.
//!
//! Follows gopkg.in/evanphx/json-patch.v4, which takes what the RFC refuses: a member of a map that is missing is null,
//! so it can be replaced, copied and tested; an operation without a value has null; an index may be negative, counted
//! from the end, and have a sign or leading zeros.

use serde_json::Value;

/// An operation of a JSON patch, which may turn out to be none when it is applied.
#[derive(Clone, Debug, Default)]
pub struct Operation {
    name: String,
    path: Option<String>,
    from: Option<String>,
    value: Value,
}

/// The reason why an operation cannot be applied to an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperationError {
    /// The operation is none, or lacks a path.
    #[error("{0}")]
    Incomplete(String),
    /// The operation names something that is not there.
    #[error("{operation} operation does not apply: doc is missing path: {path:?}: missing value")]
    Missing {
        /// The name of the operation.
        operation: &'static str,
        /// The path that leads nowhere.
        path: String,
    },
    /// The value at the path is another one than the operation tests for.
    #[error("testing value {0} failed: test failed")]
    TestFailed(String),
    /// The operation would replace the object by a value without members.
    #[error("replace operation value must be object or array")]
    NoObject,
}

impl Operation {
    /// Reads an operation. Members of other types than theirs are as absent.
    #[must_use]
    pub fn read(mut source: Value) -> Self {
        let text = |name: &str| source.get(name).and_then(Value::as_str).map(str::to_owned);
        Self {
            name: text("op").unwrap_or_else(|| "unknown".to_owned()),
            path: text("path"),
            from: text("from"),
            value: source.get_mut("value").map(Value::take).unwrap_or_default(),
        }
    }

    /// Reads the operations of a patch, of which null has none; `None` if it is no list.
    #[must_use]
    pub fn read_all(patch: Value) -> Option<Vec<Self>> {
        match patch {
            Value::Array(operations) => Some(operations.into_iter().map(Self::read).collect()),
            Value::Null => Some(Vec::new()),
            _ => None,
        }
    }

    /// Applies the operation to an object, which is changed in part if it fails.
    ///
    /// # Errors
    /// The reason why it does not apply.
    pub fn apply(&self, object: &mut Value) -> Result<(), OperationError> {
        match self.name.as_str() {
            "add" => add(object, "add", self.path("add")?, self.value.clone()),
            "remove" => remove(object, "remove", self.path("remove")?).map(drop),
            "replace" => self.replace(object),
            "move" => {
                let moved = remove(object, "move", self.source_path("move")?)?;
                add(object, "move", self.path("move")?, moved)
            }
            "copy" => {
                let source = value_at(object, "copy", self.source_path("copy")?)?;
                let copied = source.cloned().unwrap_or_default();
                add(object, "copy", self.path("copy")?, copied)
            }
            "test" => self.test(object),
            other => Err(OperationError::Incomplete(format!(
                "Unexpected kind: {other}"
            ))),
        }
    }

    fn replace(&self, object: &mut Value) -> Result<(), OperationError> {
        let path = self.path("replace")?;
        if path.is_empty() {
            if !self.value.is_object() && !self.value.is_array() {
                return Err(OperationError::NoObject);
            }
            *object = self.value.clone();
            return Ok(());
        }
        let missing = || missing("replace", path);
        let (container, key) = container_mut(object, path).ok_or_else(missing)?;
        match container {
            Value::Object(members) => drop(members.insert(key, self.value.clone())),
            Value::Array(items) => {
                let at = index(&key, items.len()).ok_or_else(missing)?;
                items[at] = self.value.clone();
            }
            _ => return Err(missing()),
        }
        Ok(())
    }

    fn test(&self, object: &Value) -> Result<(), OperationError> {
        let path = self.path("test")?;
        let found = if path.is_empty() {
            Some(object)
        } else {
            value_at(object, "test", path)?
        };
        if *found.unwrap_or(&Value::Null) == self.value {
            Ok(())
        } else {
            Err(OperationError::TestFailed(path.to_owned()))
        }
    }

    /// Returns the number of keys of the path at which the operation puts something.
    pub(super) fn path_levels(&self) -> usize {
        levels(self.path.as_deref())
    }

    /// Returns the number of keys of the path from which it takes something.
    pub(super) fn source_levels(&self) -> usize {
        levels(self.from.as_deref())
    }

    /// Returns the work that the operation makes by its name.
    pub(super) fn effect(&self) -> Effect<'_> {
        match self.name.as_str() {
            "add" => Effect::Put(&self.value),
            "replace" => Effect::Replace(&self.value),
            "copy" => Effect::Copy,
            "move" => Effect::Move,
            "remove" => Effect::Remove,
            _ => Effect::None,
        }
    }

    /// Returns what the operation copies or moves.
    pub(super) fn source<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        value_at(object, "copy", self.from.as_deref()?)
            .ok()
            .flatten()
    }

    /// Returns the number of items behind the one at the path.
    pub(super) fn items_behind_path(&self, object: &Value) -> usize {
        items_behind(object, self.path.as_deref())
    }

    /// Returns the number of items behind the one that is taken.
    pub(super) fn items_behind_source(&self, object: &Value) -> usize {
        items_behind(object, self.from.as_deref())
    }

    fn path(&self, operation: &str) -> Result<&str, OperationError> {
        said(self.path.as_deref(), operation, "path")
    }

    fn source_path(&self, operation: &str) -> Result<&str, OperationError> {
        said(self.from.as_deref(), operation, "from")
    }
}

/// The work that an operation makes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Effect<'a> {
    Put(&'a Value),
    Replace(&'a Value),
    Copy,
    Move,
    Remove,
    None,
}

fn said<'a>(
    path: Option<&'a str>,
    operation: &str,
    member: &str,
) -> Result<&'a str, OperationError> {
    path.ok_or_else(|| {
        let why = format!("{operation} operation failed to decode {member}: missing value");
        OperationError::Incomplete(why)
    })
}

fn missing(operation: &'static str, path: &str) -> OperationError {
    OperationError::Missing {
        operation,
        path: path.to_owned(),
    }
}

fn add(
    object: &mut Value,
    operation: &'static str,
    path: &str,
    value: Value,
) -> Result<(), OperationError> {
    let missing = || missing(operation, path);
    let (container, key) = container_mut(object, path).ok_or_else(missing)?;
    match container {
        Value::Object(members) => drop(members.insert(key, value)),
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => {
            // One more place than there are items.
            let at = index(&key, items.len() + 1).ok_or_else(missing)?;
            items.insert(at, value);
        }
        _ => return Err(missing()),
    }
    Ok(())
}

fn remove(
    object: &mut Value,
    operation: &'static str,
    path: &str,
) -> Result<Value, OperationError> {
    let missing = || missing(operation, path);
    let (container, key) = container_mut(object, path).ok_or_else(missing)?;
    match container {
        Value::Object(members) => members.remove(&key).ok_or_else(missing),
        Value::Array(items) => {
            let at = index(&key, items.len()).ok_or_else(missing)?;
            Ok(items.remove(at))
        }
        _ => Err(missing()),
    }
}

/// Returns the value at a path; `None` for a member that a map does not have.
fn value_at<'a>(
    object: &'a Value,
    operation: &'static str,
    path: &str,
) -> Result<Option<&'a Value>, OperationError> {
    let missing = || missing(operation, path);
    let (container, key) = container(object, path).ok_or_else(missing)?;
    match container {
        Value::Object(members) => Ok(members.get(&key)),
        Value::Array(items) => {
            let at = index(&key, items.len()).ok_or_else(missing)?;
            Ok(Some(&items[at]))
        }
        _ => Err(missing()),
    }
}

/// Returns the map or list in which a path ends, and the last key.
fn container<'a>(object: &'a Value, path: &str) -> Option<(&'a Value, String)> {
    let (mut keys, last) = keys(path)?;
    let container = keys.try_fold(object, |at, key| match at {
        Value::Object(members) => members.get(&key),
        Value::Array(items) => items.get(index(&key, items.len())?),
        _ => None,
    })?;
    Some((container, last))
}

fn container_mut<'a>(object: &'a mut Value, path: &str) -> Option<(&'a mut Value, String)> {
    let (mut keys, last) = keys(path)?;
    let container = keys.try_fold(object, |at, key| match at {
        Value::Object(members) => members.get_mut(&key),
        Value::Array(items) => {
            let at = index(&key, items.len())?;
            items.get_mut(at)
        }
        _ => None,
    })?;
    Some((container, last))
}

/// Returns the keys of a path, the last apart. A path has none before its first slash.
fn keys(path: &str) -> Option<(impl Iterator<Item = String>, String)> {
    let decoded = |key: &str| key.replace("~1", "/").replace("~0", "~");
    let (_, keys) = path.split_once('/')?;
    let (parents, last) = keys
        .rsplit_once('/')
        .map_or((None, keys), |(parents, last)| (Some(parents), last));
    let parents = parents.into_iter().flat_map(|it| it.split('/'));
    Some((parents.map(decoded), decoded(last)))
}

/// Returns the place of an index among so many, as Go reads numbers.
fn index(key: &str, count: usize) -> Option<usize> {
    let number: i64 = key.parse().ok()?;
    let count = i64::try_from(count).ok()?;
    let at = if number < 0 { number + count } else { number };
    usize::try_from(at).ok().filter(|_| at < count)
}

fn levels(path: Option<&str>) -> usize {
    path.map_or(0, |path| path.matches('/').count())
}

fn items_behind(object: &Value, path: Option<&str>) -> usize {
    let behind = || {
        let (list, key) = container(object, path?)?;
        let count = list.as_array()?.len();
        Some(count - index(&key, count)?)
    };
    behind().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn patched(mut object: Value, operation: Value) -> Result<Value, OperationError> {
        Operation::read(operation).apply(&mut object)?;
        Ok(object)
    }

    fn object() -> Value {
        json!({"a": {"b": 1}, "list": [1, 2, 3], "null": null, "x/y": {"~": 5}})
    }

    fn carried_out(operation: Value, path: &str, expected: &Value) {
        let patched = patched(object(), operation.clone()).expect("it applies");
        assert_eq!(patched.pointer(path), Some(expected), "{operation}");
    }

    #[test]
    fn what_is_missing_in_a_map_is_null() {
        for (operation, path, expected) in [
            (
                json!({"op": "replace", "path": "/a/z", "value": "q"}),
                "/a/z",
                json!("q"),
            ),
            (
                json!({"op": "replace", "path": "/null", "value": 9}),
                "/null",
                json!(9),
            ),
            (
                json!({"op": "copy", "from": "/z", "path": "/a/b"}),
                "/a",
                json!({"b": null}),
            ),
            (
                json!({"op": "add", "path": "/a/z"}),
                "/a",
                json!({"b": 1, "z": null}),
            ),
            (
                json!({"op": "add", "path": "/x~1y/~0", "value": 6}),
                "/x~1y/~0",
                json!(6),
            ),
            (
                json!({"op": "add", "path": "rest/null", "value": 6}),
                "/null",
                json!(6),
            ),
        ] {
            carried_out(operation, path, &expected);
        }
    }

    #[test]
    fn indexes_are_read_as_go_reads_numbers() {
        for (operation, expected) in [
            (
                json!({"op": "replace", "path": "/list/-1", "value": 9}),
                json!([1, 2, 9]),
            ),
            (
                json!({"op": "copy", "from": "/list/-3", "path": "/list/-1"}),
                json!([1, 2, 3, 1]),
            ),
            (
                json!({"op": "add", "path": "/list/-2", "value": 9}),
                json!([1, 2, 9, 3]),
            ),
            (
                json!({"op": "add", "path": "/list/-4", "value": 9}),
                json!([9, 1, 2, 3]),
            ),
            (
                json!({"op": "add", "path": "/list/+01", "value": 9}),
                json!([1, 9, 2, 3]),
            ),
            (
                json!({"op": "add", "path": "/list/-", "value": 9}),
                json!([1, 2, 3, 9]),
            ),
            (json!({"op": "remove", "path": "/list/-1"}), json!([1, 2])),
            (json!({"op": "remove", "path": "/list/002"}), json!([1, 2])),
            (
                json!({"op": "move", "from": "/list/-1", "path": "/list/-3"}),
                json!([3, 1, 2]),
            ),
        ] {
            carried_out(operation, "/list", &expected);
        }
    }

    #[test]
    fn tests_take_what_is_missing_for_null() {
        for (path, value, holds) in [
            ("/a/b", json!(1), true),
            ("/a/b", json!(1.0), false),
            ("/a/z", Value::Null, true),
            ("/null", Value::Null, true),
            ("/a/z", json!([]), false),
            ("/a", Value::Null, false),
            ("/list/-1", json!(3), true),
            ("", object(), true),
        ] {
            let operation = json!({"op": "test", "path": path, "value": value});
            let expected = if holds {
                Ok(object())
            } else {
                Err(OperationError::TestFailed(path.to_owned()))
            };
            assert_eq!(patched(object(), operation), expected, "{path}");
        }
        let without_value = json!({"op": "test", "path": "/a/z"});
        assert!(patched(object(), without_value).is_ok());
    }

    #[test]
    fn what_leads_nowhere_is_refused() {
        for operation in [
            json!({"op": "remove", "path": "/a/z"}),
            json!({"op": "move", "from": "/a/z", "path": "/a/y"}),
            json!({"op": "add", "path": "/z/a", "value": 1}),
            json!({"op": "add", "path": "/a/b/c", "value": 1}),
            json!({"op": "add", "path": "/null/c", "value": 1}),
            json!({"op": "add", "path": "", "value": {}}),
            json!({"op": "add", "path": "a", "value": {}}),
            json!({"op": "add", "path": "/list/4", "value": 1}),
            json!({"op": "add", "path": "/list/-5", "value": 1}),
            json!({"op": "add", "path": "/list/x", "value": 1}),
            json!({"op": "replace", "path": "/list/3", "value": 1}),
            json!({"op": "replace", "path": "/list/-", "value": 1}),
            json!({"op": "replace", "path": "", "value": 1}),
            json!({"op": "test", "path": "/list/3", "value": null}),
            json!({"op": "test", "path": "/z/a", "value": null}),
            json!({"op": "copy", "from": "/list/3", "path": "/a/c"}),
            json!({"op": "copy", "path": "/a/c"}),
            json!({"op": "add", "value": 1}),
            json!({"op": "merge", "path": "/a"}),
            json!({}),
            Value::Null,
        ] {
            assert!(patched(object(), operation.clone()).is_err(), "{operation}");
        }
    }

    proptest! {
        #[test]
        fn no_operation_panics(name in "add|remove|replace|move|copy|test", path in "(/(a|list|-|\\+?[0-9]|-[0-9]))*", from in "(/(a|list|-?[0-9]))*") {
            let operation = json!({"op": name, "path": path, "from": from, "value": {"a": [0]}});
            let _ = patched(object(), operation);
        }
    }
}
