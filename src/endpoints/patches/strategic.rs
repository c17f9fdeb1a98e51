//! Strategic merge patches: merge patches that know the lists of the built-in kinds.
//!
//! The hard part is the directives, which stand among the data: `$patch` deletes or replaces a map
//! or a list's item, `$retainKeys` drops what is not named, `$deleteFromPrimitiveList/x` takes out
//! of a set, `$setElementOrder/x` orders a list.

use serde_json::{Map, Value};

use super::strategic_keys::{ListMerge, list_merge};
use crate::registry::Error;

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
const ELEMENT_ORDER: &str = "$setElementOrder/";

/// How deep a patch may be nested.
const DEPTH_MAX: usize = 128;

/// The object after the patch.
pub(super) fn merge(object: &Value, patch: &Value) -> Result<Value, Error> {
    let empty = Map::new();
    let current = object.as_object().unwrap_or(&empty);
    match patch {
        Value::Object(patch) => merge_map(current, patch, "", DEPTH_MAX).map(Value::Object),
        _ => Err(Error::BadRequest("Invalid JSON Patch".to_owned())),
    }
}

/// Merges a map, which is the member `name` of something.
fn merge_map(
    current: &Map<String, Value>,
    patch: &Map<String, Value>,
    name: &str,
    depth: usize,
) -> Result<Map<String, Value>, Error> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(Error::BadRequest(
            "the patch is nested too deeply".to_owned(),
        ));
    };
    let mut merged = match directive(patch)? {
        Directive::Merge => current.clone(),
        Directive::Delete => return Ok(Map::new()),
        Directive::Replace => Map::new(),
    };
    if let Some(retained) = patch.get(RETAIN_KEYS).and_then(Value::as_array) {
        merged.retain(|key, _| retained.iter().any(|it| it.as_str() == Some(key)));
    }
    for (key, value) in patch {
        if let Some(set) = key.strip_prefix(DELETE_FROM) {
            delete_from_set(&mut merged, set, value);
        }
    }
    for (key, value) in patch.iter().filter(|(key, _)| !key.starts_with('$')) {
        if value.is_null() {
            merged.remove(key);
            continue;
        }
        let order = patch.get(&format!("{ELEMENT_ORDER}{key}"));
        let order = order.and_then(Value::as_array);
        let next = merge_member(
            merged.get(key),
            value,
            Place { parent: name, key },
            order,
            depth,
        )?;
        merged.insert(key.clone(), next);
    }
    for (key, value) in patch {
        if let Some(list) = key.strip_prefix(ELEMENT_ORDER)
            && !patch.contains_key(list)
            && let (Some(Value::Array(items)), Some(order)) =
                (merged.get_mut(list), value.as_array())
        {
            let by = list_merge(name, list);
            *items = ordered(std::mem::take(items), order, by);
        }
    }
    Ok(merged)
}

/// Where a member is.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// The member around it.
    parent: &'a str,
    /// Its own name.
    key: &'a str,
}

fn merge_member(
    current: Option<&Value>,
    patch: &Value,
    place: Place<'_>,
    order: Option<&Vec<Value>>,
    depth: usize,
) -> Result<Value, Error> {
    match patch {
        Value::Object(patch) => {
            let empty = Map::new();
            let current = current.and_then(Value::as_object).unwrap_or(&empty);
            merge_map(current, patch, place.key, depth).map(Value::Object)
        }
        Value::Array(patch) => {
            let current = current.and_then(Value::as_array);
            let current = current.map(Vec::as_slice).unwrap_or_default();
            merge_list(current, patch, place, order, depth).map(Value::Array)
        }
        scalar => Ok(scalar.clone()),
    }
}

fn merge_list(
    current: &[Value],
    patch: &[Value],
    place: Place<'_>,
    order: Option<&Vec<Value>>,
    depth: usize,
) -> Result<Vec<Value>, Error> {
    let by = list_merge(place.parent, place.key);
    let merged = match by {
        ListMerge::Replace => return Ok(without_directives(patch)),
        ListMerge::Set => {
            let mut merged = current.to_vec();
            for item in patch {
                if !merged.contains(item) {
                    merged.push(item.clone());
                }
            }
            merged
        }
        ListMerge::ByKey(key) => merge_by_key(current, patch, key, place.key, depth)?,
    };
    Ok(match order {
        Some(order) => ordered(merged, order, by),
        None => ordered(merged, patch, by),
    })
}

fn merge_by_key(
    current: &[Value],
    patch: &[Value],
    key: &str,
    name: &str,
    depth: usize,
) -> Result<Vec<Value>, Error> {
    let replaces = |item: &Value| item.get(PATCH).and_then(Value::as_str) == Some("replace");
    if patch
        .iter()
        .any(|item| replaces(item) && item.get(key).is_none())
    {
        return Ok(without_directives(patch));
    }
    let mut merged = current.to_vec();
    for item in patch {
        let Value::Object(members) = item else {
            return Err(Error::BadRequest(format!(
                "expected items of {name} to be objects"
            )));
        };
        let Some(value) = members.get(key) else {
            return Err(Error::BadRequest(format!(
                "map: {item} does not contain declared merge key: {key}"
            )));
        };
        let at = merged.iter().position(|it| it.get(key) == Some(value));
        match (directive(members)?, at) {
            (Directive::Delete, _) => merged.retain(|it| it.get(key) != Some(value)),
            (Directive::Replace, Some(at)) => merged[at] = plain(members),
            (Directive::Replace, None) => merged.push(plain(members)),
            (Directive::Merge, at) => {
                let empty = Map::new();
                let old = at.and_then(|at| merged[at].as_object()).unwrap_or(&empty);
                let next = Value::Object(merge_map(old, members, name, depth)?);
                match at {
                    Some(at) => merged[at] = next,
                    None => merged.push(next),
                }
            }
        }
    }
    Ok(merged)
}

