//! Compares values with older ones by their schema: what has not changed may break rules that are newer than it.
//!
//! Follows `CorrelatedObject` of Kubernetes. Older values are found by what the schema says: members by their names, if
//! it knows these, and items of lists by the keys of a map list. A member without a schema has no older value, and so
//! what it is in counts as changed, whatever is in it. The items of a map list may change places. All other lists
//! are compared as a whole.

use std::collections::HashMap;
use std::rc::Rc;

use ringwatch_apimachinery::numbers::deep_equal;
use serde_json::Value;

use super::node::{ListType, SchemaNode};

/// Comparisons of the values of one object with older ones, each of which is made once.
///
/// They are found by addresses: nodes and objects stay where they are as long as the comparisons last.
#[derive(Debug, Default)]
pub(super) struct Comparisons<'v> {
    /// The outcomes for lists and objects, by the addresses of the node and of both values.
    known: HashMap<(usize, usize, usize), bool>,
    /// The items of older lists, by the addresses of the node and of the list. Many new items may have the keys of one
    /// older item, whose lists are then compared with those of each.
    older: HashMap<(usize, usize), Rc<OlderItems<'v>>>,
}

impl<'v> Comparisons<'v> {
    /// Returns true if a value is the same as the older one as far as its schema can tell.
    pub(super) fn is_unchanged(
        &mut self,
        node: &'v SchemaNode,
        value: &Value,
        old: &'v Value,
    ) -> bool {
        if !value.is_array() && !value.is_object() {
            return deep_equal(value, old);
        }
        let places = (address(node), address(value), address(old));
        if let Some(known) = self.known.get(&places) {
            return *known;
        }
        let is_same = self.compare(node, value, old);
        self.known.insert(places, is_same);
        is_same
    }

    /// Returns the items of an older list.
    pub(super) fn older_items(
        &mut self,
        node: &'v SchemaNode,
        items: &'v [Value],
    ) -> Rc<OlderItems<'v>> {
        let place = (address(node), items.as_ptr().addr());
        let older = self.older.entry(place);
        Rc::clone(older.or_insert_with(|| Rc::new(OlderItems::new(node, items))))
    }

    fn compare(&mut self, node: &'v SchemaNode, value: &Value, old: &'v Value) -> bool {
        match (value, old) {
            (Value::Array(items), Value::Array(old)) => {
                items.len() == old.len() && self.compare_items(node, items, old)
            }
            (Value::Object(members), Value::Object(old)) => {
                members.len() == old.len()
                    && members.iter().all(|(name, value)| {
                        let (inner, old) = (node.member(name), old.get(name));
                        let both = inner.zip(old);
                        both.is_some_and(|(inner, old)| self.is_unchanged(inner, value, old))
                    })
            }
            _ => false,
        }
    }

    fn compare_items(&mut self, node: &'v SchemaNode, items: &[Value], old: &'v [Value]) -> bool {
        let (ListType::Map(_), Some(inner)) = (&node.list, node.items.as_deref()) else {
            return items
                .iter()
                .zip(old)
                .all(|(item, old)| deep_equal(item, old));
        };
        let old = self.older_items(node, old);
        items.iter().all(|item| {
            let old = old.get(item);
            old.is_some_and(|old| self.is_unchanged(inner, item, old))
        })
    }
}

/// The items of an older list by their keys. Lists that are not maps have none.
#[derive(Debug)]
pub(super) struct OlderItems<'v> {
    keys: &'v [String],
    items: HashMap<Vec<&'v Value>, (usize, &'v Value)>,
}

impl<'v> OlderItems<'v> {
    fn new(node: &'v SchemaNode, items: &'v [Value]) -> Self {
        let keys = match &node.list {
            ListType::Map(keys) => keys.as_slice(),
            ListType::Atomic | ListType::Set => &[],
        };
        let mut by_keys = HashMap::new();
        for (index, item) in items.iter().enumerate() {
            if let Some(found) = values_of(keys, item) {
                // The first of several counts.
                by_keys.entry(found).or_insert((index, item));
            }
        }
        Self {
            keys,
            items: by_keys,
        }
    }

