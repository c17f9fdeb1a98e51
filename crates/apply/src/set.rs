//! Sets of fields: the content of `fieldsV1`.
//!
//! A set is a tree of steps, each with a mark if the path that ends there is a member. The hard part is that owning an
//! object and owning its fields are different things: a member with no members below it is an empty node, one with
//! members below it has a `.`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde_json::{Map, Value};

use super::path::PathElement;

/// The mark of a path in the set that has longer ones below it.
const MEMBER: &str = ".";

/// A set of paths to fields, as `fieldsV1` has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FieldSet {
    /// True if the path that ends here is in the set; never at the root.
    member: bool,
    /// The longer paths. Without a member somewhere below there is no child.
    children: BTreeMap<PathElement, Self>,
}

impl FieldSet {
    /// Reads `fieldsV1`; `None` if it is something else.
    pub(super) fn from_json(json: &Value) -> Option<Self> {
        let mut set = Self::default();
        for (text, below) in json.as_object()? {
            if text == MEMBER {
                set.member = true;
                continue;
            }
            let mut child = Self::from_json(below)?;
            child.member |= child.children.is_empty();
            set.children.insert(PathElement::parse(text)?, child);
        }
        Some(set)
    }

    /// Returns the set as `fieldsV1`.
    pub(super) fn to_json(&self) -> Value {
        let mut json = Map::new();
        for (element, child) in &self.children {
            let mut below = child.to_json();
            if let (true, Value::Object(below)) =
                (child.member && !child.children.is_empty(), &mut below)
            {
                below.insert(MEMBER.to_owned(), Value::Object(Map::new()));
            }
            json.insert(element.encode(), below);
        }
        Value::Object(json)
    }

    /// Returns true if this is JSON of a set that is not empty, just as [`Self::to_json`] writes it.
    pub(super) fn is_written(json: &Value) -> bool {
        json.as_object()
            .is_some_and(|steps| !steps.contains_key(MEMBER) && are_written(steps))
    }

    /// Returns true if a set, given as JSON, has all paths of this one, and none below them.
    pub(super) fn is_within(&self, json: &Value) -> bool {
        let is_end = |it: &Value| it.as_object().is_some_and(Map::is_empty);
        self.children.iter().all(|(element, child)| {
            let below = json.get(element.encode());
            below.is_some_and(|it| (!child.member || is_end(it)) && child.is_within(it))
        })
    }

    /// Returns true if a set, given as JSON, has a path of this one, or one below it.
    pub(super) fn meets(&self, json: &Value) -> bool {
        self.children.iter().any(|(element, child)| {
            let below = json.get(element.encode());
            below.is_some_and(|it| child.member || child.meets(it))
        })
    }

    /// Adds a path. The empty path is not a field and stays out.
    pub(super) fn insert(&mut self, path: &[PathElement]) {
        let mut node = self;
        for element in path {
            // Most steps are there already, and only a new one needs a copy.
            if !node.children.contains_key(element) {
                node.children.insert(element.clone(), Self::default());
            }
            let Some(child) = node.children.get_mut(element) else {
                return;
            };
            node = child;
        }
        node.member = !path.is_empty();
    }

    /// Puts the path to a step in place of all paths below it, wherever `is_whole` says so of the path and of whether
    /// the steps from it lead to items of a list.
    pub(super) fn join_below(
        &mut self,
        path: &mut Vec<PathElement>,
        is_whole: &impl Fn(&[PathElement], bool) -> bool,
    ) {
        for (element, child) in &mut self.children {
            let Some(first) = child.children.keys().next() else {
                continue;
            };
            let has_items = !matches!(first, PathElement::Field(_));
            path.push(element.clone());
            if is_whole(path, has_items) {
                child.children.clear();
                child.member = true;
            } else {
                child.join_below(path, is_whole);
            }
            path.pop();
        }
    }

