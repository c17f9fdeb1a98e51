//! Operations of JSON patches (RFC 6902) as kube-apiserver's library carries them out.
//!
//! Follows gopkg.in/evanphx/json-patch.v4, which takes what the RFC refuses: a member of a map that is missing is null,
//! so it can be replaced, copied and tested; an operation without a value has null; an index may be negative, counted
//! from the end, and have a sign or leading zeros.

use std::num::IntErrorKind;

use serde_json::Value;

/// An operation of a JSON patch, which may turn out to be none when it is applied.
#[derive(Clone, Debug, Default)]
pub struct Operation {
    name: String,
    path: Option<String>,
    from: Option<String>,
    value: Value,
}

/// The reason why an operation cannot be applied to an object, in the words of the library.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperationError {
    /// The operation is none, lacks a path, or names something that is not there.
    #[error("{0}")]
    Impossible(String),
    /// The value at the path is another one than the operation tests for.
    #[error("testing value {0} failed: test failed")]
    TestFailed(String),
}

/// The words for what is not there.
const MISSING: &str = "missing value";

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
            "add" => self.add(object),
            "remove" => self.remove(object),
            "replace" => self.replace(object),
            "move" => self.move_value(object),
            "copy" => self.copy(object),
            "test" => self.test(object),
            other => impossible(format!("Unexpected kind: {other}")),
        }
    }

    fn add(&self, object: &mut Value) -> Result<(), OperationError> {
        let Some(path) = &self.path else {
            return impossible(format!("add operation failed to decode path: {MISSING}"));
        };
        let Some((container, key)) = container_mut(object, path) else {
            let why =
                format!("add operation does not apply: doc is missing path: \"{path}\": {MISSING}");
            return impossible(why);
        };
        put(container, key, self.value.clone())
            .or_else(|why| impossible(format!("error in add for path: '{path}': {why}")))
    }

    fn remove(&self, object: &mut Value) -> Result<(), OperationError> {
        let Some(path) = &self.path else {
            return impossible(format!("remove operation failed to decode path: {MISSING}"));
        };
        let Some((container, key)) = container_mut(object, path) else {
            let why = format!(
                "remove operation does not apply: doc is missing path: \"{path}\": {MISSING}"
            );
            return impossible(why);
        };
        take(container, &key)
            .map(drop)
            .or_else(|why| impossible(format!("error in remove for path: '{path}': {why}")))
    }

    fn replace(&self, object: &mut Value) -> Result<(), OperationError> {
        let path = self.path("replace")?;
        if path.is_empty() {
            if !self.value.is_object() && !self.value.is_array() {
                // As Go shows an error that is none.
                let why = "replace operation value must be object or array: %!w(<nil>)";
                return impossible(why.to_owned());
            }
            *object = self.value.clone();
            return Ok(());
        }
        let Some((container, key)) = container_mut(object, path) else {
            let why =
                format!("replace operation does not apply: doc is missing path: {path}: {MISSING}");
            return impossible(why);
        };
        match container {
            Value::Object(members) => drop(members.insert(key, self.value.clone())),
            Value::Array(items) => match index(&key, items.len()) {
                Ok(at) => items[at] = self.value.clone(),
                Err(_) => {
                    let why = format!(
                        "replace operation does not apply: doc is missing key: {path}: {MISSING}"
                    );
                    return impossible(why);
                }
            },
            _ => {}
        }
        Ok(())
    }

    fn move_value(&self, object: &mut Value) -> Result<(), OperationError> {
        let from = self.source_path("move")?;
        let (container, key) =
            container_mut(object, from).ok_or_else(|| missing_source(from, "move"))?;
        // The library names the key here, and the path below.
        let moved = take(container, &key)
            .or_else(|why| impossible(format!("error in move for path: '{key}': {why}")))?;
        let path = self.path("move")?;
        let (container, key) = destination(object, path, "move")?;
        put(container, key, moved)
            .or_else(|why| impossible(format!("error in move for path: '{path}': {why}")))
    }

    fn copy(&self, object: &mut Value) -> Result<(), OperationError> {
        let from = self.source_path("copy")?;
        let (source, key) = container(object, from).ok_or_else(|| missing_source(from, "copy"))?;
        let found = value_in(source, &key)
            .or_else(|why| impossible(format!("error in copy for from: '{from}': {why}")))?;
        let copied = found.cloned().unwrap_or_default();
        let Some(path) = &self.path else {
            return impossible(format!("copy operation failed to decode path: {MISSING}"));
        };
        let (container, key) = destination(object, path, "copy")?;
        put(container, key, copied)
            .or_else(|why| impossible(format!("error while adding value during copy: {why}")))
    }

    fn test(&self, object: &Value) -> Result<(), OperationError> {
        let path = self.path("test")?;
        let found = if path.is_empty() {
            Some(object)
        } else {
            let Some((container, key)) = container(object, path) else {
                let why =
                    format!("test operation does not apply: is missing path: {path}: {MISSING}");
                return impossible(why);
            };
            value_in(container, &key)
                .or_else(|why| impossible(format!("error in test for path: '{path}': {why}")))?
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
    pub(super) fn effect(&self) -> PatchEffect<'_> {
        match self.name.as_str() {
            "add" => PatchEffect::Put(&self.value),
            "replace" => PatchEffect::Replace(&self.value),
            "copy" => PatchEffect::Copy,
            "move" => PatchEffect::Move,
            "remove" => PatchEffect::Remove,
            _ => PatchEffect::None,
        }
    }

    /// Returns what the operation copies or moves.
    pub(super) fn source<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        let (container, key) = container(object, self.from.as_deref()?)?;
        value_in(container, &key).ok().flatten()
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
        let missing = || {
            let why = format!(
                "{operation} operation failed to decode path: operation missing path field"
            );
            OperationError::Impossible(format!("{why}: {MISSING}"))
        };
        self.path.as_deref().ok_or_else(missing)
    }

    fn source_path(&self, operation: &str) -> Result<&str, OperationError> {
        let missing = || {
            let why = format!(
                "{operation} operation failed to decode from: operation, missing from field"
            );
            OperationError::Impossible(format!("{why}: {MISSING}"))
        };
        self.from.as_deref().ok_or_else(missing)
    }
}

