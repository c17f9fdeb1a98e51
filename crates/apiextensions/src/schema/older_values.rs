//! Older values in the form in which rules see them. Each is converted once: many new items of a list may have the keys
//! of one older item, and rules of what is in an item see a part of what those of the item have seen.

use std::collections::HashMap;

use kube_cel::cel::Value as CelValue;
use kube_cel::cel::objects::Key;
use ringwatch_cel::{list_items, plain};
use serde_json::Value;

use super::cel_value::{member_key, to_cel};
use super::node::SchemaNode;

/// An older value, and its forms in rules as far as it has them already.
#[derive(Clone)]
pub(super) struct OlderValue<'v> {
    value: &'v Value,
    /// As rules of its schema see it.
    typed: Option<CelValue>,
    /// As rules see it for which it may be missing: without a schema.
    plain: Option<CelValue>,
}

impl<'v> OlderValue<'v> {
    /// Makes one of a value, unless that is null.
    pub(super) fn new(value: &'v Value) -> Option<Self> {
        let (typed, plain) = (None, None);
        (!value.is_null()).then_some(Self {
            value,
            typed,
            plain,
        })
    }

    /// Returns the value.
    pub(super) fn value(&self) -> &'v Value {
        self.value
    }

    /// Returns the member of a name, unless that is null.
    pub(super) fn member(&self, node: &SchemaNode, name: &str) -> Option<Self> {
        let member = Self::new(self.value.get(name)?)?;
        let part = |whole: &Option<CelValue>, key: String| match whole {
            Some(CelValue::Map(map)) => map.map.get(&Key::from(key)).cloned(),
            _ => None,
        };
        let typed = self.typed.as_ref().map(|_| member_key(Some(node), name));
        Some(Self {
            typed: typed.and_then(|key| part(&self.typed, key)),
            plain: part(&self.plain, name.to_owned()),
            ..member
        })
    }

    /// Returns the item at an index, unless that is null.
    pub(super) fn item(&self, index: usize) -> Option<Self> {
        let item = Self::new(self.value.get(index)?)?;
        let part = |whole: &Option<CelValue>| {
            let items = whole.as_ref().and_then(list_items)?;
            items.get(index).cloned()
        };
        Some(Self {
            typed: part(&self.typed),
            plain: part(&self.plain),
            ..item
        })
    }
}

/// The older values that were converted by themselves and not as a part of another, by the addresses of their nodes and
/// their own, and those without a schema by their own. No two of either kind overlap, since a node whose rules see an
/// older value converts it before what is in it is visited: all of them together are no larger than the older object.
#[derive(Default)]
pub(super) struct OlderValues {
    typed: HashMap<(usize, usize), CelValue>,
    plain: HashMap<usize, CelValue>,
}

impl OlderValues {
    /// Returns an older value as rules of its schema see it.
    pub(super) fn typed(&mut self, node: &SchemaNode, older: &mut OlderValue<'_>) -> CelValue {
        let value = older.value;
        let typed = older.typed.get_or_insert_with(|| {
            let place = (std::ptr::from_ref(node).addr(), address(value));
            let known = self.typed.entry(place);
            known.or_insert_with(|| to_cel(value, Some(node))).clone()
        });
        typed.clone()
    }

    /// Returns an older value as rules see it that run without one too. To cel-go a variable that is an optional has
    /// what is in it as Go does, which knows no schema: times are texts, and names are not escaped.
    pub(super) fn plain(&mut self, older: &mut OlderValue<'_>) -> CelValue {
        let value = older.value;
        let plain = older.plain.get_or_insert_with(|| {
            let known = self.plain.entry(address(value));
            known.or_insert_with(|| plain(value)).clone()
        });
        plain.clone()
    }
}

fn address(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
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

    #[test]
    fn an_optional_older_value_is_as_it_is_written() {
        let text = json!({"type": "string"});
        let set = json!({"type": "array", "x-kubernetes-list-type": "set", "items": text});
        let time = json!({"type": "string", "format": "date-time"});
        let schema = |rule: &str| {
            about_x(
                json!({"type": "object", "properties": {"s": set, "t": time, "x-y": text},
                "x-kubernetes-validations": [{"rule": rule, "optionalOldSelf": true, "message": "broken"}]}),
            )
        };
        let object =
            |s: Value| json!({"spec": {"x": {"s": s, "t": "2020-01-01T00:00:00Z", "x-y": "a"}}});
        let (old, new) = (object(json!(["a", "b"])), object(json!(["b", "a"])));
        let broken = "spec.x: Invalid value: broken";
        let wrong =
            |why: &str| format!("spec.x: Invalid value: \"object\": {why} evaluating rule: broken");
        for (rule, expected) in [
            ("oldSelf.value().s == self.s", vec![broken.to_owned()]),
            ("self.s == oldSelf.value().s", Vec::new()),
            ("oldSelf.value().t == self.t", vec![broken.to_owned()]),
            (
                "oldSelf.value().x__dash__y == 'a'",
                vec![wrong("no such key: x__dash__y")],
            ),
            ("oldSelf.orValue(self).s[0] == 'a'", Vec::new()),
        ] {
            let said = lines(&schema(rule).validate_rules(&new, Some(&old)));
            assert_eq!(said, expected, "{rule}");
        }
        let said = lines(&schema("!oldSelf.hasValue()").validate_rules(&new, None));
        assert_eq!(said, [""; 0]);
    }

    #[test]
    fn the_older_value_of_a_message_is_no_optional() {
        let schema = |message: &str| {
            about_x(
                json!({"type": "string", "x-kubernetes-validations": [{"rule": "oldSelf.hasValue() && false",
                "optionalOldSelf": true, "message": "m", "messageExpression": message}]}),
            )
        };
        let object = |x: &str| json!({"spec": {"x": x}});
        for (message, with_old, without) in [
            ("'was ' + oldSelf.orValue('none')", "was a", "m"),
            ("oldSelf.hasValue() ? 'some' : 'none'", "m", "m"),
            ("'is ' + self", "is b", "is b"),
        ] {
            for (old, said) in [(Some(object("a")), with_old), (None, without)] {
                let errors = schema(message).validate_rules(&object("b"), old.as_ref());
                let expected = format!("spec.x: Invalid value: \"b\": {said}");
                assert_eq!(lines(&errors), [expected], "{message}");
            }
        }
    }
}
