//! Compares two objects, and lists the fields of a configuration.
//!
//! Both traverse by the type's schema, but list different paths: a comparison lists an added or removed object or item
//! and the fields in it, a configuration lists items, entries of maps and the fields without members below them.
//! Follows `Compare` and `ToFieldSet` of structured-merge-diff.

use std::collections::BTreeMap;

use serde_json::Value;
use smallvec::{SmallVec, smallvec};

use super::path::PathElement;
use super::schema::{Schema, item_key};
use super::set::FieldSet;
use super::shape::Shape;
use super::value::equal;

/// The differences between two objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Comparison {
    /// The fields that are in both and differ.
    pub(super) modified: FieldSet,
    /// The fields that are in the second alone.
    pub(super) added: FieldSet,
    /// The fields that are in the first alone.
    pub(super) removed: FieldSet,
}

impl Comparison {
    /// Compares two objects of a type.
    pub(super) fn new(schema: Schema<'_>, old: &Value, new: &Value) -> Self {
        let mut comparison = Self::default();
        comparison.walk(schema, &mut Vec::new(), Some(old), Some(new));
        comparison
    }

    /// Returns the fields that only the second object has, and those that differ.
    pub(super) fn into_changed(self) -> FieldSet {
        let mut changed = self.modified;
        changed.unite(self.added);
        changed
    }

    /// Returns true if there is no difference.
    #[cfg(test)]
    pub(super) fn is_same(&self) -> bool {
        self.modified.is_empty() && self.added.is_empty() && self.removed.is_empty()
    }

    /// Returns the differences that are neither at nor below these paths.
    pub(super) fn excluding(mut self, paths: &FieldSet) -> Self {
        for set in [&mut self.modified, &mut self.added, &mut self.removed] {
            set.subtract_recursively(paths);
        }
        self
    }

    fn walk(
        &mut self,
        schema: Schema<'_>,
        path: &mut Vec<PathElement>,
        old: Option<&Value>,
        new: Option<&Value>,
    ) {
        let shape = common_shape(schema, path, old, new);
        if shape != Shape::Leaf {
            self.parts(schema, path, children(shape, old), children(shape, new));
        }
        match (old, new) {
            (None, _) => self.added.insert(path),
            (_, None) => self.removed.insert(path),
            (Some(old), Some(new)) if shape == Shape::Leaf && !equal(old, new) => {
                self.modified.insert(path);
                let (before, after) = (schema.shape(path, old), schema.shape(path, new));
                if before != after {
                    let (olds, news) = (children(before, Some(old)), children(after, Some(new)));
                    self.parts(schema, path, olds, news);
                }
            }
            _ => {}
        }
    }

    /// Adds the differences at all steps from two values.
    fn parts(
        &mut self,
        schema: Schema<'_>,
        path: &mut Vec<PathElement>,
        olds: BTreeMap<PathElement, Behind<'_>>,
        mut news: BTreeMap<PathElement, Behind<'_>>,
    ) {
        for (element, old) in olds {
            let new = news.remove(&element).unwrap_or_default();
            // Most of an object is as it was.
            if !all_equal(&old, &new) {
                self.descend(schema, path, element, &old, &new);
            }
        }
        for (element, new) in news {
            self.descend(schema, path, element, &[], &new);
        }
    }

    /// Adds the differences at one step. Items that share a key are a whole, which is another thing than the one item
    /// that is there before or after it.
    fn descend(
        &mut self,
        schema: Schema<'_>,
        path: &mut Vec<PathElement>,
        element: PathElement,
        old: &[&Value],
        new: &[&Value],
    ) {
        path.push(element);
        match (old, new) {
            ([] | [_], [] | [_]) => {
                self.walk(schema, path, old.first().copied(), new.first().copied());
            }
            ([_, _, ..], [_, _, ..]) => self.modified.insert(path),
            (_, [] | [_]) => {
                if let [new] = new {
                    self.walk(schema, path, None, Some(new));
                }
                self.removed.insert(path);
            }
            ([] | [_], _) => {
                if let [old] = old {
                    self.walk(schema, path, Some(old), None);
                }
                self.added.insert(path);
            }
        }
        path.pop();
    }
}

/// Returns the fields that a configuration names.
pub(super) fn field_set(schema: Schema<'_>, config: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    collect(schema, &mut Vec::new(), config, &mut set);
    set
}

fn collect(schema: Schema<'_>, path: &mut Vec<PathElement>, value: &Value, set: &mut FieldSet) {
    let shape = schema.shape(path, value);
    if shape == Shape::Leaf || value.as_object().is_some_and(serde_json::Map::is_empty) {
        set.insert(path);
        return;
    }
    let is_named = schema.names_at(path);
    for (element, values) in children(shape, Some(value)) {
        path.push(element);
        if !is_named(path) {
            set.insert(path);
        }
        if let [value] = values.as_slice() {
            collect(schema, path, value, set);
        }
        path.pop();
    }
}

