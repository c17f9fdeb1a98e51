//! Older values in the form in which rules see them. Each is converted once: many new items of a list may have the keys
//! of one older item, and rules of what is in an item see a part of what those of the item have seen.

use std::collections::HashMap;

use kube_cel::cel::Value as CelValue;
use kube_cel::cel::objects::Key;
use ringwatch_cel::list_items;
use serde_json::Value;

use super::cel_value::{member_key, to_cel};
use super::node::SchemaNode;

/// An older value, and its form in rules if it has one already.
#[derive(Clone)]
pub(super) struct OlderValue<'v> {
    value: &'v Value,
    converted: Option<CelValue>,
}

impl<'v> OlderValue<'v> {
    /// Makes one of a value, unless that is null.
    pub(super) fn new(value: &'v Value) -> Option<Self> {
        let converted = None;
        (!value.is_null()).then_some(Self { value, converted })
    }

    /// Returns the value.
    pub(super) fn value(&self) -> &'v Value {
        self.value
    }

    /// Returns the member of a name, unless that is null.
    pub(super) fn member(&self, node: &SchemaNode, name: &str) -> Option<Self> {
        let member = Self::new(self.value.get(name)?)?;
        let converted = match &self.converted {
            Some(CelValue::Map(map)) => {
                let key = Key::String(member_key(Some(node), name).into());
                map.map.get(&key).cloned()
            }
            _ => None,
        };
        Some(Self {
            converted,
            ..member
        })
    }

    /// Returns the item at an index, unless that is null.
    pub(super) fn item(&self, index: usize) -> Option<Self> {
        let item = Self::new(self.value.get(index)?)?;
        let items = self.converted.as_ref().and_then(list_items);
        let converted = items.and_then(|items| items.get(index)).cloned();
        Some(Self { converted, ..item })
    }
}

/// The older values that were converted by themselves and not as a part of another, by the addresses of their nodes and
/// their own. No two of them overlap, since a node whose rules see an older value converts it before what is in it is
/// visited: all of them together are no larger than the older object.
#[derive(Default)]
pub(super) struct OlderValues {
    converted: HashMap<(usize, usize), CelValue>,
}

impl OlderValues {
    /// Returns an older value as rules of its schema see it.
    pub(super) fn converted(&mut self, node: &SchemaNode, older: &mut OlderValue<'_>) -> CelValue {
        if let Some(converted) = &older.converted {
            return converted.clone();
        }
        let place = (
            std::ptr::from_ref(node).addr(),
            std::ptr::from_ref(older.value).addr(),
        );
        let converted = self.converted.entry(place);
        let converted = converted.or_insert_with(|| to_cel(older.value, Some(node)));
        older.converted = Some(converted.clone());
        converted.clone()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::cel_value::CONVERTED;
    use super::super::rule_tests::{about_x, lines};
    use super::*;

    /// A map list whose items have numbers.
    fn list(item_rules: &Value, numbers_rules: &Value) -> Value {
        json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "required": ["name"], "x-kubernetes-validations": item_rules,
                "properties": {"name": {"type": "string"}, "own-numbers": {"type": "array",
                    "items": {"type": "integer"}, "x-kubernetes-validations": numbers_rules}}}})
    }

    #[test]
    fn an_older_item_is_converted_once_for_all_items_with_its_key() {
        const ITEMS: usize = 50;
        const NUMBERS: usize = 100;
        let true_of_old = json!([{"rule": "oldSelf == oldSelf"}]);
        let none = json!([]);
        for (item_rules, numbers_rules) in [
            (&true_of_old, &none),
            (&none, &true_of_old),
            (&true_of_old, &true_of_old),
        ] {
            let schema = about_x(list(item_rules, numbers_rules));
            let object = |items: Value| json!({"spec": {"x": items}});
            let old = json!({"name": "a", "own-numbers": vec![1; NUMBERS]});
            let old = object(json!([old]));
            let new = vec![json!({"name": "a", "own-numbers": [1]}); ITEMS];
            CONVERTED.set(0);
            let errors = schema.validate_rules(&object(json!(new)), Some(&old));
            assert_eq!(lines(&errors), [""; 0]);
            let of_new = 6 * ITEMS;
            let of_old = NUMBERS + 3;
            assert!(CONVERTED.get() <= of_new + of_old, "{}", CONVERTED.get());
        }
    }

    #[test]
    fn rules_see_the_part_of_an_older_value_that_is_at_their_place() {
        let item = json!([{"rule": "size(oldSelf.own__dash__numbers) == 2"}]);
        let numbers = json!([{"rule": "oldSelf[1] < self[0]"}]);
        let schema = about_x(list(&item, &numbers));
        let object = |items: Value| json!({"spec": {"x": items}});
        let old = object(json!([
            {"name": "a", "own-numbers": [1, 2]}, {"name": "b", "own-numbers": [3, 4]}
        ]));
        let new = object(json!([
            {"name": "b", "own-numbers": [4]}, {"name": "a", "own-numbers": [4]},
            {"name": "c", "own-numbers": [0]}
        ]));
        let errors = schema.validate_rules(&new, Some(&old));
        let why = "Invalid value: failed rule: oldSelf[1] < self[0]";
        assert_eq!(lines(&errors), [format!("spec.x[0].own-numbers: {why}")]);
    }
}
