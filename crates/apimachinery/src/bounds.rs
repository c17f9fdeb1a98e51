//! Bounds of an object's shape: how deep it nests, and how many maps it has.
//!
//! Trees are walked and dropped by recursion; readers of JSON, this server's among them, take 128 levels, and the codec
//! of protobuf takes 100. Whatever makes an object deeper than its body, such as a JSON patch, is checked before it
//! does so.

use serde_json::Value;

use super::Error;
use super::json_patch::{Operation, PatchEffect};

/// Maximum number of levels of maps and lists of an object. Its managed fields, and the list or event in which it is
/// sent, add less than what is missing to 100.
pub const LEVELS_MAX: usize = 90;

/// Maximum number of maps within an object before its defaults are added, which make some two kilobytes of the
/// smallest. What fits into a store of 1.5 MiB has more only if they take ten bytes each.
const MAPS_MAX: usize = 150_000;

/// Checks an object whose defaults have not been added.
///
/// # Errors
/// [`Error::TooLarge`] when it nests too deep or has too many maps.
pub fn check(object: &Value) -> Result<(), Error> {
    let mut maps = 0;
    check_below(object, 0, &mut maps)?;
    if maps > MAPS_MAX {
        let why = format!("the object has {maps} maps within it, the limit is {MAPS_MAX}");
        return Err(Error::TooLarge(why));
    }
    Ok(())
}

fn check_below(value: &Value, level: usize, maps: &mut usize) -> Result<(), Error> {
    if level > LEVELS_MAX {
        return Err(too_deep());
    }
    match value {
        Value::Object(members) => {
            *maps += 1;
            members
                .values()
                .try_for_each(|member| check_below(member, level + 1, maps))
        }
        Value::Array(items) => items
            .iter()
            .try_for_each(|item| check_below(item, level + 1, maps)),
        _ => Ok(()),
    }
}

/// Returns the refusal of an object that has more than [`LEVELS_MAX`] levels.
#[must_use]
pub fn too_deep() -> Error {
    let why = format!("the object is nested deeper than {LEVELS_MAX} levels");
    Error::TooLarge(why)
}

/// A bound of the growth of an object by an operation of a JSON patch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Growth {
    /// Bytes of JSON by which it becomes longer.
    pub added_bytes: usize,
    /// Bytes of JSON that are taken from the object itself: copied, or moved further down.
    pub copied_bytes: usize,
    /// Items of a list that it shifts by putting one in before them or taking one out.
    pub shifted_items: usize,
    /// Levels down to which it puts something.
    pub levels: usize,
}

impl Growth {
    /// Makes the growth of an object by an operation that is about to be applied to it.
    #[must_use]
    pub fn new(operation: &Operation, object: &Value) -> Self {
        let at = operation.path_levels();
        let unmoved = Self {
            shifted_items: shifted_items(operation, object),
            ..Self::default()
        };
        let put = |value: &Value, added_bytes, copied_bytes| Self {
            added_bytes,
            copied_bytes,
            levels: at + levels(value),
            ..unmoved
        };
        match operation.effect() {
            PatchEffect::Put(value) | PatchEffect::Replace(value) => put(value, length(value), 0),
            PatchEffect::Copy => {
                let source = operation.source(object);
                source.map_or(unmoved, |it| put(it, length(it), length(it)))
            }
            // What is moved sideways or up makes nothing deeper, and need not be looked through.
            PatchEffect::Move if at > operation.source_levels() => {
                let source = operation.source(object);
                source.map_or(unmoved, |it| put(it, 0, length(it)))
            }
            PatchEffect::Move | PatchEffect::Remove | PatchEffect::None => unmoved,
        }
    }
}

/// Returns the items behind those that an operation puts into a list or takes out of it.
fn shifted_items(operation: &Operation, object: &Value) -> usize {
    match operation.effect() {
        PatchEffect::Put(_) | PatchEffect::Copy | PatchEffect::Remove => {
            operation.items_behind_path(object)
        }
        PatchEffect::Move => {
            operation.items_behind_source(object) + operation.items_behind_path(object)
        }
        PatchEffect::Replace(_) | PatchEffect::None => 0,
    }
}

fn length(value: &Value) -> usize {
    value.to_string().len()
}

/// Returns the number of levels of maps and lists in a value.
fn levels(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(levels).max().unwrap_or_default(),
        Value::Object(members) => 1 + members.values().map(levels).max().unwrap_or_default(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nested(levels: usize) -> Value {
        (0..levels).fold(Value::Null, |inner, _| json!({"a": inner}))
    }

    #[test]
    fn levels_and_maps_have_a_limit() {
        assert!(check(&nested(LEVELS_MAX)).is_ok());
        assert_eq!(
            check(&nested(LEVELS_MAX + 1))
                .expect_err("too deep")
                .to_string(),
            "Request entity too large: the object is nested deeper than 90 levels"
        );
        let maps = |count: usize| Value::from(vec![json!({}); count]);
        assert!(check(&maps(MAPS_MAX)).is_ok());
        assert!(check(&maps(MAPS_MAX + 1)).is_err());
    }

    #[test]
    fn an_operation_tells_what_it_adds_and_moves() {
        let object = json!({"a": {"b": {"c": [1, 2]}}});
        for (operation, added_bytes, copied_bytes, shifted_items, levels) in [
            (
                json!({"op": "add", "path": "/x/y", "value": {"z": [0]}}),
                9,
                0,
                0,
                4,
            ),
            (
                json!({"op": "add", "path": "/a/b/c/0", "value": 0}),
                1,
                0,
                2,
                4,
            ),
            (
                json!({"op": "replace", "path": "/a", "value": 7}),
                1,
                0,
                0,
                1,
            ),
            (
                json!({"op": "copy", "from": "/a/b", "path": "/x/y/z"}),
                11,
                11,
                0,
                5,
            ),
            (
                json!({"op": "move", "from": "/a/b", "path": "/x/y/z"}),
                0,
                11,
                0,
                5,
            ),
            (
                json!({"op": "move", "from": "/a/b", "path": "/x/y"}),
                0,
                0,
                0,
                0,
            ),
            (
                json!({"op": "move", "from": "/a/b/c/1", "path": "/a/b/c/0"}),
                0,
                0,
                3,
                0,
            ),
            (
                json!({"op": "copy", "from": "/nothing", "path": "/x"}),
                0,
                0,
                0,
                0,
            ),
            (json!({"op": "remove", "path": "/a/b/c/0"}), 0, 0, 2, 0),
        ] {
            let growth = Growth {
                added_bytes,
                copied_bytes,
                shifted_items,
                levels,
            };
            let parsed = Operation::read(operation.clone());
            assert_eq!(Growth::new(&parsed, &object), growth, "{operation}");
        }
    }
}
