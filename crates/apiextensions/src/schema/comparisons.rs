//! Compares values with older ones by their schema: what has not changed may break rules that are newer than it.
//!
//! Follows `CorrelatedObject` of Kubernetes. Older values are found by what the schema says: members by their names, if
//! it knows these, and items of lists by the keys of a map list. A member without a schema has no older value, and so
//! what it is in counts as changed, whatever is in it. The items of a map list may change places. All other lists
//! are compared as a whole.

use std::collections::HashMap;

use serde_json::Value;

use super::node::{ListType, SchemaNode};

/// Comparisons of the values of one object with older ones, each of which is made once.
#[derive(Debug, Default)]
pub(super) struct Comparisons {
    /// The outcomes for lists and objects, by the addresses of both values.
    known: HashMap<(usize, usize), bool>,
}

impl Comparisons {
    /// Returns true if a value is the same as the older one as far as its schema can tell.
    pub(super) fn is_unchanged(&mut self, node: &SchemaNode, value: &Value, old: &Value) -> bool {
        if !value.is_array() && !value.is_object() {
            return value == old;
        }
        let places = (address(value), address(old));
        if let Some(known) = self.known.get(&places) {
            return *known;
        }
        let is_same = self.compare(node, value, old);
        self.known.insert(places, is_same);
        is_same
    }

    fn compare(&mut self, node: &SchemaNode, value: &Value, old: &Value) -> bool {
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

    fn compare_items(&mut self, node: &SchemaNode, items: &[Value], old: &[Value]) -> bool {
        let (ListType::Map(_), Some(inner)) = (&node.list, node.items.as_deref()) else {
            return items == old;
        };
        let old = OlderItems::new(node, old);
        items.iter().all(|item| {
            let old = old.get(item);
            old.is_some_and(|old| self.is_unchanged(inner, item, old))
        })
    }
}

/// The items of an older list by their keys. Lists that are not maps have none.
pub(super) struct OlderItems<'v> {
    keys: &'v [String],
    items: HashMap<Vec<&'v Value>, &'v Value>,
}

impl<'v> OlderItems<'v> {
    pub(super) fn new(node: &'v SchemaNode, items: &'v [Value]) -> Self {
        let keys = match &node.list {
            ListType::Map(keys) => keys.as_slice(),
            ListType::Atomic | ListType::Set => &[],
        };
        let mut by_keys = HashMap::new();
        for item in items {
            if let Some(found) = values_of(keys, item) {
                // The first of several counts.
                by_keys.entry(found).or_insert(item);
            }
        }
        Self {
            keys,
            items: by_keys,
        }
    }

    /// Returns the older item with the keys of this one.
    pub(super) fn get(&self, item: &Value) -> Option<&'v Value> {
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

fn address(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}
