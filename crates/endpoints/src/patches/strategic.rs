//! Strategic merge patches: merge patches that merge the lists of built-in kinds by key.
//!
//! The hard part is the directives, which are members among the data: `$patch` deletes or replaces a map or a list's
//! item, `$retainKeys` removes members that it does not name, `$deleteFromPrimitiveList/x` removes from a set,
//! `$setElementOrder/x` orders a list.

use std::collections::{HashMap, HashSet};

use ringwatch_apimachinery::Error;
use serde_json::{Map, Value};

use super::strategic_keys::{ListMerge, list_merge, replaces_map};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
const ELEMENT_ORDER: &str = "$setElementOrder/";

/// Maximum nesting of a patch.
const DEPTH_MAX: usize = 128;

/// Applies a strategic merge patch, and returns the object after it.
pub(super) fn merge(object: &Value, patch: &Value) -> Result<Value, Error> {
    let current = object.as_object().cloned().unwrap_or_default();
    let kind = object.get("kind").and_then(Value::as_str);
    let place = FieldPosition {
        kind: kind.unwrap_or_default(),
        name: "",
    };
    match patch {
        Value::Object(patch) => merge_map(current, patch, place, DEPTH_MAX).map(Value::Object),
        _ => Err(Error::Unprocessable),
    }
}

/// The position of a map in the object.
#[derive(Clone, Copy)]
struct FieldPosition<'a> {
    /// The kind of the whole object.
    kind: &'a str,
    /// The member that holds the map, or the list that it is in.
    name: &'a str,
}

impl<'a> FieldPosition<'a> {
    fn below(self, name: &'a str) -> Self {
        Self { name, ..self }
    }

    fn list_merge(self, list: &str) -> ListMerge {
        list_merge(self.kind, self.name, list)
    }
}

fn merge_map(
    current: Map<String, Value>,
    patch: &Map<String, Value>,
    place: FieldPosition<'_>,
    depth: usize,
) -> Result<Map<String, Value>, Error> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(Error::BadRequest(
            "the patch is nested too deeply".to_owned(),
        ));
    };
    match directive(patch)? {
        None => {}
        Some(Directive::Delete) => return Ok(Map::new()),
        Some(Directive::Replace) => return Ok(without_directives(patch)),
    }
    let mut merged = retained(current, patch)?;
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
        let order = element_order(patch, key)?;
        let before = merged.remove(key);
        if let Some(next) = merge_member(before, value, place, key, order, depth)? {
            merged.insert(key.clone(), next);
        }
    }
    for key in patch.keys() {
        if let Some(list) = key.strip_prefix(ELEMENT_ORDER)
            && let Some(order) = element_order(patch, list)?
            && !patch.contains_key(list)
            && let Some(Value::Array(items)) = merged.get_mut(list)
        {
            let live = items.clone();
            let by = place.list_merge(list);
            *items = ordered(std::mem::take(items), order, &live, by);
        }
    }
    Ok(merged)
}