/// The work that an operation makes.
#[derive(Clone, Copy, Debug)]
pub(super) enum PatchEffect<'a> {
    Put(&'a Value),
    Replace(&'a Value),
    Copy,
    Move,
    Remove,
    None,
}

/// Returns the error of an operation whose source is not there.
fn missing_source(from: &str, operation: &str) -> OperationError {
    OperationError::Impossible(format!(
        "{operation} operation does not apply: doc is missing from path: {from}: {MISSING}"
    ))
}

/// Returns what is to have the value of an operation, and its key there.
fn destination<'a>(
    object: &'a mut Value,
    path: &str,
    operation: &str,
) -> Result<(&'a mut Value, String), OperationError> {
    container_mut(object, path).ok_or_else(|| {
        OperationError::Impossible(format!(
            "{operation} operation does not apply: doc is missing destination path: {path}: {MISSING}"
        ))
    })
}

fn impossible<T>(why: String) -> Result<T, OperationError> {
    Err(OperationError::Impossible(why))
}

/// Adds a value to a map or list.
fn put(container: &mut Value, key: String, value: Value) -> Result<(), String> {
    match container {
        Value::Object(members) => drop(members.insert(key, value)),
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => {
            // One more place than there are items.
            let at = index(&key, items.len() + 1).map_err(|wrong| match wrong {
                WrongIndex::NoNumber(why) => {
                    format!("value was not a proper array index: '{key}': {why}")
                }
                WrongIndex::Outside(why) => why,
            })?;
            items.insert(at, value);
        }
        _ => {}
    }
    Ok(())
}

/// Takes a value out of a map or list.
fn take(container: &mut Value, key: &str) -> Result<Value, String> {
    match container {
        Value::Object(members) => members
            .remove(key)
            .ok_or_else(|| format!("Unable to remove nonexistent key: {key}: {MISSING}")),
        Value::Array(items) => Ok(items.remove(index(key, items.len())?)),
        _ => Ok(Value::Null),
    }
}

/// Returns the value in a map or list; `None` for a member that a map does not have.
fn value_in<'a>(container: &'a Value, key: &str) -> Result<Option<&'a Value>, String> {
    match container {
        Value::Array(items) => Ok(Some(&items[index(key, items.len())?])),
        other => Ok(other.get(key)),
    }
}