/// Returns how two values at a path merge: as wholes if they do not agree or both are empty. Null agrees with
/// everything, and is empty.
pub(super) fn common_shape<'a>(
    schema: Schema<'a>,
    path: &[PathElement],
    old: Option<&Value>,
    new: Option<&Value>,
) -> Shape<'a> {
    let present = |value: Option<&Value>| {
        let value = value.filter(|value| !value.is_null())?;
        Some((schema.shape(path, value), is_empty(value)))
    };
    match (present(old), present(new)) {
        (None, None) => Shape::Leaf,
        (Some((shape, empty)), None) | (None, Some((shape, empty))) => {
            if empty {
                Shape::Leaf
            } else {
                shape
            }
        }
        (Some((one, one_empty)), Some((other, other_empty))) => {
            if one == other && !(one_empty && other_empty) {
                one
            } else {
                Shape::Leaf
            }
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// The values at a step: more than one only where items share a step.
type Behind<'v> = SmallVec<[&'v Value; 1]>;

fn all_equal(one: &[&Value], other: &[&Value]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
}

/// Returns the steps from a value, each with the values there; none from one that is one whole.
fn children<'v>(shape: Shape<'_>, value: Option<&'v Value>) -> BTreeMap<PathElement, Behind<'v>> {
    let mut children: BTreeMap<_, Behind<'v>> = BTreeMap::new();
    match value {
        Some(_) if shape == Shape::Leaf => {}
        Some(Value::Object(members)) => {
            for (name, member) in members {
                children.insert(PathElement::field(name), smallvec![member]);
            }
        }
        Some(Value::Array(items)) => {
            for item in items {
                if let Some(element) = item_element(shape, item) {
                    children.entry(element).or_default().push(item);
                }
            }
        }
        _ => {}
    }
    children
}

/// Returns the step to an item of a list that merges item by item.
pub(super) fn item_element(shape: Shape<'_>, item: &Value) -> Option<PathElement> {
    match shape {
        Shape::Keyed(keys) => item_key(keys, item),
        Shape::Set => Some(PathElement::value(item)),
        Shape::Leaf | Shape::Object => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod() -> Schema<'static> {
        Schema::new("v1", "Pod", None)
    }

    #[test]
    fn what_came_counts_as_a_whole_and_in_its_parts() {
        let old = json!({"spec": {"containers": null}});
        let new = json!({"spec": {"containers": [
            {"name": "c", "resources": {}, "ports": [{"containerPort": 80}]}]}});
        let comparison = Comparison::new(pod(), &old, &new);
        let expected = json!({"f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {
            ".": {}, "f:name": {}, "f:resources": {},
            "f:ports": {".": {}, "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {
                ".": {}, "f:containerPort": {}}}}}}});
        assert_eq!(comparison.added.to_json(), expected);
        assert!(comparison.modified.is_empty() && comparison.removed.is_empty());
        let back = Comparison::new(pod(), &new, &old);
        assert_eq!(back.removed, comparison.added);
    }

    #[test]
    fn wholes_are_compared_as_one() {
        let old = json!({"spec": {"tolerations": [{"key": "a"}], "nodeSelector": {"a": "1"}}});
        let new = json!({"spec": {"tolerations": [{"key": "b"}], "nodeSelector": {"b": "1"}}});
        let modified = Comparison::new(pod(), &old, &new).modified.to_json();
        assert_eq!(
            modified,
            json!({"f:spec": {"f:tolerations": {}, "f:nodeSelector": {}}})
        );
        assert!(Comparison::new(pod(), &old, &old).is_same());
    }

    #[test]
    fn items_with_the_same_key_are_one_whole() {
        let node = Schema::new("v1", "Node", None);
        let old = json!({"status": {"addresses": [{"type": "IP", "address": "1"}]}});
        let new = json!({"status": {"addresses": [
            {"type": "IP", "address": "1"}, {"type": "IP", "address": "2"}]}});
        let at =
            |below: Value| json!({"f:status": {"f:addresses": {"k:{\"type\":\"IP\"}": below}}});
        let one = at(json!({".": {}, "f:type": {}, "f:address": {}}));
        let repeated = Comparison::new(node, &old, &new);
        assert_eq!(repeated.added.to_json(), at(json!({})));
        assert_eq!(repeated.removed.to_json(), one);
        let single = Comparison::new(node, &new, &old);
        assert_eq!(single.added.to_json(), one);
        assert_eq!(single.removed.to_json(), at(json!({})));
        let other = json!({"status": {"addresses": [{"type": "IP"}, {"type": "IP"}]}});
        let changed = Comparison::new(node, &new, &other);
        assert_eq!(changed.modified.to_json(), at(json!({})));
        assert!(changed.added.is_empty() && changed.removed.is_empty());
    }

    #[test]
    fn a_configuration_names_items_and_ends() {
        let config = json!({"metadata": {"labels": {"a": "1"}, "finalizers": ["x"]}, "spec": {
            "containers": [{"name": "c", "image": "i"}], "securityContext": {}}});
        let expected = json!({
            "f:metadata": {"f:labels": {"f:a": {}}, "f:finalizers": {"v:\"x\"": {}}},
            "f:spec": {
                "f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:image": {}, "f:name": {}}},
                "f:securityContext": {},
            },
        });
        assert_eq!(field_set(pod(), &config).to_json(), expected);
    }
}