    /// Returns true if there is no path in it.
    pub(super) fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }

    /// Returns true if the step alone is a path in it.
    pub(super) fn has(&self, element: &PathElement) -> bool {
        self.children.get(element).is_some_and(|child| child.member)
    }

    /// Returns the set of the paths below a step.
    pub(super) fn below(&self, element: &PathElement) -> Option<&Self> {
        self.children
            .get(element)
            .filter(|child| !child.children.is_empty())
    }

    /// Adds the paths of the other set.
    pub(super) fn unite(&mut self, other: Self) {
        self.member |= other.member;
        for (element, child) in other.children {
            match self.children.entry(element) {
                Entry::Vacant(place) => {
                    place.insert(child);
                }
                Entry::Occupied(mut mine) => mine.get_mut().unite(child),
            }
        }
    }

    /// Returns the paths that are in both.
    #[must_use]
    pub(super) fn intersection(&self, other: &Self) -> Self {
        let both = |(element, child): (&PathElement, &Self)| {
            let common = child.intersection(other.children.get(element)?);
            (!common.is_empty()).then(|| (element.clone(), common))
        };
        Self {
            member: self.member && other.member,
            children: self.children.iter().filter_map(both).collect(),
        }
    }

    /// Returns the paths that are not in the other set.
    #[must_use]
    pub(super) fn difference(&self, other: &Self) -> Self {
        let mut rest = self.clone();
        rest.subtract(other);
        rest
    }

    /// Removes the paths of the other set; paths below these stay.
    pub(super) fn subtract(&mut self, other: &Self) {
        self.take_away(other, false);
    }

    /// Removes the paths of the other set and all paths below these.
    pub(super) fn subtract_recursively(&mut self, other: &Self) {
        self.take_away(other, true);
    }

    fn take_away(&mut self, other: &Self, recursive: bool) {
        if recursive && other.member {
            *self = Self::default();
            return;
        }
        self.member &= !other.member;
        // A change of many fields is taken from many managers of few.
        if self.children.len() < other.children.len() {
            self.children.retain(|element, mine| {
                if let Some(theirs) = other.children.get(element) {
                    mine.take_away(theirs, recursive);
                }
                !mine.is_empty()
            });
            return;
        }
        for (element, theirs) in &other.children {
            let Some(mine) = self.children.get_mut(element) else {
                continue;
            };
            mine.take_away(theirs, recursive);
            if mine.is_empty() {
                self.children.remove(element);
            }
        }
    }

    /// Returns this set and, of each path in it, all steps on the way that are names of fields: `names_at` a path
    /// returns the test of those one step further.
    #[must_use]
    pub(super) fn with_named_fields<N: Fn(&[PathElement]) -> bool>(
        &self,
        path: &mut Vec<PathElement>,
        names_at: &impl Fn(&[PathElement]) -> N,
    ) -> Self {
        let is_named = names_at(path);
        let children = self.children.iter().map(|(element, child)| {
            path.push(element.clone());
            let mut child = child.with_named_fields(path, names_at);
            child.member |= is_named(path);
            path.pop();
            (element.clone(), child)
        });
        Self {
            member: self.member,
            children: children.collect(),
        }
    }

    /// Returns the paths as messages show them, those of one level before those below it, until they have so many
    /// bytes. Follows `Set.Iterate` of structured-merge-diff.
    pub(super) fn show(&self, bytes_max: usize) -> Vec<String> {
        let mut shown = ShownPaths {
            paths: Vec::new(),
            bytes_left: bytes_max,
        };
        shown.walk(self, &mut String::new());
        shown.paths
    }

    /// Returns all paths, each before those below it.
    #[cfg(test)]
    pub(super) fn paths(&self) -> Vec<Vec<PathElement>> {
        let mut paths = Vec::new();
        self.collect(&mut Vec::new(), &mut paths);
        paths
    }

    #[cfg(test)]
    fn collect(&self, path: &mut Vec<PathElement>, paths: &mut Vec<Vec<PathElement>>) {
        if self.member {
            paths.push(path.clone());
        }
        for (element, child) in &self.children {
            path.push(element.clone());
            child.collect(path, paths);
            path.pop();
        }
    }
}

/// Returns true if steps that are not the root's, and those below them, are written as [`FieldSet::to_json`] does.
fn are_written(steps: &Map<String, Value>) -> bool {
    let is_written = |(text, below): (&String, &Value)| {
        let Value::Object(below) = below else {
            return false;
        };
        if text == MEMBER {
            return below.is_empty();
        }
        let canonical = || PathElement::parse(text).is_some_and(|step| step.encode() == *text);
        (text.starts_with("f:") || canonical()) && (below.is_empty() || are_written(below))
    };
    steps.keys().any(|text| text != MEMBER) && steps.iter().all(is_written)
}

/// Paths of a set as messages show them.
struct ShownPaths {
    paths: Vec<String>,
    bytes_left: usize,
}