/// Returns the members that stay, if the patch has `$retainKeys`.
fn retained(
    mut current: Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<Map<String, Value>, Error> {
    let Some(names) = patch.get(RETAIN_KEYS) else {
        return Ok(current);
    };
    let bad = || Error::BadRequest("invalid patch format of retainKeys".to_owned());
    let names = names.as_array().ok_or_else(bad)?.iter();
    let names: HashSet<&str> = names.filter_map(Value::as_str).collect();
    let named = |key: &String| names.contains(key.as_str());
    let mut set = patch.iter().filter(|(key, value)| {
        let directive = key.starts_with('$');
        !directive && !value.is_null()
    });
    if !set.all(|(key, _)| named(key)) {
        return Err(bad());
    }
    current.retain(|key, _| named(key));
    Ok(current)
}

/// Merges one member; `None` if the object is to have none.
fn merge_member(
    current: Option<Value>,
    patch: &Value,
    place: FieldPosition<'_>,
    key: &str,
    order: Option<&[Value]>,
    depth: usize,
) -> Result<Option<Value>, Error> {
    match patch {
        Value::Object(patch) => {
            let Some(Value::Object(current)) = current else {
                return new_map(patch, place.below(key), depth);
            };
            if replaces_map(place.kind, place.name, key) {
                return Ok(Some(Value::Object(without_directives(patch))));
            }
            let merged = merge_map(current, patch, place.below(key), depth)?;
            Ok(Some(Value::Object(merged)))
        }
        Value::Array(patch) => {
            let by = place.list_merge(key);
            check_order(patch, order, by)?;
            let merged = match current {
                Some(Value::Array(items)) if !items.is_empty() => {
                    merge_list(&items, patch, place, key, order, depth)?
                }
                _ => new_list(patch, order, by),
            };
            Ok(Some(Value::Array(merged)))
        }
        scalar => Ok(Some(scalar.clone())),
    }
}

/// Returns the map that a patch creates where the object has none; its directives do not apply.
fn new_map(
    patch: &Map<String, Value>,
    place: FieldPosition<'_>,
    depth: usize,
) -> Result<Option<Value>, Error> {
    if patch.contains_key(PATCH) {
        return Ok(None);
    }
    let merged = merge_map(Map::new(), patch, place, depth)?;
    Ok(Some(Value::Object(merged)))
}

/// Returns the list that a patch creates where the object has none: its items as they are, also those with equal keys.
fn new_list(patch: &[Value], order: Option<&[Value]>, by: ListMerge) -> Vec<Value> {
    let items = plain_items(patch);
    match order {
        Some(order) => ordered(items, order, &[], by),
        None => items,
    }
}

fn merge_list(
    current: &[Value],
    patch: &[Value],
    place: FieldPosition<'_>,
    name: &str,
    order: Option<&[Value]>,
    depth: usize,
) -> Result<Vec<Value>, Error> {
    let by = place.list_merge(name);
    let merged = match by {
        ListMerge::Replace => return Ok(plain_items(patch)),
        ListMerge::Set => {
            let mut seen: HashSet<&Value> = current.iter().collect();
            let new = patch.iter().filter(|item| seen.insert(*item));
            let all = current.iter().chain(new);
            all.cloned().collect()
        }
        ListMerge::ByKey(key) => {
            let patch = ItemsByKey::read(patch, key, name)?;
            if patch.replaces {
                let items: Vec<Value> = patch
                    .items
                    .into_iter()
                    .map(without_directives)
                    .map(Value::Object)
                    .collect();
                let own = items.clone();
                return Ok(ordered(items, order.unwrap_or_default(), &own, by));
            }
            merge_by_key(current, &patch, key, place.below(name), depth)?
        }
    };
    Ok(ordered(merged, order.unwrap_or(patch), current, by))
}

/// A patch of a list whose items merge by a key, in which each has one.
struct ItemsByKey<'p> {
    /// True if the items replace the list, which any of the patch's items may say.
    replaces: bool,
    /// The keys of items to delete.
    deleted: HashSet<&'p Value>,
    /// The items that are no directives.
    items: Vec<&'p Map<String, Value>>,
}

impl<'p> ItemsByKey<'p> {
    fn read(patch: &'p [Value], key: &str, list: &str) -> Result<Self, Error> {
        let mut read = Self {
            replaces: false,
            deleted: HashSet::new(),
            items: Vec::new(),
        };
        for item in patch {
            let members = object(item, list)?;
            match directive(members)? {
                Some(Directive::Replace) => read.replaces = true,
                Some(Directive::Delete) => drop(read.deleted.insert(key_of(members, key)?)),
                None => {
                    key_of(members, key)?;
                    read.items.push(members);
                }
            }
        }
        Ok(read)
    }
}

/// Merges the items of two lists by a key: first removes the items that the patch deletes, then merges the others.
fn merge_by_key(
    current: &[Value],
    patch: &ItemsByKey<'_>,
    key: &str,
    place: FieldPosition<'_>,
    depth: usize,
) -> Result<Vec<Value>, Error> {
    let stays = |item: &&Value| {
        let value = item.get(key);
        value.is_none_or(|value| !patch.deleted.contains(value))
    };
    let kept: Vec<&Value> = current.iter().filter(stays).collect();
    let mut places = HashMap::new();
    for (at, item) in kept.iter().enumerate() {
        if let Some(value) = item.get(key) {
            places.entry(value).or_insert(at);
        }
    }
    let mut merged: Vec<Value> = kept.into_iter().cloned().collect();
    for members in &patch.items {
        let at = *places.entry(key_of(members, key)?).or_insert(merged.len());
        if at == merged.len() {
            merged.push(Value::Object(Map::new()));
        }
        let old = match merged[at].take() {
            Value::Object(old) => old,
            _ => Map::new(),
        };
        merged[at] = Value::Object(merge_map(old, members, place, depth)?);
    }
    Ok(merged)
}