/// The items in the order of a patch; those that it does not name follow, as they were, each after
/// the one it followed if that was not named either.
fn ordered(items: Vec<Value>, order: &[Value], by: ListMerge) -> Vec<Value> {
    let rank = |item: &Value| {
        order.iter().position(|other| match by {
            ListMerge::ByKey(key) => item.get(key).is_some() && item.get(key) == other.get(key),
            ListMerge::Set => item == other,
            ListMerge::Replace => false,
        })
    };
    let (mut named, rest): (Vec<Value>, Vec<Value>) =
        items.into_iter().partition(|item| rank(item).is_some());
    named.sort_by_key(rank);
    named.extend(rest);
    named
}

/// What `$patch` says.
enum Directive {
    Merge,
    Delete,
    Replace,
}

fn directive(patch: &Map<String, Value>) -> Result<Directive, Error> {
    match patch.get(PATCH) {
        None => Ok(Directive::Merge),
        Some(Value::String(text)) if text == "merge" => Ok(Directive::Merge),
        Some(Value::String(text)) if text == "delete" => Ok(Directive::Delete),
        Some(Value::String(text)) if text == "replace" => Ok(Directive::Replace),
        Some(other) => Err(Error::BadRequest(format!(
            "Unknown patch type {other} in map"
        ))),
    }
}

fn delete_from_set(merged: &mut Map<String, Value>, set: &str, gone: &Value) {
    if let (Some(Value::Array(items)), Value::Array(gone)) = (merged.get_mut(set), gone) {
        items.retain(|item| !gone.contains(item));
    }
}

/// A list without the items that are directives alone, and without directives in the others.
fn without_directives(items: &[Value]) -> Vec<Value> {
    items
        .iter()
        .filter(|item| {
            let members = item.as_object();
            !members.is_some_and(|it| it.len() == 1 && it.contains_key(PATCH))
        })
        .map(|item| item.as_object().map_or_else(|| item.clone(), plain))
        .collect()
}

/// A map without directives and nulls.
fn plain(members: &Map<String, Value>) -> Value {
    let kept = members
        .iter()
        .filter(|(key, value)| !key.starts_with('$') && !value.is_null());
    Value::Object(
        kept.map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patched(object: Value, patch: Value) -> Value {
        merge(&object, &patch).expect("a patch that fits")
    }

    #[test]
    fn lists_of_objects_merge_by_their_key_with_the_patch_first() {
        let object = json!({"spec": {"containers": [{"name": "c", "image": "x", "tty": true}]}});
        let patch = json!({"spec": {"containers": [{"name": "side", "image": "y"},
            {"name": "c", "tty": null}]}});
        assert_eq!(
            patched(object, patch),
            json!({"spec": {"containers": [{"name": "side", "image": "y"},
                {"name": "c", "image": "x"}]}})
        );
    }

    #[test]
    fn directives_delete_replace_and_order() {
        let object = json!({"spec": {"containers": [{"name": "a"}, {"name": "b", "image": "x"}],
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {}}},
            "metadata": {"finalizers": ["x", "y"]}});
        let patch = json!({"spec": {
            "$setElementOrder/containers": [{"name": "c"}, {"name": "b"}],
            "containers": [{"name": "a", "$patch": "delete"},
                {"name": "b", "$patch": "replace", "tty": true}, {"name": "c"}],
            "strategy": {"$retainKeys": ["type"], "type": "Recreate"}},
            "metadata": {"$deleteFromPrimitiveList/finalizers": ["x"], "finalizers": ["z"]}});
        assert_eq!(
            patched(object, patch),
            json!({"spec": {"containers": [{"name": "c"}, {"name": "b", "tty": true}],
                "strategy": {"type": "Recreate"}}, "metadata": {"finalizers": ["z", "y"]}})
        );
    }

    #[test]
    fn other_lists_and_scalars_are_replaced() {
        let object = json!({"spec": {"tolerations": [{"key": "a"}], "nodeName": "n",
            "ports": [{"port": 80, "name": "x"}]}});
        let patch = json!({"spec": {"tolerations": [{"key": "b"}], "nodeName": null,
            "ports": [{"port": 80, "name": "y"}, {"port": 81}]}});
        assert_eq!(
            patched(object, patch),
            json!({"spec": {"tolerations": [{"key": "b"}],
                "ports": [{"port": 80, "name": "y"}, {"port": 81}]}})
        );
    }

    #[test]
    fn bad_patches_are_refused() {
        for patch in [
            json!([]),
            json!({"spec": {"$patch": "explode"}}),
            json!({"spec": {"containers": [{"image": "x"}]}}),
            json!({"spec": {"containers": [1]}}),
        ] {
            assert!(merge(&json!({}), &patch).is_err(), "{patch}");
        }
    }
}