    /// Returns the older item with the keys of this one.
    pub(super) fn get(&self, item: &Value) -> Option<&'v Value> {
        self.found(item).map(|(_, old)| old)
    }

    /// Returns the index of the older item with the keys of this one.
    pub(super) fn index_of(&self, item: &Value) -> Option<usize> {
        self.found(item).map(|(index, _)| index)
    }

    fn found(&self, item: &Value) -> Option<(usize, &'v Value)> {
        let found = values_of(self.keys, item)?;
        self.items.get(&found).copied()
    }
}

/// Returns the values of an item's keys; `None` if one is missing or is no scalar, or there are no keys.
fn values_of<'i>(keys: &[String], item: &'i Value) -> Option<Vec<&'i Value>> {
    let is_scalar = |it: &&Value| it.is_string() || it.is_number() || it.is_boolean();
    let values: Option<Vec<_>> = keys
        .iter()
        .map(|key| item.get(key).filter(is_scalar))
        .collect();
    values.filter(|it| !it.is_empty())
}

fn address<T>(value: &T) -> usize {
    std::ptr::from_ref(value).addr()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::rule_tests::about_x;

    /// A rule that nothing fulfils, so that it says what counts as changed.
    fn never(mut schema: Value) -> Value {
        schema["x-kubernetes-validations"] = json!([{"rule": "false", "message": "m"}]);
        schema
    }

    fn is_changed(x: Value, new: Value, old: Value) -> bool {
        let [new, old] = [new, old].map(|x| json!({"spec": {"x": x}}));
        !about_x(x).validate_rules(&new, Some(&old)).is_empty()
    }

    fn map_list(keys: &[&str]) -> Value {
        let text = json!({"type": "string"});
        json!({"type": "array", "maxItems": 4, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
            "items": {"type": "object", "required": keys, "properties": {"a": text, "b": text, "c": text}}})
    }

    #[test]
    fn a_map_list_whose_items_changed_places_has_not_changed() {
        let (one, other) = (json!({"a": "1", "c": "x"}), json!({"a": "2"}));
        let old = json!([one, other]);
        let of = |new| is_changed(never(map_list(&["a"])), new, old.clone());
        assert!(!of(json!([other, one])));
        assert!(of(json!([other, {"a": "1"}])));
        // Each item is what it was, which is all that kube-apiserver asks.
        assert!(!of(json!([other, other])));
        assert!(of(json!([other])));
    }

    #[test]
    fn an_item_is_the_older_one_if_all_its_keys_are() {
        let keys = ["a", "b"];
        let item = |a: &str, b: &str, c: &str| json!({"a": a, "b": b, "c": c});
        let old = json!([item("1", "1", "x"), item("1", "2", "y")]);
        let of = |new| is_changed(never(map_list(&keys)), new, old.clone());
        assert!(!of(json!([item("1", "2", "y"), item("1", "1", "x")])));
        assert!(of(json!([item("1", "2", "x"), item("1", "1", "y")])));
        assert!(of(json!([item("2", "1", "x"), item("1", "2", "y")])));
    }

    #[test]
    fn a_set_is_compared_as_a_whole() {
        let set = json!({"type": "array", "maxItems": 4, "x-kubernetes-list-type": "set", "items": {"type": "string"}});
        let of = |new| is_changed(never(set.clone()), new, json!(["1", "2"]));
        assert!(!of(json!(["1", "2"])));
        assert!(of(json!(["2", "1"])));
    }

    #[test]
    fn members_without_a_schema_change_what_they_are_in() {
        let some = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"a": {"type": "string"}}});
        let of = |value: Value| is_changed(never(some.clone()), value.clone(), value);
        assert!(!of(json!({"a": "1"})));
        assert!(of(json!({"a": "1", "z": 1})));
    }

    #[test]
    fn an_older_list_is_read_once_for_all_that_is_compared_with_it() {
        let x = about_x(map_list(&["a"]));
        let node = &x.root.properties["spec"].properties["x"];
        let lists = [json!([{"a": "1"}]), json!([{"a": "1"}])];
        let [one, other] = [&lists[0], &lists[1]].map(|it| it.as_array().unwrap());
        let mut comparisons = Comparisons::default();
        let older = comparisons.older_items(node, one);
        assert!(Rc::ptr_eq(&older, &comparisons.older_items(node, one)));
        assert!(!Rc::ptr_eq(&older, &comparisons.older_items(node, other)));
        let found = older.get(&other[0]).expect("an item with the key");
        assert!(std::ptr::eq(found, &raw const one[0]));
    }
}