/// Returns the members of a list's item, which merge by one of them.
fn object<'a>(item: &'a Value, list: &str) -> Result<&'a Map<String, Value>, Error> {
    item.as_object()
        .ok_or_else(|| Error::BadRequest(format!("expected items of {list} to be objects")))
}

/// Returns the order that a patch sets for one of its lists.
fn element_order<'a>(
    patch: &'a Map<String, Value>,
    list: &str,
) -> Result<Option<&'a [Value]>, Error> {
    let Some(order) = patch.get(&format!("{ELEMENT_ORDER}{list}")) else {
        return Ok(None);
    };
    let ordered = patch.get(list).is_none_or(Value::is_array);
    match order.as_array().filter(|_| ordered) {
        Some(order) => Ok(Some(order)),
        None => Err(Error::BadRequest(
            "invalid patch format of setElementOrder list".to_owned(),
        )),
    }
}

/// Checks that the items of a patch come in the order that it sets. Follows `validatePatchWithSetOrderList`.
fn check_order(patch: &[Value], order: Option<&[Value]>, by: ListMerge) -> Result<(), Error> {
    let identity = |item: &Value| match by {
        ListMerge::ByKey(key) => key_of(object(item, ELEMENT_ORDER)?, key).cloned(),
        ListMerge::Set | ListMerge::Replace => Ok(item.clone()),
    };
    let Some(order) = order.filter(|it| !it.is_empty()) else {
        return Ok(());
    };
    let places: Vec<Value> = order.iter().map(identity).collect::<Result<_, _>>()?;
    let mut places = places.iter();
    for item in patch.iter().filter(|item| item.get(PATCH).is_none()) {
        let item = identity(item)?;
        if !places.any(|it| *it == item) {
            return Err(Error::BadRequest(format!(
                "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
                super::go_words(&Value::from(patch)),
                super::go_words(&Value::from(order)),
            )));
        }
    }
    Ok(())
}

fn key_of<'a>(members: &'a Map<String, Value>, key: &str) -> Result<&'a Value, Error> {
    members.get(key).ok_or_else(|| {
        Error::BadRequest(format!(
            "map: {} does not contain declared merge key: {key}",
            super::go_words(&Value::Object(members.clone()))
        ))
    })
}

/// Orders items: those that the patch names in its order, the others in their former order among them. If both orders
/// are possible, the patch's items come first.
fn ordered(items: Vec<Value>, order: &[Value], live: &[Value], by: ListMerge) -> Vec<Value> {
    let (in_order, in_live) = (ranks(order, by), ranks(live, by));
    let (mut named, mut rest) = (Vec::new(), Vec::new());
    for item in items {
        let key = told_apart_by(&item, by);
        let was_at = key.and_then(|key| in_live.get(key).copied());
        let rank = key.and_then(|key| in_order.get(key).copied());
        match rank {
            Some(rank) => named.push((rank, was_at, item)),
            None => rest.push((was_at, item)),
        }
    }
    named.sort_by_key(|(rank, ..)| *rank);
    rest.sort_by_key(|(was_at, _)| *was_at);
    let mut merged = Vec::with_capacity(named.len() + rest.len());
    let mut rest = rest.into_iter().peekable();
    for (_, was_at, item) in named {
        let was_before = |(other, _): &(Option<usize>, Value)| {
            other.zip(was_at).is_some_and(|(other, item)| other < item)
        };
        while let Some((_, other)) = rest.next_if(was_before) {
            merged.push(other);
        }
        merged.push(item);
    }
    merged.extend(rest.map(|(_, other)| other));
    merged
}

/// Returns the index of the first item of each key.
fn ranks(list: &[Value], by: ListMerge) -> HashMap<&Value, usize> {
    let mut ranks = HashMap::with_capacity(list.len());
    for (rank, item) in list.iter().enumerate() {
        if let Some(key) = told_apart_by(item, by) {
            ranks.entry(key).or_insert(rank);
        }
    }
    ranks
}