/// Returns the map or list in which a path ends, and the last key.
fn container<'a>(object: &'a Value, path: &str) -> Option<(&'a Value, String)> {
    let (mut keys, last) = keys(path)?;
    let container = keys.try_fold(object, |at, key| match at {
        Value::Object(members) => members.get(&key),
        Value::Array(items) => items.get(index(&key, items.len()).ok()?),
        _ => None,
    })?;
    is_container(container).then_some((container, last))
}

fn container_mut<'a>(object: &'a mut Value, path: &str) -> Option<(&'a mut Value, String)> {
    let (mut keys, last) = keys(path)?;
    let container = keys.try_fold(object, |at, key| match at {
        Value::Object(members) => members.get_mut(&key),
        Value::Array(items) => {
            let at = index(&key, items.len()).ok()?;
            items.get_mut(at)
        }
        _ => None,
    })?;
    is_container(container).then_some((container, last))
}

fn is_container(value: &Value) -> bool {
    value.is_object() || value.is_array()
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

/// An index that leads nowhere, in the library's words.
enum WrongIndex {
    NoNumber(String),
    Outside(String),
}

impl From<WrongIndex> for String {
    fn from(wrong: WrongIndex) -> Self {
        let (WrongIndex::NoNumber(why) | WrongIndex::Outside(why)) = wrong;
        why
    }
}

/// Returns the place of an index among so many, as Go reads numbers.
fn index(key: &str, count: usize) -> Result<usize, WrongIndex> {
    let number: i64 = key.parse().map_err(|error: std::num::ParseIntError| {
        let why = match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        WrongIndex::NoNumber(format!("strconv.Atoi: parsing {key:?}: {why}"))
    })?;
    let from_end = if number < 0 { count } else { 0 };
    let at = i64::try_from(from_end)
        .ok()
        .and_then(|it| it.checked_add(number));
    let at = at.and_then(|at| usize::try_from(at).ok());
    at.filter(|at| *at < count).ok_or_else(|| {
        let why = "invalid index referenced";
        WrongIndex::Outside(format!("Unable to access invalid index: {number}: {why}"))
    })
}

fn levels(path: Option<&str>) -> usize {
    path.map_or(0, |path| path.matches('/').count())
}

fn items_behind(object: &Value, path: Option<&str>) -> usize {
    let behind = || {
        let (list, key) = container(object, path?)?;
        let count = list.as_array()?.len();
        Some(count - index(&key, count).ok()?)
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

    /// Operations that fail on the object, and the errors.
    const REFUSED: &[(&str, &str)] = &[
        (
            r#"{"op": "remove", "path": "/a/z"}"#,
            "error in remove for path: '/a/z': Unable to remove nonexistent key: z: missing value",
        ),
        (
            r#"{"op": "remove", "path": "/z/a"}"#,
            "remove operation does not apply: doc is missing path: \"/z/a\": missing value",
        ),
        (
            r#"{"op": "remove", "path": "/list/3"}"#,
            "error in remove for path: '/list/3': Unable to access invalid index: 3: invalid index referenced",
        ),
        (
            r#"{"op": "remove"}"#,
            "remove operation failed to decode path: missing value",
        ),
        (
            r#"{"op": "move", "from": "/a/z", "path": "/a/y"}"#,
            "error in move for path: 'z': Unable to remove nonexistent key: z: missing value",
        ),
        (
            r#"{"op": "move", "from": "/z/a", "path": "/a/y"}"#,
            "move operation does not apply: doc is missing from path: /z/a: missing value",
        ),
        (
            r#"{"op": "move", "from": "/a/b", "path": "/z/y"}"#,
            "move operation does not apply: doc is missing destination path: /z/y: missing value",
        ),
        (
            r#"{"op": "move", "from": "/a/b", "path": "/list/x"}"#,
            "error in move for path: '/list/x': value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": invalid syntax",
        ),
        (
            r#"{"op": "move", "from": "/a/b"}"#,
            "move operation failed to decode path: operation missing path field: missing value",
        ),
        (
            r#"{"op": "add", "path": "/z/a", "value": 1}"#,
            "add operation does not apply: doc is missing path: \"/z/a\": missing value",
        ),
        (
            r#"{"op": "add", "path": "/a/b/c", "value": 1}"#,
            "add operation does not apply: doc is missing path: \"/a/b/c\": missing value",
        ),
        (
            r#"{"op": "add", "path": "/null/c", "value": 1}"#,
            "add operation does not apply: doc is missing path: \"/null/c\": missing value",
        ),
        (
            r#"{"op": "add", "path": "", "value": {}}"#,
            "add operation does not apply: doc is missing path: \"\": missing value",
        ),
        (
            r#"{"op": "add", "path": "a", "value": {}}"#,
            "add operation does not apply: doc is missing path: \"a\": missing value",
        ),
        (
            r#"{"op": "add", "path": "/list/4", "value": 1}"#,
            "error in add for path: '/list/4': Unable to access invalid index: 4: invalid index referenced",
        ),
        (
            r#"{"op": "add", "path": "/list/-5", "value": 1}"#,
            "error in add for path: '/list/-5': Unable to access invalid index: -5: invalid index referenced",
        ),
        (
            r#"{"op": "add", "path": "/list/99999999999999999999", "value": 1}"#,
            "error in add for path: '/list/99999999999999999999': value was not a proper array index: '99999999999999999999': strconv.Atoi: parsing \"99999999999999999999\": value out of range",
        ),
        (
            r#"{"op": "replace", "path": "/list/3", "value": 1}"#,
            "replace operation does not apply: doc is missing key: /list/3: missing value",
        ),
        (
            r#"{"op": "replace", "path": "/list/-", "value": 1}"#,
            "replace operation does not apply: doc is missing key: /list/-: missing value",
        ),
        (
            r#"{"op": "replace", "path": "/z/a", "value": 1}"#,
            "replace operation does not apply: doc is missing path: /z/a: missing value",
        ),
        (
            r#"{"op": "replace", "path": "", "value": 1}"#,
            "replace operation value must be object or array: %!w(<nil>)",
        ),
        (
            r#"{"op": "test", "path": "/list/3", "value": null}"#,
            "error in test for path: '/list/3': Unable to access invalid index: 3: invalid index referenced",
        ),
        (
            r#"{"op": "test", "path": "/list/x"}"#,
            "error in test for path: '/list/x': strconv.Atoi: parsing \"x\": invalid syntax",
        ),
        (
            r#"{"op": "test", "path": "/z/a", "value": null}"#,
            "test operation does not apply: is missing path: /z/a: missing value",
        ),
        (
            r#"{"op": "test", "path": "/a/b", "value": 2}"#,
            "testing value /a/b failed: test failed",
        ),
        (
            r#"{"op": "copy", "from": "/list/3", "path": "/a/c"}"#,
            "error in copy for from: '/list/3': Unable to access invalid index: 3: invalid index referenced",
        ),
        (
            r#"{"op": "copy", "from": "/z/a", "path": "/a/c"}"#,
            "copy operation does not apply: doc is missing from path: /z/a: missing value",
        ),
        (
            r#"{"op": "copy", "from": "/a/b", "path": "/z/c"}"#,
            "copy operation does not apply: doc is missing destination path: /z/c: missing value",
        ),
        (
            r#"{"op": "copy", "from": "/a/b", "path": "/list/9"}"#,
            "error while adding value during copy: Unable to access invalid index: 9: invalid index referenced",
        ),
        (
            r#"{"op": "copy", "path": "/a/c"}"#,
            "copy operation failed to decode from: operation, missing from field: missing value",
        ),
        (
            r#"{"op": "add", "value": 1}"#,
            "add operation failed to decode path: missing value",
        ),
        (r#"{"op": "merge", "path": "/a"}"#, "Unexpected kind: merge"),
        (r#"{}"#, "Unexpected kind: unknown"),
        ("null", "Unexpected kind: unknown"),
    ];

    #[test]
    fn what_leads_nowhere_is_refused_in_the_words_of_the_operation() {
        for (operation, words) in REFUSED {
            let of_operation = serde_json::from_str(operation).expect("JSON");
            let failed = patched(object(), of_operation).map_err(|error| error.to_string());
            assert_eq!(failed, Err((*words).to_owned()), "{operation}");
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