impl ShownPaths {
    fn walk(&mut self, set: &FieldSet, path: &mut String) {
        let mut children: Vec<_> = set.children.iter().collect();
        children.sort_by_cached_key(|(element, _)| element.place());
        let members = children.iter().filter(|(_, child)| child.member);
        for (element, _) in members {
            if self.bytes_left == 0 {
                return;
            }
            let member = format!("{path}{element}");
            self.bytes_left = self.bytes_left.saturating_sub(member.len());
            self.paths.push(member);
        }
        for (element, child) in children {
            if self.bytes_left == 0 {
                return;
            }
            let length = path.len();
            path.push_str(&element.to_string());
            self.walk(child, path);
            path.truncate(length);
        }
    }
}

/// A set of paths of members: `a.b` is the member `b` of the member `a`.
impl<'a> FromIterator<&'a str> for FieldSet {
    fn from_iter<I: IntoIterator<Item = &'a str>>(paths: I) -> Self {
        let mut set = Self::default();
        for path in paths {
            let path: Vec<_> = path.split('.').map(PathElement::field).collect();
            set.insert(&path);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_dot_marks_members_with_something_below() {
        let json = json!({
            "f:data": {".": {}, "f:k": {}},
            "f:metadata": {"f:labels": {"f:app": {}}},
            "f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:image": {}}}},
        });
        let set = FieldSet::from_json(&json).expect("a set");
        assert_eq!(set.to_json(), json);
        assert_eq!(set.show(8), [".data", ".data.k"]);
        assert_eq!(
            set.show(usize::MAX),
            [
                ".data",
                ".data.k",
                ".metadata.labels.app",
                ".spec.containers[name=\"c\"]",
                ".spec.containers[name=\"c\"].image",
            ]
        );
        assert_eq!(FieldSet::from_json(&json!({"g:x": {}})), None);
        assert_eq!(FieldSet::from_json(&json!([])), None);
    }

    #[test]
    fn other_forms_of_sets_are_not_as_written() {
        for json in [
            json!({}),
            json!([]),
            json!({".": {}, "f:a": {}}),
            json!({"f:a": {".": {}}}),
            json!({"f:a": {".": {"f:b": {}}, "f:b": {}}}),
            json!({"f:a": null}),
            json!({"f:a": {"k:{ }": {}}}),
            json!({"x:a": {}}),
        ] {
            assert!(!FieldSet::is_written(&json), "{json}");
        }
    }

    type Model = BTreeSet<Vec<PathElement>>;

    fn paths() -> impl Strategy<Value = Model> {
        let element = prop_oneof![
            "[ab]".prop_map(|name| PathElement::field(&name)),
            "[xy]".prop_map(|text| PathElement::value(&text.into())),
            (0..2u64).prop_map(|port| PathElement::Key(format!("{{\"port\":{port}}}"))),
        ];
        prop::collection::btree_set(prop::collection::vec(element, 1..4), 0..8)
    }

    fn set(paths: &Model) -> FieldSet {
        let mut set = FieldSet::default();
        paths.iter().for_each(|path| set.insert(path));
        set
    }

    fn model(set: &FieldSet) -> Model {
        set.paths().into_iter().collect()
    }

    proptest! {
        #[test]
        fn the_algebra_is_that_of_sets(one in paths(), other in paths()) {
            let (a, b) = (set(&one), set(&other));
            prop_assert_eq!(model(&a), one.clone());
            prop_assert_eq!(a.intersection(&b), set(&(&one & &other)));
            let mut united = a.clone();
            united.unite(b.clone());
            prop_assert_eq!(united, set(&(&one | &other)));
            let mut left = a.clone();
            left.subtract(&b);
            prop_assert_eq!(left, set(&(&one - &other)));
            let outside = |path: &&Vec<PathElement>| !other.iter().any(|it| path.starts_with(it));
            let rest: Model = one.iter().filter(outside).cloned().collect();
            let mut left = a;
            left.subtract_recursively(&b);
            prop_assert_eq!(left, set(&rest));
        }

        #[test]
        fn a_set_is_read_back_from_its_json(paths in paths()) {
            let set = set(&paths);
            let json = set.to_json();
            prop_assert_eq!(FieldSet::is_written(&json), !paths.is_empty());
            prop_assert_eq!(FieldSet::from_json(&json), Some(set));
        }

        #[test]
        fn sets_are_compared_with_json_as_with_sets(one in paths(), other in paths()) {
            let (a, json) = (set(&one), set(&other).to_json());
            let below = |path: &Vec<PathElement>| other.iter().filter(|it| it.starts_with(path)).count();
            let is_end = |path: &Vec<PathElement>| other.contains(path) && below(path) == 1;
            prop_assert_eq!(a.is_within(&json), one.iter().all(is_end));
            prop_assert_eq!(a.meets(&json), one.iter().any(|path| below(path) > 0));
        }
    }
}