/// Returns the value that identifies a list's item: that of the merge key, or the item itself.
fn told_apart_by(item: &Value, by: ListMerge) -> Option<&Value> {
    match by {
        ListMerge::ByKey(key) => item.get(key),
        ListMerge::Set => Some(item),
        ListMerge::Replace => None,
    }
}

/// The value of `$patch`.
#[derive(PartialEq, Eq)]
enum Directive {
    Delete,
    Replace,
}

fn directive(patch: &Map<String, Value>) -> Result<Option<Directive>, Error> {
    match patch.get(PATCH).map(|it| (it, it.as_str())) {
        None => Ok(None),
        Some((_, Some("delete"))) => Ok(Some(Directive::Delete)),
        Some((_, Some("replace"))) => Ok(Some(Directive::Replace)),
        Some((other, _)) => Err(Error::BadRequest(format!(
            "unknown patch type: {} in map: {}",
            super::go_words(other),
            super::go_words(&Value::Object(patch.clone()))
        ))),
    }
}

fn delete_from_set(merged: &mut Map<String, Value>, set: &str, gone: &Value) {
    if let (Some(Value::Array(items)), Value::Array(gone)) = (merged.get_mut(set), gone) {
        let gone: HashSet<&Value> = gone.iter().collect();
        items.retain(|item| !gone.contains(item));
    }
}

/// Returns a list without the items that are directives, and without directives in the others.
fn plain_items(items: &[Value]) -> Vec<Value> {
    let is_directive = |item: &&Value| item.get(PATCH).is_none();
    items.iter().filter(is_directive).map(plain).collect()
}

/// Returns a value without directives and nulls.
fn plain(value: &Value) -> Value {
    match value {
        Value::Object(members) => Value::Object(without_directives(members)),
        Value::Array(items) => Value::Array(plain_items(items)),
        scalar => scalar.clone(),
    }
}

/// Returns a map without directives and nulls.
fn without_directives(members: &Map<String, Value>) -> Map<String, Value> {
    let kept = members
        .iter()
        .filter(|(key, value)| !key.starts_with('$') && !value.is_null());
    kept.map(|(key, value)| (key.clone(), plain(value)))
        .collect()
}

#[cfg(test)]
mod model_tests;

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
                {"name": "c"}, {"name": "b", "tty": true, "image": null}],
            "strategy": {"$retainKeys": ["type"], "type": "Recreate"}},
            "metadata": {"$deleteFromPrimitiveList/finalizers": ["x"], "finalizers": ["z"]}});
        assert_eq!(
            patched(object, patch),
            json!({"spec": {"containers": [{"name": "c"}, {"name": "b", "tty": true}],
                "strategy": {"type": "Recreate"}}, "metadata": {"finalizers": ["z", "y"]}})
        );
    }

    #[test]
    fn what_a_patch_does_not_name_stays_where_it_was() {
        let named = |names: &[&str]| -> Value {
            let items: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
            json!({"spec": {"containers": items}})
        };
        for (live, patch, expected) in [
            (&["a", "b", "c"][..], &["c"][..], &["a", "b", "c"][..]),
            (&["a", "b", "c"], &["c", "a"], &["b", "c", "a"]),
            (&["a", "b"], &["new"], &["new", "a", "b"]),
            (&["a", "b", "c"], &["b", "new"], &["a", "b", "new", "c"]),
        ] {
            assert_eq!(
                patched(named(live), named(patch)),
                named(expected),
                "{patch:?}"
            );
        }
    }

    #[test]
    fn a_list_is_replaced_by_what_stands_beside_the_directive() {
        let object = json!({"spec": {"containers": [{"name": "a", "tty": true}, {"name": "b"}]}});
        let patch =
            json!({"spec": {"containers": [{"name": "a", "image": "x"}, {"$patch": "replace"}]}});
        let expected = json!({"spec": {"containers": [{"name": "a", "image": "x"}]}});
        assert_eq!(patched(object, patch), expected);
    }

    #[test]
    fn kinds_differ_in_how_their_lists_are_merged() {
        let conditions = |kind: &str| {
            let object = json!({"kind": kind, "status": {"conditions": [{"type": "A"}]}});
            let patch = json!({"status": {"conditions": [{"type": "B"}]}});
            patched(object, patch)["status"]["conditions"]
                .as_array()
                .map(Vec::len)
        };
        assert_eq!(conditions("Pod"), Some(2));
        assert_eq!(conditions("CertificateSigningRequest"), Some(1));
        let budget = json!({"kind": "PodDisruptionBudget", "spec": {"selector": {"matchLabels": {"a": "b"}}}});
        let patch = json!({"spec": {"selector": {"matchLabels": {"c": "d"}}}});
        assert_eq!(patched(budget, patch.clone())["spec"], patch["spec"]);
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
            json!({"spec": {"$patch": "merge"}}),
            json!({"spec": {"$retainKeys": ["a"], "b": 1}}),
            json!({"spec": {"containers": [{"image": "x"}]}}),
            json!({"spec": {"containers": [{"image": "x"}, {"$patch": "replace"}]}}),
            json!({"spec": {"containers": [{"$patch": "replace"}, {"$patch": "explode"}]}}),
            json!({"spec": {"containers": [{"$patch": "replace"}, {"$patch": "delete"}]}}),
            json!({"spec": {"containers": [1]}}),
            json!({"spec": {"$setElementOrder/containers": "a"}}),
            json!({"spec": {"$setElementOrder/containers": [{"name": "a"}], "containers": null}}),
            json!({"spec": {"$setElementOrder/containers": [{"image": "x"}], "containers": [{"name": "a"}]}}),
            json!({"spec": {"$setElementOrder/containers": [{"name": "a"}, {"name": "b"}],
                "containers": [{"name": "b"}, {"name": "a"}]}}),
            json!({"spec": {"$setElementOrder/containers": [{"name": "b"}], "containers": [{"name": "a"}]}}),
            json!({"metadata": {"$setElementOrder/finalizers": ["a", "b"], "finalizers": ["b", "a"]}}),
        ] {
            let object = json!({"spec": {"containers": [{"name": "a"}]}});
            assert!(merge(&object, &patch).is_err(), "{patch}");
        }
    }

    #[test]
    fn equal_keys_stay_apart_where_nothing_is_merged() {
        let (one, other) = (
            json!({"type": "InternalIP", "address": "10.0.0.1"}),
            json!({"type": "InternalIP", "address": "fd00::1"}),
        );
        let host = json!({"type": "Hostname", "address": "h"});
        let addresses = |live: Option<Value>, patch: Value| {
            let object = json!({"kind": "Node", "status": live.map_or_else(|| json!({}), |it| json!({"addresses": it}))});
            let patched = patched(object, json!({"status": {"addresses": patch}}));
            patched["status"]["addresses"].clone()
        };
        let replace = json!({"$patch": "replace"});
        let both = json!([one, other]);
        let live = || Some(json!([host]));
        // As kubelets and cloud providers send them.
        assert_eq!(addresses(live(), json!([one, other, replace])), both);
        assert_eq!(addresses(live(), json!([replace, one, other])), both);
        assert_eq!(addresses(None, json!([one, other])), both);
        assert_eq!(addresses(Some(json!([])), json!([one, other])), both);
        assert_eq!(addresses(None, json!([one, other, replace])), both);
        assert_eq!(
            addresses(live(), json!([one, host, other, replace])),
            json!([one, other, host]),
            "items of one key stand together"
        );
        // Without the directive, they are one item of a list that is there.
        assert_eq!(addresses(live(), json!([one, other])), json!([other, host]));
        assert_eq!(
            addresses(live(), json!([one, one, replace])),
            json!([one, one])
        );
    }

    #[test]
    fn lists_of_new_items_are_taken_as_they_are() {
        let object = json!({"spec": {"containers": [{"name": "a"}]}});
        let ports = json!([{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53, "protocol": "TCP"}]);
        let patch = json!({"spec": {"containers": [{"name": "b", "ports": ports}, {"name": "a", "ports": ports}]}});
        let patched = patched(object, patch);
        assert_eq!(patched["spec"]["containers"][0]["ports"], ports);
        assert_eq!(patched["spec"]["containers"][1]["ports"], ports);
    }
}
